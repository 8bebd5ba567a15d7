//go:build amd64 || arm64

package bubblewrap_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
)

// attackLeaks: what a script can learn of, or change in, the host and other runs.
func attackLeaks() []attack {
	return []attack{
		{name: "attack 84: everything that the process table tells", run: func(t *testing.T, s *siege) {
			req := s.script("bash", "for p in /proc/[0-9]* /proc/self; do cat $p/environ $p/cmdline $p/mountinfo $p/cgroup $p/maps $p/stack $p/cwd/x 2>/dev/null; readlink $p/exe $p/root $p/cwd; done | tr '\\0' '\\n'\nfor f in mounts cmdline cgroups keys partitions diskstats; do cat /proc/$f; done 2>/dev/null\ntrue\n")
			req.TenantID = "tenant-that-nobody-may-know"
			req.Limits.OutputBytes = 1 << 20
			r := s.do(t, req)
			s.exited(t, r, 0)
			for _, secret := range []string{string(req.TenantID), s.h.cfg.StateDir, "revisions", "sallyport-test", "/var/lib/docker", "/oldroot"} {
				if strings.Contains(string(r.Stdout), secret) {
					t.Errorf("%q can be read inside", secret)
				}
			}
		}},
		{name: "a secret of another run that is under way", run: attackAnothersSecret},
		{name: "attack 87: programs of the sandbox overwritten", run: func(t *testing.T, s *siege) {
			r := s.do(t, s.script("python", `
import os, subprocess
for path in ('/proc/self/exe', '/proc/1/exe', '/run/sallyport/init', '/usr/bin/python3', '/bin/bash', '/usr/bin/bwrap'):
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC):
        try:
            os.open(path, flags)
            print('opened', path)
        except OSError:
            pass
# After the process that ran it has ended, a program is no longer busy.
p = subprocess.Popen(['/bin/sleep', '0.1'])
fd = os.open('/proc/%d/exe' % p.pid, os.O_PATH)
p.wait()
try:
    os.open('/proc/self/fd/%d' % fd, os.O_WRONLY)
    print('opened afterwards')
except OSError:
    pass
# Our own PID 1, started by the script, finds nothing to do and no one to report to.
p = subprocess.run(['/run/sallyport/init'], stdin=subprocess.DEVNULL, capture_output=True, timeout=5)
`))
			s.printed(t, r, "")
		}},
		{name: "attack 88: kernel files", run: func(t *testing.T, s *siege) {
			s.printed(t, s.do(t, s.script("python", `
import os
for path in ('/proc/kcore', '/proc/kmsg', '/proc/keys', '/proc/key-users', '/proc/timer_list', '/proc/sched_debug',
             '/proc/kpagecount', '/proc/kpageflags', '/proc/slabinfo', '/proc/vmallocinfo',
             '/proc/acpi', '/proc/scsi', '/sys/firmware', '/sys/kernel/debug', '/sys/kernel/security', '/sys/fs/cgroup', '/dev/mem', '/dev/kmsg', '/dev/kvm', '/dev/fuse', '/dev/net/tun'):
    try:
        data = bytes(str(os.listdir(path)), 'utf8') if os.path.isdir(path) else open(path, 'rb').read(64)
        if data.strip(b'\0 []'): print('read', path, data[:40])
    except OSError:
        pass
try:
    for line in open('/proc/kallsyms'):
        if int(line.split()[0], 16):
            print('addresses of the kernel:', line)
            break
except OSError:
    pass
`)), "")
		}},
		{name: "attack 88: what the process table tells of the host", run: func(t *testing.T, s *siege) {
			readable := map[string]bool{}
			for _, path := range []string{
				"cmdline", "config.gz", "diskstats", "partitions", "swaps", "modules", "mdstat", "interrupts", "locks", "keys", "key-users",
				"kallsyms", "iomem", "mtrr", "timer_list", "slabinfo", "vmallocinfo", "pagetypeinfo", "schedstat", "latency_stats",
			} {
				if text, err := os.ReadFile("/proc/" + path); err == nil && len(text) > 0 {
					readable[path] = true
				}
			}
			if len(readable) == 0 || !readable["cmdline"] {
				t.Fatal("this host shows nothing of itself, so nothing is tried")
			}
			source := `
import os, sys
for name in sys.stdin.read().split():
    for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR):
        try:
            fd = os.open('/proc/' + name, flags)
            print('opened', name, os.read(fd, 40) if flags != os.O_WRONLY else '')
        except OSError:
            pass
    try:
        os.chmod('/proc/' + name, 0o666)
        print('changed', name)
    except OSError:
        pass
for name in ('fs', 'pressure', 'driver', 'acpi', 'scsi', 'asound'):
    if os.path.isdir('/proc/' + name):
        if os.listdir('/proc/' + name): print('listed', name, os.listdir('/proc/' + name))
        try:
            open('/proc/%s/x' % name, 'x')
            print('wrote', name)
        except OSError:
            pass
for name in ('cpuinfo', 'meminfo', 'stat', 'vmstat', 'loadavg', 'uptime', 'version', 'cgroups', 'filesystems', 'devices', 'self/status', 'self/mountinfo',
             'sys/kernel/random/uuid', 'sys/kernel/osrelease', 'sys/vm/overcommit_memory', 'sys/kernel/pid_max', 'net/dev', 'sysvipc/shm'):
    if not open('/proc/' + name).read(): print('lost', name)
`
			req := s.script("python", source)
			req.Stdin = []byte(strings.Join(slices.Sorted(maps.Keys(readable)), " "))
			s.printed(t, s.do(t, req), "")
			// Two runs cannot tell by it that they share a host.
			host, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]bool{string(host): true}
			for range 2 {
				r := s.do(t, s.script("bash", "cat /proc/sys/kernel/random/boot_id\n"))
				s.exited(t, r, 0)
				if id := string(r.Stdout); seen[id] || !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\n$`).MatchString(id) {
					t.Errorf("boot id %q", id)
				} else {
					seen[id] = true
				}
			}
		}},
		{name: "attack 89: every file of /proc/sys", run: func(t *testing.T, s *siege) {
			s.printed(t, s.do(t, s.script("python", `
import os
tried = 0
for top in ('/proc/sys', '/proc/irq', '/proc/bus', '/proc/fs', '/proc/driver'):
    for folder, _, names in os.walk(top):
        for name in names:
            tried += 1
            try:
                os.close(os.open(os.path.join(folder, name), os.O_WRONLY | os.O_NONBLOCK))
                print('may write', os.path.join(folder, name))
            except OSError:
                pass
for name in ('sysrq-trigger', 'mtrr', 'timer_list', 'sys/kernel/ns_last_pid', '1/oom_score_adj', '1/uid_map', '1/gid_map', '1/setgroups', '1/mem', '1/attr/current', '1/timens_offsets'):
    try:
        os.close(os.open('/proc/' + name, os.O_WRONLY))
        print('may write', name)
    except OSError:
        pass
if tried < 100: print('only', tried)
`)), "")
		}},
		{name: "attack 94: new and other namespaces", run: func(t *testing.T, s *siege) {
			s.printed(t, s.do(t, s.compiled("namespaces")), "")
		}},
		{name: "attack 96: who the host is", run: func(t *testing.T, s *siege) {
			hostname, err := os.Hostname()
			if err != nil {
				t.Fatal(err)
			}
			r := s.do(t, s.script("bash", "hostname 2>/dev/null || uname -n\ncat /etc/machine-id /etc/hostname /var/lib/dbus/machine-id /etc/resolv.conf /run/.containerenv /.dockerenv /sys/class/dmi/id/* 2>/dev/null\ncat /proc/self/cgroup | grep -v ':/$'\nls /sys /run /var 2>/dev/null | sort | tr '\\n' ' '\ncat /etc/hosts /etc/passwd\n"))
			out := string(r.Stdout)
			if !strings.HasPrefix(out, "sallyport\n") || hostname != "" && hostname != "localhost" && hostname != "sallyport" && strings.Contains(out, hostname) {
				t.Errorf("host name: %s", out)
			}
			for _, file := range []string{"/etc/machine-id", "/etc/resolv.conf"} {
				if text, err := os.ReadFile(file); err == nil && len(strings.TrimSpace(string(text))) > 4 && strings.Contains(out, strings.TrimSpace(string(text))) {
					t.Errorf("%s of the host can be read", file)
				}
			}
			if strings.Contains(out, ":/") && strings.Contains(out, "run-") {
				t.Errorf("control groups: %s", out)
			}
		}},
		{name: "attack 98: objects of System V and POSIX across runs", run: func(t *testing.T, s *siege) {
			source := `
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
librt = ctypes.CDLL('librt.so.1', use_errno=True)
IPC_CREAT, IPC_EXCL = 0o1000, 0o2000
for name in ('shmget', 'msgget', 'semget'):
    args = {'shmget': (4711, 4096), 'msgget': (4711,), 'semget': (4711, 1)}[name]
    if getattr(libc, name)(*args, IPC_CREAT | IPC_EXCL | 0o666) < 0: print(name, 'is there already', ctypes.get_errno())
    if name != 'msgget' and getattr(libc, name)(*args, 0o666) < 0: print(name, 'does not work')
q = librt.mq_open(b'/sallyport-attack', 0o100 | 0o200 | 2, 0o666, None)
if q < 0 and ctypes.get_errno() == 17: print('the queue is there already')
try: open('/dev/shm/attack', 'x').close()
except FileExistsError: print('shared memory is there already')
`
			for range 2 {
				s.printed(t, s.do(t, s.script("python", source)), "")
			}
		}},
		{name: "attack 99: keys left in a keyring", run: func(t *testing.T, s *siege) {
			source := "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\nx = os.uname().machine == 'x86_64'\nfor ring in (-1, -2, -3, -4, -5):\n    if libc.syscall(ctypes.c_long(248 if x else 217), b'user', b'attack', b'secret', 6, ctypes.c_int(ring)) >= 0: print('added', ring)\nif libc.syscall(ctypes.c_long(249 if x else 218), b'user', b'attack', None, 0) >= 0: print('found')\nif os.popen('cat /proc/keys 2>/dev/null').read(): print('listed')\n"
			for range 2 {
				s.printed(t, s.do(t, s.script("python", source)), "")
			}
		}},
	}
}

// attackAnothersSecret looks for the secret of one run from another, and in every command line of the host.
func attackAnothersSecret(t *testing.T, s *siege) {
	const value = "hunter2-of-another-run"
	owner := s.script("bash", "[ ${#API_TOKEN} = 22 ] && while :; do sleep 0.1; done\n")
	owner.Secrets = map[string]sallyport.Secret{"API_TOKEN": value}
	owner.Argv = []string{"the-owner-of-a-secret"}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := s.e.Execute(ctx, owner)
		ended <- err
	}()
	defer func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the owner ended by itself: %v", err)
		}
	}()
	eventually(t, func() []string {
		if strings.Contains(commandLines(t), "the-owner-of-a-secret") {
			return nil
		}
		return []string{"the owner of the secret has not begun"}
	})
	if strings.Contains(commandLines(t), value) {
		t.Error("a command line of the host holds the value")
	}
	thief := s.script("bash", "for p in /proc/[0-9]* /proc/self; do cat $p/environ $p/cmdline $p/root/proc/*/environ; done 2>/dev/null | tr '\\0' '\\n' | grep -c '[h]unter2'\ncat /proc/1/environ 2>/dev/null | wc -c\ntrue\n")
	s.printed(t, s.do(t, thief), "0\n0\n")
}

// commandLines is what every process of the host was started with.
func commandLines(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		line, _ := os.ReadFile(file) // the process may have ended
		all.Write(line)
		all.WriteByte('\n')
	}
	return all.String()
}
