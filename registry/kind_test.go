package registry_test

import (
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

func TestInferKind(t *testing.T) {
	t.Parallel()
	const text, binary = "some text\n", "\x00\x01\xff"
	for name, test := range map[string]struct {
		path, content string
		kind          sallyport.Kind
		runtime       string
	}{
		"SKILL.md":                          {"SKILL.md", text, sallyport.KindDocument, ""},
		"settings":                          {"sallyport.yaml", text, sallyport.KindDocument, ""},
		"python":                            {"scripts/a.py", text, sallyport.KindScript, "python"},
		"upper-case extension":              {"scripts/A.PY", text, sallyport.KindScript, "python"},
		"shell":                             {"scripts/a.sh", text, sallyport.KindScript, "bash"},
		"bash":                              {"a.bash", text, sallyport.KindScript, "bash"},
		"node":                              {"a.js", text, sallyport.KindScript, "node"},
		"module":                            {"lib/a.mjs", text, sallyport.KindScript, "node"},
		"common":                            {"lib/a.cjs", text, sallyport.KindScript, "node"},
		"ruby":                              {"scripts/a.rb", text, sallyport.KindScript, ""},
		"package marker":                    {"scripts/__init__.py", "", sallyport.KindScript, "python"},
		"script among references":           {"references/a.py", text, sallyport.KindScript, "python"},
		"unknown extension below scripts":   {"scripts/a.xyz", text, sallyport.KindScript, ""},
		"no extension below scripts":        {"scripts/run", text, sallyport.KindScript, ""},
		"singular":                          {"script/run", text, sallyport.KindScript, ""},
		"requirements":                      {"scripts/requirements.txt", text, sallyport.KindDocument, ""},
		"JSON below scripts":                {"scripts/data.json", text, sallyport.KindDocument, ""},
		"readme below scripts":              {"scripts/README.md", text, sallyport.KindDocument, ""},
		"license below scripts":             {"scripts/LICENSE", text, sallyport.KindDocument, ""},
		"dot file below scripts":            {"scripts/.gitignore", text, sallyport.KindDocument, ""},
		"makefile below scripts":            {"scripts/Makefile", text, sallyport.KindDocument, ""},
		"binary below scripts":              {"scripts/tool", binary, sallyport.KindArtifact, ""},
		"image below scripts":               {"scripts/a.png", binary, sallyport.KindArtifact, ""},
		"shebang anywhere":                  {"tools/run", "#!/usr/bin/env python3\n", sallyport.KindScript, "python"},
		"shebang with version":              {"tools/run", "#!/usr/bin/python3.11 -u\n", sallyport.KindScript, "python"},
		"shebang sh":                        {"tools/run", "#!/bin/sh\n", sallyport.KindScript, "bash"},
		"shebang env -S":                    {"tools/run", "#!/usr/bin/env -S node --no-warnings\n", sallyport.KindScript, "node"},
		"shebang env variables":             {"tools/run", "#!/usr/bin/env -S A=1 bash -e\n", sallyport.KindScript, "bash"},
		"shebang with CR":                   {"tools/run", "#!/bin/bash\r\n", sallyport.KindScript, "bash"},
		"shebang unknown":                   {"tools/run", "#!/usr/bin/env -S uv run --script\n", sallyport.KindScript, ""},
		"shebang wins over data name":       {"scripts/run.txt", "#!/bin/sh\n", sallyport.KindScript, "bash"},
		"extension wins over shebang":       {"a.py", "#!/bin/sh\n", sallyport.KindScript, "python"},
		"Rust attribute is no shebang":      {"src/main.rs", "#![allow(x)]\n", sallyport.KindDocument, ""},
		"reference":                         {"references/a.md", text, sallyport.KindReference, ""},
		"reference singular":                {"reference/a.md", text, sallyport.KindReference, ""},
		"deeper":                            {"docs/references/a.md", text, sallyport.KindReference, ""},
		"example":                           {"examples/a.md", text, sallyport.KindExample, ""},
		"template":                          {"templates/a.md", text, sallyport.KindTemplate, ""},
		"asset":                             {"assets/a.txt", text, sallyport.KindArtifact, ""},
		"binary reference":                  {"references/a.pdf", binary, sallyport.KindReference, ""},
		"text":                              {"LICENSE.txt", text, sallyport.KindDocument, ""},
		"empty":                             {"empty", "", sallyport.KindDocument, ""},
		"binary":                            {"a.bin", binary, sallyport.KindArtifact, ""},
		"a file named scripts":              {"scripts", text, sallyport.KindDocument, ""},
		"a directory that only looks alike": {"myscripts/run", text, sallyport.KindDocument, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := registry.InferKind(test.path, []byte(test.content)); got != test.kind {
				t.Errorf("kind of %s is %s, want %s", test.path, got, test.kind)
			}
			if test.kind != sallyport.KindScript {
				return
			}
			if got := registry.InferRuntime(test.path, []byte(test.content)); got != test.runtime {
				t.Errorf("runtime of %s is %q, want %q", test.path, got, test.runtime)
			}
		})
	}
}

func TestSlug(t *testing.T) {
	t.Parallel()
	hash := func(name string) string { return sallyport.DigestOf([]byte(name)).Hex()[:8] }
	for name, want := range map[string]string{
		"pdf": "pdf", "PDF Tools": "pdf-tools", "a_b": "a-b", "a.b": "a-b", "-a-": "a", "a--b": "a-b", "données": "donnees",
		"donne\u0301es": "donnees", "ＰＤＦ": "pdf", "../../evil": "evil", "a/b": "a-b", "x²": "x2", "C++": "c",
		"技能": "skill-" + hash("技能"), "": "skill-" + hash(""), "!!!": "skill-" + hash("!!!"), "PDF 技能": "pdf-" + hash("pdf 技能"),
		strings.Repeat("a", 64): strings.Repeat("a", 64),
		strings.Repeat("a", 65): strings.Repeat("a", 55) + "-" + hash(strings.Repeat("a", 65)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := registry.Slug(name); got != want || !sallyport.ValidSlug(got) {
				t.Errorf("slug of %q is %q, want %q", name, got, want)
			}
		})
	}
	if registry.Slug("技能") == registry.Slug("能技") || registry.Slug("pdf 技能") == registry.Slug("pdf") {
		t.Error("two names have one slug")
	}
	if registry.Slug("e\u0301技") != registry.Slug("é技") {
		t.Error("one name in two normal forms has two slugs")
	}
}

func FuzzSlug(f *testing.F) {
	for _, seed := range []string{"", "a", "..", "É", "技能", strings.Repeat("-", 99), strings.Repeat("ab-", 40), "\xff", "İ"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got := registry.Slug(name)
		if !sallyport.ValidSlug(got) {
			t.Errorf("slug of %q is %q, which is not valid", name, got)
		}
		if sallyport.ValidSlug(name) && got != name {
			t.Errorf("a valid slug %q became %q", name, got)
		}
	})
}
