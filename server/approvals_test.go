package server_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/registry"
	"github.com/sallyport-dev/sallyport/server"
)

// approved is a server with one skill whose script was granted as it is.
type approved struct {
	*server.Server

	executor *keeper
	revision sallyport.Revision
	grant    sallyport.Grant
}

var everyByte = func() []byte {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return all
}()

func approval(t *testing.T) approved {
	t.Helper()
	a := approved{executor: &keeper{}}
	a.Server = newServer(t, server.Config{
		DataDir: t.TempDir(), Executor: a.executor, ScriptsEnabled: true, RequiredLayers: []sallyport.Layer{},
		Interpreters: []sallyport.Interpreter{{Extension: "sh", Runtime: "bash", Program: "/bin/bash"}},
	})
	a.revision = a.save(t, "echo one\n", true)
	var err error
	a.grant, err = a.Access().Issue(t.Context(), server.Operator(), access.IssueRequest{Ref: sallyport.SkillRef{Slug: "same"}, ExpectedDigest: a.revision.Digest})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (a approved) save(t *testing.T, script string, publish bool) sallyport.Revision {
	t.Helper()
	saved, err := a.Registry().Save(t.Context(), server.Operator(), registry.SaveRequest{Publish: publish, Files: []registry.File{
		{Path: "SKILL.md", Content: []byte("---\nname: same\ndescription: d\n---\n")},
		{Path: "scripts/run.sh", Content: []byte(script)},
		{Path: "assets/all.bin", Content: everyByte},
		{Path: "references/run.sh.txt", Content: []byte("not a script")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return saved.Revision
}

// run calls the tool and returns the code of its refusal, empty when it ran.
func (a approved) run(t *testing.T, more map[string]any) string {
	t.Helper()
	arguments := map[string]any{"slug": "same", "script_path": "scripts/run.sh"}
	maps.Copy(arguments, more)
	var called struct {
		StructuredContent struct{ Error *struct{ Code string } }
	}
	rpc(t, a.LocalHandler(), "tools/call", map[string]any{"name": "execute_cloud_skill", "arguments": arguments}, &called)
	if called.StructuredContent.Error == nil {
		return ""
	}
	return called.StructuredContent.Error.Code
}

func (a approved) runs() int {
	a.executor.mu.Lock()
	defer a.executor.mu.Unlock()
	return len(a.executor.got)
}

// F42: a binary file is read over MCP as base64 with its media type, whole, and never as text with its bytes replaced.
func TestBinaryOverMCP(t *testing.T) {
	t.Parallel()
	a := approval(t)
	var recalled struct {
		StructuredContent struct {
			Data struct {
				Resource struct {
					MediaType     string  `json:"media_type"`
					Content       *string `json:"content"`
					ContentBase64 *string `json:"content_base64"`
				}
			}
		}
		Content []struct{ Text string }
	}
	rpc(t, a.LocalHandler(), "tools/call", map[string]any{"name": "recall_cloud_skill", "arguments": map[string]any{"slug": "same", "resource": "assets/all.bin"}}, &recalled)
	got := recalled.StructuredContent.Data.Resource
	if got.Content != nil || got.ContentBase64 == nil || *got.ContentBase64 != base64.StdEncoding.EncodeToString(everyByte) || got.MediaType == "" {
		t.Errorf("recalled %+v", recalled)
	}
	var page struct{ Skills []served }
	rpc(t, a.LocalHandler(), "skills/list", map[string]any{}, &page)
	uri := ""
	for _, resource := range page.Skills[0].Resources {
		if strings.HasSuffix(resource.URI, "assets/all.bin") {
			uri = resource.URI
		}
	}
	var read struct {
		Contents []struct {
			MimeType   string
			Text, Blob *string
		}
	}
	rpc(t, a.LocalHandler(), "resources/read", map[string]any{"uri": uri}, &read)
	if len(read.Contents) != 1 || read.Contents[0].Text != nil || read.Contents[0].Blob == nil || read.Contents[0].MimeType == "" ||
		*read.Contents[0].Blob != base64.StdEncoding.EncodeToString(everyByte) {
		t.Errorf("read %+v", read)
	}
	for _, text := range recalled.Content {
		if strings.Contains(text.Text, "\ufffd") {
			t.Errorf("the text holds replaced bytes: %q", text.Text)
		}
	}
}

// F63: a file that is saved anew between the approval and the run does not run; the bytes that were hashed are the ones handed over.
func TestHashedBytesAreTheOnesRun(t *testing.T) {
	t.Parallel()
	a := approval(t)
	if code := a.run(t, nil); code != "" {
		t.Fatalf("as approved: %s", code)
	}
	handed := a.executor.got[0]
	for _, file := range handed.Files {
		component, found := a.revision.Component(file.Path)
		if !found || sallyport.DigestOf(file.Content).Hex() != component.SHA256 {
			t.Errorf("%s was handed over with other bytes than were hashed", file.Path)
		}
	}
	if handed.Digest != a.revision.Digest || len(handed.Files) != len(a.revision.Components) {
		t.Errorf("%s with %d files, want %s with %d", handed.Digest, len(handed.Files), a.revision.Digest, len(a.revision.Components))
	}
	a.save(t, "echo two\n", true)
	if code := a.run(t, nil); code != string(sallyport.CodePinMismatch) || a.runs() != 1 {
		t.Errorf("swapped: %q, %d runs", code, a.runs())
	}
}

// F64: nothing that a caller says about a hash counts. A call that brings one is refused as it stands, over MCP and HTTP, and a grant for another
// digest than the content has is not written.
func TestCallersHashDoesNotCount(t *testing.T) {
	t.Parallel()
	a := approval(t)
	swapped := a.save(t, "echo two\n", true)
	for _, name := range []string{"expected_digest", "digest", "revision_digest", "expected_hash", "sha256", "pin"} {
		if code := a.run(t, map[string]any{name: string(swapped.Digest)}); code != string(sallyport.CodeInvalidArgument) {
			t.Errorf("%s over MCP: %q", name, code)
		}
		body, err := json.Marshal(map[string]any{"script_path": "scripts/run.sh", name: string(swapped.Digest)})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/skills/same/execute", bytes.NewReader(body))
		r.RemoteAddr = "" // a caller in the same process
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		a.LocalHandler().ServeHTTP(w, r)
		if w.Code != http.StatusBadRequest {
			t.Errorf("%s over HTTP: %d %s", name, w.Code, w.Body)
		}
	}
	if code := a.run(t, nil); code != string(sallyport.CodePinMismatch) {
		t.Errorf("without: %q", code)
	}
	_, err := a.Access().Issue(t.Context(), server.Operator(), access.IssueRequest{Ref: sallyport.SkillRef{Slug: "same"}, ExpectedDigest: a.revision.Digest})
	if sallyport.CodeOf(err) != sallyport.CodeGrantConflict || a.runs() != 0 {
		t.Errorf("a grant for other bytes: %v, %d runs", err, a.runs())
	}
}

// F65: a grant that is revoked in the middle of a conversation stops the very next run; and a file that is not a script of the approved revision
// does not run, though there is one of that name.
func TestRevokedInTheMiddle(t *testing.T) {
	t.Parallel()
	a := approval(t)
	if code := a.run(t, nil); code != "" {
		t.Fatalf("as approved: %s", code)
	}
	for path, want := range map[string]sallyport.Code{
		"scripts/other.sh": sallyport.CodeScriptNotFound, "references/run.sh.txt": sallyport.CodeInvalidComponentType, "../run.sh": sallyport.CodeUnsafePath,
		"/bin/ls": sallyport.CodeUnsafePath,
	} {
		if code := a.run(t, map[string]any{"script_path": path}); code != string(want) {
			t.Errorf("%s: %q, want %s", path, code, want)
		}
	}
	if _, err := a.Access().Revoke(t.Context(), server.Operator(), a.grant.ID); err != nil {
		t.Fatal(err)
	}
	if code := a.run(t, nil); code != string(sallyport.CodeGrantRevoked) || a.runs() != 1 {
		t.Errorf("revoked: %q, %d runs", code, a.runs())
	}
}
