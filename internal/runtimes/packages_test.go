package runtimes_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/runtimes"
)

// plant makes a folder of a host with these files, all of them executable, and links, which have a target.
func plant(tb testing.TB, files []string, links map[string]string) string {
	tb.Helper()
	root := filepath.Join(tb.TempDir(), "root")
	for dir := filepath.Dir(root); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o711); err != nil {
			tb.Fatal(err)
		}
	}
	for _, name := range files {
		name, content, _ := strings.Cut(name, "=")
		at := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(content), 0o755); err != nil {
			tb.Fatal(err)
		}
	}
	for name, target := range links {
		at := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.Symlink(target, at); err != nil {
			tb.Fatal(err)
		}
	}
	return root
}

func python(name, version string) sallyport.Package {
	return sallyport.Package{Language: sallyport.LanguagePython, Name: name, Version: version}
}

func node(name, version string) sallyport.Package {
	return sallyport.Package{Language: sallyport.LanguageNode, Name: name, Version: version}
}

// Packages are found where the interpreter finds them, through the links of the root and never out of it.
func TestPackages(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		files   []string
		links   map[string]string
		program string
		want    []sallyport.Package
	}{
		"an official image": {
			[]string{
				"usr/local/bin/python3.12", "usr/local/lib/python3.12/site-packages/numpy-2.1.0.dist-info/METADATA",
				"usr/local/lib/python3.12/site-packages/typing_extensions-4.12.2.dist-info/METADATA",
				"usr/local/lib/python3.12/site-packages/ruamel.yaml-0.18.6.dist-info/METADATA",
				"usr/local/lib/python3.12/site-packages/numpy/__init__.py", "usr/local/lib/python3.11/site-packages/old-1.0.dist-info/METADATA",
			},
			map[string]string{"usr/local/bin/python3": "python3.12"},
			"/usr/local/bin/python3",
			[]sallyport.Package{python("numpy", "2.1.0"), python("python", "3.12"), python("ruamel-yaml", "0.18.6"), python("typing-extensions", "4.12.2")},
		},
		"Debian": {
			[]string{
				"usr/bin/python3.11", "usr/lib/python3/dist-packages/requests-2.28.1.egg-info/PKG-INFO",
				"usr/lib/python3/dist-packages/PyYAML-6.0.egg-info", "usr/lib/python3/dist-packages/six-1.16.0-py3.11.egg-info",
				"usr/local/lib/python3.11/dist-packages/pandas-2.2.0.dist-info/METADATA",
			},
			map[string]string{"usr/bin/python3": "python3.11", "bin": "usr/bin"},
			"/bin/python3",
			[]sallyport.Package{python("pandas", "2.2.0"), python("python", "3.11"), python("pyyaml", "6.0"), python("requests", "2.28.1"), python("six", "1.16.0")},
		},
		"a virtual environment": {
			[]string{"usr/bin/python3.11", "venv/lib/python3.11/site-packages/a-1.dist-info/METADATA", "usr/lib/python3/dist-packages/b-1.egg-info"},
			map[string]string{"venv/bin/python": "/usr/bin/python3.11"},
			"/venv/bin/python",
			[]sallyport.Package{python("a", "1"), python("b", "1"), python("python", "3.11")},
		},
		"a name without a version": {
			[]string{"opt/conda/bin/python", "opt/conda/lib/python3.10/site-packages/scikit_learn-1.5.1.dist-info/METADATA"},
			nil, "/opt/conda/bin/python",
			[]sallyport.Package{python("python", "3.10"), python("scikit-learn", "1.5.1")},
		},
		"a folder that leads out": {
			[]string{"usr/bin/python3.11"},
			map[string]string{"usr/lib": "/../../../../usr/lib"},
			"/usr/bin/python3.11",
			[]sallyport.Package{python("python", "3.11")},
		},
		"links in a circle": {
			[]string{"usr/bin/python3.11"},
			map[string]string{"usr/lib": "lib"},
			"/usr/bin/python3.11",
			[]sallyport.Package{python("python", "3.11")},
		},
		"node": {
			[]string{
				"usr/bin/node", `node_modules/lodash/package.json={"name":"lodash","version":"4.17.21"}`, `node_modules/@a/b/package.json={"version":"1.0.0"}`,
				"node_modules/broken/package.json={", "node_modules/.package-lock.json={}", `usr/share/nodejs/semver/package.json={"version":"7.3.5"}`,
				`usr/lib/node_modules/npm/package.json={"version":"9.2.0"}`,
			},
			nil, "/usr/bin/node",
			[]sallyport.Package{node("@a/b", "1.0.0"), node("broken", ""), node("lodash", "4.17.21"), node("node", ""), node("semver", "7.3.5")},
		},
		"bash": {[]string{"usr/bin/bash"}, nil, "/usr/bin/bash", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := runtimes.Packages(t.Context(), sallyport.Interpreter{Root: plant(t, test.files, test.links), Program: test.program})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("packages (-want +got):\n%s", diff)
			}
		})
	}
}

// A row whose root can serve gets it; any other says why not, without a path of the host.
func TestResolve(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t, runtimes.Limits{})
	out, root, err := unpack(t, store, archive(t, entry{name: "usr/bin/python3.12", content: "x", mode: 0o755}, symlink("usr/bin/python3", "/usr/bin/python3.12"), file("usr/bin/plain", "x")))
	if err != nil {
		t.Fatal(err)
	}
	for dir := filepath.Dir(root); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	folder := plant(t, []string{"usr/bin/python3"}, nil)
	open := plant(t, []string{"usr/bin/python3"}, nil)
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	gone := "sha256:" + strings.Repeat("0", 64)
	image := func(digest, program string) sallyport.Interpreter {
		return sallyport.Interpreter{Runtime: "ds", Program: program, Image: "x@" + digest, Digest: digest}
	}
	for name, test := range map[string]struct {
		row   sallyport.Interpreter
		root  string
		fault string
	}{
		"the host's":                 {sallyport.Interpreter{Runtime: "python", Program: "/no/such"}, "", ""},
		"an image":                   {image(out.Digest, "/usr/bin/python3"), root, ""},
		"an image that is not there": {image(gone, "/usr/bin/python3"), store.Root(gone), "not unpacked on this machine; an operator runs: sallyport runtime pull ds"},
		"no program":                 {image(out.Digest, "/usr/bin/python2"), root, "it has no program /usr/bin/python2"},
		"a program that is no such":  {image(out.Digest, "/usr/bin/plain"), root, "it has no program /usr/bin/plain"},
		"a folder for a program":     {image(out.Digest, "/usr/bin"), root, "it has no program /usr/bin"},
		"a root":                     {sallyport.Interpreter{Runtime: "ds", Program: "/usr/bin/python3", Root: folder}, folder, ""},
		"a root that is not there":   {sallyport.Interpreter{Runtime: "ds", Program: "/usr/bin/python3", Root: folder + "x"}, folder + "x", "its root folder is not there"},
		"a root that is open":        {sallyport.Interpreter{Runtime: "ds", Program: "/usr/bin/python3", Root: open}, open, "others than the server's user can change it"},
	} {
		got := store.Resolve(t.Context(), []sallyport.Interpreter{test.row})[0]
		if got.Root != test.root || (got.Fault == "") != (test.fault == "") || !strings.Contains(got.Fault, test.fault) || strings.Contains(got.Fault, os.TempDir()) {
			t.Errorf("%s: got root %q and fault %q, want %q and %q", name, got.Root, got.Fault, test.root, test.fault)
		}
	}
	if err := os.Chmod(filepath.Join(root, "usr/bin/plain"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := store.Resolve(t.Context(), []sallyport.Interpreter{image(out.Digest, "/usr/bin/python3")})[0]; !strings.Contains(got.Fault, "not what was unpacked") {
		t.Errorf("changed: got %q", got.Fault)
	}
}
