package examples_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/sallyport-dev/sallyport"
)

// testCase is one entry of tests/<slug>.json: a call of a script and what must come back.
type testCase struct {
	Name   string `json:"name"`
	Script string `json:"script"`
	// InputArgs are sent exactly as they stand in the file.
	InputArgs json.RawMessage `json:"input_args"`
	Argv      []string        `json:"argv"`
	// Files are input files as text, FilesBase64 those that are not text.
	Files       map[string]string `json:"files"`
	FilesBase64 map[string][]byte `json:"files_base64"`
	Want        want              `json:"want"`
}

// want is what must come back. Without a status the call must be refused with ErrorCode before anything runs.
type want struct {
	Status         sallyport.Status `json:"status"`
	ExitCode       *int             `json:"exit_code"`
	ErrorCode      sallyport.Code   `json:"error_code"`
	StdoutContains []string         `json:"stdout_contains"`
	StderrContains []string         `json:"stderr_contains"`
	// OutputData is a part of the result: members that it does not name may be there too, lists are compared whole.
	OutputData json.RawMessage `json:"output_data"`
	// Artifacts are all the artifacts there are, by path.
	Artifacts        []string            `json:"artifacts"`
	ArtifactContains map[string][]string `json:"artifact_contains"`
	ArtifactLacks    map[string][]string `json:"artifact_lacks"`
}

// refused reports whether the call must not run at all.
func (c testCase) refused() bool { return c.Want.Status == "" }

func (c testCase) inputFiles() []sallyport.InputFile {
	var files []sallyport.InputFile
	for _, name := range slices.Sorted(maps.Keys(c.Files)) {
		files = append(files, sallyport.InputFile{Name: name, Content: []byte(c.Files[name])})
	}
	for _, name := range slices.Sorted(maps.Keys(c.FilesBase64)) {
		files = append(files, sallyport.InputFile{Name: name, Content: c.FilesBase64[name]})
	}
	return files
}

// readCases returns the cases of every skill by its slug. A misspelt member is an error, so that no expectation is lost.
func readCases(tb testing.TB) map[string][]testCase {
	tb.Helper()
	names, err := filepath.Glob("tests/*.json")
	if err != nil {
		tb.Fatal(err)
	}
	cases := map[string][]testCase{}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			tb.Fatal(err)
		}
		decoder := json.NewDecoder(bytes.NewReader(content))
		decoder.DisallowUnknownFields()
		var list []testCase
		if err := decoder.Decode(&list); err != nil {
			tb.Fatalf("%s: %v", name, err)
		}
		slug := filepath.Base(name[:len(name)-len(".json")])
		cases[slug] = list
	}
	return cases
}

// skillDirs lists the skills by their folder's name.
func skillDirs(tb testing.TB) []string {
	tb.Helper()
	entries, err := os.ReadDir("skills")
	if err != nil {
		tb.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names
}

// lacks names the first place where got is without what part asks for; empty when part is a part of got.
func lacks(part, got any, at string) string {
	switch part := part.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s: got %v, want an object", at, got)
		}
		for _, key := range slices.Sorted(maps.Keys(part)) {
			value, found := object[key]
			if !found {
				return fmt.Sprintf("%s/%s is missing", at, key)
			}
			if fault := lacks(part[key], value, at+"/"+key); fault != "" {
				return fault
			}
		}
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(part) {
			return fmt.Sprintf("%s: got %v, want a list of %d", at, got, len(part))
		}
		for i := range part {
			if fault := lacks(part[i], list[i], fmt.Sprintf("%s/%d", at, i)); fault != "" {
				return fault
			}
		}
	default:
		if part != got {
			return fmt.Sprintf("%s: got %v, want %v", at, got, part)
		}
	}
	return ""
}

// decode reads JSON with its numbers as they are written.
func decode(tb testing.TB, data []byte) any {
	tb.Helper()
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		tb.Fatalf("%v in %q", err, data)
	}
	return value
}

// readScripts lists the scripts that a skill's sallyport.yaml declares.
func readScripts(tb testing.TB, slug string) []string {
	tb.Helper()
	content, err := os.ReadFile(filepath.Join("skills", slug, "sallyport.yaml"))
	if err != nil {
		tb.Fatal(err)
	}
	var settings struct {
		Scripts map[string]any    `yaml:"scripts"`
		Kinds   map[string]string `yaml:"kinds"`
	}
	if err := yaml.Unmarshal(content, &settings); err != nil {
		tb.Fatalf("%s: %v", slug, err)
	}
	return slices.Sorted(maps.Keys(settings.Scripts))
}
