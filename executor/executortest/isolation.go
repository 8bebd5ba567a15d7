package executortest

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// calls gives a python script the system calls that python has no name for.
const calls = `
import ctypes, errno, os, platform, sys
libc = ctypes.CDLL(None, use_errno=True)
ARM = platform.machine() == 'aarch64'
def call(x86, arm, *args):
    ctypes.set_errno(0)
    r = libc.syscall(ctypes.c_long(arm if ARM else x86), *[ctypes.c_ulong(a) if isinstance(a, int) else a for a in args])
    return 'ok' if r >= 0 else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))
def expect(name, got, *want):
    if got not in want:
        print(name, got)
`

// isolation: what a script must not see, reach or become. A script prints what it could do; nothing is right.
func isolation() []attempt {
	network := []sallyport.Layer{sallyport.LayerNetworkIsolation}
	filter := []sallyport.Layer{sallyport.LayerSeccomp}
	return []attempt{
		{name: "read a file of the host", needs: []sallyport.Layer{sallyport.LayerMountNamespace}, run: readHostFile},
		{name: "reach the network", needs: network, run: reachNetwork},
		{name: "talk to itself over loopback", needs: network, run: func(t *testing.T, s *suite) {
			printed(t, s.do(t, s.request(t, "python", `
import socket, multiprocessing
a = socket.socket(); a.bind(('127.0.0.1', 0)); a.listen()
b = socket.create_connection(a.getsockname()); c, _ = a.accept(); b.send(b'x'); assert c.recv(1) == b'x'
p, q = socket.socketpair(); p.send(b'y'); assert q.recv(1) == b'y'
if __name__ == '__main__':
    with multiprocessing.Pool(2) as pool:
        print(sum(pool.map(abs, [-1, -2, -3])), end='')
`)), "6")
		}},
		{name: "write outside", needs: []sallyport.Layer{sallyport.LayerReadOnlySystem}, run: func(t *testing.T, s *suite) {
			printed(t, s.do(t, s.request(t, "python", `
import os
for path in ['/x', '/usr/x', '/usr/bin/x', '/etc/x', '/dev/x', '/run/x', '/run/sallyport/x', '/var/x', '/home/x', '/proc/x', '/bin/x', '/lib/x',
             '/etc/passwd', '/proc/sys/kernel/core_pattern', '/proc/sys/kernel/hostname', '/proc/sysrq-trigger', '/usr/bin/env',
             '/proc/1/oom_score_adj', '/proc/1/exe', '/proc/1/comm', '/run/sallyport/init', '/proc/sys/vm/overcommit_memory']:
    try:
        os.close(os.open(path, os.O_WRONLY | (0 if os.path.exists(path) else os.O_CREAT), 0o600))
        print('wrote', path)
    except OSError:
        pass
for path in ['/etc/passwd', '/usr/bin/env', '/run/sallyport', '/tmp/../usr']:
    for act in (lambda: os.chmod(path, 0o777), lambda: os.rename(path, path + '2'), lambda: os.utime(path)):
        try:
            act()
            print('changed', path)
        except OSError:
            pass
`)), "")
		}},
		{name: "follow a link out", needs: []sallyport.Layer{sallyport.LayerMountNamespace}, run: func(t *testing.T, s *suite) {
			marker := hostMarker(t)
			req := s.request(t, "bash", "read -r target\nln -s \"$target\" link\nln -s / root\ncat link \"root$target\" \"../../../../..$target\" /proc/self/root\"$target\" /proc/1/root\"$target\" /proc/1/cwd\"$target\" 2>/dev/null\ntrue\n")
			req.Stdin = []byte(marker + "\n")
			printed(t, s.do(t, req), "")
		}},
		{name: "inherit a descriptor or variable", run: func(t *testing.T, s *suite) {
			t.Setenv("SALLYPORT_SUITE_MARKER", "inherited")
			held, err := os.Open(hostMarker(t))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = held.Close() }()
			printed(t, s.do(t, s.request(t, "bash", "ls /proc/self/fd | wc -l\ncat /proc/*/environ 2>/dev/null | tr '\\0' '\\n' | grep -c inherited\nexit 0\n")), "4\n0\n")
		}},
		{name: "read the variables of PID 1", needs: []sallyport.Layer{sallyport.LayerPIDNamespace}, run: func(t *testing.T, s *suite) {
			printed(t, s.do(t, s.request(t, "bash", "cat /proc/1/environ 2>/dev/null | wc -c\n")), "0\n")
		}},
		{name: "privileges", needs: []sallyport.Layer{sallyport.LayerNoNewPrivileges}, run: func(t *testing.T, s *suite) {
			printed(t, s.do(t, s.request(t, "python", `
import os
for line in open('/proc/self/status'):
    name, _, value = line.partition(':')
    value = value.strip()
    if name.startswith('Cap') and int(value, 16): print(line)
    if name == 'NoNewPrivs' and value != '1': print(line)
    if name in ('Uid', 'Gid') and '0' in value.split(): print(line)
    if name == 'Groups' and set(value.split()) - {str(os.getgid())}: print(line)
if os.getuid() == 0: print('root')
for act in (lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setgroups([0]), lambda: os.chroot('/tmp'), lambda: os.nice(-5),
            lambda: os.mknod('/tmp/null', 0o20666, os.makedev(1, 3)), lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))):
    try:
        act()
        print('allowed')
    except (OSError, PermissionError):
        pass
`)), "")
		}},
		{name: "setuid programs", needs: []sallyport.Layer{sallyport.LayerNoNewPrivileges}, run: func(t *testing.T, s *suite) {
			printed(t, s.do(t, s.request(t, "bash", "cp /bin/bash /tmp/b && chmod 6755 /tmp/b && /tmp/b -p -c 'id -u' | grep -v \"^$(id -u)$\"\nfor p in /usr/bin/su /usr/bin/passwd /usr/bin/mount /usr/bin/sudo; do [ -u $p ] && $p -c 'id -u' < /dev/null 2>/dev/null | grep '^0$'; done\ntrue\n")), "")
		}},
		{name: "denied system calls", needs: filter, run: func(t *testing.T, s *suite) {
			printed(t, s.do(t, s.request(t, "python", calls+`
buf = ctypes.create_string_buffer(512)
expect('ptrace', call(101, 117, 16, 1, 0, 0), 'EPERM')
expect('ptrace traceme', call(101, 117, 0, 0, 0, 0), 'EPERM')
expect('process_vm_readv', call(310, 270, 1, buf, 1, buf, 1, 0), 'EPERM')
expect('unshare user', call(272, 97, 0x10000000), 'EPERM')
expect('unshare net', call(272, 97, 0x40000000), 'EPERM')
expect('unshare time', call(272, 97, 0x80), 'EPERM')
expect('clone user', call(56, 220, 0x10000011, 0, 0, 0, 0), 'EPERM')
expect('clone3', call(435, 435, buf, 88), 'ENOSYS')
expect('setns', call(308, 268, 0, 0), 'EPERM')
expect('io_uring', call(425, 425, 1, buf), 'EPERM')
expect('keyctl', call(250, 219, 0, -3 & 0xffffffff, 0), 'EPERM')
expect('add_key', call(248, 217, b'user', b'x', b'y', 1, -3 & 0xffffffff), 'EPERM')
expect('bpf', call(321, 280, 0, buf, 64), 'EPERM')
expect('perf', call(298, 241, buf, 0, 0, 0, 0), 'EPERM')
expect('userfaultfd', call(323, 282, 0), 'EPERM')
expect('mount', call(165, 40, b'x', b'/tmp', b'tmpfs', 0, 0), 'EPERM')
expect('umount', call(166, 39, b'/tmp', 0), 'EPERM')
expect('fsopen', call(430, 430, b'tmpfs', 0), 'EPERM')
expect('open_tree', call(428, 428, 0, b'/', 0), 'EPERM')
expect('open_by_handle_at', call(304, 265, 0, buf, 0), 'EPERM')
expect('settimeofday', call(164, 170, buf, 0), 'EPERM')
expect('clock_settime', call(227, 112, 0, buf), 'EPERM')
expect('adjtimex', call(159, 171, buf), 'EPERM')
expect('reboot', call(169, 142, 0, 0, 0, 0), 'EPERM')
expect('kexec', call(246, 104, 0, 0, 0, 0), 'EPERM')
expect('init_module', call(175, 105, buf, 1, b''), 'EPERM')
expect('syslog', call(103, 116, 3, buf, 10), 'EPERM')
expect('sethostname', call(170, 161, b'x', 1), 'EPERM')
expect('personality', call(135, 92, 0x0040000), 'EPERM')
expect('tiocsti', call(16, 29, 0, 0x5412, buf), 'EPERM')
expect('tiocsti high bits', call(16, 29, 0, 0x5412 | 1 << 40, buf), 'EPERM')
expect('tioclinux', call(16, 29, 0, 0x541c, buf), 'EPERM')
expect('packet socket', call(41, 198, 17, 3, 0), 'EAFNOSUPPORT')
expect('vsock', call(41, 198, 40, 1, 0), 'EAFNOSUPPORT')
expect('bluetooth', call(41, 198, 31, 3, 0), 'EAFNOSUPPORT')
expect('netlink audit', call(41, 198, 16, 3, 9), 'EAFNOSUPPORT')
expect('netlink route', call(41, 198, 16, 3, 0), 'ok')
expect('raw', call(41, 198, 2, 3, 1), 'ESOCKTNOSUPPORT')
expect('sctp', call(41, 198, 2, 5, 0), 'ESOCKTNOSUPPORT')
expect('dccp', call(41, 198, 10, 6, 33), 'ESOCKTNOSUPPORT')
expect('mptcp', call(41, 198, 2, 1, 262), 'EPROTONOSUPPORT')
expect('mptcp high bits', call(41, 198, 2, 1, 262 | 1 << 40), 'EPROTONOSUPPORT')
expect('udp-lite', call(41, 198, 2, 2, 136), 'EPROTONOSUPPORT')
expect('icmp', call(41, 198, 2, 2, 1), 'EPROTONOSUPPORT')
expect('pair of another family', call(53, 199, 30, 1, 0, buf), 'EAFNOSUPPORT')
tcp = libc.socket(2, 1, 6)
expect('layer above tcp', call(54, 208, tcp, 6, 31, b'tls', 3), 'EPERM')
expect('socket filter', call(54, 208, tcp, 1, 26, buf, 16), 'EPERM')
expect('huge pages', call(9, 222, 0, 2 << 20, 3, 0x40022, 0xffffffff, 0), 'ENOMEM')
expect('huge pages of a file', call(319, 279, b'x', 4), 'ENOMEM')
expect('requests of the whole machine', call(206, 0, 8, buf), 'ENOSYS')
expect('sync of the whole machine', call(306, 267, -1 & 0xffffffff), 'ok')
expect('future call', call(900, 900, 0), 'ENOSYS')
if not ARM:
    expect('x32 getpid', call(0x40000000 | 39, 0), 'ENOSYS')
    expect('x32 ptrace', call(0x40000000 | 521, 0, 0, 0), 'ENOSYS')
`)), "")
		}},
		{name: "system calls of another architecture", needs: filter, run: foreignArchitecture},
		// Where PID 1 is the host's, changing its limits would be no attempt but a fault.
		{name: "raise limits", needs: []sallyport.Layer{sallyport.LayerPIDNamespace, sallyport.LayerNoNewPrivileges}, run: func(t *testing.T, s *suite) {
			printed(t, s.do(t, s.request(t, "python", `
import resource, os
for name in ('RLIMIT_NOFILE', 'RLIMIT_NPROC', 'RLIMIT_FSIZE', 'RLIMIT_MEMLOCK', 'RLIMIT_CORE'):
    limit = getattr(resource, name)
    soft, hard = resource.getrlimit(limit)
    if hard == resource.RLIM_INFINITY:
        print(name, 'is not limited')
        continue
    try:
        resource.setrlimit(limit, (hard + 1, hard + 1))
        if resource.getrlimit(limit)[1] != hard: print(name, 'raised')
    except (ValueError, OSError):
        pass
try:
    resource.prlimit(1, resource.RLIMIT_NOFILE, (3, 3))
    print('changed the limits of PID 1')
except OSError:
    pass
`)), "")
		}},
		{name: "slow PID 1 down", needs: []sallyport.Layer{sallyport.LayerPIDNamespace, sallyport.LayerSeccomp}, run: func(t *testing.T, s *suite) {
			// Where the script itself is PID 1 there is nobody else to slow down.
			printed(t, s.do(t, s.request(t, "python", calls+`
def scheduling():
    fields = open('/proc/1/stat').read().rpartition(')')[2].split()
    return [fields[i] for i in (15, 16, 37, 38)]  # priority, nice, rt_priority, policy
before = scheduling()
param = ctypes.create_string_buffer(8)
attr = ctypes.create_string_buffer(56)
attr[0], attr[4], attr[16] = 56, 5, 19
expect('setpriority', call(141, 140, 0, 1, 19), 'EPERM')
expect('setpriority, high bits', call(141, 140, 1 << 40, 1 << 40 | 1, 19), 'EPERM')
expect('setpriority of the group', call(141, 140, 1, 1, 19), 'EPERM')
expect('setpriority of the user', call(141, 140, 2, 0, 19), 'EPERM')
expect('ioprio_set', call(251, 30, 1, 1, 3 << 13), 'EPERM')
expect('ioprio_set of the group', call(251, 30, 2, 1, 3 << 13), 'EPERM')
expect('ioprio_set of the user', call(251, 30, 3, os.getuid(), 3 << 13), 'EPERM')
expect('sched_setscheduler', call(144, 119, 1, 5, param), 'EPERM')
expect('sched_setparam', call(142, 118, 1, param), 'EPERM')
expect('sched_setattr', call(314, 274, 1, attr, 0), 'EPERM')
expect('sched_setaffinity', call(203, 122, 1, 8, param), 'EPERM')
if os.getpid() != 1 and scheduling() != before: print(before, scheduling())
`)), "")
		}},
		{name: "steer itself and its children", needs: filter, run: func(t *testing.T, s *suite) {
			printed(t, s.do(t, s.request(t, "python", `
import os, subprocess, threading
os.setpriority(os.PRIO_PROCESS, 0, 3)
assert os.nice(1) == 4
os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
child = subprocess.Popen(['sleep', '60'])
os.setpriority(os.PRIO_PROCESS, child.pid, 7)
assert os.getpriority(os.PRIO_PROCESS, child.pid) == 7
os.sched_setscheduler(child.pid, os.SCHED_IDLE, os.sched_param(0))
child.kill()
worker = threading.Thread(target=lambda: os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 5))
worker.start(); worker.join()
print(subprocess.run(['nice', '-n', '5', 'bash', '-c', 'nice; renice -n 10 $$ >/dev/null && nice; ionice -c 3 true && echo idle'], capture_output=True, text=True).stdout, end='')
`)), "9\n10\nidle\n")
		}},
		{name: "information about the host", needs: []sallyport.Layer{sallyport.LayerPIDNamespace, sallyport.LayerMountNamespace}, run: hostInformation},
		{name: "processes of others", needs: []sallyport.Layer{sallyport.LayerPIDNamespace}, run: func(t *testing.T, s *suite) {
			printed(t, s.do(t, s.request(t, "python", `
import os
pids = [int(p) for p in os.listdir('/proc') if p.isdigit()]
if len(pids) > 2: print(pids)
for path in ('/proc/1/fd', '/proc/1/environ', '/proc/1/mem', '/proc/1/maps', '/proc/1/root/etc'):
    try:
        os.listdir(path) if os.path.isdir(path) else open(path).read(1)
        print('opened', path)
    except OSError:
        pass
`)), "")
		}},
		{name: "memory shared between runs", needs: []sallyport.Layer{sallyport.LayerIPCNamespace}, run: func(t *testing.T, s *suite) {
			for range 2 {
				printed(t, s.do(t, s.request(t, "python", calls+`
shm = libc.shmget(4711, 4096, 0o1600 | 0o2000)
if shm < 0: print('exists already')
open('/dev/shm/x', 'x').close()
`)), "")
			}
		}},
	}
}

// hostMarker is a file of the host that everybody there can read.
func hostMarker(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sallyport-marker") //nolint:usetesting // t.TempDir is closed to other uids
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "marker")
	if err := os.WriteFile(path, []byte("of the host\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func readHostFile(t *testing.T, s *suite) {
	req := s.request(t, "bash", "read -r marker\ncat \"$marker\" /etc/shadow /etc/machine-id /root/.profile /var/log/dpkg.log /proc/kcore /proc/kmsg /boot/vmlinuz* 2>/dev/null | head -c 100\nls -d /root /var/lib /boot /sys/kernel /sys/class /sys/block /sys/firmware /mnt /srv /opt 2>/dev/null\ntrue\n")
	req.Stdin = []byte(hostMarker(t) + "\n")
	printed(t, s.do(t, req), "")
}

func reachNetwork(t *testing.T, s *suite) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	// An abstract UNIX socket has no path to hide: only a network namespace keeps it away.
	abstract, err := net.Listen("unix", "@sallyport-suite-"+filepath.Base(t.TempDir())+listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = abstract.Close() }()
	req := s.request(t, "python", `
import socket, sys
tcp, unix = sys.stdin.read().split()
host, port = tcp.rsplit(':', 1)
for name, act in {
    'host loopback': lambda: socket.create_connection((host, int(port)), 1),
    'abstract socket': lambda: socket.socket(socket.AF_UNIX).connect('\0' + unix[1:]),
    'public address': lambda: socket.create_connection(('192.0.2.1', 80), 1),
    'datagram': lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53)),
    'metadata': lambda: socket.create_connection(('169.254.169.254', 80), 1),
    'ipv6': lambda: socket.create_connection(('2001:db8::1', 80), 1),
    'name': lambda: socket.getaddrinfo('example.com', 80),
}.items():
    try:
        act()
        print('reached', name)
    except OSError:
        pass
if [i for i in socket.if_nameindex() if i[1] != 'lo']:
    print(socket.if_nameindex())
`)
	req.Stdin = []byte(listener.Addr().String() + " " + abstract.Addr().String())
	r, took := s.execute(t, req)
	printed(t, r, "")
	if took > 10*time.Second {
		t.Errorf("took %s: the network was not refused but waited for", took)
	}
}

// foreignArchitecture makes an i386 system call, whose numbers mean other things, from a program of three instructions.
func foreignArchitecture(t *testing.T, s *suite) {
	if runtime.GOARCH != "amd64" {
		t.Log("there is no second architecture to call from here")
		return
	}
	r := s.do(t, s.request(t, "python", `
import ctypes, mmap
code = b'\xb8\x14\x00\x00\x00\xcd\x80\xc3'  # mov eax, 20 (getpid of i386); int 0x80; ret
m = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
m.write(code)
f = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(m)))
print('answered', f(), flush=True)
`))
	// SIGSYS from the filter, or SIGSEGV where the kernel has no second architecture at all.
	if r.ExitCode != nil || (r.Signal != 31 && r.Signal != 11) || len(r.Stdout) != 0 {
		t.Errorf("got %s", describe(r))
	}
}

func hostInformation(t *testing.T, s *suite) {
	hostname, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	r := s.do(t, s.request(t, "bash", "uname -n\ncat /proc/1/cmdline /proc/self/cgroup /proc/self/mountinfo /proc/mounts | tr '\\0' '\\n'\nls /sys /proc/1/cwd 2>/dev/null\ntrue\n"))
	exited(t, r, 0)
	name, rest, _ := strings.Cut(string(r.Stdout), "\n")
	if s.factory.Storage != "" {
		rest = regexp.MustCompile(regexp.QuoteMeta(s.factory.Storage)+`[^\s:,]*`).ReplaceAllString(rest, "STORAGE")
	}
	if name == hostname {
		t.Errorf("the hostname is the host's, %s", hostname)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{home, os.TempDir() + "/", "/var/lib", "sallyport-sandbox", "revisions", "run-", "tenant", s.factoryMarker()} {
		if secret != "" && strings.Contains(rest, secret) {
			t.Errorf("%q can be read inside:\n%s", secret, rest)
		}
	}
}

// factoryMarker is the name of this process's folder, which no run has a reason to know.
func (s *suite) factoryMarker() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	return dir
}
