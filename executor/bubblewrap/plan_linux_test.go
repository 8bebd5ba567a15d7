//go:build amd64 || arm64

package bubblewrap_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
)

// Where user namespaces are refused, root takes the plan that needs none, and every result says so. No policy that demands
// what this executor knows of is refused for it.
func TestPlanWithoutUserNamespaces(t *testing.T) {
	t.Parallel()
	requireRoot(t)
	e := newExecutor(t, bubblewrap.Config{Program: hardened(t, "no-userns")})
	c := e.Capabilities(t.Context())
	if !c.Available || c.Plan != bubblewrap.PlanRoot || len(c.Missing) != 0 || slices.Contains(c.Layers, sallyport.LayerUserNamespace) {
		t.Fatalf("got %+v", c)
	}
	r, err := e.Execute(t.Context(), request("bash", "/bin/bash", "exit 3\n"))
	if err != nil || r.ExitCode == nil || *r.ExitCode != 3 || r.Isolation.Plan != bubblewrap.PlanRoot {
		t.Errorf("got %+v, %v", r, err)
	}
	demanded := newExecutor(t, bubblewrap.Config{Program: hardened(t, "no-userns"), Plan: bubblewrap.PlanUserNamespace})
	if c := demanded.Capabilities(t.Context()); c.Available || !strings.Contains(c.Reason, "namespace") || c.Remedy == "" {
		t.Errorf("with the other plan demanded: %+v", c)
	}
}

// PID 1 was root of the host. Nothing of that is left in what it starts.
func TestPlanRootIsNotRoot(t *testing.T) {
	t.Parallel()
	requireRoot(t)
	const first, count = 61200, 8
	e := newExecutor(t, bubblewrap.Config{Plan: bubblewrap.PlanRoot, FirstUID: first, UIDCount: count})
	r, err := e.Execute(t.Context(), request("python", "/usr/bin/python3", `
import getpass, os, pathlib
uids, gids = os.getresuid(), os.getresgid()
assert len(set(uids + gids)) == 1 and 61200 <= uids[0] < 61208, (uids, gids)
assert os.getgroups() == [], os.getgroups()
status = dict(l.split(':', 1) for l in open('/proc/self/status').read().splitlines())
for name in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'):
    assert int(status[name], 16) == 0, status[name]
assert status['NoNewPrivs'].strip() == '1' and status['Seccomp'].strip() == '2'
init = dict(l.split(':', 1) for l in open('/proc/1/status').read().splitlines())
assert init['Uid'].split() == [str(uids[0])] * 4 and int(init['CapPrm'], 16) == 0 and int(init['CapBnd'], 16) == 0, init['Uid']
def refused(f, *a):
    try:
        f(*a)
    except OSError:
        return
    raise AssertionError((f, a))
refused(os.setuid, 0); refused(os.setgid, 0); refused(os.setgroups, [0]); refused(os.chown, '/tmp', 0, 0)
for path in ('/proc/sys/kernel/core_pattern', '/proc/sys/kernel/hostname', '/proc/sysrq-trigger', '/proc/1/mem', '/proc/1/environ', '/etc/passwd', '/usr/x', '/dev/x'):
    refused(open, path, 'r+')
refused(open, '/etc/shadow'); refused(os.listdir, '/proc/1/fd'); refused(os.readlink, '/proc/1/exe')
assert getpass.getuser() == 'skill' and os.path.expanduser('~') == os.environ['HOME']
for path in ('.', '/tmp', '/dev/shm', os.environ['HOME'], os.environ['SKILL_ARTIFACTS']):
    p = pathlib.Path(path, 'mine'); p.write_text('x'); assert p.stat().st_uid == uids[0]; p.chmod(0)
os.kill(1, 9)
print('nobody')
`))
	if err != nil || string(r.Stdout) != "nobody\n" || len(r.Artifacts) != 1 {
		t.Errorf("got %q %q, %d artifacts %v, %v", r.Stdout, r.Stderr, len(r.Artifacts), r.ArtifactNotes, err)
	}
}

// An ordinary user cannot have the plan that needs root, and is told.
func TestPlanRootNeedsRoot(t *testing.T) {
	t.Parallel()
	requireRoot(t)
	cmd := play(t, "capabilities", ordinaryUID, bubblewrap.Config{StateDir: openDir(t, ordinaryUID) + "/state", Plan: bubblewrap.PlanRoot})
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), `"available":false`) || !strings.Contains(string(out), "started as root") {
		t.Errorf("got %s, %v", out, err)
	}
}
