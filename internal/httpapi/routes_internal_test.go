package httpapi

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// operation is what the document and the routes must agree on.
type operation struct {
	Query  []string
	Public bool
	Kind   string
}

type reference struct {
	Ref string `json:"$ref"`
}

type parameter struct {
	reference

	Name, In string
}

type schema struct {
	reference

	Properties struct {
		Kind struct{ Const string }
	}
}

type media struct{ Schema schema }

type response struct {
	reference

	Content map[string]media
}

type described struct {
	Parameters []parameter
	Security   *[]map[string][]string
	Responses  map[string]response
}

type openAPIFile struct {
	Paths      map[string]map[string]json.RawMessage
	Components struct {
		Parameters map[string]parameter
		Responses  map[string]response
		Schemas    map[string]schema
	}
}

// The routes and the document that describes them name the same paths, methods, parameters, kinds and public routes.
func TestRoutesAndDocumentAgree(t *testing.T) {
	t.Parallel()
	served := map[string]operation{}
	for _, r := range routes() {
		kind := r.kind
		if kind == "openapi" || kind == "discovery" || kind == "artifact" || kind == "export" || kind == "backup" || kind == "resource_metadata" {
			kind = "" // answered without an envelope
		}
		served[r.method+" "+strings.ReplaceAll(r.pattern, "...}", "}")] = operation{sorted(r.query), r.public, kind}
	}
	for _, m := range mounts() {
		served[m.method+" "+m.pattern] = operation{Query: []string{}}
	}
	if diff := cmp.Diff(served, documented(t)); diff != "" {
		t.Errorf("routes.go and openapi.json differ (-routes +document):\n%s", diff)
	}
}

func documented(t *testing.T) map[string]operation {
	t.Helper()
	var file openAPIFile
	decode(t, OpenAPI(), &file)
	found := map[string]operation{}
	for path, item := range file.Paths {
		var shared []parameter
		if raw, ok := item["parameters"]; ok {
			decode(t, raw, &shared)
		}
		for method, raw := range item {
			if method == "parameters" || method == "description" {
				continue
			}
			var op described
			decode(t, raw, &op)
			query := map[string]bool{}
			for _, p := range append(op.Parameters, shared...) {
				if p.Ref != "" {
					p = file.Components.Parameters[last(p.Ref)]
				}
				if p.In == "query" {
					query[p.Name] = true
				}
			}
			found[strings.ToUpper(method)+" "+path] = operation{
				Query: sorted(slices.Collect(maps.Keys(query))), Public: op.Security != nil && len(*op.Security) == 0,
				Kind: file.kind(op),
			}
		}
	}
	return found
}

// kind is the const of the success envelope, empty when the success is no envelope.
func (f openAPIFile) kind(op described) string {
	for _, status := range []string{"200", "201"} {
		answer, ok := op.Responses[status]
		if !ok {
			continue
		}
		if answer.Ref != "" {
			answer = f.Components.Responses[last(answer.Ref)]
		}
		return f.Components.Schemas[last(answer.Content["application/json"].Schema.Ref)].Properties.Kind.Const
	}
	return ""
}

func decode(t *testing.T, data []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatal(err)
	}
}

func last(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }

func sorted(names []string) []string {
	out := append([]string{}, names...)
	slices.Sort(out)
	return out
}

// Every route that changes something is a POST: a link must not be able to.
func TestOnlySafeMethodsAreGet(t *testing.T) {
	t.Parallel()
	for _, r := range routes() {
		verb := r.pattern[strings.LastIndexByte(r.pattern, '/')+1:]
		if slices.Contains([]string{"publish", "archive", "restore", "execute", "cancel", "revoke", "import", "purge"}, verb) &&
			r.method != http.MethodPost {
			t.Errorf("%s %s changes something", r.method, r.pattern)
		}
	}
}
