package container

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/seccomp"
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

// number is the only value of name, -1 when there is none.
func (f facts) number(name string) int64 {
	n, err := strconv.ParseInt(f.one(name), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// refusedWith reports whether an attempt ended with one of errnos.
func (f facts) refusedWith(name string, errnos ...int64) bool {
	return slices.Contains(errnos, f.number(name))
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

// ownNamespace reports whether a container has a namespace of its own: not that of the machine, whose numbers the kernel fixes for
// most kinds, and not ours, where the engine is on our machine.
func (f facts) ownNamespace(kind string) bool {
	initial := map[string]string{"user": "4026531837", "uts": "4026531838", "ipc": "4026531839", "pid": "4026531836", "cgroup": "4026531835"}
	ours, err := os.Readlink("/proc/self/ns/" + kind)
	for _, line := range f["namespace"] {
		if name, link, ok := strings.Cut(line, " "); ok && name == kind {
			return link != kind+":["+initial[kind]+"]" && (err != nil || link != ours)
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
	return f.status("Seccomp") == "2" && f.refusedWith("clone3", errnoNoSystem) &&
		f.refusedWith("packet_socket", errnoNoFamily) && f.refusedWith("vsock_socket", errnoNoFamily) &&
		!slices.ContainsFunc(
			[]string{"ptrace", "unshare_user", "unshare_mount", "io_uring", "keyctl", "bpf", "mount"},
			func(name string) bool { return !f.refusedWith(name, errnoPerm) })
}

// identityFault says what is wrong with the uid of the script: it must be the run's own, in every place where the kernel keeps
// one, with no other group beside it.
func (f facts) identityFault(first, count int) string {
	uid := f.number("uid")
	right := uid >= int64(first) && uid < int64(first+count)
	all := strings.Join([]string{f.one("uid"), f.one("uid"), f.one("uid"), f.one("uid")}, " ")
	for _, key := range []string{"Uid", "Gid"} {
		right = right && strings.Join(strings.Fields(f.status(key)), " ") == all
	}
	for group := range strings.FieldsSeq(f.status("Groups")) {
		right = right && group == f.one("gid")
	}
	if right {
		return ""
	}
	return "the uid is " + f.one("uid") + ", in " + f.status("Uid") + " and " + f.status("Gid") + ", groups " + f.status("Groups")
}

// confined reports whether Landlock refuses what nothing else does.
func (f facts) confined() bool {
	return f.number("landlock") >= landlockMinABI && f.refusedWith("write_comm", errnoAccess)
}

// sized reports whether every file system that can be written to has the size it was given.
func (f facts) sized(s spec) bool {
	want := s.sizes()
	for name, size := range map[string]int64{
		"size_tmp": want.scratch, "size_shm": want.scratch, "size_home": want.scratch, "size_var_tmp": want.scratch,
		"size_skill": want.skill, "size_output": want.output, "size_run": 64 << 10, "size_sys": 64 << 10,
	} {
		if got := f.number(name); got < size || got > size+4096 {
			return false
		}
	}
	return true
}

// limitedCPU reports whether the quota of a probe is in force: as the control group says where it can be seen, else as a run
// that asked for more could tell.
func (f facts) limitedCPU(s spec, limits facts) bool {
	quota, period, _ := strings.Cut(f.one("cpu_max"), " ")
	if quota == "" {
		quota, period = f.one("cpu_quota"), f.one("cpu_period")
	}
	if quota == "" {
		spun := limits.number("spun")
		return spun > 0 && spun < 300_000/2
	}
	q, err := strconv.ParseInt(quota, 10, 64)
	p, fault := strconv.ParseInt(period, 10, 64)
	return err == nil && fault == nil && p > 0 && q*1000/p == s.limits.CPUMillis
}

// limitedMemory reports whether the kernel killed what took more than it was given.
func (f facts) limitedMemory() bool { return f.number("eaten") == signalKill }

// limitedProcesses reports whether as many processes could be made as were allowed, and no more. The probe is one of them.
func (f facts) limitedProcesses(s spec) bool {
	const errnoAgain = 11
	return f.number("forked") == s.limits.Processes-1 && f.number("errno") == errnoAgain
}

// The ways in which an engine gives a run its identity.
const (
	// PlanUserNamespace is that of an engine whose containers have user namespaces: it runs without root, or maps their users.
	PlanUserNamespace = "user_namespace"
	// PlanRoot is that of an engine that runs as root and maps nobody: the uid of a run is one of the machine's.
	PlanRoot = "root"
)

// verdict is what a probe comes to.
type verdict struct {
	layers, missing []sallyport.Layer
	features        []sallyport.Feature
	faults          []string
	plan            string
}

// knownLayers is everything this executor provides on an engine and a machine that allow it.
func knownLayers() []sallyport.Layer {
	return []sallyport.Layer{
		sallyport.LayerUserNamespace, sallyport.LayerMountNamespace, sallyport.LayerPIDNamespace, sallyport.LayerIPCNamespace,
		sallyport.LayerUTSNamespace, sallyport.LayerCgroupNamespace, sallyport.LayerNetworkIsolation, sallyport.LayerReadOnlySystem,
		sallyport.LayerRunUID, sallyport.LayerNoNewPrivileges, sallyport.LayerSeccomp, sallyport.LayerMemoryLimit,
		sallyport.LayerProcessLimit, sallyport.LayerCPULimit, sallyport.LayerGroupKill, sallyport.LayerScratchLimit,
	}
}

// judge compares the facts with what each layer promises. Layers that depend on the machine's set-up may be missing; a fault in
// any other means that this is no isolation.
func (e *Executor) judge(f, limits facts) verdict {
	s := probeSpec("", "")
	v := verdict{plan: PlanRoot, features: []sallyport.Feature{
		sallyport.FeatureArgv, sallyport.FeatureRevision, sallyport.FeatureFiles, sallyport.FeatureArtifacts, sallyport.FeatureSecrets,
		sallyport.FeatureImages,
	}}
	if f.number("cpu_counter") == 1 {
		// PID 1 keeps the budget, by a counter that not every engine lets it see.
		v.features = append(v.features, sallyport.FeatureCPUTime)
	}
	if f.ownNamespace("user") {
		v.plan = PlanUserNamespace
	}
	identity := f.identityFault(e.cfg.FirstUID, e.cfg.UIDCount)
	optional := map[sallyport.Layer]bool{
		sallyport.LayerCgroupNamespace: f.ownNamespace("cgroup"),
		sallyport.LayerMemoryLimit:     limits.limitedMemory(),
		sallyport.LayerProcessLimit:    limits.limitedProcesses(s),
		sallyport.LayerCPULimit:        f.limitedCPU(s, limits),
	}
	tests := map[sallyport.Layer]bool{
		sallyport.LayerUserNamespace:    v.plan == PlanUserNamespace,
		sallyport.LayerMountNamespace:   f.ownNamespace("mnt"),
		sallyport.LayerPIDNamespace:     f.ownNamespace("pid"),
		sallyport.LayerIPCNamespace:     f.ownNamespace("ipc"),
		sallyport.LayerUTSNamespace:     f.ownNamespace("uts") && f.one("hostname") == "sallyport",
		sallyport.LayerNetworkIsolation: f.ownNamespace("net") && f.refusedWith("connect", errnoNoNetwork),
		sallyport.LayerReadOnlySystem: f.refusedWith("write_root", errnoReadOnly) &&
			f.refusedWith("write_usr", errnoReadOnly, errnoAccess, errnoNoEntry) && f.refusedWith("write_dev", errnoReadOnly, errnoAccess) &&
			f.refusedWith("write_sysctl", errnoAccess, errnoReadOnly, errnoPerm),
		sallyport.LayerRunUID:          identity == "",
		sallyport.LayerNoNewPrivileges: f.withoutPrivileges(),
		sallyport.LayerSeccomp:         f.filtered(),
		sallyport.LayerScratchLimit:    f.sized(s),
		// Its PID namespace dies with PID 1, whoever kills that.
		sallyport.LayerGroupKill: f.ownNamespace("pid"),
	}
	for _, layer := range knownLayers() {
		if layer == sallyport.LayerUserNamespace && v.plan == PlanRoot {
			continue // the real uid of the run stands in for it
		}
		present, isOptional := optional[layer]
		switch {
		case isOptional && present, tests[layer]:
			v.layers = append(v.layers, layer)
		case isOptional:
			v.missing = append(v.missing, layer)
		default:
			v.faults = append(v.faults, "no "+string(layer))
		}
	}
	// Landlock is a second lock on what other layers close already. Where the kernel offers it to containers, it must hold; where
	// not, it is not called missing, as for the executor bubblewrap.
	switch {
	case f.confined():
		v.layers = append(v.layers, sallyport.LayerLandlock)
	case f.number("landlock") >= landlockMinABI:
		v.faults = append(v.faults, "no "+string(sallyport.LayerLandlock)+", although the kernel has it")
	}
	if e.cfg.Profile == seccomp.Strict && !(f.refusedWith("watch_files", errnoPerm) && f.refusedWith("netlink_socket", errnoNoFamily)) {
		v.faults = append(v.faults, "the profile is not the strict one")
	}
	if identity != "" {
		v.faults = append(v.faults, identity)
	}
	if got := strings.Join(f["descriptor"], " "); got != "0 1 2" {
		v.faults = append(v.faults, "open descriptors: "+got)
	}
	for _, place := range []string{"write_skill", "write_tmp"} {
		if f.number(place) != 0 {
			v.faults = append(v.faults, "the script cannot write where it may ("+place+": errno "+f.one(place)+")")
		}
	}
	return v
}

func joined(layers []sallyport.Layer) string {
	words := make([]string, 0, len(layers))
	for _, layer := range layers {
		words = append(words, string(layer))
	}
	return strings.Join(words, ", ")
}
