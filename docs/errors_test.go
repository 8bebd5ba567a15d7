package docs_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/reply"
)

var update = flag.Bool("update", false, "write the generated documents")

const errorsIntro = `# Error codes

Generated from the catalogue in ` + "`errors.go`" + ` and the class table in ` + "`internal/reply`" + `; mend it with ` + "`make generate`" + `.

Every surface speaks in the same codes, and a code never changes its meaning. Every answer is one envelope,
` + "`{kind, data, error, request_id}`" + `, and ` + "`error`" + ` is ` + "`{code, message, retry, details}`" + ` whenever the call did not succeed: a refusal has
no ` + "`data`" + `, a script that ran and did not succeed has both. ` + "`message`" + ` often says more than the sentence here.

- *retry*: the same call may succeed later without anybody changing anything.
- *HTTP*: the status; a refusal is sent as ` + "`application/problem+json`" + `. A script that ran is 200, whatever it did.
- *exit*: the exit code of the command line. 0 is success; 2 is a command line that cannot be read, and belongs to no code.
- Over MCP every one of them is a tool result with ` + "`isError`" + `.

| code | class | retry | HTTP | exit | sentence |
|---|---|---|---|---|---|
`

const errorsOutro = `
A script that ran ends with the exit code of its status: success 0, error 20, timeout 21, resource_exhausted 22, lost 23,
canceled 130.
`

// TestErrorsDocument holds docs/errors.md against the catalogue.
func TestErrorsDocument(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(errorsIntro)
	for _, info := range sallyport.Catalogue() {
		row := reply.ForClass(info.Class)
		exit := reply.ExitCode(&sallyport.Error{Op: "docs", Code: info.Code})
		retry := "no"
		if info.Retry == sallyport.CanRetry {
			retry = "yes"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %d | %s |\n", info.Code, info.Class, retry, row.HTTPStatus, exit, info.Message)
	}
	b.WriteString(errorsOutro)
	if *update {
		if err := os.WriteFile("errors.md", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("errors.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.String(), string(got)); diff != "" {
		t.Errorf("docs/errors.md is not what the code says; run make generate (-code +file):\n%s", diff)
	}
}

// TestErrorsDocumentExits holds the sentence about exit codes against the table.
func TestErrorsDocumentExits(t *testing.T) {
	t.Parallel()
	for _, status := range sallyport.Statuses() {
		if !status.Terminal() || status == sallyport.StatusNotStarted {
			continue
		}
		want := fmt.Sprintf("%s %d", status, reply.ExitExecution(sallyport.Execution{Status: status}))
		if flat := strings.ReplaceAll(errorsOutro, "\n", " "); !strings.Contains(flat, want) {
			t.Errorf("docs/errors.md does not say %q", want)
		}
	}
}
