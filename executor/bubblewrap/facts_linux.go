//go:build amd64 || arm64

package bubblewrap

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport"
)

// facts are the lines of helper/probe.c: every value of a name, in order.
type facts map[string][]string

func parseFacts(text string) facts {
	f := facts{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		f[name] = append(f[name], strings.TrimSpace(value))
	}
	return f
}

// one returns the only value of name, and nothing when there are more.
func (f facts) one(name string) string {
	if len(f[name]) != 1 {
		return ""
	}
	return f[name][0]
}

// refusedWith reports whether an attempt ended with one of errnos.
func (f facts) refusedWith(name string, errnos ...syscall.Errno) bool {
	n, err := strconv.Atoi(f.one(name))
	return err == nil && slices.Contains(errnos, syscall.Errno(n))
}

// status returns a line of /proc/self/status.
func (f facts) status(key string) string {
	for _, line := range f["status"] {
		if name, value, ok := strings.Cut(line, ":"); ok && name == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// ownNamespace reports whether the sandbox has a namespace of its own and not ours.
func (f facts) ownNamespace(kind string) bool {
	host, err := os.Readlink("/proc/self/ns/" + kind)
	if err != nil {
		return false
	}
	for _, line := range f["namespace"] {
		if name, link, ok := strings.Cut(line, " "); ok && name == kind {
			return link != "" && link != host
		}
	}
	return false
}

func (f facts) withoutPrivileges() bool {
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		if strings.Trim(f.status(set), "0") != "" || f.status(set) == "" {
			return false
		}
	}
	return f.status("NoNewPrivs") == "1"
}

// filtered reports whether a filter is active and refuses what it should.
func (f facts) filtered() bool {
	return f.status("Seccomp") == "2" && f.refusedWith("clone3", unix.ENOSYS) &&
		f.refusedWith("packet_socket", unix.EAFNOSUPPORT) && f.refusedWith("vsock_socket", unix.EAFNOSUPPORT) &&
		!slices.ContainsFunc(
			[]string{"ptrace", "unshare_user", "unshare_mount", "io_uring", "keyctl", "bpf", "mount"},
			func(name string) bool { return !f.refusedWith(name, unix.EPERM) })
}

// identityFault says what is wrong with the uid of the script: it must be the one of the plan, in every place where the
// kernel keeps one, with no other group beside it, and never the host's root.
func (f facts) identityFault(plan string, pool *uidPool) string {
	uid, err := strconv.Atoi(f.one("uid"))
	right := err == nil && uid == insideUID
	if plan == PlanRoot {
		right = err == nil && uid > 0 && pool != nil && pool.owns(uid) && f.status("Groups") == ""
	}
	all := strings.Join([]string{f.one("uid"), f.one("uid"), f.one("uid"), f.one("uid")}, " ")
	for _, key := range []string{"Uid", "Gid"} {
		right = right && strings.Join(strings.Fields(f.status(key)), " ") == all
	}
	if right {
		return ""
	}
	return "the uid is " + f.one("uid") + ", in " + f.status("Uid") + " and " + f.status("Gid") + ", groups " + f.status("Groups")
}

// strict reports whether the strict profile is active.
func (f facts) strict() bool {
	return f.refusedWith("watch_files", unix.EPERM) && f.refusedWith("netlink_socket", unix.EAFNOSUPPORT)
}

// landlock is the version of Landlock that the kernel has, 0 for none that a run could use.
func (f facts) landlock() int {
	abi, err := strconv.Atoi(f.one("landlock"))
	if err != nil || abi < landlockMinABI {
		return 0
	}
	return abi
}

// confined reports whether Landlock refuses what nothing else does.
func (f facts) confined() bool {
	return f.landlock() > 0 && f.refusedWith("write_comm", unix.EACCES)
}

// sized reports whether every writable file system has the size it was given.
func (f facts) sized(s spec) bool {
	want := (&active{spec: s}).sizes()
	for name, size := range map[string]int64{
		"size_tmp": want.scratch, "size_shm": want.scratch, "size_home": want.scratch,
		"size_skill": want.skill, "size_output": want.output,
	} {
		got, err := strconv.ParseInt(f.one(name), 10, 64)
		if err != nil || got < size || got > size+4096 {
			return false
		}
	}
	return true
}

// probeSpec is a run of the helper in one of its probe modes, under small limits.
func probeSpec(mode, plan string) spec {
	content := []byte("probe\n")
	sum := sha256.Sum256(content)
	return spec{
		argv: []string{pathInit, mode},
		plan: plan,
		files: []sallyport.Component{{
			Path: "probe.txt", Kind: sallyport.KindDocument, Content: content,
			Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:]),
		}},
		limits: sallyport.Limits{
			Timeout: 5 * time.Second, MemoryBytes: 32 << 20, Processes: 16, CPUMillis: 1000, ScratchBytes: 1 << 20,
			OutputBytes: 64 << 10, ArtifactBytes: 1 << 20, ArtifactFiles: 1,
		},
		grace: 4 * time.Second,
	}
}
