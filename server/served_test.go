package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/registry"
	"github.com/sallyport-dev/sallyport/server"
)

// keeper is an executor that keeps what it was handed.
type keeper struct {
	mu  sync.Mutex
	got []sallyport.ExecRequest
}

func (*keeper) Kind() string { return "keeper" }

func (*keeper) Capabilities(context.Context) sallyport.Capabilities {
	return sallyport.Capabilities{
		Available: true,
		Features:  []sallyport.Feature{sallyport.FeatureArgv, sallyport.FeatureRevision, sallyport.FeatureFiles, sallyport.FeatureArtifacts, sallyport.FeatureSecrets},
	}
}

func (k *keeper) Execute(_ context.Context, req sallyport.ExecRequest) (sallyport.Result, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.got = append(k.got, req)
	return sallyport.Result{ExitCode: new(int)}, nil
}

// rpc sends one MCP request of the older revision and decodes its result.
func rpc(t *testing.T, handler http.Handler, method string, params, result any) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", bytes.NewReader(body))
	r.RemoteAddr = "" // a caller in the same process
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	answered, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	_, data, found := bytes.Cut(answered, []byte("data: "))
	if !found {
		data = answered
	}
	var answer struct {
		Result json.RawMessage
		Error  json.RawMessage
	}
	if err := json.Unmarshal(bytes.TrimSpace(data), &answer); err != nil || answer.Error != nil {
		t.Fatalf("%s: %v, %s", method, err, answered)
	}
	if err := json.Unmarshal(answer.Result, result); err != nil {
		t.Fatal(err)
	}
}

// served is what skills/list and skills/get say about a skill: the digest of every file, by its path.
type served struct {
	Meta      map[string]string `json:"_meta"`
	URI       string
	Resources []struct{ URI, Digest string }
}

func (s served) digests() []string {
	var out []string
	for _, r := range s.Resources {
		out = append(out, r.Digest)
	}
	slices.Sort(out)
	return out
}

// What a host is served is what runs: the digests of skills/list are those of the bytes that the executor is handed, for the
// published revision and for any other, and the digest that the grant pins covers the same set.
func TestServedIsWhatRuns(t *testing.T) {
	t.Parallel()
	executor := &keeper{}
	s, err := server.New(t.Context(), server.Config{
		DataDir: t.TempDir(), Executor: executor, ScriptsEnabled: true, RequiredLayers: []sallyport.Layer{},
		Interpreters: []sallyport.Interpreter{{Extension: "sh", Runtime: "bash", Program: "/bin/bash"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	operator := server.Operator()
	save := func(more string, publish bool) sallyport.Revision {
		saved, err := s.Registry().Save(t.Context(), operator, registry.SaveRequest{Publish: publish, Files: []registry.File{
			{Path: "SKILL.md", Content: []byte("---\nname: same\ndescription: d\n---\n" + more)},
			{Path: "scripts/run.sh", Content: []byte("echo " + more)},
			{Path: "assets/ü 1.bin", Content: []byte("\x00\xff" + more)},
			{Path: "empty", Content: []byte{}},
			{Path: "nested/SKILL.md", Content: []byte("---\nname: nested\ndescription: d\n---\n")},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return saved.Revision
	}
	first, second := save("one", true), save("two", false)
	for _, revision := range []sallyport.Revision{first, second} {
		if _, err := s.Access().Issue(t.Context(), operator, access.IssueRequest{
			Ref: sallyport.SkillRef{Slug: "same"}, RevisionID: revision.ID, ExpectedDigest: revision.Digest,
		}); err != nil {
			t.Fatal(err)
		}
	}

	var page struct{ Skills []served }
	rpc(t, s.LocalHandler(), "skills/list", map[string]any{}, &page)
	if len(page.Skills) != 1 {
		t.Fatalf("listed %+v", page.Skills)
	}
	var draft struct{ Skill served }
	uri := strings.Replace(page.Skills[0].Meta["dev.sallyport/revision_uri"], string(first.ID), string(second.ID), 1)
	rpc(t, s.LocalHandler(), "skills/get", map[string]any{"uri": uri}, &draft)

	for name, entry := range map[string]served{"published": page.Skills[0], "draft": draft.Skill} {
		var called struct {
			IsError bool
			Content []struct{ Text string }
		}
		rpc(t, s.LocalHandler(), "tools/call", map[string]any{"name": "execute_cloud_skill", "arguments": map[string]any{
			"skill_id": entry.Meta["dev.sallyport/skill_id"], "revision_id": entry.Meta["dev.sallyport/revision_id"], "script_path": "scripts/run.sh",
		}}, &called)
		if called.IsError {
			t.Fatalf("%s: %+v", name, called.Content)
		}
		executor.mu.Lock()
		request := executor.got[len(executor.got)-1]
		executor.mu.Unlock()
		ran := map[string]string{}
		for _, file := range request.Files {
			ran[file.Path] = string(sallyport.DigestOf(file.Content))
		}
		if diff := cmp.Diff(entry.digests(), slices.Sorted(maps.Values(ran))); diff != "" {
			t.Errorf("%s: digests (-served +run):\n%s", name, diff)
		}
		if string(request.Digest) != entry.Meta["dev.sallyport/revision_digest"] {
			t.Errorf("%s: ran %s, served %s", name, request.Digest, entry.Meta["dev.sallyport/revision_digest"])
		}
	}
}

// What recall_context says about a script is what happens: refused without a grant, then runnable, then with its outcome.
func TestContextTellsWhatWouldRun(t *testing.T) {
	t.Parallel()
	s, err := server.New(t.Context(), server.Config{
		DataDir: t.TempDir(), Executor: &keeper{}, ScriptsEnabled: true, RequiredLayers: []sallyport.Layer{},
		Interpreters: []sallyport.Interpreter{{Extension: "sh", Runtime: "bash", Program: "/bin/bash"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	operator := server.Operator()
	saved, err := s.Registry().Save(t.Context(), operator, registry.SaveRequest{Publish: true, Files: []registry.File{
		{Path: "SKILL.md", Content: []byte("---\nname: greet\ndescription: Greets.\n---\nRun it.\n")}, {Path: "scripts/run.sh", Content: []byte("echo hello\n")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	ask := func() (runnable bool, gate string, recent []string) {
		var called struct {
			StructuredContent struct {
				Data struct {
					Items []struct {
						Kind     string
						Runnable bool
						Gate     struct{ Code, Remedy string }
						Recent   []struct{ Status string }
					}
				}
			}
		}
		rpc(t, s.LocalHandler(), "tools/call", map[string]any{"name": "recall_context", "arguments": map[string]any{"query": "greets"}}, &called)
		for _, item := range called.StructuredContent.Data.Items {
			if item.Kind == "script" {
				for _, r := range item.Recent {
					recent = append(recent, r.Status)
				}
				return item.Runnable, item.Gate.Code + " " + item.Gate.Remedy, recent
			}
		}
		t.Fatalf("no script in %+v", called)
		return false, "", nil
	}
	if runnable, gate, recent := ask(); runnable || !strings.HasPrefix(gate, "GRANT_MISSING a reviewer reads the revision and runs: sallyport grant issue greet") || len(recent) != 0 {
		t.Errorf("before the grant: %v %q %q", runnable, gate, recent)
	}
	if _, err := s.Access().Issue(t.Context(), operator, access.IssueRequest{Ref: sallyport.SkillRef{Slug: "greet"}, ExpectedDigest: saved.Revision.Digest}); err != nil {
		t.Fatal(err)
	}
	if runnable, gate, recent := ask(); !runnable || gate != " " || len(recent) != 0 {
		t.Errorf("with the grant: %v %q %q", runnable, gate, recent)
	}
	var called struct{ IsError bool }
	rpc(t, s.LocalHandler(), "tools/call", map[string]any{"name": "execute_cloud_skill", "arguments": map[string]any{"slug": "greet", "script_path": "scripts/run.sh"}}, &called)
	if runnable, _, recent := ask(); called.IsError || !runnable || !slices.Equal(recent, []string{"success"}) {
		t.Errorf("after a run: %v %v %q", called.IsError, runnable, recent)
	}
}
