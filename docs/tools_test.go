package docs_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"
)

const toolsIntro = `# MCP tools

Generated from the list that agents get, ` + "`internal/mcpapi/testdata/tools.json`" + `; mend it with ` + "`make generate`" + `.

Every tool answers with one envelope, ` + "`{kind, data, error, request_id}`" + `, as structured content, and with a sentence for people beside it.
A fault in the arguments is an envelope with INVALID_ARGUMENT; the codes are in [errors.md](errors.md), connecting a client is in [mcp.md](mcp.md).
`

type listedTool struct {
	Name        string         `json:"name"`
	Title       string         `json:"title"`
	Description string         `json:"description"`
	Annotations map[string]any `json:"annotations"`
	InputSchema struct {
		Properties map[string]property `json:"properties"`
		Required   []string            `json:"required"`
	} `json:"inputSchema"`
}

type property struct {
	Type        any             `json:"type"`
	Description string          `json:"description"`
	Default     json.RawMessage `json:"default"`
	Enum        []any           `json:"enum"`
}

// TestToolsDocument holds docs/tools.md against the list of tools.
func TestToolsDocument(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile("../internal/mcpapi/testdata/tools.json")
	if err != nil {
		t.Fatal(err)
	}
	var tools []listedTool
	if err := json.Unmarshal(list, &tools); err != nil || len(tools) == 0 {
		t.Fatalf("got %d tools, %v", len(tools), err)
	}
	var b strings.Builder
	b.WriteString(toolsIntro)
	for _, tool := range tools {
		tool.write(&b)
	}
	if *update {
		if err := os.WriteFile("tools.md", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("tools.md")
	if err != nil {
		t.Fatal(err)
	}
	if change := diff.Diff(b.String(), string(got)); change != "" {
		t.Errorf("docs/tools.md is not what agents get; run make generate (-code +file):\n%s", change)
	}
}

func (l listedTool) write(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n\n*%s.* %s\n\n", l.Name, l.Title, l.Description)
	var hints []string
	for _, name := range slices.Sorted(maps.Keys(l.Annotations)) {
		if value, ok := l.Annotations[name].(bool); ok {
			hints = append(hints, fmt.Sprintf("%s %t", name, value))
		}
	}
	fmt.Fprintf(b, "Annotations: %s.\n\n| argument | type | default | meaning |\n|---|---|---|---|\n", strings.Join(hints, ", "))
	names := slices.Collect(maps.Keys(l.InputSchema.Properties))
	slices.SortFunc(names, func(x, y string) int {
		return cmp.Or(cmp.Compare(l.rank(x), l.rank(y)), cmp.Compare(x, y))
	})
	for _, name := range names {
		p := l.InputSchema.Properties[name]
		fallback := "`" + string(p.Default) + "`"
		switch {
		case l.rank(name) == 0:
			fallback = "required"
		case p.Default == nil:
			fallback = ""
		}
		kind := fmt.Sprint(p.Type)
		if p.Type == nil {
			kind = "any"
		}
		for i, value := range p.Enum {
			kind += map[bool]string{true: ": ", false: ", "}[i == 0] + fmt.Sprint(value)
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", name, kind, fallback, strings.ReplaceAll(p.Description, "|", `\|`))
	}
}

// rank puts the arguments that are required first.
func (l listedTool) rank(name string) int {
	if slices.Contains(l.InputSchema.Required, name) {
		return 0
	}
	return 1
}
