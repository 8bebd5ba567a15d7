package requires_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/requires"
)

func python(name, wanted string) requires.Requirement {
	return requires.Requirement{Language: "python", Name: name, Wanted: wanted}
}

func script(path, content string) sallyport.Component {
	return sallyport.Component{Path: path, Kind: sallyport.KindScript, Content: []byte(content)}
}

func TestPEP723(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		source string
		want   []requires.Requirement
		line   int
		fault  string
	}{
		"none": {"print(1)\n", nil, 0, ""},
		"whole": {
			"#!/usr/bin/env python3\n# /// script\n# requires-python = \">=3.11\"\n# dependencies = [\n#   \"requests<3\",\n#   \"Ruamel.YAML[jinja2] ~= 0.18\",\n# ]\n# ///\nimport requests\n",
			[]requires.Requirement{python("python", ">=3.11"), python("requests", "<3"), python("ruamel-yaml", "~= 0.18")},
			0, "",
		},
		"windows lines":             {"# /// script\r\n# dependencies = [\"a\"]\r\n# ///\r\n", []requires.Requirement{python("a", "")}, 0, ""},
		"an empty comment line":     {"# /// script\n#\n# dependencies = [\"a\"]\n# ///\n", []requires.Requirement{python("a", "")}, 0, ""},
		"ends at the last end":      {"# /// script\n# dependencies = [\"a\"]\n# # ///\n# ///\n", []requires.Requirement{python("a", "")}, 0, ""},
		"another type":              {"# /// pyproject\n# dependencies = [\"a\"]\n# ///\n", nil, 0, ""},
		"a tool's own":              {"# /// script\n# dependencies = []\n# [tool.uv]\n# x = 1\n# ///\n", nil, 0, ""},
		"indented is no block":      {"  # /// script\n# dependencies = [\"a\"]\n# ///\n", nil, 0, ""},
		"a URL and a marker":        {"# /// script\n# dependencies = [\"a @ https://x/y.whl\", \"b>1; sys_platform == 'win32'\", \"c (>=1)\"]\n# ///\n", []requires.Requirement{python("a", ""), {Language: "python", Name: "b", Wanted: ">1", Conditional: true}, python("c", ">=1")}, 0, ""},
		"no end":                    {"x\n# /// script\n# dependencies = [\"a\"]\n\n# ///\n", nil, 2, "has no end"},
		"no space ends the comment": {"# /// script\n#dependencies = [\"a\"]\n# ///\n", nil, 1, "has no end"},
		"two":                       {"# /// script\n# dependencies = []\n# ///\n\n# /// script\n# ///\n", nil, 5, "a second block"},
		"not TOML":                  {"# /// script\n# dependencies = [\n# ///\n", nil, 0, "cannot be read"},
		"not a list":                {"# /// script\n# dependencies = 1\n# ///\n", nil, 0, "cannot be read"},
		"an unknown key":            {"# /// script\n# requires = [\"a\"]\n# ///\n", nil, 1, `has "requires", which PEP 723 does not know`},
		"a bad dependency":          {"# /// script\n# dependencies = [\"=1\", \"a\", \"b==\", \"c;\"]\n# ///\n", []requires.Requirement{python("a", "")}, 1, `"=1" is none`},
		"a bad requires-python":     {"# /// script\n# requires-python = \"three\"\n# ///\n", nil, 1, "is no version specifier"},
		"too large":                 {"# /// script\n# x = '" + strings.Repeat("x", 70_000) + "'\n# ///\n", nil, 1, "larger than"},
		"too many":                  {"# /// script\n# dependencies = [" + strings.Repeat(`"a",`, 300) + "]\n# ///\n", nil, 0, "more than 256"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := requires.Of(script("scripts/x.py", test.source), nil)
			if test.want != nil || test.fault == "" {
				if diff := cmp.Diff(test.want, got.Requirements); diff != "" {
					t.Errorf("requirements (-want +got):\n%s", diff)
				}
			}
			if test.fault == "" != (len(got.Faults) == 0) {
				t.Fatalf("faults: %+v, want %q", got.Faults, test.fault)
			}
			if test.fault != "" && (!strings.Contains(got.Faults[0].Message, test.fault) || test.line > 0 && got.Faults[0].Line != test.line) {
				t.Errorf("fault: %+v, want %q on line %d", got.Faults[0], test.fault, test.line)
			}
		})
	}
}

func TestPackageJSON(t *testing.T) {
	t.Parallel()
	files := []sallyport.Component{
		script("package.json", `{"dependencies":{"outer":"1"}}`),
		script("scripts/package.json", `{"name":"x","dependencies":{"lodash":"^4.17.0","@a/b":"*","brought":"1"},"devDependencies":{"jest":"1"}}`),
		script("scripts/node_modules/brought/package.json", `{}`),
		script("broken/package.json", `{"dependencies":[]}`), script("odd/package.json", `{"dependencies":{"../x":"1","":"2"}}`),
	}
	got := requires.Of(script("scripts/in/x.mjs", ""), files)
	want := []requires.Requirement{{Language: "node", Name: "@a/b", Wanted: "*"}, {Language: "node", Name: "lodash", Wanted: "^4.17.0"}}
	if diff := cmp.Diff(want, got.Requirements); diff != "" || len(got.Faults) > 0 {
		t.Errorf("requirements (-want +got):\n%s%+v", diff, got.Faults)
	}
	if got := requires.Of(script("x.js", ""), files); len(got.Requirements) != 1 || got.Requirements[0].Name != "outer" {
		t.Errorf("at the top: got %+v", got)
	}
	if got := requires.Of(script("broken/x.js", ""), files); len(got.Faults) != 1 || got.Faults[0].File != "broken/package.json" {
		t.Errorf("broken: got %+v", got)
	}
	if got := requires.Of(script("odd/x.js", ""), files); len(got.Faults) != 2 || len(got.Requirements) != 0 {
		t.Errorf("odd: got %+v", got)
	}
	if got := requires.Of(script("x.sh", "# /// script\n# ///\n"), files); len(got.Requirements)+len(got.Faults) != 0 {
		t.Errorf("a shell script: got %+v", got)
	}
}

// Versions compare by PEP 440 and by the ranges of npm; what cannot be told is not called missing.
func TestAgainst(t *testing.T) {
	t.Parallel()
	has := []sallyport.Package{
		{Language: "python", Name: "python", Version: "3.11"},
		{Language: "python", Name: "numpy", Version: "1.26.4"},
		{Language: "python", Name: "beta", Version: "2.0b1"},
		{Language: "python", Name: "odd", Version: "x.y"},
		{Language: "node", Name: "lodash", Version: "4.17.21"},
		{Language: "node", Name: "numpy", Version: "9.0.0"},
		{Language: "node", Name: "bare"},
	}
	for _, test := range []struct {
		language, name, wanted string
		state                  sallyport.NeedState
	}{
		{"python", "numpy", "", "present"},
		{"python", "numpy", ">=1.26,<2", "present"},
		{"python", "numpy", "~=1.26.0", "present"},
		{"python", "numpy", "==1.26.*", "present"},
		{"python", "numpy", "!=1.26.4", "other_version"},
		{"python", "numpy", ">=2", "other_version"},
		{"python", "numpy", "1.2", "other_version"},
		{"python", "beta", ">=2.0a1", "present"},
		{"python", "beta", ">=2.0", "other_version"},
		{"python", "odd", ">1", "unknown"},
		{"python", "torch", "", "missing"},
		{"python", "lodash", "", "missing"},
		{"python", "python", ">=3.11.4", "present"},
		{"python", "python", ">=3.9", "present"},
		{"python", "python", "<3.11", "other_version"},
		{"python", "python", ">=3.12", "other_version"},
		{"node", "lodash", "^4.17.0", "present"},
		{"node", "lodash", "~4.16", "other_version"},
		{"node", "lodash", ">=3 <4 || ^5", "other_version"},
		{"node", "lodash", "git+https://x", "unknown"},
		{"node", "bare", "^1", "unknown"},
		{"node", "bare", "latest", "present"},
		{"node", "chalk", "^5", "missing"},
	} {
		needs := requires.Needs{Requirements: []requires.Requirement{{Language: test.language, Name: test.name, Wanted: test.wanted}}}
		got := needs.Against(has, true)[0]
		if got.State != test.state {
			t.Errorf("%s %s: got %+v, want %s", test.name, test.wanted, got, test.state)
		}
		if (got.Unmet("ds") != "") != (test.state == "missing" || test.state == "other_version") {
			t.Errorf("%s %s: says %q", test.name, test.wanted, got.Unmet("ds"))
		}
		if got := needs.Against(nil, false)[0]; got.State != "unknown" {
			t.Errorf("%s, nobody knows: got %s", test.name, got.State)
		}
	}
	conditional := requires.Needs{Requirements: []requires.Requirement{{Language: "python", Name: "pywin32", Conditional: true}}}
	if got := conditional.Against(has, true)[0]; got.State != "unknown" {
		t.Errorf("for another system: got %+v", got)
	}
	if got := (sallyport.Need{Name: "numpy", Wanted: ">=2", State: sallyport.NeedOtherVersion, Version: "1.26.4"}).Unmet("ds"); got != "it needs numpy >=2, and the runtime ds has 1.26.4" {
		t.Errorf("got %q", got)
	}
}

// Whatever a script says, it is read within bounds.
func FuzzOf(f *testing.F) {
	f.Add("# /// script\n# requires-python = \">=3.11\"\n# dependencies = [\"a[b]>=1; x\"]\n# ///\n", `{"dependencies":{"a":"^1"}}`)
	f.Fuzz(func(t *testing.T, source, manifest string) {
		packages := []sallyport.Package{{Language: "python", Name: "a", Version: "1.0"}, {Language: "node", Name: "a", Version: "1.0.0"}, {Language: "python", Name: "python", Version: "3.11"}}
		for _, s := range []sallyport.Component{script("x.py", source), script("x.js", "")} {
			n := requires.Of(s, []sallyport.Component{script("package.json", manifest)})
			for _, found := range n.Against(packages, true) {
				if found.State == "" || len(found.Name) > 600 {
					t.Errorf("got %+v", found)
				}
			}
		}
	})
}
