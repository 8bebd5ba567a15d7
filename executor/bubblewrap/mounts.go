package bubblewrap

import (
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// Where things are inside; the other paths are in protocol.go because PID 1 knows them too.
const (
	pathInput = "/run/sallyport/input"
	insideUID = 1000
	// pathCPUs is where C libraries and runtimes count processors; without it they count the host's.
	pathCPUs = "/sys/devices/system/cpu/online"
)

// systemDirs are the host's folders that every sandbox sees, read-only. On most hosts all but /usr are links into it.
func systemDirs() []string {
	return []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}
}

// systemFiles are the parts of /etc that programs need to start or to show text, and that say nothing about the host.
func systemFiles() []string {
	return []string{
		"/etc/alternatives", "/etc/fonts", "/etc/ld.so.cache", "/etc/localtime", "/etc/mime.types", "/etc/protocols",
		"/etc/services", "/etc/ssl/certs", "/etc/ssl/openssl.cnf",
	}
}

// etcFiles are the files of /etc that every sandbox gets in place of the host's; uid is the script's.
func etcFiles(uid int) map[string]string {
	id := strconv.Itoa(uid)
	return map[string]string{
		"/etc/passwd":        "skill:x:" + id + ":" + id + ":skill:/home/skill:/bin/sh\nroot:x:0:0:root:/nonexistent:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
		"/etc/group":         "skill:x:" + id + ":\nroot:x:0:\nnogroup:x:65534:\n",
		"/etc/hosts":         "127.0.0.1 localhost sallyport\n::1 localhost\n",
		"/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
	}
}

// visibleInside reports whether a resolved file of the host is mounted in every sandbox.
func visibleInside(file string) bool {
	for _, dir := range systemDirs() {
		if resolved, err := filepath.EvalSymlinks(dir); err == nil && strings.HasPrefix(file, resolved+"/") {
			return true
		}
	}
	return false
}

// sizes are the bytes of each writable file system of one run.
type sizes struct {
	skill, scratch, output int64
}

// dataFile is a file that bubblewrap copies from one of its descriptors.
type dataFile struct {
	fd   int
	path string
}

// options are the arguments of bubblewrap, in the order in which it acts on them. system shows the programs that the run can use, helperFD
// holds PID 1's program, etc the made-up files of /etc, over those that cover one of the kernel's, and inputs the caller's files.
func options(plan string, system []string, size sizes, helperFD int, etc, over, inputs []dataFile) []string {
	args := []string{
		"--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup",
		"--hostname", "sallyport",
		"--as-pid-1",
		// A second net only: PID 1 watches its control pipe and the group is killed in any case.
		"--die-with-parent",
		"--new-session",
		"--cap-drop", "ALL",
	}
	if plan == PlanRoot {
		// What PID 1 needs to stop being root, which is the first thing it does.
		args = append(args, "--cap-add", "CAP_CHOWN", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETPCAP")
	} else {
		// No user namespace inside: it is the usual first step of a kernel exploit.
		args = append(args, "--unshare-user", "--disable-userns", "--uid", strconv.Itoa(insideUID), "--gid", strconv.Itoa(insideUID))
	}
	// What bubblewrap makes on the way to something else is private to whoever started it, which can be root.
	for _, dir := range []string{"/etc", "/var", "/run", path.Dir(pathHome), path.Dir(pathCPUs)} {
		args = append(args, "--dir", dir)
	}
	args = append(args, system...)
	for _, f := range etc {
		args = append(args, "--perms", "0444", "--file", strconv.Itoa(f.fd), f.path)
	}
	args = append(args, "--perms", "0555", "--ro-bind-data", strconv.Itoa(helperFD), pathInit)
	args = append(append(args, "--proc", "/proc", "--dev", "/dev"), masks()...)
	for _, f := range over {
		args = append(args, "--perms", "0444", "--ro-bind-data", strconv.Itoa(f.fd), f.path)
	}
	for _, t := range []struct {
		path, perms string
		size        int64
	}{
		{"/dev/shm", "1777", size.scratch},
		{"/tmp", "1777", size.scratch},
		{pathHome, "0700", size.scratch},
		{pathSkill, "0755", size.skill},
		{pathOutputDir, "0755", size.output},
	} {
		args = append(args, "--size", strconv.FormatInt(t.size, 10), "--perms", t.perms, "--tmpfs", t.path)
	}
	args = append(args, "--dir", pathInput)
	for _, f := range inputs {
		args = append(args, "--perms", "0444", "--file", strconv.Itoa(f.fd), f.path)
	}
	// Last, because everything above is written into them.
	return append(args, "--remount-ro", "/dev", "--remount-ro", "/")
}
