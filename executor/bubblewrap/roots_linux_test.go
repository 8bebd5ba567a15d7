//go:build amd64 || arm64

package bubblewrap_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
)

// buildRoot makes a root folder of its own out of the host's python3 and bash and what they load, in a folder that runs may pass.
func buildRoot(tb testing.TB) string {
	tb.Helper()
	outer := tb.TempDir()
	for dir := outer; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o711); err != nil {
			tb.Fatal(err)
		}
	}
	root := filepath.Join(outer, "root")
	for _, program := range []string{"/usr/bin/python3", "/usr/bin/bash"} {
		copyFile(tb, program, filepath.Join(root, program))
		out, err := exec.CommandContext(tb.Context(), "ldd", program).Output()
		if err != nil {
			tb.Fatal(err)
		}
		for word := range strings.FieldsSeq(string(out)) {
			if strings.HasPrefix(word, "/") {
				dir, err := filepath.EvalSymlinks(filepath.Dir(word))
				if err != nil {
					tb.Fatal(err)
				}
				copyFile(tb, word, filepath.Join(root, dir, filepath.Base(word)))
			}
		}
	}
	out, err := exec.CommandContext(tb.Context(), "/usr/bin/python3", "-c", "import os; print(os.path.dirname(os.__file__))").Output()
	if err != nil {
		tb.Fatal(err)
	}
	copyStandardLibrary(tb, strings.TrimSpace(string(out)), root)
	for _, dir := range []string{"bin", "lib", "lib64"} {
		if err := os.Symlink("usr/"+dir, filepath.Join(root, dir)); err != nil {
			tb.Fatal(err)
		}
	}
	return root
}

func copyStandardLibrary(tb testing.TB, library, root string) {
	tb.Helper()
	skipped := []string{"test", "idlelib", "lib2to3", "ensurepip", "dist-packages", "site-packages", "__pycache__", "tkinter", "unittest"}
	err := filepath.WalkDir(library, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (slices.Contains(skipped, e.Name()) || strings.HasPrefix(e.Name(), "config-")):
			return fs.SkipDir
		case !e.IsDir():
			copyFile(tb, path, filepath.Join(root, path))
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
}

func copyFile(tb testing.TB, from, to string) {
	tb.Helper()
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err == nil {
		err = os.WriteFile(to, content, 0o755)
	}
	if err != nil {
		tb.Fatal(err)
	}
}

func put(tb testing.TB, path, content string) {
	tb.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(content), 0o644)
	}
	if err != nil {
		tb.Fatal(err)
	}
}

const rootDigest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// in is a request whose interpreter is one of a root folder.
func in(root, program, source string) sallyport.ExecRequest {
	req := request("ds", program, source)
	req.Interpreter.Root, req.Interpreter.Digest = root, rootDigest
	return req
}

// A run in a root folder sees that and not the host's system, in the same sandbox, whatever the folder brings.
func TestRoots(t *testing.T) {
	t.Parallel()
	requireRoot(t)
	root := buildRoot(t)
	secret := filepath.Join(filepath.Dir(root), "secret")
	put(t, secret, "of the host")
	put(t, filepath.Join(root, "etc/passwd"), "root::0:0:of the root folder:/:/bin/sh\n")
	put(t, filepath.Join(root, "etc/shadow"), "root::0\n")
	put(t, filepath.Join(root, "etc/resolv.conf"), "nameserver 192.0.2.1\n")
	put(t, filepath.Join(root, "etc/marker"), "of the root folder")
	put(t, filepath.Join(root, "etc/conf.d/a"), "of the root folder")
	put(t, filepath.Join(root, "opt/tool/a"), "of the root folder")
	put(t, filepath.Join(root, "node_modules/left/package.json"), "{}")
	for _, hidden := range []string{"proc/planted", "tmp/planted", "home/skill/planted", "skill/planted", "run/planted", "dev/planted", "root/planted", "var/planted", "sys/planted"} {
		put(t, filepath.Join(root, hidden), "planted")
	}
	copyFile(t, "/usr/bin/bash", filepath.Join(root, "usr/bin/rootshell"))
	err := errors.Join(
		os.Chmod(filepath.Join(root, "usr/bin/rootshell"), 0o6755|os.ModeSetuid|os.ModeSetgid),
		unix.Mknod(filepath.Join(root, "usr/null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))), os.Chmod(filepath.Join(root, "usr/null"), 0o666),
		unix.Mknod(filepath.Join(root, "etc/null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))),
		os.Symlink(secret, filepath.Join(root, "usr/absolute")),
		os.Symlink("../../secret", filepath.Join(root, "usr/relative")),
		os.Symlink(filepath.Dir(root), filepath.Join(root, "up")),
		os.Symlink("../../../../../../"+secret, filepath.Join(root, "etc/up")),
	)
	if err != nil {
		t.Fatal(err)
	}

	e := newExecutor(t, bubblewrap.Config{})
	capabilities := e.Capabilities(t.Context())
	if !slices.Contains(capabilities.Features, sallyport.FeatureRoots) {
		t.Fatalf("features are %v", capabilities.Features)
	}
	for name, tt := range map[string]struct{ program, source, want string }{
		"its own files": {
			"/usr/bin/python3",
			"for p in ('/etc/marker', '/etc/conf.d/a', '/opt/tool/a', '/node_modules/left/package.json'): print(open(p).read())\n",
			"of the root folder\nof the root folder\nof the root folder\n{}\n",
		},
		"not the host's": {
			"/usr/bin/python3",
			"import os\nprint([p for p in ('/usr/bin/bwrap', '/usr/bin/ldd', '/usr/share/doc', '/etc/ssl') if os.path.lexists(p)])\n", "[]\n",
		},
		"no accounts of its": {
			"/usr/bin/python3",
			"import os, pwd\nprint(pwd.getpwuid(os.getuid()).pw_name, 'root folder' in open('/etc/passwd').read(), os.path.lexists('/etc/shadow'), os.path.lexists('/etc/resolv.conf'))\n",
			"skill False False False\n",
		},
		"nothing under the sandbox's own folders": {
			"/usr/bin/python3",
			"import os\nprint([d for d in ('/proc', '/tmp', '/home/skill', '/skill', '/run', '/dev', '/root', '/var', '/sys') if os.path.lexists(d + '/planted')])\n", "[]\n",
		},
		"setuid means nothing": {
			"/usr/bin/bash",
			"/usr/bin/rootshell -p -c 'echo $((EUID == UID)) $((EUID > 0))'\n" +
				"/usr/bin/rootshell -p -c 'while read -r k v; do case $k in CapEff:|NoNewPrivs:) echo $v;; esac; done </proc/self/status'\n",
			"1 1\n0000000000000000\n1\n",
		},
		"devices cannot be opened": {
			"/usr/bin/python3",
			"import os\ntry:\n    open('/usr/null')\n    print('opened')\nexcept PermissionError: print('refused')\nprint(os.path.lexists('/etc/null'))\n", "refused\nFalse\n",
		},
		"links lead nowhere": {
			"/usr/bin/python3",
			"import os\nfor p in ('/usr/absolute', '/usr/relative', '/up/secret', '/etc/up'):\n    try:\n        print(open(p).read())\n    except OSError as e: print(e.errno)\n", "2\n2\n2\n2\n",
		},
		"read-only": {
			"/usr/bin/python3",
			"for p in ('/usr/x', '/etc/x', '/etc/marker', '/opt/x', '/x', '/etc/conf.d/x'):\n    try:\n        open(p, 'w')\n        print(p)\n    except OSError as e: print(e.errno in (13, 30))\n",
			"True\nTrue\nTrue\nTrue\nTrue\nTrue\n",
		},
		"the same environment": {
			"/usr/bin/python3",
			"import os\nprint(' '.join(sorted(k for k in os.environ if not k.startswith('SKILL_'))), os.getcwd(), os.environ['PATH'])\n",
			"HOME LANG PATH PYTHONDONTWRITEBYTECODE TMPDIR /skill /usr/local/bin:/usr/bin:/bin\n",
		},
		"through a link": {"/bin/bash", "echo ran\n", "ran\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := e.Execute(t.Context(), in(root, tt.program, tt.source))
			if err != nil || string(r.Stdout) != tt.want {
				t.Fatalf("got %q, %q, %q, %v", r.Stdout, r.Stderr, r.StartError, err)
			}
			if !slices.Equal(r.Isolation.Layers, capabilities.Layers) || r.Isolation.RuntimeDigest != rootDigest {
				t.Errorf("isolation is %+v, want the layers %v and the digest", r.Isolation, capabilities.Layers)
			}
		})
	}
	t.Run("a program that is not there", func(t *testing.T) {
		t.Parallel()
		r, err := e.Execute(t.Context(), in(root, "/usr/bin/ldd", "true\n"))
		if err != nil || r.StartError == "" || strings.Contains(r.StartError, root) {
			t.Errorf("got %+v, %v", r, err)
		}
	})
	t.Run("as root without a user namespace", func(t *testing.T) {
		t.Parallel()
		e := newExecutor(t, bubblewrap.Config{Plan: bubblewrap.PlanRoot})
		r, err := e.Execute(t.Context(), in(root, "/usr/bin/python3", "import os, pwd; print(pwd.getpwuid(os.getuid()).pw_name, os.getuid() > 0, open('/etc/marker').read())\n"))
		if err != nil || string(r.Stdout) != "skill True of the root folder\n" {
			t.Errorf("got %q, %q, %v", r.Stdout, r.Stderr, err)
		}
	})
}

// A root folder that others could change, or that is none, starts nothing.
func TestRootsRefused(t *testing.T) {
	t.Parallel()
	requireRoot(t)
	outer := t.TempDir()
	for dir := outer; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(outer, name) }
	err := errors.Join(
		os.Mkdir(at("open"), 0o777), os.Chmod(at("open"), 0o777), os.Mkdir(at("foreign"), 0o755), os.Chown(at("foreign"), 4711, 4711),
		os.Mkdir(at("good"), 0o755), os.Symlink("good", at("link")), os.WriteFile(at("file"), nil, 0o644),
		os.Mkdir(at("many"), 0o755), os.Mkdir(at("empty"), 0o755), os.MkdirAll(at("closed/root/usr"), 0o755), os.Chmod(at("closed"), 0o700),
	)
	for i := range 513 {
		err = errors.Join(err, os.Mkdir(filepath.Join(at("many"), "d"+strings.Repeat("x", i%200)+string(rune('a'+i%26))+strings.Repeat("y", i/200)), 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	e := newExecutor(t, bubblewrap.Config{})
	for name, root := range map[string]string{
		"relative": "root", "the host": "/", "not clean": at("good") + "/../good", "not there": at("absent"), "a link": at("link"), "a file": at("file"),
		"others may write": at("open"), "somebody else's": at("foreign"), "too many folders": at("many"), "closed to runs": at("closed/root"),
	} {
		r, err := e.Execute(t.Context(), in(root, "/usr/bin/bash", "echo ran\n"))
		if err == nil || !sallyport.IsNotStarted(err) {
			t.Errorf("%s: got %q and %v", name, r.Stdout, err)
			continue
		}
		if strings.Contains(sallyport.Public(err).Message, outer) {
			t.Errorf("%s: a path of the host in %q", name, sallyport.Public(err).Message)
		}
	}
	// A folder without a system has no program either.
	if r, err := e.Execute(t.Context(), in(at("empty"), "/usr/bin/bash", "echo ran\n")); err != nil || r.StartError == "" {
		t.Errorf("empty: got %+v, %v", r, err)
	}
	req := request("ds", "/usr/bin/bash", "echo ran\n")
	req.Interpreter.Image = "registry.example.org/ds@" + rootDigest
	if _, err := e.Execute(t.Context(), req); !sallyport.IsNotStarted(err) {
		t.Errorf("an image that is not unpacked: got %v", err)
	}
	// The host's own still runs.
	if r, err := e.Execute(t.Context(), request("bash", "/bin/bash", "echo ran\n")); err != nil || string(r.Stdout) != "ran\n" {
		t.Errorf("the host's: got %q, %v", r.Stdout, err)
	}
}
