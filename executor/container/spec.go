package container

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// Bounds that no request can change.
const (
	maxOutputData   = 1 << 20 // SKILL_OUTPUT
	artifactEntries = 10_000
	artifactDepth   = 16
	scriptFiles     = 1024    // open files of one process
	scriptLocked    = 8 << 20 // locked memory of one process
)

// spec is one run, as its container needs it.
type spec struct {
	execution sallyport.ExecutionID
	image     string // its id
	argv      []string
	env       []string
	stdin     []byte
	files     []sallyport.Component
	inputs    []sallyport.InputFile
	limits    sallyport.Limits
	grace     time.Duration
}

// newSpec turns a request into a run of an image. Gates have looked at all of it; what would be wrong here is checked again,
// because behind this point there is only the engine.
func newSpec(req sallyport.ExecRequest) (spec, error) {
	invalid := func(sentence string) (spec, error) {
		return spec{}, &sallyport.Error{Op: "container.request", Code: sallyport.CodeInvalidArgument, Message: sentence}
	}
	program := programName(req.Interpreter)
	switch {
	case limitFault(req.Limits) != "":
		return invalid(limitFault(req.Limits))
	case req.Grace <= 0:
		return invalid("a run needs a grace to be ended in")
	case req.Interpreter.Root != "" && req.Interpreter.Image == "":
		return invalid("a runtime that is a folder of this host cannot be used in a container")
	case program == "":
		return invalid("the interpreter must be an absolute path in the image, or a name to look for in its folders of programs")
	case !slices.ContainsFunc(req.Files, func(f sallyport.Component) bool { return f.Path == req.ScriptPath }):
		return invalid("the script is not part of the revision")
	case len(req.Stdin) > stdinMaxBytes:
		return invalid(errStdinTooLarge.Error())
	}
	for _, f := range req.Files {
		if sallyport.CheckPath(f.Path) != nil || sallyport.DigestOf(f.Content).Hex() != f.SHA256 {
			return invalid("a file of the revision has an unsafe path or is not what its digest says")
		}
	}
	if fault := inputFault(req.Inputs); fault != "" {
		return invalid(fault)
	}
	s := spec{
		execution: req.ExecutionID,
		argv:      append([]string{program, path.Join(pathSkill, req.ScriptPath)}, req.Argv...),
		stdin:     req.Stdin,
		files:     req.Files,
		inputs:    req.Inputs,
		limits:    req.Limits,
		grace:     req.Grace,
		env: []string{
			"PATH=/usr/local/bin:/usr/bin:/bin",
			"HOME=" + pathHome,
			"LANG=C.UTF-8",
			"TMPDIR=/tmp",
			"SKILL_ROOT=" + pathSkill,
			"SKILL_NAME=" + req.Slug,
			"SKILL_EXECUTION_ID=" + string(req.ExecutionID),
			"SKILL_OUTPUT=" + path.Join(pathOutputDir, nameOutput),
			"SKILL_ARTIFACTS=" + path.Join(pathOutputDir, nameArtifacts),
			"SKILL_INPUT=" + pathInput,
		},
	}
	if strings.HasPrefix(path.Base(program), "python") {
		// Compiled files would only fill the scratch of a folder that is thrown away.
		s.env = append(s.env, "PYTHONDONTWRITEBYTECODE=1")
	}
	for name := range req.Secrets {
		taken := slices.ContainsFunc(s.env, func(v string) bool { return strings.HasPrefix(v, name+"=") })
		if taken || !variableName(name) {
			return invalid("a secret's name is not a free variable name")
		}
	}
	for name, value := range req.Secrets {
		s.env = append(s.env, name+"="+string(value))
	}
	for _, v := range append(slices.Clone(s.argv), s.env...) {
		if strings.IndexByte(v, 0) >= 0 {
			return invalid(errStringHasNUL.Error())
		}
	}
	return s, nil
}

// Interpreters are the rows that the word auto stands for: an image is expected to have its interpreter where programs are.
func Interpreters() []sallyport.Interpreter {
	var rows []sallyport.Interpreter
	for _, r := range []struct{ extension, runtime string }{
		{"py", "python"}, {"sh", "bash"}, {"bash", "bash"}, {"js", "node"}, {"mjs", "node"}, {"cjs", "node"},
	} {
		rows = append(rows, sallyport.Interpreter{Extension: r.extension, Runtime: r.runtime, Program: r.runtime})
	}
	return rows
}

// programName is what PID 1 is to start: a path, or a name that it looks for in the PATH of the script. A runtime's name stands
// for the program of its kind, so python-3.12 for python3.
func programName(in sallyport.Interpreter) string {
	if path.IsAbs(in.Program) {
		if path.Clean(in.Program) != in.Program {
			return ""
		}
		return in.Program
	}
	if in.Program == "" || strings.ContainsAny(in.Program, "/\x00") {
		return ""
	}
	for kind, program := range map[string]string{"python": "python3", "bash": "bash", "node": "node"} {
		if in.Program == kind || strings.HasPrefix(in.Program, kind+"-") {
			return program
		}
	}
	return in.Program
}

// limitFault says which limit cannot be meant, and what to do. Below the least a run cannot start, above the most an engine, or
// this process, could not keep what the number promises. Nothing is ever moved into the range instead.
func limitFault(l sallyport.Limits) string {
	for _, row := range []struct {
		name               string
		value, least, most int64
	}{
		{"timeout_ms", l.Timeout.Milliseconds(), 1, (24 * time.Hour).Milliseconds()},
		{"memory_bytes", l.MemoryBytes, sallyport.MinMemoryBytes, 1 << 46},
		{"processes", l.Processes, 1, 4_000_000},
		{"cpu_millis", l.CPUMillis, 10, 1_000_000},
		{"scratch_bytes", l.ScratchBytes, 4096, 1 << 40},
		{"output_bytes", l.OutputBytes, 1, 1 << 30},
		{"artifact_bytes", l.ArtifactBytes, 1, 1 << 32},
		{"artifact_files", l.ArtifactFiles, 1, artifactEntries},
		{"cpu_time_ms", l.CPUTime.Milliseconds(), 0, (24 * time.Hour).Milliseconds()}, // 0 is no budget
	} {
		switch {
		case row.value < row.least:
			return fmt.Sprintf("the limit %s is %d, and a run needs at least %d: raise it where the request, the script, the tenant or the server sets it", row.name, row.value, row.least)
		case row.value > row.most:
			return fmt.Sprintf("the limit %s is %d, and at most %d can be enforced: lower it where the request, the script, the tenant or the server sets it", row.name, row.value, row.most)
		}
	}
	return ""
}

// inputFault finds an input file that has no place of its own.
func inputFault(inputs []sallyport.InputFile) string {
	taken := map[string]bool{}
	for _, in := range inputs {
		if sallyport.CheckPath(in.Name) != nil {
			return "the name of an input file is not a plain path"
		}
		if taken[in.Name] {
			return "two input files have one name"
		}
		taken[in.Name] = true
	}
	for _, in := range inputs {
		for dir := path.Dir(in.Name); dir != "."; dir = path.Dir(dir) {
			if taken[dir] {
				return "an input file has the name of another one's folder"
			}
		}
	}
	return ""
}

// variableName reports whether name is a letter or underscore, followed by letters, digits and underscores.
func variableName(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c == '_' || (c|0x20 >= 'a' && c|0x20 <= 'z')
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// sizes are the bytes of each writable file system of one run.
type sizes struct {
	skill, scratch, output, input int64
}

// sizes keeps every writable file system well below the memory limit, because its content counts as memory: a script that
// fills one is told so, instead of being killed, and can fill another.
func (s spec) sizes() sizes {
	l := s.limits
	scratch := min(l.ScratchBytes, l.MemoryBytes/4)
	size := sizes{
		skill:   scratch,
		scratch: scratch,
		output:  max(scratch, min(l.ArtifactBytes, l.MemoryBytes/4)) + maxOutputData,
		input:   64 << 10,
	}
	for _, f := range s.files {
		size.skill += pages(f.Size)
	}
	for _, f := range s.inputs {
		size.input += pages(int64(len(f.Content)))
	}
	return size
}

// pages is what a file takes of a tmpfs, with what its name and folders take.
func pages(size int64) int64 { return (size+4095)/4096*4096 + 4096 }

// orders are what PID 1 is told.
func (s spec) orders(filter []byte, cpuFirst uint32) orders {
	l, size := s.limits, s.sizes()
	return orders{
		argv: s.argv, env: s.env, filter: filter, stdin: s.stdin, files: s.files, inputs: s.inputs,
		artifactFiles: uint32(l.ArtifactFiles), artifactEntries: artifactEntries, artifactDepth: artifactDepth,
		cpuCount: uint32((l.CPUMillis + 999) / 1000), cpuFirst: cpuFirst,
		streamBytes: uint64(l.OutputBytes), artifactBytes: uint64(l.ArtifactBytes), outputBytes: maxOutputData,
		nofile: scriptFiles, memlock: scriptLocked, cpuBudgetMicrosecs: uint64(l.CPUTime.Microseconds()),
		// A script may fill what it was given; one file can be as large as the largest.
		fsize: uint64(2 * max(size.skill, size.scratch, size.output)),
		// The container's limit must be the one that is met, because it is the one that counts.
		nproc: uint64(l.Processes + 64),
	}
}

// Labels of containers, volumes and images of ours.
const (
	labelOwner     = "dev.sallyport.owner"
	labelExecution = "dev.sallyport.execution"
	labelPart      = "dev.sallyport.part"
	labelProcess   = "dev.sallyport.process"
	labelExpires   = "dev.sallyport.expires"
)

// place is where and as whom a container of an engine runs.
type place struct {
	uid    int
	volume string // holds PID 1's program
	cpus   int64  // of the engine's machine; 0 when it does not say
}

// body is what the engine is asked for.
func (s spec) body(place place, lifetime time.Duration, labels map[string]string) map[string]any {
	l, size := s.limits, s.sizes()
	quota := l.CPUMillis
	if place.cpus > 0 {
		quota = min(quota, 1000*place.cpus) // more than there are is refused, and would be no other limit
	}
	user := fmt.Sprintf("%d:%d", place.uid, place.uid)
	mount := func(bytes int64, mode string) string {
		return fmt.Sprintf("rw,nosuid,nodev,exec,size=%d,mode=%s", bytes, mode)
	}
	ours := func(bytes int64) string { return fmt.Sprintf("rw,nosuid,nodev,noexec,size=%d,mode=0755", bytes) }
	return map[string]any{
		"Image": s.image, "User": user, "WorkingDir": "/", "Hostname": "sallyport", "Env": []string{}, "Labels": labels,
		"Entrypoint": []string{pathInit, strconv.FormatInt(lifetime.Milliseconds(), 10)}, "Cmd": []string{},
		"Tty": false, "OpenStdin": true, "StdinOnce": true, "AttachStdin": true, "AttachStdout": true, "AttachStderr": true,
		"NetworkDisabled": true,
		// An image's own idea of health would run programs beside the script's.
		"Healthcheck": map[string]any{"Test": []string{"NONE"}},
		// PID 1 takes no other.
		"StopSignal": "SIGKILL", "StopTimeout": 0,
		"HostConfig": map[string]any{
			"AutoRemove": true, "NetworkMode": "none", "ReadonlyRootfs": true, "Privileged": false,
			"CapDrop": []string{"ALL"}, "SecurityOpt": []string{"no-new-privileges"},
			"IpcMode": "private", "CgroupnsMode": "private", "PidMode": "", "UTSMode": "",
			// PID 1 is one more; without swap, memory and swap together are the memory.
			"Memory": l.MemoryBytes, "MemorySwap": l.MemoryBytes, "PidsLimit": l.Processes + 1, "NanoCpus": quota * 1_000_000,
			"OomScoreAdj": 0, "ShmSize": size.scratch, "LogConfig": map[string]any{"Type": "none", "Config": map[string]string{}},
			"RestartPolicy": map[string]any{"Name": "no"},
			"Ulimits": []map[string]any{
				{"Name": "nofile", "Soft": scriptFiles, "Hard": scriptFiles},
				{"Name": "nproc", "Soft": l.Processes + 64, "Hard": l.Processes + 64},
			},
			"Binds": []string{place.volume + ":" + path.Dir(pathInit) + ":ro"},
			"Tmpfs": map[string]string{
				pathSkill: mount(size.skill, "0777"), pathHome: mount(size.scratch, "0777"), "/tmp": mount(size.scratch, "1777"),
				"/var/tmp": mount(size.scratch, "1777"), "/run": ours(64 << 10),
				path.Dir(pathOutputDir): mount(size.output, "0777"), pathInput: mount(size.input, "0777"),
				// Instead of what the kernel tells about the host.
				"/sys": ours(64 << 10),
			},
		},
	}
}
