package executortest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// extensions names the script of a runtime.
func extension(runtime string) string {
	switch runtime {
	case "python":
		return "py"
	case "node":
		return "js"
	}
	return "sh"
}

var executions atomic.Int64 // numbers the executions of a test binary

// request returns a run of source under small limits. Attempts change what they are about.
func (s *suite) request(tb testing.TB, runtime, source string) sallyport.ExecRequest {
	tb.Helper()
	at := slices.IndexFunc(s.factory.Interpreters, func(i sallyport.Interpreter) bool {
		return i.Runtime == runtime && i.Extension == extension(runtime)
	})
	if at < 0 {
		tb.Fatalf("no interpreter for %s: install it, a sandbox that is not tried is not known to work", runtime)
	}
	req := sallyport.ExecRequest{
		ExecutionID: sallyport.ExecutionID(fmt.Sprintf("exec-%d", executions.Add(1))),
		TenantID:    "tenant",
		Slug:        "attempt",
		ScriptPath:  "scripts/attempt." + extension(runtime),
		Interpreter: s.factory.Interpreters[at],
		Stdin:       []byte("{}"),
		Limits: sallyport.Limits{
			Timeout: 20 * time.Second, MemoryBytes: 256 << 20, Processes: 64, CPUMillis: 2000, ScratchBytes: 8 << 20,
			OutputBytes: 64 << 10, ArtifactBytes: 4 << 20, ArtifactFiles: 8,
		},
		Grace: 5 * time.Second,
	}
	addFile(&req, "SKILL.md", "---\nname: attempt\ndescription: an attempt\n---\n")
	addFile(&req, req.ScriptPath, source)
	req.Content = []byte(source)
	req.ContentSHA256 = digest(req.Content)
	return req
}

// again makes req a run of its own: an approval is used once.
func again(req sallyport.ExecRequest) sallyport.ExecRequest {
	req.ExecutionID = sallyport.ExecutionID(fmt.Sprintf("exec-%d", executions.Add(1)))
	return req
}

// addFile adds one file to the revision, in order.
func addFile(req *sallyport.ExecRequest, path, content string) {
	kind := sallyport.KindDocument
	if strings.HasPrefix(path, "scripts/") {
		kind = sallyport.KindScript
	}
	req.Files = append(req.Files, sallyport.Component{
		Path: path, Kind: kind, Size: int64(len(content)), SHA256: digest([]byte(content)), Content: []byte(content),
	})
	slices.SortFunc(req.Files, func(a, b sallyport.Component) int { return strings.Compare(a.Path, b.Path) })
	var all strings.Builder
	for _, f := range req.Files {
		all.WriteString(f.Path + "\x00" + f.SHA256 + "\n")
	}
	req.Digest = sallyport.DigestOf([]byte(all.String()))
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
