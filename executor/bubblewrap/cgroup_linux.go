//go:build amd64 || arm64

package bubblewrap

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A host may have its controllers in one v2 tree, each in a v1 tree of its own, or in v1 trees beside a v2 tree without
// any. In the last two cases our own process may sit in a different group of every tree.

// controller is one of the resources that a run is limited in.
type controller string

const (
	controlMemory  controller = "memory"
	controlPIDs    controller = "pids"
	controlCPU     controller = "cpu"
	controlCPUAcct controller = "cpuacct" // v1 only: v2 counts in cpu
)

// groups makes the groups of runs. The zero value, of a host without usable trees, makes empty ones.
type groups struct {
	life    *parentGroup                // v2: kill, populated; nil when there is no usable v2 tree
	limits  map[controller]*parentGroup // where each controller is
	reason  string                      // why something is missing
	parents []*parentGroup
}

// parentGroup is the folder of this instance in one tree; runs are its children.
type parentGroup struct {
	dir string
	v2  bool
	// home is the tasks file of the group that our own threads belong to; v1 only.
	home *os.File
	// enabled are the controllers that children get; v2 only.
	enabled []controller
}

// begin records the folder and then makes it.
func (p *parentGroup) begin(record func(string) error) error {
	if err := record(p.dir); err != nil {
		return err
	}
	return p.make()
}

// make makes the folder, and gives its children their controllers.
func (p *parentGroup) make() error {
	if err := os.Mkdir(p.dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return enable(p.dir, p.enabled...)
}

// leafName is the group we move into where v2 forbids processes beside child groups.
const leafName = "sallyport-supervisor"

// openGroups makes this instance's parent groups. record is called with every folder before it is made, so that a crash
// leaves nothing that nobody knows of.
func openGroups(instance string, record func(dir string) error) *groups {
	g := &groups{limits: map[controller]*parentGroup{}}
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		g.reason = "control groups: " + kernelReason(err)
		return g
	}
	memberships, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		g.reason = "control groups: " + kernelReason(err)
		return g
	}
	var reasons []string
	var unusable treeFaults
	for _, t := range findTrees(mountinfo, memberships) {
		if !isCgroupDir(t.own, t.v2) || !t.useful() {
			continue
		}
		open := g.openV1
		if t.v2 {
			open = g.openV2
		}
		if err := open(t, "sallyport-"+instance, record); err != nil {
			unusable.add(t, err)
		}
	}
	reasons = append(reasons, unusable.sentences()...)
	if p := g.limits[controlMemory]; p != nil && !limitsSwap(p) {
		delete(g.limits, controlMemory)
		reasons = append(reasons, "the host swaps and does not limit swap per group (boot it with swapaccount=1)")
	}
	for _, c := range []controller{controlMemory, controlPIDs, controlCPU} {
		if g.limits[c] == nil && len(reasons) == 0 {
			reasons = append(reasons, "no control group tree with the "+string(c)+" controller")
		}
	}
	g.reason = strings.Join(reasons, "; ")
	return g
}

// limitsSwap reports whether a memory limit cannot be evaded into swap.
func limitsSwap(p *parentGroup) bool {
	file := "memory.memsw.limit_in_bytes"
	if p.v2 {
		file = "memory.swap.max"
	}
	if _, err := os.Stat(filepath.Join(p.dir, file)); err == nil {
		return true
	}
	swaps, err := os.ReadFile("/proc/swaps")
	return err == nil && strings.Count(string(swaps), "\n") <= 1 // the head of the table
}

// useful: the v1 trees of devices, freezer and the like do not concern us.
func (t tree) useful() bool {
	return t.v2 || slices.ContainsFunc(t.controllers, func(c controller) bool {
		return c == controlMemory || c == controlPIDs || c == controlCPU || c == controlCPUAcct
	})
}

func (g *groups) openV1(t tree, name string, record func(string) error) error {
	home, err := os.OpenFile(filepath.Join(t.own, "tasks"), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	p := &parentGroup{dir: filepath.Join(t.own, name), home: home}
	if err := p.begin(record); err != nil {
		return errors.Join(err, home.Close())
	}
	g.parents = append(g.parents, p)
	for _, c := range t.controllers {
		g.limits[c] = p
	}
	return nil
}

func (g *groups) openV2(t tree, name string, record func(string) error) error {
	base, available, err := v2Base(t)
	if err != nil {
		return err
	}
	p := &parentGroup{dir: filepath.Join(base, name), v2: true, enabled: available}
	if err := p.begin(record); err != nil {
		return err
	}
	g.parents = append(g.parents, p)
	g.life = p
	for _, c := range available {
		g.limits[c] = p
	}
	return nil
}

// v2Base finds the group below which runs may have groups, and the controllers they can have there.
func v2Base(t tree) (string, []controller, error) {
	wanted := []controller{controlMemory, controlPIDs, controlCPU}
	offered := func(dir string) []controller {
		words := readWords(filepath.Join(dir, "cgroup.controllers"))
		return slices.DeleteFunc(slices.Clone(wanted), func(c controller) bool { return !slices.Contains(words, string(c)) })
	}
	own := t.own
	if filepath.Base(own) == leafName {
		// An earlier instance, or the one that started us, has arranged the parent already.
		own = filepath.Dir(own)
	}
	available := offered(own)
	_, err := os.Stat(filepath.Join(own, "cgroup.type"))
	isTop := errors.Is(err, fs.ErrNotExist)
	if len(available) == 0 && (isTop || os.Geteuid() != 0 && ours(own)) {
		// The other half of a v1 host: nothing to limit with, but groups can be killed as a unit.
		return own, nil, nil
	}
	var firstErr error
	if len(available) > 0 && (isTop || ours(own)) {
		if !isTop {
			firstErr = moveToLeaf(own)
		}
		if firstErr == nil {
			if firstErr = enable(own, available...); firstErr == nil {
				return own, available, nil
			}
		}
	}
	// A login session is not ours to rearrange. The administrator may use the top of the tree, which systemd leaves alone.
	if os.Geteuid() == 0 && own != t.top && isCgroupDir(t.top, true) {
		available = offered(t.top)
		if err := enable(t.top, available...); err != nil {
			return "", nil, err
		}
		return t.top, available, nil
	}
	if firstErr != nil {
		return "", nil, firstErr
	}
	return "", nil, fmt.Errorf("the control group of this process is not delegated to it (%s)", strings.Join(readWords(filepath.Join(own, "cgroup.controllers")), " "))
}

// ours reports whether dir was delegated: marked so by systemd, or inhabited by nobody but us and what we started.
func ours(dir string) bool {
	var value [2]byte
	for _, attribute := range []string{"user.delegate", "trusted.delegate"} {
		if n, err := unix.Getxattr(dir, attribute, value[:]); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	for _, pid := range readWords(filepath.Join(dir, "cgroup.procs")) {
		if pid != strconv.Itoa(os.Getpid()) {
			return false
		}
	}
	return unix.Access(filepath.Join(dir, "cgroup.subtree_control"), unix.W_OK) == nil
}

// moveToLeaf empties a delegated group, because v2 gives controllers only to children of groups without processes.
func moveToLeaf(dir string) error {
	leaf := filepath.Join(dir, leafName)
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for range 10 { // a process may fork while it is moved
		pids := readWords(filepath.Join(dir, "cgroup.procs"))
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			if err := writeControl(filepath.Join(leaf, "cgroup.procs"), pid); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
	}
	return errors.New("processes keep appearing in the delegated group")
}

func enable(dir string, list ...controller) error {
	for _, c := range list {
		if err := writeControl(filepath.Join(dir, "cgroup.subtree_control"), "+"+string(c)); err != nil {
			return fmt.Errorf("enable the %s controller: %w", c, err)
		}
	}
	return nil
}

// has reports whether runs can be limited in c.
func (g *groups) has(c controller) bool { return g.limits[c] != nil }

// close removes this instance's parent groups; they must be empty.
func (g *groups) close() error {
	var errs []error
	for _, p := range g.parents {
		if p.home != nil {
			errs = append(errs, p.home.Close())
		}
		if err := os.Remove(p.dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
