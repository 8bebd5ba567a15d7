package mcpapi_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// What agents see is a contract: a change of a name, a schema or a sentence shows in review.
func TestToolListGolden(t *testing.T) {
	t.Parallel()
	got, err := json.MarshalIndent(listedTools(t), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	golden := filepath.Join("testdata", "tools.json")
	if *update {
		if err := os.WriteFile(golden, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("tools/list (-want +got); rewrite with -update:\n%s", diff)
	}
}

// Prompt caches live from lists that come in one order.
func TestToolListOrder(t *testing.T) {
	t.Parallel()
	var names []string
	for _, tool := range listedTools(t) {
		names = append(names, tool.Name)
		if tool.Title == "" || tool.Description == "" {
			t.Errorf("%s has no title or no description", tool.Name)
		}
	}
	want := []string{"execute_cloud_skill", "recall_cloud_skill", "recall_context", "save_cloud_skill"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestAnnotations(t *testing.T) {
	t.Parallel()
	type annotations struct {
		Title       string `json:"title"`
		ReadOnly    bool   `json:"readOnlyHint"`
		Idempotent  bool   `json:"idempotentHint"`
		Destructive *bool  `json:"destructiveHint"`
		OpenWorld   *bool  `json:"openWorldHint"`
	}
	no := new(bool)
	want := map[string]annotations{
		"execute_cloud_skill": {"Run a skill's script", false, false, no, no},
		"recall_cloud_skill":  {"Find and read skills", true, true, nil, no},
		"recall_context":      {"Gather what skills say about a task", true, true, nil, no},
		"save_cloud_skill":    {"Save a skill", false, false, no, new(true)}, // it may fetch a URL
	}
	got := map[string]annotations{}
	for _, tool := range listedTools(t) {
		var a annotations
		if err := json.Unmarshal(tool.Annotations, &a); err != nil {
			t.Fatal(err)
		}
		got[tool.Name] = a
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

// Hosts that map schemas onto a smaller dialect drop a tool over a type that is a list, a schema that is true, or a reference. Output
// is open at the top, so that a later member of the envelope breaks no client that holds the old schema.
func TestSchemasArePortable(t *testing.T) {
	t.Parallel()
	for _, tool := range listedTools(t) {
		for name, schema := range map[string]json.RawMessage{"input": tool.InputSchema, "output": tool.OutputSchema} {
			var root map[string]any
			if err := json.Unmarshal(schema, &root); err != nil {
				t.Fatal(err)
			}
			checkPortable(t, tool.Name+"."+name, root)
			if _, closed := root["additionalProperties"]; closed && name == "output" {
				t.Errorf("%s.output is closed at the top", tool.Name)
			}
		}
	}
}

func checkPortable(t *testing.T, at string, schema map[string]any) {
	t.Helper()
	if _, list := schema["type"].([]any); list {
		t.Errorf("%s has a list of types", at)
	}
	for _, keyword := range []string{"$ref", "$dynamicRef", "allOf", "oneOf", "not", "if", "patternProperties"} {
		if _, used := schema[keyword]; used {
			t.Errorf("%s uses %s", at, keyword)
		}
	}
	if schema["type"] == nil && schema["anyOf"] == nil {
		t.Errorf("%s has no type", at)
	}
	if properties, ok := schema["properties"].(map[string]any); ok {
		for name, sub := range properties {
			object, ok := sub.(map[string]any)
			if !ok {
				t.Errorf("%s.%s is no schema object", at, name)
				continue
			}
			checkPortable(t, at+"."+name, object)
		}
	}
	if items, ok := schema["items"].(map[string]any); ok {
		checkPortable(t, at+"[]", items)
	}
	if branches, ok := schema["anyOf"].([]any); ok {
		for _, branch := range branches {
			if object, ok := branch.(map[string]any); ok {
				checkPortable(t, at+"|", object)
			}
		}
	}
}

// What a schema allows by its defaults must be what the tool takes.
func TestDefaultsAreAccepted(t *testing.T) {
	t.Parallel()
	for _, tool := range listedTools(t) {
		var schema struct {
			Properties map[string]struct {
				Default json.RawMessage `json:"default"`
			} `json:"properties"`
			Required []string `json:"required"`
		}
		if err := json.Unmarshal(tool.InputSchema, &schema); err != nil {
			t.Fatal(err)
		}
		for name, property := range schema.Properties {
			if property.Default == nil && !slices.Contains(schema.Required, name) {
				t.Errorf("%s.%s is optional and names no default", tool.Name, name)
			}
		}
	}
}

// The bound in the schema is the installation's own.
func TestTimeoutBoundInSchema(t *testing.T) {
	t.Parallel()
	for _, tool := range listedTools(t) {
		if tool.Name == "execute_cloud_skill" && !bytes.Contains(tool.InputSchema, []byte(`"maximum":60`)) {
			t.Errorf("the schema names no top of 60: %s", tool.InputSchema)
		}
	}
}
