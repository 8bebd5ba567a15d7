package mcpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/mcpapi"
	"github.com/sallyport-dev/sallyport/registry"
)

// BenchmarkCall is what the surface itself costs: one tool call through the HTTP handler, to a service that does nothing.
func BenchmarkCall(b *testing.B) {
	skills := &fakeSkills{list: func(sallyport.Principal, registry.ListRequest) (registry.ListResult, error) {
		return registry.ListResult{}, nil
	}}
	handler := mcpapi.New(mcpapi.Config{Skills: skills}).Handler(as(alice()))
	body := callBody(modern, recall, `{"query":"x"}`)
	b.ReportAllocs()
	for b.Loop() {
		req := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/mcp", strings.NewReader(body))
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": modern,
			"Mcp-Method": "tools/call", "Mcp-Name": recall,
		} {
			req.Header.Set(name, value)
		}
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, req)
		if recorder.Code != http.StatusOK {
			b.Fatalf("status %d: %s", recorder.Code, recorder.Body)
		}
	}
}
