package httpapi_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/httpapi"
)

func TestDocumentIsValid(t *testing.T) {
	t.Parallel()
	v, err := document()
	if err != nil {
		t.Fatal(err)
	}
	validating.Lock()
	defer validating.Unlock()
	if ok, errs := v.ValidateDocument(); !ok {
		for _, err := range errs {
			t.Errorf("%s: %s", err.Message, err.Reason)
		}
	}
}

func TestDocumentIsServed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, path := range []string{"/openapi.json", "/v1/openapi.json"} {
		got := w.call(http.MethodGet, path, "")
		if got.status != http.StatusOK || string(got.body) != string(httpapi.OpenAPI()) {
			t.Errorf("%s: %d, %d bytes", path, got.status, len(got.body))
		}
	}
	var v struct{ OpenAPI string }
	if err := json.Unmarshal(httpapi.OpenAPI(), &v); err != nil || v.OpenAPI != "3.1.0" {
		t.Errorf("got version %q, %v", v.OpenAPI, err)
	}
}
