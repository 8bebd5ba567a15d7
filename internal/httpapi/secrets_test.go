package httpapi_test

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/secret"
)

func TestSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var name string
	var value sallyport.Secret
	w.secrets.set = func(n string, v sallyport.Secret) (sallyport.SecretInfo, error) {
		name, value = n, v
		return sallyport.SecretInfo{Name: n, CreatedAt: now(), UpdatedAt: now(), UpdatedBy: "alice"}, nil
	}
	for body, want := range map[string]sallyport.Secret{
		`{"value":"hunter2 ä"}`:           "hunter2 ä",
		`{"value_base64":"aHVudGVyMv8="}`: "hunter2\xff",
	} {
		got := w.call(http.MethodPut, "/v1/secrets/API_TOKEN", body)
		if got.status != http.StatusOK || name != "API_TOKEN" || value != want {
			t.Errorf("%s: %d %s, got %q = %q", body, got.status, got.body, name, string(value))
		}
		if bytes.Contains(got.body, []byte("hunter2")) || bytes.Contains(got.body, []byte("aHVudGVy")) {
			t.Errorf("the answer shows the value: %s", got.body)
		}
	}
	w.secrets.set = nil // what follows must not get there
	for _, body := range []string{`{}`, `{"value":"a","value_base64":"YQ=="}`, `{"value_base64":"hunter2!"}`, `{"value":5}`, `{"value":"hunter2","value":"b"}`, ``, `"hunter2"`} {
		got := w.call(http.MethodPut, "/v1/secrets/API_TOKEN", body)
		if got.status != http.StatusBadRequest || bytes.Contains(got.body, []byte("hunter2")) {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
	w.secrets.list = func() ([]sallyport.SecretInfo, error) {
		return []sallyport.SecretInfo{{Name: "A", CreatedAt: now(), UpdatedAt: now(), UpdatedBy: "alice"}}, nil
	}
	if got := w.call(http.MethodGet, "/v1/secrets", ""); got.status != http.StatusOK || !bytes.Contains(got.body, []byte(`"name":"A"`)) {
		t.Errorf("%d %s", got.status, got.body)
	}
	w.secrets.remove = func(name string) error {
		if name == "A" {
			return nil
		}
		return &sallyport.Error{Op: "x", Code: sallyport.CodeSecretNotFound}
	}
	if got := w.call(http.MethodDelete, "/v1/secrets/A", ""); got.status != http.StatusOK || got.json(t)["kind"] != "secret_removal" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := w.call(http.MethodDelete, "/v1/secrets/B", ""); got.status != http.StatusNotFound {
		t.Errorf("%d %s", got.status, got.body)
	}
	w.secrets.rotate = func() (secret.Rotation, error) {
		return secret.Rotation{KeyID: "file:1", Rewrapped: 2, Retired: true}, nil
	}
	if got := w.call(http.MethodPost, "/v1/secrets/rotate-key", ""); got.status != http.StatusOK || !bytes.Contains(got.body, []byte(`"rewrapped":2`)) {
		t.Errorf("%d %s", got.status, got.body)
	}
}
