//go:build amd64 || arm64

package bubblewrap

import (
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// start takes every resource of the run and starts bubblewrap.
func (a *active) start() error {
	if a.e.uids != nil {
		uid, err := a.e.uids.lease()
		if err != nil {
			return err
		}
		a.uid = uid
	}
	a.cpus = a.e.cpus.take(a.spec.limits.CPUMillis)
	name := "run-" + strconv.FormatInt(a.e.counter.Add(1), 10)
	var err error
	if a.group, err = a.e.groups.make(name, a.spec.limits); err != nil {
		return fmt.Errorf("%w: %w", errGroup, err)
	}
	encoded, err := a.config().encode()
	if err != nil {
		return err
	}
	revision, err := a.e.state.revision(a.spec.files)
	if err != nil {
		return fmt.Errorf("revision: %w", err)
	}
	a.closers = append(a.closers, revision)

	ours, theirs, err := a.pipes()
	if err != nil {
		return err
	}
	files, err := a.data(append(theirs, revision))
	if err != nil {
		return err
	}
	if err := a.spawn(files); err != nil {
		return err
	}
	a.onFailure = nil
	a.stdout = newDrain(ours[1], a.spec.limits.OutputBytes)
	a.stderr = newDrain(ours[2], a.spec.limits.OutputBytes)
	a.report = newReport(ours[3], a.spec.limits)
	a.control = ours[4]
	// Both writers end when their reader is gone: at the latest when the group was killed.
	go feed(ours[0], a.spec.stdin, true)
	go feed(a.control, encoded, false)
	return nil
}

// pipes makes stdin, stdout, stderr, report and control, in the order of the child's descriptors.
func (a *active) pipes() (ours, theirs []*os.File, err error) {
	for fd := range fdRevision {
		read, write, err := os.Pipe()
		if err != nil {
			return nil, nil, err
		}
		mine, its := read, write
		if fd == 0 || fd == fdControl {
			mine, its = write, read
		}
		ours, theirs = append(ours, mine), append(theirs, its)
		a.onFailure, a.closers = append(a.onFailure, mine), append(a.closers, its)
		if fd <= 2 && a.uid >= 0 {
			// The script must be able to open its own streams again, as /dev/stdout.
			if err := its.Chown(a.uid, a.uid); err != nil {
				return nil, nil, err
			}
		}
	}
	return ours, theirs, nil
}

// feed writes data; the other end may be gone at any time, which is its own affair.
func feed(pipe *os.File, data []byte, end bool) {
	_, _ = pipe.Write(data)
	if end {
		_ = pipe.Close()
	}
}

// data adds what bubblewrap reads by descriptor to files and puts its options in front of them.
func (a *active) data(files []*os.File) ([]*os.File, error) {
	argsFD := len(files)
	files = append(files, nil)
	add := func(f *os.File, err error) (int, error) {
		if err != nil {
			return 0, err
		}
		a.closers = append(a.closers, f)
		files = append(files, f)
		return len(files) - 1, nil
	}
	helperFD, err := add(a.e.static.helper.reopen())
	if err != nil {
		return nil, err
	}
	var etc, inputs []dataFile
	own := map[string]string{}
	if a.spec.plan == PlanRoot {
		own = etcFiles(a.uid)
	}
	for _, f := range a.e.static.etc {
		open := f.content.reopen
		if text, ok := own[f.path]; ok {
			open = func() (*os.File, error) { return memoryFile([]byte(text)) }
		}
		fd, err := add(open())
		if err != nil {
			return nil, err
		}
		etc = append(etc, dataFile{fd, f.path})
	}
	fd, err := add(memoryFile([]byte(a.cpus.list() + "\n")))
	if err != nil {
		return nil, err
	}
	etc = append(etc, dataFile{fd, pathCPUs})
	var over []dataFile
	if _, err := os.Stat(pathBootID); err == nil {
		fd, err := add(memoryFile([]byte(bootID())))
		if err != nil {
			return nil, err
		}
		over = append(over, dataFile{fd, pathBootID})
	}
	for _, in := range a.spec.inputs {
		fd, err := add(memoryFile(in.Content))
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, dataFile{fd, path.Join(pathInput, in.Name)})
	}
	system := hostSystem()
	if a.spec.root != "" {
		if system, err = rootSystem(a.spec.root); err != nil {
			return nil, &sallyport.Error{
				Op: "bubblewrap.root", Code: sallyport.CodeSandboxUnavailable, Message: "the runtime cannot serve: " + err.Error(), Err: err,
			}
		}
	}
	args, err := memoryFile([]byte(strings.Join(options(a.spec.plan, system, a.sizes(), helperFD, etc, over, inputs), "\x00") + "\x00"))
	if err != nil {
		return nil, err
	}
	a.closers = append(a.closers, args)
	files[argsFD] = args
	return files, nil
}

func (a *active) spawn(files []*os.File) error {
	attr := &os.ProcAttr{
		Dir: "/",
		// Not nil: that would mean our own. What bubblewrap is started with can be read inside, in /proc/1.
		Env:   []string{},
		Files: files,
		Sys:   &syscall.SysProcAttr{},
	}
	if a.e.uids != nil && !a.e.uids.owns(a.uid) {
		// As root a run has a uid of the pool, or it does not start: with our own, the host would be open to it.
		return fmt.Errorf("%d is not a uid for runs", a.uid)
	}
	if a.spec.plan == PlanRoot && a.uid < 0 {
		return errNeedsRoot
	}
	if a.uid >= 0 && a.spec.plan != PlanRoot {
		attr.Sys.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.uid)}
	}
	if a.group.lifeFD != nil {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(a.group.lifeFD.Fd())
	}
	argv := []string{a.e.program, "--args", strconv.Itoa(fdRevision + 1), pathInit}
	process, err := a.e.spawner.start(argv, attr, a.group)
	for _, f := range a.closers {
		_ = f.Close()
	}
	a.closers = nil
	if err != nil {
		return fmt.Errorf("start bubblewrap: %w", err)
	}
	a.process = process
	go a.awaitMonitor()
	return nil
}

// sizes keeps every writable file system well below the memory limit, because its content counts as memory: a script
// that fills one is told so, instead of being killed, and can fill another.
func (a *active) sizes() sizes {
	l := a.spec.limits
	scratch := min(l.ScratchBytes, l.MemoryBytes/4)
	return sizes{
		skill:   scratch + stagedBytes(a.spec.files),
		scratch: scratch,
		output:  max(scratch, min(l.ArtifactBytes, l.MemoryBytes/4)) + maxOutputData,
	}
}

func (a *active) config() config {
	l := a.spec.limits
	size := a.sizes()
	c := config{
		argv: a.spec.argv, env: a.spec.env, filter: a.e.static.filter,
		artifactFiles: uint32(min(l.ArtifactFiles, artifactEntries)), artifactEntries: artifactEntries, artifactDepth: artifactDepth,
		artifactBytes: uint64(l.ArtifactBytes), outputBytes: maxOutputData,
		nofile: scriptFiles, memlock: scriptLocked, cpus: a.cpus.mask(),
		// Twice the largest file system: a full one answers with ENOSPC before this ends the process.
		fsize: uint64(2 * max(size.skill, size.scratch, size.output)),
		// PID 1 counts, and so does the monitor where both share a user namespace.
		nproc: uint64(l.Processes + 2),
	}
	if l.CPUTime > 0 {
		// A second net, for one process; the budget itself counts all of them. One second more, so that the budget is met first.
		c.cpuTime = uint64((l.CPUTime+time.Second-1)/time.Second) + 1
	}
	if a.spec.plan == PlanRoot {
		c.runID = uint32(max(a.uid, 0))
	}
	if a.e.groups.has(controlPIDs) {
		c.nproc += 64 // the group's limit must be the one that is met, because it is the one that counts
	}
	if !a.e.groups.has(controlMemory) {
		c.data = uint64(l.MemoryBytes) // weaker: it counts per process
	}
	return c
}
