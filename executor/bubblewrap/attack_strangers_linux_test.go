//go:build amd64 || arm64

package bubblewrap_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// counted fails the test unless the kernel's own counters are there and within the limits of a siege's runs.
func counted(t *testing.T, s *siege, r sallyport.Result) {
	t.Helper()
	if slices.Contains(s.e.Capabilities(t.Context()).Missing, sallyport.LayerMemoryLimit) {
		return // an ordinary user's host: nothing counts
	}
	if peak := r.Usage.MemoryPeakBytes; peak == nil || *peak > 128<<20 || *peak < 1<<20 {
		t.Errorf("memory peak %v", peak)
	}
	if r.Usage.CPUTimeMS == nil {
		t.Error("no processor time")
	}
}

// enough fails the test unless the script ended by itself, or for memory.
func (s *siege) enough(t *testing.T, r sallyport.Result) {
	t.Helper()
	if r.Limit != sallyport.LimitMemory && (r.ExitCode == nil || *r.ExitCode != 0) {
		t.Errorf("got %s", told(r))
	}
	counted(t, s, r)
}

// attackStrangers: what somebody tries who did not read how the sandbox is built.
func attackStrangers() []attack {
	return append(append(strangersProcesses(), strangersMemory()...), append(strangersFiles(), strangersKernel()...)...)
}

func strangersProcesses() []attack {
	return []attack{
		{name: "stranger: a chain of sessions, each the child of one that ended", run: func(t *testing.T, s *siege) {
			r := s.do(t, s.script("python", `
import os, sys, time
if os.fork() == 0:
    for n in range(300):
        os.setsid() if n == 0 else None
        pid = os.fork()
        if pid: os._exit(0)
        os.setsid()
    sys.stdout.write('still here\n'); sys.stdout.flush()
    time.sleep(600)
time.sleep(0.3)
`))
			s.exited(t, r, 0)
			counted(t, s, r)
		}},
		{name: "stranger: an own reaper between its children and PID 1", run: func(t *testing.T, s *siege) {
			s.printed(t, s.do(t, s.script("python", `
import ctypes, os, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
for _ in range(20):
    if os.fork() == 0:
        if os.fork() == 0:
            os.setsid()
            time.sleep(600)
        os._exit(0)
print('left', flush=True)
os._exit(0)
`)), "left\n")
		}},
		{name: "stranger: stops and continues its leader without end", run: func(t *testing.T, s *siege) {
			r := s.do(t, s.script("python", `
import os, signal, time
leader = os.getpid()
if os.fork() == 0:
    end = time.monotonic() + 1
    while time.monotonic() < end:
        os.kill(leader, signal.SIGSTOP)
        os.kill(leader, signal.SIGCONT)
    os._exit(0)
os.wait()
print('done')
`))
			s.printed(t, r, "done\n")
		}},
		{name: "stranger: floods PID 1 with queued signals, also as the owner of a stream", run: func(t *testing.T, s *siege) {
			s.printed(t, s.do(t, s.script("python", `
import ctypes, fcntl, os, signal
libc = ctypes.CDLL(None, use_errno=True)
info = ctypes.create_string_buffer(128)
x = os.uname().machine == 'x86_64'
for _ in range(20000):
    for n in (signal.SIGCHLD, signal.SIGRTMIN, signal.SIGRTMAX, signal.SIGTERM):
        try: os.kill(1, n)
        except OSError: pass
        ctypes.c_int.from_buffer(info, 8).value = -1  # SI_QUEUE
        libc.syscall(ctypes.c_long(129 if x else 138), 1, int(n), info)
a, b = os.pipe()
fcntl.fcntl(a, fcntl.F_SETOWN, 1)
fcntl.fcntl(a, fcntl.F_SETSIG, int(signal.SIGRTMIN))
fcntl.fcntl(a, fcntl.F_SETFL, fcntl.fcntl(a, fcntl.F_GETFL) | os.O_ASYNC)
for _ in range(20000): os.write(b, b'x'); os.read(a, 1)
for _ in range(30):
    if os.fork() == 0: os._exit(0)
while True:
    try: os.wait()
    except ChildProcessError: break
open(os.environ['SKILL_ARTIFACTS'] + '/a', 'w').write('kept')
print('done')
`)), "done\n")
		}},
		{name: "stranger: a handle on PID 1", run: func(t *testing.T, s *siege) {
			s.printed(t, s.do(t, s.script("python", `
import ctypes, os, select, signal
libc = ctypes.CDLL(None, use_errno=True)
try:
    fd = os.pidfd_open(1)
    for n in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM):
        try: signal.pidfd_send_signal(fd, n)
        except OSError: pass
    try:
        os.waitid(os.P_PIDFD, fd, os.WEXITED | os.WNOHANG)
        print('waited for it')
    except OSError: pass
    if libc.syscall(ctypes.c_long(438), fd, 1, 0) >= 0: print('took a descriptor of it')
    if libc.syscall(ctypes.c_long(448), fd, 0) >= 0: print('released its memory')
except OSError: pass
for name in ('mem', 'fd/3', 'environ', 'auxv', 'syscall', 'stack', 'io', 'root/run', 'map_files'):
    try:
        os.open('/proc/1/' + name, os.O_RDONLY); print('opened', name)
    except OSError: pass
for name in ('mem', 'oom_score_adj', 'timerslack_ns', 'coredump_filter', 'autogroup', 'comm', 'clear_refs', 'sched', 'loginuid', 'attr/current'):
    try:
        fd = os.open('/proc/1/' + name, os.O_WRONLY)
        os.write(fd, b'0'); print('wrote', name)
    except OSError: pass
`)), "")
		}},
		{name: "stranger: a listener that never answers its child's system calls", run: func(t *testing.T, s *siege) {
			r := s.do(t, s.script("python", `
import ctypes, os, time
libc = ctypes.CDLL(None, use_errno=True)
# All of getppid to a listener that nobody reads.
x = os.uname().machine == 'x86_64'
code = b''.join(int(c).to_bytes(2, 'little') + bytes([jt, jf]) + int(k).to_bytes(4, 'little') for c, jt, jf, k in
    ((0x20, 0, 0, 0), (0x15, 0, 1, 110 if x else 173), (0x06, 0, 0, 0x7fc00000), (0x06, 0, 0, 0x7fff0000)))
buf = ctypes.create_string_buffer(code)
prog = ctypes.create_string_buffer(16)
prog[0:2] = (4).to_bytes(2, 'little')
prog[8:16] = ctypes.addressof(buf).to_bytes(8, 'little')
for _ in range(5):
    if os.fork() == 0:
        os.setsid()
        if libc.syscall(ctypes.c_long(317 if x else 277), 1, 8, prog) >= 0:
            if os.fork() == 0:
                os.getppid()
            else:
                os.getppid()
        time.sleep(600)
time.sleep(0.5)
print('left', flush=True)
`))
			s.printed(t, r, "left\n")
		}},
		{name: "stranger: vfork that never executes, at the timeout", run: func(t *testing.T, s *siege) {
			req := s.compiled("vfork")
			req.Limits.Timeout = time.Second
			s.timedOut(t, s.do(t, req))
		}},
		{name: "stranger: threads until nothing can be started, then more", run: func(t *testing.T, s *siege) {
			r := s.do(t, s.script("python", `
import os, threading, time
n = 0
try:
    while True:
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
        n += 1
except RuntimeError: pass
for _ in range(50):
    try:
        if os.fork() == 0: os._exit(0)
        print('forked')
    except OSError: pass
print(n, flush=True)
os._exit(7)
`))
			s.exited(t, r, 7)
			if string(r.Stdout) != "47\n" || r.Usage.ProcessLimitHits < 50 {
				t.Errorf("%q, %d refused", r.Stdout, r.Usage.ProcessLimitHits)
			}
		}},
		{name: "stranger: every way to end", run: func(t *testing.T, s *siege) {
			for source, code := range map[string]int{
				"exit 256": 0, "exit 255": 255, "exit -1": 255, "exit 137": 137, "exit 124": 124, "exec python3 -c 'import os; os._exit(-9)'": 247,
				"kill -9 $BASHPID & wait $!; exit $?": 137, "exec false": 1, "exec /nonexistent": 127, "exec /etc/passwd": 126,
				"trap 'exit 3' EXIT; exit 4": 3, "trap '' TERM INT; kill -TERM $$; exit 5": 5,
			} {
				r := s.do(t, s.script("bash", source+"\n"))
				s.exited(t, r, code)
				if r.Signal != 0 {
					t.Errorf("%s: signal %d", source, r.Signal)
				}
			}
			for _, signal := range []int{1, 3, 6, 9, 11, 15, 31, 34, 64} {
				r := s.do(t, s.script("python", fmt.Sprintf("import os, signal, time\nif %[1]d not in (9,): signal.signal(%[1]d, signal.SIG_DFL)\nos.kill(os.getpid(), %[1]d)\ntime.sleep(5)\n", signal)))
				if r.ExitCode != nil || r.Signal != signal || r.Limit != "" || r.TimedOut {
					t.Errorf("signal %d: %s", signal, told(r))
				}
			}
		}},
		{name: "stranger: names of processes that look like a report", run: func(t *testing.T, s *siege) {
			s.printed(t, s.do(t, s.script("python", `
import ctypes, os, time
libc = ctypes.CDLL(None)
for name in (b'x) R 1 1 1\n0 0', b'\n\n) S 0', b'\xff\xfe(((', b''):
    if os.fork() == 0:
        libc.prctl(15, name, 0, 0, 0)
        os.setsid()
        time.sleep(600)
print('left', flush=True)
`)), "left\n")
		}},
		{name: "stranger: timers and descriptors that fire all the time", run: func(t *testing.T, s *siege) {
			r := s.do(t, s.script("python", `
import ctypes, os, signal, time
libc = ctypes.CDLL(None, use_errno=True)
x = os.uname().machine == 'x86_64'
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
made = 0
timer = ctypes.c_int()
spec = ctypes.create_string_buffer((0).to_bytes(8, 'little') + (20000).to_bytes(8, 'little') + (0).to_bytes(8, 'little') + (1).to_bytes(8, 'little'))
while made < 100000 and libc.syscall(ctypes.c_long(222 if x else 107), 1, None, ctypes.byref(timer)) >= 0:
    if made < 2000: libc.syscall(ctypes.c_long(223 if x else 110), timer.value, 0, spec, None)
    made += 1
time.sleep(1)
print('enough' if made > 100 else made)
`))
			s.enough(t, r)
		}},
	}
}

func strangersMemory() []attack {
	return []attack{
		{name: "stranger: System V memory that outlives its processes", run: func(t *testing.T, s *siege) {
			source := `
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
listed = open('/proc/sysvipc/shm').read().splitlines()[1:]
if listed: print('left by another run', listed)
for n in range(64):
    if os.fork() == 0:
        seg = libc.shmget(1000 + n, 8 << 20, 0o1600)
        at = libc.shmat(seg, None, 0)
        if seg >= 0 and at not in (None, ctypes.c_void_p(-1).value): ctypes.memset(at, 1, 8 << 20)
        os._exit(0)
    os.wait()
`
			for range 2 {
				s.enough(t, s.do(t, s.script("python", source)))
			}
			r := s.do(t, s.script("bash", "cat /proc/sysvipc/shm /proc/sysvipc/msg /proc/sysvipc/sem | grep -vc key\nexit 0\n"))
			s.printed(t, r, "0\n")
		}},
		{name: "stranger: queues of messages until there are no more", run: func(t *testing.T, s *siege) {
			source := `
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
librt = ctypes.CDLL('librt.so.1', use_errno=True)
ids = []
body = ctypes.create_string_buffer((1).to_bytes(8, 'little') + b'x' * 8184)
for n in range(40000):
    q = libc.msgget(n + 1, 0o3600)
    if q < 0: break
    while libc.msgsnd(q, body, 8184, 0o4000) == 0: pass
for n in range(5000):
    if librt.mq_open(b'/q%d' % n, 0o102, 0o600, None) < 0: break
`
			for range 2 {
				s.enough(t, s.do(t, s.script("python", source)))
			}
		}},
		{name: "stranger: a terabyte, reserved, populated, locked", run: func(t *testing.T, s *siege) {
			s.enough(t, s.do(t, s.script("python", `
import ctypes, mmap, os
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
bad = ctypes.c_void_p(-1).value
got = 0
while got < 64 and libc.mmap(None, 1 << 40, 3, 0x4022, -1, 0) != bad: got += 1  # NORESERVE
if libc.mlockall(3) == 0 and libc.mmap(None, 64 << 20, 3, 0x22, -1, 0) != bad: print('locked 64 MiB')
libc.munlockall()
if os.fork() == 0:
    libc.mmap(None, 1 << 30, 3, 0x8022, -1, 0)  # POPULATE
    os._exit(0)
os.wait()
`)))
		}},
		{name: "stranger: only a grandchild runs out of memory, after it asked to be spared", run: func(t *testing.T, s *siege) {
			r := s.do(t, s.script("python", `
import os
if os.fork() == 0:
    if os.fork() == 0:
        for path in ('/proc/self/oom_score_adj', '/proc/self/oom_adj', '/proc/1/oom_score_adj', '/proc/%d/oom_score_adj' % os.getppid()):
            for value in ('-1000', '0', '-17'):
                try:
                    open(path, 'w').write(value); print('spared by', path, value, flush=True)
                except OSError: pass
        a = []
        while True: a.append(bytearray(1 << 20))
    print(os.wait()[1], flush=True)
    os._exit(0)
os.wait()
`))
			s.printed(t, r, "9\n")
			if r.Usage.OOMKills < 1 {
				t.Errorf("%d kills for memory", r.Usage.OOMKills)
			}
			counted(t, s, r)
		}},
		{name: "stranger: descriptors on their way through sockets, in circles", run: func(t *testing.T, s *siege) {
			s.enough(t, s.do(t, s.script("python", `
import array, os, socket
for _ in range(200):
    pairs = [socket.socketpair() for _ in range(8)]
    for a, b in pairs:
        for c, d in pairs:
            try: a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [a.fileno(), b.fileno(), c.fileno(), d.fileno()]))], socket.MSG_DONTWAIT)
            except OSError: pass
    for a, b in pairs: a.close(); b.close()
`)))
		}},
		{name: "stranger: names that do not exist, by the hundred thousand", run: func(t *testing.T, s *siege) {
			s.enough(t, s.do(t, s.script("python", `
import os
for n in range(150000):
    for place in ('/usr/share/', '/tmp/'):
        try: os.stat(place + 'no-such-name-%d' % n)
        except OSError: pass
`)))
		}},
		{name: "stranger: links, attributes and locks instead of content", run: func(t *testing.T, s *siege) {
			for _, source := range []string{
				"import os\nn = 0\ntry:\n    while n < 400000:\n        os.symlink('x' * 4000, '/tmp/%d' % n)\n        n += 1\nexcept OSError: pass\n",
				"import os\nn = 0\ntry:\n    while n < 200000:\n        p = '/dev/shm/%d' % n\n        open(p, 'x').close()\n        for a in range(4): os.setxattr(p, 'user.%d' % a, b'x' * 60000)\n        n += 1\nexcept OSError: pass\n",
				"import fcntl, os\nf = open('/tmp/lock', 'w+b')\ntry:\n    for n in range(15000): fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 2 * n)\nexcept OSError: pass\n",
			} {
				s.enough(t, s.do(t, s.script("python", source)))
			}
		}},
		{name: "stranger: watches on everything", run: func(t *testing.T, s *siege) {
			s.enough(t, s.do(t, s.script("python", `
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
fds = []
while True:
    fd = libc.inotify_init()
    if fd < 0: break
    fds.append(fd)
n = 0
if fds:
    for top, dirs, files in os.walk('/usr'):
        for name in files:
            if libc.inotify_add_watch(fds[0], os.path.join(top, name).encode(), 0xfff) >= 0: n += 1
        if n > 60000: break
`)))
		}},
		{name: "stranger: terminals until there are no more", run: func(t *testing.T, s *siege) {
			count := func() string {
				n, err := os.ReadFile("/proc/sys/kernel/pty/nr")
				if err != nil {
					t.Fatal(err)
				}
				return string(n)
			}
			before := count()
			s.enough(t, s.do(t, s.script("python", "import os\nheld = []\ntry:\n    while True: held.append(os.openpty())\nexcept OSError: pass\nassert len(held) < 1024\n")))
			eventually(t, func() []string {
				if after := count(); after != before {
					return []string{"terminals of the host: " + after + ", before " + before}
				}
				return nil
			})
		}},
		{name: "stranger: bytes that wait in sockets of the loopback", run: func(t *testing.T, s *siege) {
			// What a kernel counts apart from memory must have a limit too: it is taken from the host all the same.
			for _, kind := range []string{"SOCK_STREAM", "SOCK_DGRAM"} {
				r := s.do(t, s.script("python", "kind = '"+kind+"'\n"+`
import os, socket
held, waiting = [], 0
l = socket.socket(); l.bind(('127.0.0.1', 0)); l.listen(100)
try:
    while len(held) < 400:
        if kind == 'SOCK_STREAM':
            c = socket.create_connection(l.getsockname(), 1)
            held += [c, l.accept()[0]]
        else:
            d, c = socket.socket(type=socket.SOCK_DGRAM), socket.socket(type=socket.SOCK_DGRAM)
            d.bind(('127.0.0.1', 0)); d.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 30); c.connect(d.getsockname())
            held += [c, d]
        c.setblocking(False)
        try:
            for _ in range(200): waiting += c.send(b'x' * 60000)
        except BlockingIOError: pass
except OSError: pass
kernel = [line.split() for line in open('/proc/net/sockstat') if line.startswith(('TCP:', 'UDP:'))]
pages = sum(int(line[line.index('mem') + 1]) for line in kernel)
print(pages * os.sysconf('SC_PAGE_SIZE') >> 20, flush=True)
os._exit(0)
`))
				s.enough(t, r)
				if mib, err := strconv.Atoi(strings.TrimSpace(string(r.Stdout))); r.Limit == "" && (err != nil || mib > 128) {
					t.Errorf("%s: %s MiB of the host wait in sockets", kind, r.Stdout)
				}
			}
		}},
	}
}

func strangersFiles() []attack {
	return []attack{
		{name: "stranger: SKILL_OUTPUT that is anything but a file", run: func(t *testing.T, s *siege) {
			for name, source := range map[string]string{
				"fifo":      "rm -f $SKILL_OUTPUT; mkfifo $SKILL_OUTPUT\n",
				"folder":    "rm -f $SKILL_OUTPUT; mkdir -p $SKILL_OUTPUT/x\n",
				"socket":    "rm -f $SKILL_OUTPUT; python3 -c 'import os, socket; socket.socket(socket.AF_UNIX).bind(os.environ[\"SKILL_OUTPUT\"])'\n",
				"link":      "rm -f $SKILL_OUTPUT; ln -s /etc/passwd $SKILL_OUTPUT\n",
				"link loop": "rm -f $SKILL_OUTPUT; ln -s output.json $SKILL_OUTPUT\n",
				"hard link": "echo '{\"a\":1}' > $SKILL_OUTPUT; ln $SKILL_OUTPUT $SKILL_ARTIFACTS/x\n",
				"terminal":  "rm -f $SKILL_OUTPUT; ln -s /dev/ptmx $SKILL_OUTPUT\n",
				"endless":   "rm -f $SKILL_OUTPUT; ln -s /dev/zero $SKILL_OUTPUT\n",
				"gone":      "rm -rf $SKILL_OUTPUT $SKILL_ARTIFACTS $SKILL_ROOT/* 2>/dev/null; true\n",
				"moved":     "mv $SKILL_ARTIFACTS /tmp/a 2>/dev/null; ln -s /etc $SKILL_ARTIFACTS; true\n",
			} {
				r := s.do(t, s.script("bash", source))
				s.exited(t, r, 0)
				if r.OutputData != nil || r.ArtifactsLost || len(r.Artifacts) != 0 {
					t.Errorf("%s: output %q, lost %v, %d artifacts", name, r.OutputData, r.ArtifactsLost, len(r.Artifacts))
				}
			}
		}},
		{name: "stranger: artifacts full of holes", run: func(t *testing.T, s *siege) {
			r := s.do(t, s.script("python", `
import os
d = os.environ['SKILL_ARTIFACTS']
for name, size in (('small', 1 << 20), ('large', 8 << 20), ('endless', 1 << 50)):
    try: os.truncate(os.open(d + '/' + name, os.O_CREAT | os.O_WRONLY), size)
    except OSError: pass
fd = os.open(d, os.O_TMPFILE | os.O_WRONLY)
os.write(fd, b'late')
import ctypes
assert ctypes.CDLL(None).linkat(-100, b'/proc/self/fd/%d' % fd, -100, (d + '/late').encode(), 0x400) == 0
`))
			s.exited(t, r, 0)
			got := map[string]int{}
			for _, a := range r.Artifacts {
				got[a.Path] = len(a.Content)
			}
			if got["small"] != 1<<20 || got["late"] != 4 || got["large"] != 0 || !strings.Contains(strings.Join(r.ArtifactNotes, "\n"), "large") {
				t.Errorf("got %v, notes %q", got, r.ArtifactNotes)
			}
			counted(t, s, r)
		}},
		{name: "stranger: artifacts with hostile names", run: func(t *testing.T, s *siege) {
			r := s.do(t, s.script("python", `
import os
d = os.environ['SKILL_ARTIFACTS'].encode()
for name in (b'a\nb', b'\x1b[2J\x1b[31m', b'\xff\xfe', b'-rf', b' ', b'..x', b'\xe2\x80\xaegnp.exe', b'x' * 255):
    open(d + b'/' + name, 'wb').write(b'1')
`))
			s.exited(t, r, 0)
			if len(r.Artifacts)+len(r.ArtifactNotes) < 8 {
				t.Errorf("%d artifacts and %q are not all that was left", len(r.Artifacts), r.ArtifactNotes)
			}
			for _, note := range r.ArtifactNotes {
				if strings.ContainsAny(note, "\n\x1b") {
					t.Errorf("the note %q has control characters", note)
				}
			}
			for _, a := range r.Artifacts {
				if err := sallyport.CheckPath(a.Path); err != nil {
					t.Errorf("the artifact %q: %v", a.Path, err)
				}
			}
		}},
		{name: "stranger: twenty thousand artifacts", run: func(t *testing.T, s *siege) {
			r := s.do(t, s.script("python", "import os\nfor n in range(20000): open('%s/%d' % (os.environ['SKILL_ARTIFACTS'], n), 'x').close()\n"))
			s.exited(t, r, 0)
			if len(r.Artifacts) > 8 || len(r.ArtifactNotes) == 0 || r.ArtifactsLost {
				t.Errorf("%d artifacts, %d notes, lost %v", len(r.Artifacts), len(r.ArtifactNotes), r.ArtifactsLost)
			}
		}},
		{name: "stranger: streams made smaller, not blocking, and shared with a daemon", run: func(t *testing.T, s *siege) {
			r := s.do(t, s.script("python", `
import fcntl, os, time
fcntl.fcntl(1, 1031, 4096)  # F_SETPIPE_SZ
fcntl.fcntl(1, fcntl.F_SETFL, os.O_NONBLOCK | os.O_APPEND)
if os.fork() == 0:
    os.setsid()
    while True:
        try: os.write(1, b'd' * 4096)
        except BlockingIOError: time.sleep(0.001)
written = 0
while written < 1 << 20:
    try: written += os.write(1, b'x' * 4096)
    except BlockingIOError: time.sleep(0.001)
os.close(0); os.close(1); os.close(2)
os._exit(9)
`))
			s.exited(t, r, 9)
			if !r.StdoutTruncated || len(r.Stdout) != 64<<10 || r.StdoutBytes < 1<<20 {
				t.Errorf("%d bytes of %d, cut %v", len(r.Stdout), r.StdoutBytes, r.StdoutTruncated)
			}
		}},
		{name: "stranger: itself again with two megabytes of arguments", run: func(t *testing.T, s *siege) {
			r := s.do(t, s.script("bash", "echo $#\n[ $# -gt 0 ] && exit 0\nx=$(head -c 100000 /dev/zero | tr '\\0' x)\nexec bash $0 $(for i in $(seq 15); do echo $x; done)\n"))
			if r.ExitCode == nil || *r.ExitCode != 0 && *r.ExitCode != 126 {
				t.Errorf("got %s", told(r))
			}
		}},
	}
}

func strangersKernel() []attack {
	return []attack{
		{name: "stranger: a program that exists in memory only", run: func(t *testing.T, s *siege) {
			s.printed(t, s.do(t, s.script("python", `
import os, shutil
fd = os.memfd_create('x', 0)
with open('/bin/grep', 'rb') as f: os.sendfile(fd, f.fileno(), 0, 64 << 20)
os.execve('/proc/self/fd/%d' % fd, ['grep', '-E', '^(NoNewPrivs|Seccomp|CapEff|CapBnd)', '/proc/self/status'], {})
`)), "CapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n")
		}},
		{name: "stranger: writes to its own read-only pages", run: func(t *testing.T, s *siege) {
			s.printed(t, s.do(t, s.script("python", `
import mmap, os
f = os.open('/usr/bin/env', os.O_RDONLY)
before = os.pread(f, 64, 0)
m = mmap.mmap(f, 4096, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE)
shared = mmap.mmap(f, 4096, prot=mmap.PROT_READ, flags=mmap.MAP_SHARED)
for line in open('/proc/self/maps'):
    if line.rstrip().endswith('/usr/bin/env'):
        try: os.pwrite(os.open('/proc/self/mem', os.O_RDWR), b'HOSTILE', int(line.split('-')[0], 16))
        except OSError: pass
if os.pread(f, 64, 0) != before or open('/usr/bin/env', 'rb').read(64) != before: print('changed a program of the host')
`)), "")
		}},
		{name: "stranger: its own rights, rewritten in the process table", run: func(t *testing.T, s *siege) {
			s.printed(t, s.do(t, s.script("python", `
import os
for name, value in (('uid_map', '0 0 1'), ('gid_map', '0 0 1'), ('setgroups', 'allow'), ('projid_map', '0 0 1'), ('loginuid', '0'), ('oom_score_adj', '-1000'),
                    ('timens_offsets', 'monotonic 100 0'), ('attr/exec', 'unconfined'), ('attr/current', 'unconfined'), ('mem', 'x')):
    try:
        open('/proc/self/' + name, 'w').write(value); print('wrote', name)
    except OSError: pass
`)), "")
		}},
		{name: "stranger: the names of another run's sockets, at the same time", run: func(t *testing.T, s *siege) {
			listening := s.script("python", "import socket, time\na = socket.socket(socket.AF_UNIX); a.bind('\\0stranger'); a.listen()\nb = socket.socket(); b.bind(('127.0.0.1', 4711)); b.listen()\ntime.sleep(3)\n")
			var wait sync.WaitGroup
			wait.Go(func() { s.exited(t, s.do(t, listening), 0) })
			s.printed(t, s.do(t, s.script("python", `
import socket, time
end = time.monotonic() + 2
while time.monotonic() < end:
    for family, address in ((socket.AF_UNIX, '\0stranger'), (socket.AF_INET, ('127.0.0.1', 4711))):
        try:
            socket.socket(family).connect(address); print('reached', address)
        except OSError: pass
    time.sleep(0.05)
if 'stranger' in open('/proc/net/unix').read(): print('listed')
`)), "")
			wait.Wait()
		}},
		{name: "stranger: page faults, rings and devices of the kernel", run: func(t *testing.T, s *siege) {
			s.printed(t, s.do(t, s.script("python", `
import os
for path in ('/dev/userfaultfd', '/dev/fuse', '/dev/kvm', '/dev/vhost-net', '/dev/net/tun', '/dev/loop-control', '/dev/mapper/control', '/dev/rfkill', '/dev/uinput',
             '/dev/snd', '/dev/dri', '/dev/mem', '/dev/port', '/dev/sda', '/dev/vda', '/dev/cuse', '/dev/autofs', '/dev/btrfs-control', '/dev/console', '/dev/tty0'):
    try:
        os.open(path, os.O_RDONLY | os.O_NONBLOCK); print('opened', path)
    except OSError: pass
for major, minor in ((1, 1), (10, 229), (7, 0), (8, 0), (253, 0)):
    try:
        os.mknod('/tmp/node', 0o60600 if major in (7, 8, 253) else 0o20600, os.makedev(major, minor)); print('made', major, minor)
    except OSError: pass
`)), "")
		}},
		{name: "stranger: marks on what runs share", run: func(t *testing.T, s *siege) {
			s.printed(t, s.do(t, s.script("python", `
import fcntl, os
for path in ('/usr/bin/env', '/usr', '/etc/ssl/certs', '/dev/null', '/dev/zero', '/run/sallyport/init', '/proc/cmdline', '/etc/localtime'):
    for name, act in (('attribute', lambda: os.setxattr(path, 'user.mark', b'1')), ('mode', lambda: os.chmod(path, 0o777)), ('owner', lambda: os.chown(path, os.getuid(), -1)),
                      ('lease', lambda: fcntl.fcntl(os.open(path, os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_WRLCK)), ('time', lambda: os.utime(path, (0, 0)))):
        try:
            act(); print('left a', name, 'on', path)
        except OSError: pass
`)), "")
		}},
	}
}
