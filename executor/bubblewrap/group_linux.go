//go:build amd64 || arm64

package bubblewrap

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport"
)

// group is the set of control groups of one run, made fresh: peaks and kill counters live as long as a group does, so a
// used one would report another run's.
type group struct {
	life   string // folder in the v2 tree, empty when there is none
	lifeFD *os.File
	// folders in v1 trees, with the home to return to.
	joined []joinedGroup
	limits map[controller]string // folder that holds a controller's files
	v2     map[controller]bool
	dirs   []string // everything to remove
}

type joinedGroup struct {
	tasks, home *os.File
}

const cpuPeriodUS = 100_000

// make creates and limits the groups of one run. Bubblewrap's monitor and PID 1 are inside too, hence two more processes.
func (g *groups) make(name string, limits sallyport.Limits) (*group, error) {
	run := &group{limits: map[controller]string{}, v2: map[controller]bool{}}
	for _, p := range g.parents {
		dir := filepath.Join(p.dir, name)
		err := os.Mkdir(dir, 0o755)
		if errors.Is(err, fs.ErrNotExist) {
			// Somebody tidied up above us; the folder is recorded, so it can simply be made again.
			if err = p.make(); err == nil {
				err = os.Mkdir(dir, 0o755)
			}
		}
		if err != nil {
			return nil, errors.Join(err, run.remove(time.Now()))
		}
		run.dirs = append(run.dirs, dir)
		for c, parent := range g.limits {
			if parent == p {
				run.limits[c], run.v2[c] = dir, p.v2
			}
		}
		if p.v2 {
			run.life = dir
			run.lifeFD, err = os.Open(dir)
		} else {
			var tasks *os.File
			tasks, err = os.OpenFile(filepath.Join(dir, "tasks"), os.O_WRONLY, 0)
			run.joined = append(run.joined, joinedGroup{tasks, p.home})
		}
		if err != nil {
			return nil, errors.Join(err, run.remove(time.Now()))
		}
	}
	if err := run.limit(limits); err != nil {
		return nil, errors.Join(err, run.remove(time.Now()))
	}
	return run, nil
}

func (g *group) limit(limits sallyport.Limits) error {
	set := func(c controller, file, value string) error {
		dir, ok := g.limits[c]
		if !ok {
			return nil
		}
		return writeControl(filepath.Join(dir, file), value)
	}
	// Some files exist only where the kernel was built with the feature: then there is nothing to limit.
	setIfThere := func(file, value string) error {
		if err := set(controlMemory, file, value); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	memory := strconv.FormatInt(limits.MemoryBytes, 10)
	quota := strconv.FormatInt(max(limits.CPUMillis*cpuPeriodUS/1000, 1000), 10)
	errs := []error{set(controlPIDs, "pids.max", strconv.FormatInt(limits.Processes+2, 10))}
	if g.v2[controlMemory] {
		errs = append(errs,
			set(controlMemory, "memory.max", memory),
			setIfThere("memory.swap.max", "0"),
			setIfThere("memory.oom.group", "0"))
	} else {
		errs = append(errs,
			set(controlMemory, "memory.limit_in_bytes", memory),
			setIfThere("memory.memsw.limit_in_bytes", memory),
			// What waits in sockets of the loopback is counted by itself in v1, and not at all until there is a limit: a script
			// could fill what the whole host has for TCP. v2 counts it as memory.
			setIfThere("memory.kmem.tcp.limit_in_bytes", strconv.FormatInt(limits.MemoryBytes/4, 10)))
	}
	if g.v2[controlCPU] {
		errs = append(errs, set(controlCPU, "cpu.max", quota+" "+strconv.Itoa(cpuPeriodUS)))
	} else {
		errs = append(errs, set(controlCPU, "cpu.cfs_period_us", strconv.Itoa(cpuPeriodUS)))
		// v1 refuses a quota above that of the group we are in ourselves, which then limits the run as it is.
		if err := set(controlCPU, "cpu.cfs_quota_us", quota); !errors.Is(err, unix.EINVAL) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// enter moves the calling thread into the v1 groups; what it forks is born there. A nil group has none.
func (g *group) enter() error {
	if g == nil {
		return nil
	}
	for _, j := range g.joined {
		if err := writeSelf(j.tasks); err != nil {
			return err
		}
	}
	return nil
}

// leave moves the calling thread back home.
func (g *group) leave() error {
	if g == nil {
		return nil
	}
	var errs []error
	for _, j := range g.joined {
		errs = append(errs, writeSelf(j.home))
	}
	return errors.Join(errs...)
}

// writeSelf joins the group behind a tasks file; 0 means the thread that writes.
func writeSelf(tasks *os.File) error {
	_, err := unix.Write(int(tasks.Fd()), []byte("0"))
	return err
}

// kill ends every process of the run. Where the kernel has no cgroup.kill (before 5.14) or there is no v2 tree, members are
// killed one by one until none is left; they cannot outrun that for ever, because their number is limited.
func (g *group) kill() {
	if g.life != "" && writeControl(filepath.Join(g.life, "cgroup.kill"), "1") == nil {
		return
	}
	if g.life != "" {
		_ = writeControl(filepath.Join(g.life, "cgroup.freeze"), "1")
		defer func() { _ = writeControl(filepath.Join(g.life, "cgroup.freeze"), "0") }()
	}
	for _, dir := range g.dirs {
		for range 100 {
			pids := readWords(filepath.Join(dir, "cgroup.procs"))
			if len(pids) == 0 {
				break
			}
			for _, word := range pids {
				if pid, err := strconv.Atoi(word); err == nil && pid > 1 {
					_ = unix.Kill(pid, unix.SIGKILL)
				}
			}
		}
	}
}

// empty reports whether no process is left.
func (g *group) empty() bool {
	if g.life != "" {
		populated, ok := readCounter(filepath.Join(g.life, "cgroup.events"), "populated")
		return ok && populated == 0
	}
	for _, dir := range g.dirs {
		if len(readWords(filepath.Join(dir, "cgroup.procs"))) > 0 {
			return false
		}
	}
	return true
}

// waitEmpty waits for the last process to be gone; false when it is not by the deadline.
func (g *group) waitEmpty(deadline time.Time) bool {
	for pause := 200 * time.Microsecond; ; pause = min(2*pause, 20*time.Millisecond) {
		if g.empty() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(pause)
	}
}

// usage reads the counters. It must be called after the last process is gone and before remove.
func (g *group) usage() sallyport.Usage {
	var u sallyport.Usage
	counter := func(c controller, file, key string) *int64 {
		if dir, ok := g.limits[c]; ok {
			if n, ok := readCounter(filepath.Join(dir, file), key); ok {
				return &n
			}
		}
		return nil
	}
	var oom *int64
	if g.v2[controlMemory] {
		u.MemoryPeakBytes = counter(controlMemory, "memory.peak", "")
		oom = counter(controlMemory, "memory.events", "oom_kill")
	} else {
		u.MemoryPeakBytes = counter(controlMemory, "memory.max_usage_in_bytes", "")
		// failcnt is no evidence: it stays 0 when the limit with swap is the same.
		oom = counter(controlMemory, "memory.oom_control", "oom_kill")
	}
	if hits := counter(controlPIDs, "pids.events", "max"); hits != nil {
		u.ProcessLimitHits = *hits
	}
	if oom != nil {
		u.OOMKills = *oom
	}
	if used, ok := g.cpuTime(); ok {
		u.CPUTimeMS = new(used.Milliseconds())
	}
	return u
}

// cpuTime is what every process that was ever in the group used together, children that nobody waited for included. Every
// v2 group counts it, also one without a controller.
func (g *group) cpuTime() (time.Duration, bool) {
	if dir, ok := g.limits[controlCPUAcct]; ok && !g.v2[controlCPUAcct] {
		if ns, ok := readCounter(filepath.Join(dir, "cpuacct.usage"), ""); ok {
			return time.Duration(ns), true
		}
	}
	if g.life != "" {
		if us, ok := readCounter(filepath.Join(g.life, "cpu.stat"), "usage_usec"); ok {
			return time.Duration(us) * time.Microsecond, true
		}
	}
	return 0, false
}

// remove deletes the groups. A group can stay busy for a moment after its last process was reaped.
func (g *group) remove(deadline time.Time) error {
	var errs []error
	if g.lifeFD != nil {
		_ = g.lifeFD.Close()
		g.lifeFD = nil
	}
	for _, j := range g.joined {
		if j.tasks != nil {
			_ = j.tasks.Close()
		}
	}
	g.joined = nil
	for _, dir := range g.dirs {
		errs = append(errs, removeGroup(dir, deadline))
	}
	return errors.Join(errs...)
}

func removeGroup(dir string, deadline time.Time) error {
	for pause := 200 * time.Microsecond; ; pause = min(2*pause, 20*time.Millisecond) {
		err := os.Remove(dir)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(pause)
	}
}

// sweepGroup kills and removes a dead instance's parent group and every run below it.
func sweepGroup(parent string, deadline time.Time) error {
	entries, err := os.ReadDir(parent)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		run := &group{dirs: []string{filepath.Join(parent, e.Name())}}
		if isCgroupDir(run.dirs[0], true) {
			run.life = run.dirs[0]
		}
		run.kill()
		run.waitEmpty(deadline)
		errs = append(errs, run.remove(deadline))
	}
	return errors.Join(append(errs, removeGroup(parent, deadline))...)
}

// writeControl writes to a control file. The files of control groups take one write and nothing else.
func writeControl(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}
