//go:build amd64 || arm64

package bubblewrap_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
)

// What Landlock alone refuses is refused, and what programs do with files every day works.
func TestLandlock(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, bubblewrap.Config{})
	c := e.Capabilities(t.Context())
	if !slices.Contains(c.Layers, sallyport.LayerLandlock) {
		t.Fatalf("this kernel has no Landlock to test: %v", c.Layers)
	}
	for _, tt := range []struct{ name, runtime, program, source, want string }{
		{"a file of one's own in /proc", "bash", "/bin/bash", "{ echo x >/proc/self/comm; } 2>/dev/null && echo written || echo refused\n", "refused\n"},
		{"a setting of the kernel", "bash", "/bin/bash", "{ echo x >/proc/sys/kernel/hostname; } 2>/dev/null && echo written || echo refused\n", "refused\n"},
		{"the own streams by name", "bash", "/bin/bash", "echo one >/dev/stdout; echo two >/proc/self/fd/1; echo three >/dev/null\n", "one\ntwo\n"},
		{"moving between folders", "python", "/usr/bin/python3", "import os\n" +
			"for base in ('.', '/tmp', '/dev/shm', os.environ['HOME'], os.environ['SKILL_ARTIFACTS']):\n" +
			"    os.makedirs(base + '/a'); os.makedirs(base + '/b')\n" +
			"    open(base + '/a/f', 'w').close()\n" +
			"    os.rename(base + '/a/f', base + '/b/f'); os.link(base + '/b/f', base + '/a/g'); os.truncate(base + '/a/g', 5)\n" +
			"    os.symlink('f', base + '/b/l'); os.mkfifo(base + '/b/p'); os.remove(base + '/b/p'); os.remove(base + '/a/g'); os.rmdir(base + '/a')\n" +
			"print('moved')\n", "moved\n"},
		{"a program of one's own", "bash", "/bin/bash", "for d in . /tmp /dev/shm \"$HOME\"; do printf '#!/bin/sh\\necho ran\\n' >$d/p; chmod +x $d/p; $d/p; done | sort | uniq -c | tr -s ' '\n", " 4 ran\n"},
		{"a terminal of one's own", "python", "/usr/bin/python3", "import os, pty, termios\n" +
			"m, s = pty.openpty(); termios.tcgetattr(s); os.write(s, b'x'); print(os.read(m, 1).decode(), os.isatty(s))\n", "x True\n"},
		{"memory files and sockets", "python", "/usr/bin/python3", "import os, socket\n" +
			"f = os.memfd_create('x'); os.write(f, b'abc'); print(open('/proc/self/fd/%d' % f).read())\n" +
			"l = socket.socket(socket.AF_UNIX); l.bind('\\0name'); l.listen(); c = socket.socket(socket.AF_UNIX); c.connect('\\0name')\n" +
			"t = socket.create_server(('127.0.0.1', 0)); socket.create_connection(t.getsockname()); print('connected')\n", "abc\nconnected\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, err := e.Execute(t.Context(), request(tt.runtime, tt.program, tt.source))
			if err != nil || string(r.Stdout) != tt.want {
				t.Errorf("got %q, %q, %v", r.Stdout, r.Stderr, err)
			}
			if !slices.Contains(r.Isolation.Layers, sallyport.LayerLandlock) {
				t.Errorf("the result does not list Landlock: %v", r.Isolation.Layers)
			}
		})
	}
}

// On a kernel without Landlock runs go on without that layer, and nothing calls it missing; one that has it and refuses to
// apply it runs nothing.
func TestHostsWithoutLandlock(t *testing.T) {
	t.Parallel()
	requireRoot(t)
	t.Run("no such call", func(t *testing.T) {
		t.Parallel()
		e := newExecutor(t, bubblewrap.Config{Program: hardened(t, "no-landlock")})
		c := e.Capabilities(t.Context())
		if !c.Available || len(c.Missing) > 0 || slices.Contains(c.Layers, sallyport.LayerLandlock) {
			t.Fatalf("got %+v", c)
		}
		r, err := e.Execute(t.Context(), request("bash", "/bin/bash", "exit 3\n"))
		if err != nil || r.ExitCode == nil || *r.ExitCode != 3 || slices.Contains(r.Isolation.Layers, sallyport.LayerLandlock) {
			t.Errorf("got %+v, %v", r, err)
		}
		if i := slices.IndexFunc(e.Probe(t.Context()), func(c bubblewrap.Check) bool {
			return c.Name == "landlock" && c.Result == bubblewrap.CheckAdvice && c.Remedy != ""
		}); i < 0 {
			t.Error("doctor says nothing about it")
		}
	})
	t.Run("cannot be applied", func(t *testing.T) {
		t.Parallel()
		e := newExecutor(t, bubblewrap.Config{Program: hardened(t, "broken-landlock")})
		c := e.Capabilities(t.Context())
		if c.Available || !strings.Contains(c.Reason, "apply Landlock") {
			t.Fatalf("got %+v", c)
		}
		_, err := e.Execute(t.Context(), request("bash", "/bin/bash", "exit 3\n"))
		if !sallyport.IsNotStarted(err) || sallyport.CodeOf(err) != sallyport.CodeSandboxUnavailable {
			t.Errorf("got %v", err)
		}
	})
}
