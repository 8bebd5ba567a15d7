package mcpapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/mcpapi"
	"github.com/sallyport-dev/sallyport/internal/store"
	"github.com/sallyport-dev/sallyport/registry"
	"github.com/sallyport-dev/sallyport/run"
)

// BenchmarkCatalogue is what the extension and recall_context cost on a thousand skills in a real database.
func BenchmarkCatalogue(b *testing.B) {
	database, err := store.Open(b.Context(), store.Config{Path: filepath.Join(b.TempDir(), "sallyport.db")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = database.Shutdown() })
	skills := registry.New(registry.Config{Store: database, Trail: noTrail{}})
	for i := range 1000 {
		name := fmt.Sprintf("skill-%04d", i)
		body := manifest(name) + fmt.Sprintf("\n# Topic %d\n", i%50) + strings.Repeat("Words about the topic and how to go about it.\n", 60)
		_, err := skills.Save(b.Context(), alice(), registry.SaveRequest{Publish: true, Files: []registry.File{
			{Path: "SKILL.md", Content: []byte(body)}, {Path: "references/a.md", Content: []byte(body)}, {Path: "scripts/run.py", Content: []byte("print(1)\n")},
		}})
		if err != nil {
			b.Fatal(err)
		}
	}
	runs := &fakeRuns{
		explain: func(sallyport.Principal, run.Request) (run.Explanation, error) {
			return run.Explanation{Runnable: true}, nil
		},
		list: func(sallyport.Principal, run.ListRequest) (run.ListResult, error) { return run.ListResult{}, nil },
	}
	handler := mcpapi.New(mcpapi.Config{Skills: skills, Runs: runs, Catalogue: skills}).Handler(as(bob()))
	for name, body := range map[string]string{
		"list": `{"jsonrpc":"2.0","id":1,"method":"skills/list","params":{}}`,
		"get":  `{"jsonrpc":"2.0","id":1,"method":"skills/get","params":{"uri":"skill://default/skill-0500/SKILL.md"}}`,
		"read": `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"skill://default/skill-0500/SKILL.md"}}`,
		"gather": `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"recall_context","arguments":` +
			`{"query":"how to go about topic 7"}}}`,
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				req := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/mcp", strings.NewReader(body))
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("Accept", "application/json, text/event-stream")
				req.Header.Set("Mcp-Protocol-Version", legacy)
				recorder := httptest.NewRecorder()
				handler.ServeHTTP(recorder, req)
				if recorder.Code != http.StatusOK || strings.Contains(recorder.Body.String(), `"error":{"code"`) {
					b.Fatalf("status %d: %.300s", recorder.Code, recorder.Body)
				}
			}
		})
	}
}
