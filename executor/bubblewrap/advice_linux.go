//go:build amd64 || arm64

package bubblewrap

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// view is the host as advice looks at it. Tests give it another one.
type view struct {
	// root is where the host's files are; nothing outside is looked at.
	root fs.FS
	// euid is who we are, and trees are the control group trees that we are in.
	euid  int
	trees []tree
	// memory says that a memory limit can be kept, delegated that controllers were handed to us.
	memory, delegated bool
}

// hostView is the real host.
func (e *Executor) hostView() view {
	v := view{root: os.DirFS("/"), euid: os.Geteuid(), memory: e.groups.has(controlMemory), delegated: len(e.groups.limits) > 0}
	mountinfo, _ := os.ReadFile("/proc/self/mountinfo")
	memberships, _ := os.ReadFile("/proc/self/cgroup")
	v.trees = findTrees(mountinfo, memberships)
	return v
}

// text is the content of a file without its end, empty when there is none.
func (v view) text(path string) string {
	data, err := fs.ReadFile(v.root, path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

func (v view) sysctl(name string) string { return v.text("proc/sys/" + name) }

func (v view) exists(path string) bool {
	_, err := fs.Stat(v.root, path)
	return err == nil || errors.Is(err, fs.ErrPermission)
}

// docker and kubernetes are told by what they leave in every container.
func (v view) docker() bool { return v.exists(".dockerenv") || v.exists("run/.containerenv") }

func (v view) kubernetes() bool { return v.exists("var/run/secrets/kubernetes.io") }

// groups names the arrangement of control groups: v2, v1, hybrid (v1 with an empty v2 beside it), or none.
func (v view) groups() string {
	var one, two bool
	for _, t := range v.trees {
		one, two = one || !t.v2 && t.useful(), two || t.v2
	}
	switch {
	case one && two:
		return "hybrid"
	case one:
		return "v1"
	case two:
		return "v2"
	}
	return "none"
}

// advice is one row: what a failed start said, on which kind of host, and what an operator does about it.
type advice struct {
	name  string
	words []string // one of them is in the reason
	when  func(view) bool
	fix   string
}

func anywhere(view) bool { return true }

func isZero(name string) func(view) bool {
	return func(v view) bool { return v.sysctl(name) == "0" }
}

// advices are tried in order; the first that fits is given.
func advices() []advice {
	namespace := []string{"namespace", "uid map", "RTM_NEWADDR"}
	slave := []string{"/ slave"} // namespaces were made, and the first mount in them is refused
	return []advice{
		{"no bubblewrap", []string{"bwrap: not found"}, anywhere, "install bubblewrap: apt-get install bubblewrap, or dnf install bubblewrap"},
		{"setuid bubblewrap", []string{"setuid"}, anywhere, "remove the setuid bit: chmod u-s on the bwrap program"},
		{"old bubblewrap", []string{"Unknown option", "unknown option"}, anywhere, "install bubblewrap 0.8.0 or newer"},
		{"needs root", []string{"started as root"}, anywhere, "start it as root, or leave the plan to the executor"},
		{
			"AppArmor", append(slave, namespace...),
			func(v view) bool {
				return v.euid != 0 && v.sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1"
			},
			"AppArmor restricts user namespaces here: run it as a root service, or load the profile bwrap-userns-restrict (package apparmor-profiles), or set kernel.apparmor_restrict_unprivileged_userns=0",
		},
		{"Debian switch", namespace, isZero("kernel/unprivileged_userns_clone"), "user namespaces are switched off here: run it as a root service, which does without, or set kernel.unprivileged_userns_clone=1"},
		{"no user namespaces", namespace, isZero("user/max_user_namespaces"), "user namespaces are switched off here: run it as a root service, which does without, or set user.max_user_namespaces above 0"},
		{"no network namespaces", namespace, isZero("user/max_net_namespaces"), "network namespaces are switched off here: set user.max_net_namespaces above 0"},
		{"mounts refused in Kubernetes", slave, view.kubernetes, "user namespaces work in this pod and mounts are refused: set securityContext.appArmorProfile to Unconfined or to a profile with the rule mount, or use the kubernetes or remote executor"},
		{"mounts refused in a container", slave, view.docker, "mounts are refused in this container, by AppArmor's docker-default whatever seccomp allows: start it with --security-opt apparmor=unconfined, or with the profile of deploy/container/apparmor; under SELinux look for denials with ausearch -m avc"},
		{"mounts refused", slave, anywhere, "a security module refuses mounts to this service: look for DENIED in journalctl -k, and add the rules mount, umount and pivot_root to its AppArmor profile, or allow them in SELinux (ausearch -m avc)"},
		{"Kubernetes", namespace, view.kubernetes, "this pod may not make user namespaces: set hostUsers: false and procMount: Unmasked for it, or use the kubernetes or remote executor"},
		{"Docker", namespace, view.docker, "this container may not make user namespaces: start it with the seccomp and AppArmor profiles of the deploy folder, or use the container or remote executor"},
		{"other container", namespace, anywhere, "user namespaces are refused here: inside a container, allow unshare and mount in its seccomp and AppArmor profiles, or use the container or remote executor"},
		{"masked /proc in Kubernetes", []string{"mount proc", "/proc"}, view.kubernetes, "this pod masks parts of /proc: set hostUsers: false and procMount: Unmasked for it, or use the kubernetes or remote executor"},
		{"masked /proc", []string{"mount proc", "/proc"}, anywhere, "this container masks parts of /proc: start it with an unmasked /proc (podman: --security-opt unmask=/proc/*), or use the container or remote executor"},
		{"SELinux", []string{"ermission denied"}, func(v view) bool { return v.text("sys/fs/selinux/enforce") == "1" }, "SELinux may refuse this: look for denials with ausearch -m avc, and allow them for this service, or start the container with label=type of its own"},
		{"full state folder", []string{"folder of the sandbox is full", "no space"}, anywhere, "free space in the state folder, or name with the setting state a folder with room"},
		{"state folder", []string{"state folder", "not a folder", "not a directory", "ead-only file system", "ermission denied"}, anywhere, "name with the setting state a folder that the server can write to and nobody else"},
		{"control groups", []string{"control group"}, anywhere, "run it as a root service with Delegate=yes, whose own limits leave room for its runs"},
		{"no descriptors", []string{"file descriptor"}, anywhere, "raise the limit of open files: LimitNOFILE= of the service, or fs.file-max"},
		{"no processes", []string{"another process"}, anywhere, "raise the limit of tasks: TasksMax= of the service, or kernel.pid_max"},
	}
}

// remedy maps the kernel's and bubblewrap's words to what an operator can do on this host.
func (v view) remedy(reason string) string {
	for _, a := range advices() {
		if slices.ContainsFunc(a.words, func(w string) bool { return strings.Contains(reason, w) }) && a.when(v) {
			return a.fix
		}
	}
	return "see that the program of the setting bubblewrap is the bubblewrap of this system: bwrap --ro-bind / / true must end with 0 for this user"
}

// missing says how layers that depend on control groups and root are got on this host.
func (v view) missing() string {
	switch {
	case v.kubernetes():
		return "give the pod a writable control group (hostUsers: false with a runtime that allows it), or use the kubernetes executor"
	case v.docker() && !v.delegated:
		return "give the container a writable control group: docker run --cgroupns=private with a delegated sub-tree mounted, podman run --security-opt unmask=/sys/fs/cgroup"
	case v.euid != 0 && v.groups() == "v2":
		return "run it as a root service with Delegate=yes, or start it in a delegated scope: systemd-run --user --scope -p Delegate=yes ... (with a drop-in of user@.service that delegates cpu, memory and pids); a uid for each run takes root, so a user also needs isolation: degrade"
	case v.euid != 0:
		return "run it as a root service with Delegate=yes, or give this user a control group of its own in every tree; a uid for each run takes root, so a user also needs isolation: degrade"
	}
	return "run it as a root service with Delegate=yes"
}

// hostChecks are conditions of the host that weaken something, or that an operator should know of.
func (v view) hostChecks() []Check {
	pass := func(name, detail string) Check { return Check{Name: name, Result: CheckPass, Detail: detail} }
	check := func(name string, weak bool, good, bad, fix string) Check {
		if !weak {
			return pass(name, good)
		}
		return Check{Name: name, Result: CheckAdvice, Detail: bad, Remedy: fix}
	}
	core := pass("core_pattern", "crashes are written by the kernel")
	if strings.HasPrefix(v.sysctl("kernel/core_pattern"), "|") {
		core = pass("core_pattern", "crashes are handed to a program of the host; runs have a core limit of 1, so the kernel does not start it for them")
	}
	swaps := strings.Count(v.text("proc/swaps"), "\n") > 0
	return []Check{
		check("control_groups", v.groups() == "none", v.groups(), "no control group tree is mounted", "mount cgroup2 on /sys/fs/cgroup, or start the container with one"),
		check("swap", swaps && !v.memory, "none, or limited with memory", "the host swaps, and memory limits do not cover it", "boot with swapaccount=1, or switch swap off"),
		core,
		check("protected_links", v.sysctl("fs/protected_hardlinks") == "0" || v.sysctl("fs/protected_symlinks") == "0",
			"on", "links into folders of others are not restricted", "set fs.protected_hardlinks=1 and fs.protected_symlinks=1"),
		check("wsl", strings.Contains(strings.ToLower(v.text("proc/version")), "microsoft"),
			"not WSL", "WSL can start programs of Windows; sandboxes see no interop socket, and the host does", "set [interop] enabled=false in /etc/wsl.conf"),
	}
}
