//go:build unix

// Package executor is an executor such as a stranger would write, from the documentation of package sallyport alone: it runs the
// one script it is given as a process of its own, in a folder of its own.
//
// It owns that folder and that process. It leaves the rest of a revision, arguments and files to executors that claim those
// features: this one claims nothing, so the isolation gate refuses whatever needs more, and every run under a policy that
// demands a layer. Its one invariant: when Execute returns, the process has ended and the folder is gone.
package executor

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport"
)

// Executor runs scripts as local processes. Its methods may be called by many goroutines: it has no state.
type Executor struct{}

// New returns the executor. Descriptors that this process inherited itself are kept from its children.
func New() *Executor {
	for fd := 3; fd < 1024; fd++ {
		syscall.CloseOnExec(fd)
	}
	return &Executor{}
}

// Kind names the executor in records and results.
func (*Executor) Kind() string { return "process" }

// Capabilities claims no layer and no feature.
func (*Executor) Capabilities(context.Context) sallyport.Capabilities {
	return sallyport.Capabilities{Available: true, Layers: []sallyport.Layer{}, Features: []sallyport.Feature{}}
}

// Execute runs the script. The context stops it; whatever it did is a result.
func (e *Executor) Execute(ctx context.Context, req sallyport.ExecRequest) (sallyport.Result, error) {
	if err := ctx.Err(); err != nil {
		return sallyport.Result{}, sallyport.NotStarted(err)
	}
	if err := check(req); err != nil {
		return sallyport.Result{}, sallyport.NotStarted(err)
	}
	result := sallyport.Result{Isolation: sallyport.Isolation{Executor: e.Kind(), Layers: []sallyport.Layer{}}}
	if _, err := exec.LookPath(req.Interpreter.Program); err != nil {
		result.StartError = "the interpreter " + filepath.Base(req.Interpreter.Program) + " cannot be executed"
		return result, nil
	}
	dir, err := os.MkdirTemp("", "process-")
	if err != nil {
		return sallyport.Result{}, sallyport.NotStarted(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	script := filepath.Base(req.ScriptPath)
	if err := stage(dir, script, req.Content); err != nil {
		return sallyport.Result{}, sallyport.NotStarted(err)
	}

	// The limit on open files is set by a shell that then becomes the interpreter.
	cmd := exec.Command("/bin/sh", "-c", `ulimit -n 1024; unset PWD OLDPWD; exec "$0" "$@"`, req.Interpreter.Program, filepath.Join(dir, "skill", script)) //nolint:noctx // it is stopped as a group, below
	cmd.Dir, cmd.Env = filepath.Join(dir, "skill"), environment(dir, req)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stdin = bytes.NewReader(req.Stdin)
	stdout, stderr := &stream{limit: req.Limits.OutputBytes}, &stream{limit: req.Limits.OutputBytes}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	// What got away with the streams open keeps nobody waiting.
	cmd.WaitDelay = min(time.Second, req.Grace/4)
	if err := cmd.Start(); err != nil {
		return sallyport.Result{}, sallyport.NotStarted(err)
	}
	result.StartedAt = time.Now()
	timedOut := stop(ctx, cmd, req.Limits.Timeout)
	result.Stdout, result.StdoutBytes, result.StdoutTruncated = stdout.finish()
	result.Stderr, result.StderrBytes, result.StderrTruncated = stderr.finish()
	result.Usage.CPUTimeMS = new((cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Milliseconds())
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case !ok:
		return sallyport.Result{}, errors.New("the process ended in a way that has no name")
	case status.Exited():
		result.ExitCode = new(status.ExitStatus())
	case ctx.Err() != nil:
		return sallyport.Result{}, ctx.Err() // stopped for the caller: never a timeout
	case timedOut:
		result.TimedOut, result.Limit = true, sallyport.LimitWall
	default:
		result.Signal = int(status.Signal())
		if status.Signal() == syscall.SIGXFSZ {
			result.Limit = sallyport.LimitDisk
		}
	}
	return result, nil
}

// stop waits for the process to end, and kills its group when its time is over, when the caller gives up, and when its
// leader has ended.
func stop(ctx context.Context, cmd *exec.Cmd, timeout time.Duration) (timedOut bool) {
	killed := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the state says what happened
		close(ended)
	}()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
		timedOut = true
	case <-ctx.Done():
	}
	killed()
	<-ended
	return timedOut
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// check refuses what cannot be meant, before anything begins.
func check(req sallyport.ExecRequest) error {
	l := req.Limits
	if l.Timeout <= 0 || l.MemoryBytes <= 0 || l.OutputBytes <= 0 || req.Grace <= 0 {
		return errors.New("a limit is not set")
	}
	if sallyport.DigestOf(req.Content).Hex() != req.ContentSHA256 {
		return errors.New("the script is not what its digest says")
	}
	for name := range req.Secrets {
		for _, taken := range environment("/", req) {
			if !variable.MatchString(name) || len(taken) > len(name) && taken[:len(name)+1] == name+"=" && taken != name+"="+string(req.Secrets[name]) {
				return errors.New("a secret may not replace a variable")
			}
		}
	}
	return nil
}

// environment is all that the script sees; nothing of this process is in it.
func environment(dir string, req sallyport.ExecRequest) []string {
	env := []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "HOME=" + dir + "/home", "TMPDIR=" + dir + "/tmp",
		"SKILL_ROOT=" + dir + "/skill", "SKILL_NAME=" + req.Slug, "SKILL_EXECUTION_ID=" + string(req.ExecutionID),
		"SKILL_OUTPUT=" + dir + "/output.json", "SKILL_ARTIFACTS=" + dir + "/tmp", "SKILL_INPUT=" + dir + "/tmp",
	}
	for name, value := range req.Secrets {
		env = append(env, name+"="+string(value))
	}
	return env
}

// stage makes the folders and writes the script through a root, so that no name leads out of dir.
func stage(dir, name string, content []byte) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	for _, folder := range []string{"skill", "home", "tmp"} {
		err = errors.Join(err, root.Mkdir(folder, 0o700))
	}
	return errors.Join(err, root.WriteFile("skill/"+name, content, 0o600), root.Close())
}

// stream keeps the beginning of what is written to it and counts the rest.
type stream struct {
	limit, total int64
	kept         []byte
}

// Write never fails, so the script is never made to wait.
func (s *stream) Write(p []byte) (int, error) {
	s.total += int64(len(p))
	if room := s.limit - int64(len(s.kept)); room > 0 {
		s.kept = append(s.kept, p[:min(int64(len(p)), room)]...)
	}
	return len(p), nil
}

// finish returns what was kept; a character that was cut is dropped.
func (s *stream) finish() (kept []byte, total int64, truncated bool) {
	truncated = s.total > s.limit
	for back := 1; truncated && back < utf8.UTFMax && back <= len(s.kept); back++ {
		if tail := s.kept[len(s.kept)-back:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				s.kept = s.kept[:len(s.kept)-back]
			}
			break
		}
	}
	return s.kept, s.total, truncated
}
