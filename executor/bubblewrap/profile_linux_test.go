//go:build amd64 || arm64

package bubblewrap_test

import (
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
)

// Under the strict profile two runs have no signal left through files that both can read, and ordinary programs still run.
func TestStrictProfile(t *testing.T) {
	t.Parallel()
	const channels = `
import ctypes, fcntl, os, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
found = []
def try_out(name, f):
    try:
        f()
    except OSError:
        return
    found.append(name)
shared = os.open('/usr/bin/env', os.O_RDONLY)
def call(f, *a):
    if f(*a) < 0:
        raise OSError(ctypes.get_errno(), name)
name = ''
try_out('flock', lambda: fcntl.flock(shared, fcntl.LOCK_SH | fcntl.LOCK_NB))
try_out('getlk', lambda: fcntl.fcntl(shared, fcntl.F_GETLK, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 0, 0)))
try_out('inotify', lambda: call(libc.inotify_init))
try_out('notify', lambda: fcntl.fcntl(os.open('/usr', os.O_RDONLY), fcntl.F_NOTIFY, fcntl.DN_ACCESS))
try_out('fadvise', lambda: os.posix_fadvise(shared, 0, 0, os.POSIX_FADV_DONTNEED))
try_out('netlink', lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW))
print(*found)
`
	everyday := map[string][2]string{
		"python": {"/usr/bin/python3", "import sqlite3, subprocess, multiprocessing, socket\n" +
			"c = sqlite3.connect('a.db'); c.execute('create table t (x)'); c.execute('insert into t values (1)'); c.commit()\n" +
			"c2 = sqlite3.connect('a.db'); assert c2.execute('select x from t').fetchall() == [(1,)]\n" +
			"assert subprocess.check_output(['sh', '-c', 'ls /usr | wc -l'])\n" +
			"multiprocessing.Lock().acquire(); s = socket.create_server(('127.0.0.1', 0)); print('well')\n"},
		"bash": {"/bin/bash", "echo b >x; echo a >>x; sort x | tr -d '\\n' | grep -q ab && cp x y && mv y z && tar cf - z | tar tf - >/dev/null && echo well\n"},
		"node": {"/usr/bin/node", "const fs = require('fs'); fs.writeFileSync('f', 'x'); require('child_process').execSync('cat f'); console.log('well')\n"},
	}
	for profile, want := range map[string]string{
		bubblewrap.ProfileDefault: "flock getlk inotify notify fadvise netlink\n",
		bubblewrap.ProfileStrict:  "\n",
	} {
		e := newExecutor(t, bubblewrap.Config{Profile: profile})
		r, err := e.Execute(t.Context(), request("python", "/usr/bin/python3", channels))
		if err != nil || string(r.Stdout) != want || r.Isolation.Profile != profile {
			t.Errorf("%s: open channels %q, want %q; %q, %v", profile, r.Stdout, want, r.Stderr, err)
		}
		for runtime, script := range everyday {
			r, err := e.Execute(t.Context(), request(runtime, script[0], script[1]))
			if err != nil || string(r.Stdout) != "well\n" {
				t.Errorf("%s: %s: got %q %q, %v", profile, runtime, r.Stdout, r.Stderr, err)
			}
		}
		if c := e.Capabilities(t.Context()); c.Profile != profile {
			t.Errorf("capabilities name the profile %q", c.Profile)
		}
	}
}

// A profile or plan that nobody knows is refused with a sentence that says what there is.
func TestUnknownProfileAndPlan(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]bubblewrap.Config{
		"use default or strict":                   {Profile: "lax"},
		"use user_namespace or root, or leave it": {Plan: "none"},
	} {
		e, err := bubblewrap.New(cfg)
		if e != nil || sallyport.CodeOf(err) != sallyport.CodeInvalidArgument || !strings.Contains(sallyport.Public(err).Message, want) {
			t.Errorf("got %v, %v", e, err)
		}
	}
}
