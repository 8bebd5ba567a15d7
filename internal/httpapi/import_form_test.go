package httpapi_test

import (
	"bytes"
	"mime/multipart"
	"strings"
	"testing"
)

// F48: a form whose client strips directories cannot say which file lies where, so the rule is stated instead of guessing at a SKILL.md.
func TestImportRefusesForms(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("files", "SKILL.md")
	if err == nil {
		_, err = part.Write([]byte("---\nname: x\n---\n"))
	}
	if err != nil || form.Close() != nil {
		t.Fatal(err)
	}
	code, message := w.call("POST", "/v1/import", body.String(), "Content-Type", form.FormDataContentType()).refusal(t)
	if code != "INVALID_ARGUMENT" || !strings.Contains(message, "send an archive as application/x-tar") {
		t.Errorf("got %s %q", code, message)
	}
}
