//go:build linux && (amd64 || arm64)

package bubblewrap

import (
	"io/fs"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
)

// hostOf is a host that has these files and no others.
func hostOf(files map[string]string) view {
	root := fstest.MapFS{}
	for name, text := range files {
		root[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o444}
	}
	return view{root: fs.FS(root), euid: 1000}
}

// Every row of advice is given on the host that it is for, and only for a reason that it is about.
func TestAdvice(t *testing.T) {
	t.Parallel()
	const uidMap, refused, proc, slave = "bwrap: setting up uid map: Permission denied", "bwrap: No permissions to create new namespace", "bwrap: Can't mount proc on /newroot/proc: Operation not permitted", "bwrap: Failed to make / slave: Permission denied"
	userns := func(name, value string) map[string]string { return map[string]string{"proc/sys/" + name: value + "\n"} }
	docker := map[string]string{".dockerenv": ""}
	podman := map[string]string{"run/.containerenv": "engine=\"podman\"\n"}
	pod := map[string]string{"var/run/secrets/kubernetes.io/serviceaccount/token": "x", ".dockerenv": ""}
	given := map[string]bool{}
	for _, tt := range []struct {
		row, reason string
		host        map[string]string
		want        string
	}{
		{"no bubblewrap", "bwrap: not found", nil, "apt-get install bubblewrap"},
		{"setuid bubblewrap", "bwrap: is installed setuid, which cannot be used here", nil, "chmod u-s"},
		{"old bubblewrap", "bwrap: Unknown option --disable-userns", nil, "0.8.0 or newer"},
		{"needs root", errNeedsRoot.Error(), nil, "start it as root"},
		{"AppArmor", uidMap, userns("kernel/apparmor_restrict_unprivileged_userns", "1"), "bwrap-userns-restrict"},
		{"AppArmor", "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", userns("kernel/apparmor_restrict_unprivileged_userns", "1"), "root service"},
		{"Debian switch", refused, userns("kernel/unprivileged_userns_clone", "0"), "kernel.unprivileged_userns_clone=1"},
		{"no user namespaces", "bwrap: Creating new namespace failed: No space left on device", userns("user/max_user_namespaces", "0"), "user.max_user_namespaces"},
		{"no network namespaces", "bwrap: Creating new namespace failed: No space left on device", userns("user/max_net_namespaces", "0"), "user.max_net_namespaces"},
		{"Kubernetes", refused, pod, "hostUsers: false"},
		{"Docker", refused, docker, "seccomp and AppArmor profiles"},
		{"AppArmor", slave, userns("kernel/apparmor_restrict_unprivileged_userns", "1"), "bwrap-userns-restrict"},
		{"mounts refused in Kubernetes", slave, pod, "appArmorProfile"},
		{"mounts refused in a container", slave, podman, "apparmor=unconfined"},
		{"mounts refused in a container", "bwrap: Failed to make / slave: Operation not permitted", docker, "deploy/container/apparmor"},
		{"mounts refused", slave, nil, "security module"},
		{"other container", refused, nil, "inside a container"},
		{"other container", uidMap, userns("kernel/apparmor_restrict_unprivileged_userns", "0"), "inside a container"},
		{"masked /proc in Kubernetes", proc, pod, "procMount: Unmasked"},
		{"masked /proc", proc, podman, "unmask=/proc/*"},
		{"SELinux", "bwrap: Can't bind mount: Permission denied", map[string]string{"sys/fs/selinux/enforce": "1"}, "ausearch"},
		{"full state folder", "the state folder of the sandbox is full: free space there", nil, "free space"},
		{"state folder", "the state folder of the sandbox is read-only: make it writable", nil, "setting state"},
		{"state folder", "mkdir: permission denied", nil, "setting state"},
		{"control groups", groupFault(syscall.EINVAL), nil, "Delegate=yes"},
		{"no descriptors", hostFaultOf(24), nil, "LimitNOFILE"},
		{"no processes", hostFaultOf(11), nil, "TasksMax"},
		{"", "PID 1 of the sandbox ended without a report", nil, "setting bubblewrap"},
	} {
		got := hostOf(tt.host).remedy(tt.reason)
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q: got %q, want %q", tt.row, tt.reason, got, tt.want)
		}
		for _, a := range advices() {
			if a.name == tt.row && a.fix != got {
				t.Errorf("%s: %q: another row answered: %q", tt.row, tt.reason, got)
			}
		}
		given[tt.row] = true
	}
	for _, a := range advices() {
		if !given[a.name] {
			t.Errorf("no test gets the advice %q", a.name)
		}
	}
	root := hostOf(userns("kernel/apparmor_restrict_unprivileged_userns", "1"))
	root.euid = 0
	if got := root.remedy(uidMap); strings.Contains(got, "AppArmor restricts") {
		t.Errorf("AppArmor does not restrict root, and is blamed: %q", got)
	}
}

// hostFaultOf is the sentence for an errno.
func hostFaultOf(errno int) string { return hostFault(syscall.Errno(errno)) }

// What brings a missing limit depends on where we are.
func TestAdviceOnMissingLayers(t *testing.T) {
	t.Parallel()
	two := tree{v2: true}
	one := tree{controllers: []controller{controlMemory}}
	freezer := tree{controllers: []controller{"freezer"}}
	for _, tt := range []struct {
		name  string
		host  view
		trees []tree
		want  string
		mode  string
	}{
		{"user on v2", view{euid: 1000}, []tree{two}, "user@.service", "v2"},
		{"user on v1", view{euid: 1000}, []tree{one}, "isolation: degrade", "v1"},
		{"user on a hybrid host", view{euid: 1000}, []tree{one, two}, "in every tree", "hybrid"},
		{"root", view{}, []tree{two}, "Delegate=yes", "v2"},
		{"nothing mounted", view{}, []tree{freezer}, "Delegate=yes", "none"},
		{"Docker", view{root: hostOf(map[string]string{".dockerenv": ""}).root}, []tree{two}, "writable control group", "v2"},
		{"Docker with delegation", view{root: hostOf(map[string]string{".dockerenv": ""}).root, delegated: true}, []tree{two}, "Delegate=yes", "v2"},
		{"Kubernetes", view{root: hostOf(map[string]string{"var/run/secrets/kubernetes.io/x": ""}).root}, []tree{two}, "kubernetes executor", "v2"},
	} {
		if tt.host.root == nil {
			tt.host.root = hostOf(nil).root
		}
		tt.host.trees = tt.trees
		if got := tt.host.missing(); !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
		if got := tt.host.groups(); got != tt.mode {
			t.Errorf("%s: groups are %s, want %s", tt.name, got, tt.mode)
		}
	}
}

// Each weakness of a host is shown on a host that has it, with a remedy, and on no other.
func TestHostChecks(t *testing.T) {
	t.Parallel()
	sound := map[string]string{
		"proc/sys/kernel/core_pattern": "core", "proc/sys/fs/protected_hardlinks": "1", "proc/sys/fs/protected_symlinks": "1",
		"proc/swaps": "Filename Type Size Used Priority\n", "proc/version": "Linux version 6.18.0",
	}
	const swap = "Filename Type Size Used Priority\n/dev/vdb partition 1 0 -2\n"
	for _, tt := range []struct {
		name   string
		change map[string]string
		adjust func(*view)
		want   string
	}{
		{"sound", nil, func(*view) {}, ""},
		{"swap without control", map[string]string{"proc/swaps": swap}, func(v *view) { v.memory = false }, "swap"},
		{"swap with control", map[string]string{"proc/swaps": swap}, func(*view) {}, ""},
		{"a core handler", map[string]string{"proc/sys/kernel/core_pattern": "|/usr/share/apport/apport"}, func(*view) {}, ""},
		{"hard links", map[string]string{"proc/sys/fs/protected_hardlinks": "0"}, func(*view) {}, "protected_links"},
		{"links", map[string]string{"proc/sys/fs/protected_symlinks": "0"}, func(*view) {}, "protected_links"},
		{"WSL", map[string]string{"proc/version": "Linux version 6.6.87.2-microsoft-standard-WSL2"}, func(*view) {}, "wsl"},
		{"no control groups", nil, func(v *view) { v.trees = nil }, "control_groups"},
	} {
		files := maps.Clone(sound)
		maps.Copy(files, tt.change)
		v := hostOf(files)
		v.memory, v.trees = true, []tree{{v2: true}}
		tt.adjust(&v)
		var weak []string
		for _, c := range v.hostChecks() {
			if c.Detail == "" || (c.Result != CheckPass) != (c.Remedy != "") {
				t.Errorf("%s: %+v", tt.name, c)
			}
			if c.Result != CheckPass {
				weak = append(weak, c.Name)
			}
		}
		if tt.want == "" && len(weak) > 0 || tt.want != "" && !slices.Equal(weak, []string{tt.want}) {
			t.Errorf("%s: weak are %q, want %q", tt.name, weak, tt.want)
		}
	}
}
