package seccomp

import (
	"encoding/binary"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/bpf"
)

const allowed = seccompAllow

// decide runs the filter of arch over one system call.
func decide(t *testing.T, arch architecture, profile string, audit uint32, number uint32, args ...uint64) uint32 {
	t.Helper()
	vm, err := bpf.NewVM(assemble(arch, profiles()[profile]))
	if err != nil {
		t.Fatal(err)
	}
	// The virtual machine reads big-endian words, the kernel native ones; what is at which offset is the same.
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data[dataNumber:], number)
	binary.BigEndian.PutUint32(data[dataArch:], audit)
	for i, a := range args {
		binary.BigEndian.PutUint32(data[dataArgs+8*i:], uint32(a))
		binary.BigEndian.PutUint32(data[dataArgs+8*i+4:], uint32(a>>32))
	}
	verdict, err := vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(verdict)
}

func TestSeccompDecisions(t *testing.T) {
	t.Parallel()
	const permission, pretend = seccompErrno | errnoPermission, seccompErrno | errnoPretend
	for _, tt := range []struct {
		name         string
		amd64, arm64 int
		args         []uint64
		want         uint32
	}{
		{"read", 0, 63, nil, allowed},
		{"execve", 59, 221, nil, allowed},
		{"seccomp", 317, 277, nil, allowed},
		{"clone of a thread", 56, 220, []uint64{0x3d0f00}, allowed},
		{"clone of a process", 56, 220, []uint64{0x1200011}, allowed},
		{"clone with a user namespace", 56, 220, []uint64{0x10000011}, permission},
		{"clone with a mount namespace", 56, 220, []uint64{0x20011}, permission},
		{"clone with a cgroup namespace", 56, 220, []uint64{0x2000011}, permission},
		{"clone3", 435, 435, nil, seccompErrno | errnoNoSystem},
		{"unshare of files", 272, 97, []uint64{0x400}, allowed},
		{"unshare of time", 272, 97, []uint64{0x80}, permission},
		{"unshare of users", 272, 97, []uint64{0x10000000}, permission},
		{"unix socket", 41, 198, []uint64{1, 1, 0}, allowed},
		{"inet socket", 41, 198, []uint64{2, 1, 0}, allowed},
		{"inet6 socket", 41, 198, []uint64{10, 2, 0}, allowed},
		{"netlink route", 41, 198, []uint64{16, 3, 0}, allowed},
		{"netlink audit", 41, 198, []uint64{16, 3, 9}, seccompErrno | errnoNoFamily},
		{"packet socket", 41, 198, []uint64{17, 3, 0}, seccompErrno | errnoNoFamily},
		{"unix stream pair", 53, 199, []uint64{1, 1, 0}, allowed},
		{"inet pair", 53, 199, []uint64{2, 1, 0}, seccompErrno | errnoNoFamily},
		{"pair of another family", 53, 199, []uint64{30, 1, 0}, seccompErrno | errnoNoFamily},
		{"unix seqpacket", 41, 198, []uint64{1, 5, 0}, allowed},
		{"tcp, not blocking", 41, 198, []uint64{2, 1 | 0o2004000, 6}, allowed},
		{"udp, closed on exec", 41, 198, []uint64{10, 2 | 0o2000000, 17}, allowed},
		{"mptcp", 41, 198, []uint64{2, 1, 262}, seccompErrno | errnoNoProtocol},
		{"mptcp with high bits", 41, 198, []uint64{2, 1, 1<<32 | 262}, seccompErrno | errnoNoProtocol},
		{"mptcp over IPv6", 41, 198, []uint64{10, 1, 262}, seccompErrno | errnoNoProtocol},
		{"sctp", 41, 198, []uint64{2, 1, 132}, seccompErrno | errnoNoProtocol},
		{"sctp by its type", 41, 198, []uint64{2, 5, 0}, seccompErrno | errnoNoType},
		{"dccp", 41, 198, []uint64{2, 6, 33}, seccompErrno | errnoNoType},
		{"dccp by its type", 41, 198, []uint64{10, 6, 0}, seccompErrno | errnoNoType},
		{"udp-lite", 41, 198, []uint64{2, 2, 136}, seccompErrno | errnoNoProtocol},
		{"icmp", 41, 198, []uint64{2, 2, 1}, seccompErrno | errnoNoProtocol},
		{"l2tp", 41, 198, []uint64{2, 2, 115}, seccompErrno | errnoNoProtocol},
		{"smc by its protocol", 41, 198, []uint64{2, 1, 256}, seccompErrno | errnoNoProtocol},
		{"raw", 41, 198, []uint64{2, 3, 17}, seccompErrno | errnoNoType},
		{"raw, not blocking", 41, 198, []uint64{2, 3 | 0o4000, 255}, seccompErrno | errnoNoType},
		{"type with high bits", 41, 198, []uint64{2, 1<<40 | 3, 0}, seccompErrno | errnoNoType},
		{"no delay", 54, 208, []uint64{3, 6, 1}, allowed},
		{"reuse of an address", 54, 208, []uint64{3, 1, 2}, allowed},
		{"layer above tcp", 54, 208, []uint64{3, 6, 31}, permission},
		{"layer above tcp with high bits", 54, 208, []uint64{3, 1<<33 | 6, 1<<33 | 31}, permission},
		{"encapsulation in udp", 54, 208, []uint64{3, 17, 100}, permission},
		{"socket filter", 54, 208, []uint64{3, 1, 26}, permission},
		{"socket filter of another kind", 54, 208, []uint64{3, 1, 52}, permission},
		{"own priority", 141, 140, []uint64{0, 0, 5}, allowed},
		{"priority of a child", 141, 140, []uint64{0, 7, 5}, allowed},
		{"priority of PID 1", 141, 140, []uint64{0, 1, 19}, permission},
		{"priority of PID 1 with high bits", 141, 140, []uint64{0, 1<<32 | 1, 19}, permission},
		{"priority of the group of PID 1", 141, 140, []uint64{1, 1, 19}, permission},
		{"priority of the own group", 141, 140, []uint64{1, 0, 19}, allowed},
		{"priority of every process of the user", 141, 140, []uint64{2, 0, 19}, permission},
		{"disk priority of PID 1", 251, 30, []uint64{1, 1, 0}, permission},
		{"disk priority of the user", 251, 30, []uint64{3, 0, 0}, permission},
		{"own disk priority", 251, 30, []uint64{1, 0, 0}, allowed},
		{"policy of PID 1", 144, 119, []uint64{1, 5}, permission},
		{"own policy", 144, 119, []uint64{0, 5}, allowed},
		{"parameters of PID 1", 142, 118, []uint64{1}, permission},
		{"attributes of PID 1", 314, 274, []uint64{1}, permission},
		{"attributes of a thread", 314, 274, []uint64{12}, allowed},
		{"unix socket with high bits", 41, 198, []uint64{1<<32 | 17, 3, 0}, seccompErrno | errnoNoFamily},
		{"ioctl", 16, 29, []uint64{0, 0x5401}, allowed},
		{"typing into a terminal", 16, 29, []uint64{0, 0x5412}, permission},
		{"typing with high bits", 16, 29, []uint64{0, 1<<35 | 0x5412}, permission},
		{"console selection", 16, 29, []uint64{0, 0x541c}, permission},
		{"personality query", 135, 92, []uint64{0xffffffff}, allowed},
		{"personality without randomisation", 135, 92, []uint64{0x40000}, permission},
		{"reading a limit", 302, 261, []uint64{0, 4, 0, 0x7fff0000}, allowed},
		{"reading a limit of another", 302, 261, []uint64{1, 7, 0, 0x7fff0000}, allowed},
		{"setting a limit", 302, 261, []uint64{0, 7, 0x7fff00000000, 0}, allowed},
		{"setting a limit, low pointer", 302, 261, []uint64{0, 7, 0x1000, 0}, allowed},
		{"setting a limit of another", 302, 261, []uint64{1, 7, 0x7fff00000000, 0}, permission},
		{"setting the core limit", 302, 261, []uint64{0, 4, 0x7fff00000000, 0}, pretend},
		{"setting the core limit the old way", 160, 164, []uint64{4, 0x1000}, pretend},
		{"setting another limit the old way", 160, 164, []uint64{7, 0x1000}, allowed},
		{"memory", 9, 222, []uint64{0, 4096, 3, 0x22, 0xffffffff, 0}, allowed},
		{"huge pages", 9, 222, []uint64{0, 2 << 20, 3, 0x40022, 0xffffffff, 0}, seccompErrno | errnoNoMemory},
		{"huge pages of a size", 9, 222, []uint64{0, 1 << 30, 3, 30<<26 | 0x40022, 0xffffffff, 0}, seccompErrno | errnoNoMemory},
		{"file in memory", 319, 279, []uint64{0x1000, 3}, allowed},
		{"file in huge pages", 319, 279, []uint64{0x1000, 1<<32 | 5}, seccompErrno | errnoNoMemory},
		{"shared memory", 29, 194, []uint64{0, 4096, 0o1600}, allowed},
		{"shared huge pages", 29, 194, []uint64{0, 2 << 20, 0o5600}, seccompErrno | errnoNoMemory},
		{"asynchronous requests of the old kind", 206, 0, []uint64{128, 0x1000}, seccompErrno | errnoNoSystem},
		{"writing out one file", 74, 82, []uint64{3}, allowed},
		{"writing out every file system", 162, 81, nil, pretend},
		{"writing out a file system", 306, 267, []uint64{3}, pretend},
		{"a call of tomorrow", lastKnownSystemCall + 1, lastKnownSystemCall + 1, nil, seccompErrno | errnoNoSystem},
		{"the last one known", lastKnownSystemCall, lastKnownSystemCall, nil, allowed},
		{"minus one", 0xffffffff, 0xffffffff, nil, seccompErrno | errnoNoSystem},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for name, number := range map[string]int{"amd64": tt.amd64, "arm64": tt.arm64} {
				arch := architectures()[name]
				if got := decide(t, arch, Default, arch.audit, uint32(number), tt.args...); got != tt.want {
					t.Errorf("%s: got %#x, want %#x", name, got, tt.want)
				}
			}
		})
	}
}

// What only the strict profile denies.
func TestStrictDecisions(t *testing.T) {
	t.Parallel()
	const permission = seccompErrno | errnoPermission
	for _, tt := range []struct {
		name         string
		amd64, arm64 int
		args         []uint64
		want         uint32
	}{
		{"locking a whole file", 73, 32, []uint64{3, 2}, permission},
		{"asking who holds a lock", 72, 25, []uint64{3, 5}, permission},
		{"asking who holds a lock, with high bits", 72, 25, []uint64{3, 1<<32 | 5}, permission},
		{"taking a lock", 72, 25, []uint64{3, 6}, allowed},
		{"duplicating a descriptor", 72, 25, []uint64{3, 0}, allowed},
		{"taking a lease", 72, 25, []uint64{3, 1024}, permission},
		{"watching a folder", 72, 25, []uint64{3, 1026}, permission},
		{"watching files", 294, 26, nil, permission},
		{"reading what is in memory only", 327, 286, []uint64{3, 0x1000, 1, 0, 0, 8}, seccompErrno | errnoNotSupported},
		{"reading", 327, 286, []uint64{3, 0x1000, 1, 0, 0, 0}, allowed},
		{"netlink route", 41, 198, []uint64{16, 3, 0}, seccompErrno | errnoNoFamily},
		{"unix socket", 41, 198, []uint64{1, 1, 0}, allowed},
		{"inet6 socket", 41, 198, []uint64{10, 1, 0}, allowed},
		{"mptcp", 41, 198, []uint64{2, 1, 262}, seccompErrno | errnoNoProtocol},
		{"raw", 41, 198, []uint64{2, 3, 17}, seccompErrno | errnoNoType},
		{"clone with a user namespace", 56, 220, []uint64{0x10000011}, permission},
		{"execve", 59, 221, nil, allowed},
	} {
		for name, number := range map[string]int{"amd64": tt.amd64, "arm64": tt.arm64} {
			arch := architectures()[name]
			if got := decide(t, arch, Strict, arch.audit, uint32(number), tt.args...); got != tt.want {
				t.Errorf("%s, %s: got %#x, want %#x", tt.name, name, got, tt.want)
			}
		}
	}
}

// Every row is refused for at least one set of arguments, what the default profile refuses the strict one does too, and a
// foreign architecture always dies.
func TestSeccompRows(t *testing.T) {
	t.Parallel()
	for name, arch := range architectures() {
		for profile, list := range profiles() {
			for _, d := range list {
				number := arch.number(d)
				if number < 0 {
					continue
				}
				refused := false
				for _, arg := range []uint64{0, 1, 0x10000000, 17, 4, 5, 8, 0x800, 0x40000, 0x5412, 1 << 20} {
					args := []uint64{arg, arg, arg, arg, arg, arg}
					if arg == 1<<20 { // what is decided by two arguments together
						args = []uint64{0, 6, 31, 0, 0, 0}
					}
					got := decide(t, arch, profile, arch.audit, uint32(number), args...)
					refused = refused || got != allowed
					if base := decide(t, arch, Default, arch.audit, uint32(number), args...); base != allowed && got == allowed {
						t.Errorf("%s, %s: %s with %#x is allowed, and the default profile refuses it", name, profile, d.name, arg)
					}
				}
				if !refused {
					t.Errorf("%s, %s: %s is never refused", name, profile, d.name)
				}
			}
			for other, foreign := range map[string]uint32{"i386": 0x40000003, "arm": 0x40000028, "none": 0} {
				if got := decide(t, arch, profile, foreign, 39); got != seccompKillProcess {
					t.Errorf("%s, %s: a call of %s got %#x", name, profile, other, got)
				}
			}
		}
	}
	amd64 := architectures()["amd64"]
	for profile := range profiles() {
		if got := decide(t, amd64, profile, amd64.audit, 0x40000000|39); got != seccompErrno|errnoNoSystem {
			t.Errorf("%s: x32: got %#x", profile, got)
		}
	}
}

// profiles.md is made from the lists: go test -run TestProfilesDocument -update.
func TestProfilesDocument(t *testing.T) {
	t.Parallel()
	var want strings.Builder
	want.WriteString("# What scripts are denied\n\nEvery system call that is not listed is allowed. A call of another architecture kills the process with SIGSYS; " +
		"calls of the x32 table, and calls newer than this list (above " + strconv.Itoa(lastKnownSystemCall) + "), are answered with ENOSYS. " +
		"EPERM and the other words are what the call answers; the script may go on.\n\n" +
		"| call | default | strict |\n|---|---|---|\n")
	strict := profiles()[Strict]
	for i, row := range strict {
		base := "allowed"
		if list := denials(); i < len(list) {
			base = list[i].answer.text
		}
		fmt.Fprintf(&want, "| %s | %s | %s |\n", row.name, base, row.answer.text)
	}
	if *update {
		writeDocument(t, "profiles.md", want.String())
	}
	got, err := os.ReadFile("profiles.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.String(), string(got)); diff != "" {
		t.Errorf("profiles.md is stale, run the test with -update (-want +got):\n%s", diff)
	}
}

var update = flag.Bool("update", false, "write profiles.md anew")

func writeDocument(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestSeccompFilterSize(t *testing.T) {
	t.Parallel()
	for name := range architectures() {
		for profile := range profiles() {
			filter, err := Filter(name, profile)
			if err != nil {
				t.Fatal(err)
			}
			if len(filter)%8 != 0 || len(filter) > 32768 {
				t.Errorf("%s, %s: %d bytes", name, profile, len(filter))
			}
		}
	}
	if _, err := Filter("riscv64", Default); err == nil {
		t.Error("an architecture without a list has a filter")
	}
	if _, err := Filter("amd64", "lax"); err == nil {
		t.Error("an unknown profile has a filter")
	}
}

// The numbers are typed by hand for two architectures; the kernel's own are in golang.org/x/sys/unix.
func TestSeccompNumbers(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "golang.org/x/sys/unix").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name, arch := range architectures() {
		numbers := systemCallNumbers(t, filepath.Join(strings.TrimSpace(string(out)), "zsysnum_linux_"+name+".go"))
		newest := 0
		for _, n := range numbers {
			newest = max(newest, n)
		}
		if newest > lastKnownSystemCall {
			t.Errorf("%s: there are system calls up to %d that nobody judged; look at them, then raise lastKnownSystemCall", name, newest)
		}
		for _, d := range profiles()[Strict] {
			want, known := numbers[d.name]
			if !known {
				want = -1
			}
			if got := arch.number(d); got != want {
				t.Errorf("%s: %s is %d, want %d", name, d.name, got, want)
			}
		}
	}
}

func systemCallNumbers(t *testing.T, path string) map[string]int {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	numbers := map[string]int{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		name, isCall := strings.CutPrefix(spec.Names[0].Name, "SYS_")
		value, isLiteral := spec.Values[0].(*ast.BasicLit)
		if isCall && isLiteral {
			number, err := strconv.Atoi(value.Value)
			if err != nil {
				t.Fatal(err)
			}
			numbers[strings.ToLower(name)] = number
		}
		return true
	})
	return numbers
}
