package runner_test

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/sallyport-dev/sallyport"
)

// The bytes that the first seed's C# client sends are understood, and what comes back has the five members that it reads, with
// the types that it wants.
func TestRecorded(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/seed/*.txtar")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d recordings (%v)", len(files), err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			part := map[string]string{}
			for _, f := range archive.Files {
				part[f.Name] = strings.TrimSuffix(string(f.Data), "\n")
			}
			url := serve(t, newRunner(t, func(_ context.Context, req sallyport.ExecRequest) (sallyport.Result, error) {
				if got := string(req.Stdin); got != part["stdin"] {
					t.Errorf("standard input: got %q, want %q", got, part["stdin"])
				}
				return recordedResult(t, part["result"]), nil
			}))
			status, body := call(t, http.MethodPost, url+"/runs", []byte(part["request.json"]))
			if status != http.StatusOK {
				t.Fatalf("got %d %s", status, body)
			}
			var got, want map[string]any
			if err := json.Unmarshal(body, &got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(part["response.json"]), &want); err != nil {
				t.Fatal(err)
			}
			for member := range got {
				if _, known := want[member]; !known {
					delete(got, member) // the client does not know it and passes over it
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

// recordedResult reads lines such as "exit 3", "timeout", "stdout TEXT".
func recordedResult(t *testing.T, text string) sallyport.Result {
	t.Helper()
	var r sallyport.Result
	for line := range strings.Lines(text) {
		word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch word {
		case "exit":
			code, err := strconv.Atoi(rest)
			if err != nil {
				t.Fatal(err)
			}
			r.ExitCode = &code
		case "timeout":
			r.TimedOut, r.Limit = true, sallyport.LimitWall
		case "stdout":
			r.Stdout, r.StdoutBytes = []byte(rest), int64(len(rest))
		case "stderr":
			r.Stderr, r.StderrBytes = []byte(rest), int64(len(rest))
		default:
			t.Fatalf("what is %q?", line)
		}
	}
	return r
}
