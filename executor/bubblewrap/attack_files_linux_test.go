//go:build amd64 || arm64

package bubblewrap_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// attackFiles: what a script leaves, links and copies, and what of it we touch.
func attackFiles() []attack {
	return []attack{
		{name: "attack 53: folders as deep as they go", run: func(t *testing.T, s *siege) {
			req := s.script("python", `
import os
for place in ('/tmp', os.environ['SKILL_ARTIFACTS'], os.environ['SKILL_ROOT']):
    os.chdir(place)
    try:
        for i in range(100_000):
            os.mkdir('d' * 255)
            os.chdir('d' * 255)
    except OSError:
        pass
`)
			req.Limits.MemoryBytes, req.Limits.Timeout = 64<<20, 4*time.Second
			s.memoryOnly(t, s.do(t, req))
		}},
		{name: "attack 55: locked folders, attributes and lists", run: func(t *testing.T, s *siege) {
			r := s.do(t, s.script("bash", `
cd "$SKILL_ARTIFACTS"
mkdir -p a/b/c && echo x > a/b/c/f
python3 - <<'END'
import fcntl, os, struct
for name in ('user.x', 'trusted.x', 'security.x', 'system.posix_acl_access'):
    try: os.setxattr('a/b/c/f', name, b'x' * 100)
    except OSError: pass
for flag in (0x10, 0x20):  # immutable, append only
    fd = os.open('a/b/c/f', os.O_RDONLY)
    try: fcntl.ioctl(fd, 0x40086602, struct.pack('l', flag))
    except OSError: pass
END
chmod 000 a/b/c/f a/b/c a/b a
chmod 000 "$SKILL_ROOT" "$HOME" /tmp /dev/shm 2>/dev/null
true
`))
			s.exited(t, r, 0)
			if len(r.Artifacts) != 1 || r.Artifacts[0].Path != "a/b/c/f" || string(r.Artifacts[0].Content) != "x\n" {
				t.Errorf("artifacts %v, notes %q", r.Artifacts, r.ArtifactNotes)
			}
		}},
		{name: "attack 57: hard links to files of the host", run: func(t *testing.T, s *siege) {
			r := s.do(t, s.script("python", `
import os
places = (os.environ['SKILL_ARTIFACTS'], os.environ['SKILL_ROOT'], '/tmp', '/dev/shm')
for source in ('/usr/bin/env', '/etc/ld.so.cache', '/etc/passwd', '/proc/self/exe', '/run/sallyport/init'):
    for i, place in enumerate(places):
        for follow in (True, False):
            try:
                os.link(source, place + '/link%d' % i, follow_symlinks=follow)
                print('linked', source, place)
            except OSError:
                pass
`))
			s.printed(t, r, "")
			if len(r.Artifacts) != 0 {
				t.Errorf("artifacts %v", r.Artifacts)
			}
		}},
		{name: "attack 59: artifacts that grow, shrink and go while the script ends", run: func(t *testing.T, s *siege) {
			for range 3 {
				r := s.do(t, s.script("bash", `
cd "$SKILL_ARTIFACTS"
echo stays > stays
(while :; do head -c 100000 /dev/zero >> grows; : > grows; done) &
(while :; do echo y > goes; rm -f goes; mv stays moved 2>/dev/null; mv moved stays; done 2>/dev/null) &
sleep 0.2
`))
				s.exited(t, r, 0)
				if r.ArtifactsLost {
					t.Error("artifacts were lost")
				}
				total := 0
				for _, a := range r.Artifacts {
					total += len(a.Content)
				}
				if total > 4<<20 {
					t.Errorf("%d bytes of artifacts", total)
				}
			}
		}},
		{name: "attack 62: files that interpreters load by themselves", run: func(t *testing.T, s *siege) {
			plant := `
import os
for place in (os.environ['HOME'], os.environ['SKILL_ROOT'], '/tmp', os.environ['SKILL_ROOT'] + '/scripts'):
    for name in ('sitecustomize.py', 'usercustomize.py', 'json.py', '.bashrc', '.profile', '.bash_profile', '.node_repl_history',
                 'node_modules/x/index.js', '.pythonrc', '.local/lib/python3.11/site-packages/x.pth'):
        os.makedirs(os.path.dirname(place + '/' + name), exist_ok=True)
        open(place + '/' + name, 'w').write('print("loaded")\n')
`
			s.printed(t, s.do(t, s.script("python", plant)), "")
			s.printed(t, s.do(t, s.script("python", "import json\nprint(json.dumps(1))\n")), "1\n")
			s.printed(t, s.do(t, s.script("bash", "bash -lic 'echo 1' 2>/dev/null\n")), "1\n")
			// A library in the skill is the script's own business, and none of PID 1's: that has no loader.
			s.printed(t, s.do(t, s.script("bash", "export LD_PRELOAD=/skill/x.so\necho 1 > \"$SKILL_ARTIFACTS/x\"\necho 1\n")), "1\n")
		}},
		{name: "attack 64: programs with file capabilities", run: func(t *testing.T, s *siege) {
			s.printed(t, s.do(t, s.script("python", `
import os, shutil, struct, subprocess
shutil.copy('/bin/cat', '/tmp/cat')
for value in (struct.pack('<IIIII', 0x02000001, 0xffffffff, 0, 0xffffffff, 0), struct.pack('<IIIIII', 0x03000001, 0xffffffff, 0, 0xffffffff, 0, 1000)):
    try:
        os.setxattr('/tmp/cat', 'security.capability', value)
        print('set')
    except OSError:
        pass
# Programs of the host that carry capabilities, where there are any.
for folder in ('/usr/bin', '/usr/sbin', '/usr/lib'):
    for name in os.listdir(folder):
        try: os.getxattr(folder + '/' + name, 'security.capability')
        except OSError: continue
        out = subprocess.run([folder + '/' + name, '/proc/self/status'], capture_output=True, text=True, timeout=5).stdout
        if 'CapEff' in out and 'CapEff:\t0000000000000000' not in out: print(name, out)
out = subprocess.run(['/tmp/cat', '/proc/self/status'], capture_output=True, text=True).stdout
for line in out.splitlines():
    if line.startswith('Cap') and int(line.split()[1], 16): print(line)
`)), "")
		}},
		{name: "attack 65: a crash leaves no core", run: func(t *testing.T, s *siege) {
			r := s.do(t, s.script("bash", "cd \"$SKILL_ARTIFACTS\"\nbash -c 'kill -SEGV $$'; echo $?\nls -A . \"$SKILL_ROOT\" | grep -i core\nkill -ABRT $$\n"))
			if r.Signal != 6 || string(r.Stdout) != "139\n" || len(r.Artifacts) != 0 {
				t.Errorf("got %s, artifacts %v", told(r), r.Artifacts)
			}
		}},
		{name: "attack 66: folders opened before, and ways up and out", run: func(t *testing.T, s *siege) {
			s.printed(t, s.do(t, s.script("python", `
import os
root = os.stat('/')
fd = os.open('/', os.O_PATH | os.O_DIRECTORY)
for _ in range(64):
    fd = os.open('..', os.O_PATH | os.O_DIRECTORY, dir_fd=fd)
if os.path.samestat(os.fstat(fd), root) is False: print('above the root')
for name in ('etc/shadow', 'root', 'var/lib', 'home/skill/../../root', 'oldroot', 'newroot', 'proc/1/root/etc/shadow', 'proc/1/cwd/etc/shadow'):
    try:
        os.open(name, os.O_RDONLY, dir_fd=fd)
        print('opened', name)
    except OSError:
        pass
`)), "")
		}},
		{name: "attack 67: changes of mounts and roots", run: func(t *testing.T, s *siege) {
			s.printed(t, s.do(t, s.script("python", `
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def expect(name, r):
    if r != -1 or ctypes.get_errno() != 1: print(name, r, ctypes.get_errno())
os.mkdir('/tmp/m')
expect('tmpfs', libc.mount(b'x', b'/tmp/m', b'tmpfs', 0, None))
expect('proc', libc.mount(b'x', b'/tmp/m', b'proc', 0, None))
expect('sysfs', libc.mount(b'x', b'/tmp/m', b'sysfs', 0, None))
expect('cgroup', libc.mount(b'x', b'/tmp/m', b'cgroup2', 0, None))
expect('overlay', libc.mount(b'x', b'/tmp/m', b'overlay', 0, b'lowerdir=/usr,upperdir=/tmp,workdir=/tmp'))
expect('bind', libc.mount(b'/usr', b'/tmp/m', None, 4096, None))
expect('bind over', libc.mount(b'/tmp', b'/usr', None, 4096, None))
expect('remount', libc.mount(None, b'/', None, 32, None))
expect('remount usr', libc.mount(None, b'/usr', None, 32 | 4096, None))
expect('shared', libc.mount(None, b'/', None, 1 << 20, None))
expect('move', libc.mount(b'/proc', b'/tmp/m', None, 8192, None))
expect('umount', libc.umount2(b'/proc', 2))
expect('umount usr', libc.umount2(b'/usr', 0))
expect('pivot', libc.syscall(ctypes.c_long(155 if os.uname().machine == 'x86_64' else 41), b'/tmp', b'/tmp/m'))
expect('chroot', libc.chroot(b'/tmp'))
`)), "")
		}},
		{name: "attack 68: names that differ by case and by normal form", run: func(t *testing.T, s *siege) {
			req := s.script("python", "import os\nd = os.environ['SKILL_INPUT']\nfor n in sorted(os.listdir(d)):\n    print(ascii(n), open(d + '/' + n).read())\n")
			for _, name := range []string{"A", "a", "\u00e9", "e\u0301", "\u212a", "K"} {
				req.Inputs = append(req.Inputs, sallyport.InputFile{Name: name, Content: []byte(name + "!")})
			}
			r := s.do(t, req)
			s.exited(t, r, 0)
			if n := strings.Count(string(r.Stdout), "!\n"); n != 6 {
				t.Errorf("%d files, want 6:\n%s", n, r.Stdout)
			}
		}},
	}
}
