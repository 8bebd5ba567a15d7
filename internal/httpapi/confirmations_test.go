package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
)

func sampleConfirmation(state sallyport.ConfirmationState) sallyport.Confirmation {
	at := now()
	return sallyport.Confirmation{
		ID: "c-1", TenantID: "acme", PrincipalID: "agent", SkillID: skillID, Slug: "csv-profiler", RevisionID: "rev-1", RevisionDigest: digest,
		ScriptPath: "scripts/profile.py", RequestDigest: digest, Request: []byte(`{"input_args":"{}"}`), State: state,
		CreatedAt: at, ExpiresAt: at, DecidedAt: &at, DecidedBy: "alice", InClient: true,
	}
}

func TestConfirmations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runs.confirms = func() ([]sallyport.Confirmation, error) { return nil, nil }
	if got := w.call(http.MethodGet, "/v1/confirmations", ""); got.status != http.StatusOK || !strings.Contains(string(got.body), `"confirmations":[]`) {
		t.Errorf("none: %d %s", got.status, got.body)
	}
	w.runs.confirms = func() ([]sallyport.Confirmation, error) {
		return []sallyport.Confirmation{sampleConfirmation(sallyport.ConfirmationPending)}, nil
	}
	if got := w.call(http.MethodGet, "/v1/confirmations", ""); got.status != http.StatusOK || !strings.Contains(string(got.body), `"confirmation_id":"c-1"`) {
		t.Errorf("one: %d %s", got.status, got.body)
	}
	var asked []string
	w.runs.decide = func(id sallyport.ConfirmationID, yes bool) (sallyport.Confirmation, error) {
		if id != "c-1" {
			return sallyport.Confirmation{}, &sallyport.Error{Op: "x", Code: sallyport.CodeConfirmationNotFound}
		}
		state := sallyport.ConfirmationDenied
		if yes {
			state = sallyport.ConfirmationApproved
		}
		asked = append(asked, string(state))
		return sampleConfirmation(state), nil
	}
	for _, verb := range []string{"approve", "deny"} {
		got := w.call(http.MethodPost, "/v1/confirmations/c-1/"+verb, "")
		if got.status != http.StatusOK || got.json(t)["kind"] != "confirmation" {
			t.Errorf("%s: %d %s", verb, got.status, got.body)
		}
		if got := w.call(http.MethodPost, "/v1/confirmations/c-2/"+verb, ""); got.status != http.StatusNotFound {
			t.Errorf("%s of none: %d", verb, got.status)
		}
		if got := w.call(http.MethodPost, "/v1/confirmations/c-1/"+verb, `{"yes":true}`); got.status != http.StatusBadRequest {
			t.Errorf("%s with a body: %d", verb, got.status)
		}
	}
	if strings.Join(asked, " ") != "approved denied" {
		t.Errorf("asked %v", asked)
	}
}
