package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
)

const (
	someDigest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	someImage  = "registry.example.org:5000/team/node@" + someDigest
)

// A name stands for a program, a folder or an image; a script may ask for those of its extension, behind the row that serves it.
func TestRuntimes(t *testing.T) {
	t.Parallel()
	const file = `
interpreters: {py: ds, sh: /bin/bash, rb: ruby-3}
runtimes:
  ds: {root: /srv/ds, program: /usr/bin/python3}
  python-3.12: {program: /usr/bin/python3.12}
  node-20: {image: ` + someImage + `, program: /usr/bin/node, extensions: [js]}
  tarball: {image: "/srv/i.tar@` + someDigest + `", program: /opt/conda/bin/python, extensions: [py, rb]}
  ruby-3: {program: /usr/bin/ruby3.1}
`
	s, err := load(t, file, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []sallyport.Interpreter{
		{Extension: "py", Runtime: "ds", Program: "/usr/bin/python3", Root: "/srv/ds"},
		{Extension: "rb", Runtime: "ruby-3", Program: "/usr/bin/ruby3.1"},
		{Extension: "sh", Runtime: "bash", Program: "/bin/bash"},
		{Extension: "py", Runtime: "python-3.12", Program: "/usr/bin/python3.12"},
		{Extension: "py", Runtime: "tarball", Program: "/opt/conda/bin/python", Image: "/srv/i.tar@" + someDigest, Digest: someDigest},
		{Extension: "rb", Runtime: "tarball", Program: "/opt/conda/bin/python", Image: "/srv/i.tar@" + someDigest, Digest: someDigest},
	}
	if diff := cmp.Diff(want, s.AllowList(found())); diff != "" {
		t.Errorf("allow-list (-want +got):\n%s", diff)
	}

	// A runner is asked for any of them by name, for the programs of the host by path too, and for no program inside of another root.
	names := s.RunnerRuntimes(found())
	if row := names["node-20"]; row.Image != someImage || row.Program != "/usr/bin/node" {
		t.Errorf("node-20 is %+v", row)
	}
	if row, known := names["/usr/bin/python3"]; known {
		t.Errorf("/usr/bin/python3 means %+v, which is inside of a root", row)
	}
	if names["/bin/bash"].Runtime != "bash" || names["ds"].Root != "/srv/ds" {
		t.Errorf("got %+v", names)
	}

	// Beside those of the host.
	s, err = load(t, "interpreters: auto\nruntimes: {ds: {root: /srv/ds, program: /usr/bin/python3}}\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	want = append(found(), sallyport.Interpreter{Extension: "py", Runtime: "ds", Program: "/usr/bin/python3", Root: "/srv/ds"})
	if diff := cmp.Diff(want, s.AllowList(found())); diff != "" {
		t.Errorf("auto (-want +got):\n%s", diff)
	}

	// With runners, a name is all there is to say.
	s, err = load(t, "executor: remote\nremote: {runners: ['https://a:1']}\ninterpreters: {py: python-3.12}\nruntimes: {ds: {extensions: [py, js]}}\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	want = []sallyport.Interpreter{
		{Extension: "py", Runtime: "python-3.12", Program: "python-3.12"}, {Extension: "py", Runtime: "ds", Program: "ds"},
	}
	if diff := cmp.Diff(want, s.AllowList(nil)); diff != "" {
		t.Errorf("remote (-want +got):\n%s", diff)
	}
}

// Whatever is wrong with a runtime is told with its name and what to do.
func TestRuntimesRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ file, want string }{
		"not a map":            {"runtimes: [a]\n", "server.yaml:1: runtimes: want a map of names to runtimes"},
		"a word":               {"runtimes: ds\n", "want a map of names to runtimes"},
		"not a runtime":        {"runtimes: {ds: /usr/bin/python3}\n", "ds: line 1: want program, and root or image"},
		"bad name":             {"runtimes: {DS: {program: /p}}\n", `want a runtime's name such as python-3.12, got "DS"`},
		"generic name":         {"runtimes: {python: {program: /p}}\n", `"python" is what every such script asks for; take a name of its own, such as python-team`},
		"name twice":           {"runtimes: {a: {program: /p}, a: {program: /p}}\n", "a"},
		"unknown member":       {"runtimes: {a: {programm: /p}}\n", "a: line 1: programm: a runtime has no such setting; it has program, root, image and extensions"},
		"member twice":         {"runtimes:\n  a:\n    program: /p\n    program: /q\n", "program"},
		"no program":           {"runtimes: {a: {extensions: [py]}}\n", "runtimes: a: needs its program, such as /usr/bin/python3"},
		"root, no program":     {"runtimes: {a: {root: /srv}}\n", "a: needs its program, a path in there"},
		"relative program":     {"runtimes: {a: {program: python3}}\n", `a: line 1: program: want an absolute path, got "python3"`},
		"relative root":        {"runtimes: {a: {root: srv, program: /p}}\n", `root: want an absolute path, got "srv"`},
		"root is the host's":   {"runtimes: {a: {root: /srv/.., program: /p}}\n", "root: want a folder that holds a system of its own"},
		"root and image":       {"runtimes: {a: {root: /srv, image: " + someImage + ", program: /p}}\n", "a: has a root and an image; keep one"},
		"image by tag":         {"runtimes: {a: {image: 'python:3.12', program: /p}}\n", `image: want the image by digest, python:3.12@sha256:..., got "python:3.12"; sallyport runtime add python:3.12 prints it`},
		"short digest":         {"runtimes: {a: {image: 'python@sha256:abc', program: /p}}\n", "want sha256: and 64 lower-case hex digits after the @"},
		"another algorithm":    {"runtimes: {a: {image: 'python@sha512:" + strings.Repeat("a", 128) + "', program: /p}}\n", "want sha256: and 64"},
		"upper-case digest":    {"runtimes: {a: {image: 'python@sha256:" + strings.Repeat("A", 64) + "', program: /p}}\n", "want sha256: and 64"},
		"relative image":       {"runtimes: {a: {image: './i.tar@" + someDigest + "', program: /p}}\n", "want an absolute path or a reference"},
		"image with a space":   {"runtimes: {a: {image: 'a b@" + someDigest + "', program: /p}}\n", "want an absolute path or a reference"},
		"no image before it":   {"runtimes: {a: {image: '@" + someDigest + "', program: /p}}\n", "want an absolute path or a reference"},
		"bad extension":        {"runtimes: {a: {program: /p, extensions: [.py]}}\n", `extensions: want extensions of lower-case letters and digits without their dot, got ".py"`},
		"no use":               {"runtimes: {a: {program: /usr/bin/ruby}}\n", "runtimes: a: no script would use it; name the extensions of its scripts"},
		"an alias":             {"runtimes: {a: &x {program: /usr/bin/python3}, b: *x}\n", "anchors, aliases and merges are not used here"},
		"an unknown runtime":   {"interpreters: {py: ds}\n", `interpreters: py: want an absolute path, got "ds"; the name of a runtime must be described in runtimes`},
		"described for remote": {"executor: remote\nremote: {runners: ['https://a:1']}\nruntimes: {a: {root: /r, program: /usr/bin/python3}}\n", "runtimes: a: with the executor remote the runner says what a runtime is"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, test.file, nil)
			if err == nil {
				t.Fatal("accepted")
			}
			if got := sallyport.Public(err).Message; !strings.Contains(got, test.want) {
				t.Errorf("message: got %q, want it to contain %q", got, test.want)
			}
		})
	}
}
