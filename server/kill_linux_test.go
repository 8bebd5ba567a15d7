package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/registry"
	"github.com/sallyport-dev/sallyport/run"
	"github.com/sallyport-dev/sallyport/server"
)

// kills is how often TestKilledAtAnyStep kills a server; make kills does it a thousand times.
var kills = flag.Int("kills", 24, "how often a server is killed")

// The test binary plays the server that is killed, chosen by this variable: what it is to do, then its folder.
const playVariable = "SALLYPORT_SERVER_TEST_PLAY"

func TestMain(m *testing.M) {
	role, dir, found := strings.Cut(os.Getenv(playVariable), " ")
	if !found {
		os.Exit(m.Run())
	}
	if role == "full" {
		if err := playFullDisk(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	step, err := strconv.Atoi(role)
	if err != nil {
		os.Exit(3)
	}
	fmt.Fprintln(os.Stderr, playVictim(dir, int64(step)))
	os.Exit(1)
}

// countdown kills this very process when it was called so often; below one it never does.
type countdown struct{ left atomic.Int64 }

func (c *countdown) tick() {
	if c.left.Add(-1) == 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// starter is an executor that starts a real process, which writes down that it was there before it does anything else.
type starter struct {
	dir  string
	tick func()
}

func (*starter) Kind() string { return "starter" }

func (*starter) Capabilities(context.Context) sallyport.Capabilities {
	return sallyport.Capabilities{Available: true, Features: sallyport.Features()}
}

func (s *starter) Execute(ctx context.Context, req sallyport.ExecRequest) (sallyport.Result, error) {
	s.tick()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", `echo "$0" >> "$1"`, string(req.ExecutionID), filepath.Join(s.dir, "started"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return sallyport.Result{}, sallyport.NotStarted(err)
	}
	s.tick()
	err := cmd.Wait()
	s.tick()
	code := cmd.ProcessState.ExitCode()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return sallyport.Result{}, err
	}
	return sallyport.Result{ExitCode: &code, Stdout: []byte(req.ExecutionID)}, nil
}

// tickGate ticks where the last gate is asked.
type tickGate struct{ tick func() }

func (tickGate) Name() string { return "tick" }

func (g tickGate) Check(context.Context, *sallyport.Candidate) *sallyport.Refusal {
	g.tick()
	return nil
}

// folderOf is the data folder inside a test's folder.
func folderOf(dir string) string { return filepath.Join(dir, "data") }

// openVictim opens a server that ticks at every step of a run. A process that the one before had begun to start, and that was killed
// with it, can hold the folder a moment longer.
func openVictim(ctx context.Context, dir string, tick func()) (*server.Server, error) {
	for {
		s, err := newVictim(ctx, dir, tick)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return s, err
		}
		time.Sleep(time.Millisecond)
	}
}

func newVictim(ctx context.Context, dir string, tick func()) (*server.Server, error) {
	return server.New(ctx, server.Config{
		DataDir: folderOf(dir), Executor: &starter{dir, tick}, ScriptsEnabled: true, RequiredLayers: []sallyport.Layer{},
		Interpreters: []sallyport.Interpreter{{Extension: "sh", Runtime: "bash", Program: "/bin/sh"}},
		Gates:        []sallyport.Gate{tickGate{tick}},
		// Every step of a run asks for the time.
		Now: func() time.Time { tick(); return time.Now() },
	})
}

// furnish makes the skill that is run, and grants it, unless that was done before.
func furnish(ctx context.Context, s *server.Server) error {
	saved, err := s.Registry().Save(ctx, server.Operator(), registry.SaveRequest{Publish: true, Files: []registry.File{
		{Path: "SKILL.md", Content: []byte("---\nname: job\ndescription: d\n---\n")}, {Path: "scripts/run.sh", Content: []byte("echo\n")},
	}})
	if err != nil {
		return err
	}
	grants, err := s.Access().List(ctx, server.Operator(), sallyport.SkillRef{})
	if err != nil || len(grants) > 0 {
		return err
	}
	_, err = s.Access().Issue(ctx, server.Operator(), access.IssueRequest{Ref: sallyport.SkillRef{Slug: "job"}, ExpectedDigest: saved.Revision.Digest})
	return err
}

// playVictim runs the skill, three at a time, until it is killed: at the tick numbered step, or from outside.
func playVictim(dir string, step int64) error {
	var c countdown
	ctx := context.Background()
	s, err := openVictim(ctx, dir, c.tick)
	if err != nil {
		return err
	}
	if err := furnish(ctx, s); err != nil {
		return err
	}
	go func() { _ = s.Run(ctx) }()
	fmt.Println("ready")
	c.left.Store(step)
	failed := make(chan error)
	for n := range 3 {
		go func() {
			for i := 0; ; i++ {
				req := run.Request{Ref: sallyport.SkillRef{Slug: "job"}, ScriptPath: "scripts/run.sh"}
				if n == 0 {
					req.IdempotencyKey = fmt.Sprint(step, "-", i, "-", os.Getpid())
				}
				if _, err := s.Runs().Run(ctx, server.Operator(), req); err != nil {
					failed <- err
				}
			}
		}()
	}
	return <-failed
}

// A server that is killed at any step of a run, or at any moment, leaves no process without its entry and no entry without an ending,
// and never runs anything again; the trail is whole each time.
func TestKilledAtAnyStep(t *testing.T) {
	t.Parallel()
	const seed = 20261130
	random := rand.New(rand.NewPCG(seed, uint64(*kills)))
	dir := ""
	runs, lost := 0, 0
	for n := range *kills {
		if n%50 == 0 {
			dir = t.TempDir()
		}
		step := 0
		if n%4 != 3 {
			step = 1 + random.IntN(60)
		}
		killOnce(t, dir, step, time.Duration(random.IntN(40))*time.Millisecond)
		found := inspect(t, dir)
		if t.Failed() {
			t.Fatalf("after kill %d, at step %d", n, step)
		}
		if n%50 == 49 || n == *kills-1 {
			runs, lost = runs+found.runs, lost+found.lost
		}
	}
	t.Logf("%d kills, %d runs, %d of them lost", *kills, runs, lost)
	if runs < *kills || lost == 0 {
		t.Errorf("%d runs and %d lost ones: the kills did not meet any", runs, lost)
	}
}

// killOnce starts a server on dir and kills it: it kills itself at a step, or, when that is 0, is killed a while after it began.
func killOnce(t *testing.T, dir string, step int, after time.Duration) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), playVariable+"="+strconv.Itoa(step)+" "+dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err == nil && step == 0 {
		time.Sleep(after)
		_ = cmd.Process.Kill()
	}
	_ = cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the server ended by itself: %s %s", cmd.ProcessState, stderr.String())
	}
}

type inspection struct{ runs, lost int }

// inspect opens the folder as the next server does, and holds what it finds against what processes wrote.
func inspect(t *testing.T, dir string) (found inspection) {
	t.Helper()
	s, err := openVictim(t.Context(), dir, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	log, err := os.Open(filepath.Join(folderOf(dir), "checkpoints.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	outside, err := audit.ReadCheckpoints(log)
	if err != nil {
		t.Fatal(err)
	}
	verdict, err := s.Audit().Verify(t.Context(), server.Operator(), outside)
	if err != nil || verdict.Result != audit.ResultValid {
		t.Errorf("the trail: %+v, %v", verdict, err)
	}
	began, ended := map[sallyport.ExecutionID]int{}, map[sallyport.ExecutionID]int{}
	for after := int64(0); ; {
		page, err := s.Audit().List(t.Context(), server.Operator(), audit.Filter{After: after, Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page {
			switch e.Action { //nolint:exhaustive // the two that open and close a run
			case sallyport.ActionScriptRun:
				began[e.ExecutionID]++
			case sallyport.ActionScriptFinished:
				ended[e.ExecutionID]++
				var detail struct{ Status sallyport.Status }
				if err := json.Unmarshal(e.Detail, &detail); err != nil {
					t.Error(err)
				}
				if detail.Status == sallyport.StatusLost {
					found.lost++
				}
			}
			after = e.Sequence
		}
		if len(page) < 1000 {
			break
		}
	}
	for id, n := range began {
		if n != 1 || ended[id] != 1 {
			t.Errorf("%s began %d times and ended %d times", id, n, ended[id])
		}
	}
	for id := range ended {
		if began[id] == 0 {
			t.Errorf("%s ended and never began", id)
		}
	}
	found.runs = len(began)
	for id, n := range started(t, dir) {
		if n != 1 || began[sallyport.ExecutionID(id)] != 1 {
			t.Errorf("a process of %s started %d times, and the trail has %d entries that it may", id, n, began[sallyport.ExecutionID(id)])
		}
	}
	for _, status := range []sallyport.Status{sallyport.StatusQueued, sallyport.StatusRunning} {
		open, err := s.Runs().List(t.Context(), server.Operator(), run.ListRequest{Status: status})
		if err != nil || len(open.Executions) != 0 {
			t.Errorf("%d executions are %s: %v", len(open.Executions), status, err)
		}
	}
	return found
}

// started counts the processes that wrote that they were there.
func started(t *testing.T, dir string) map[string]int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "started"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	ids := map[string]int{}
	for id := range strings.FieldsSeq(string(data)) {
		ids[id]++
	}
	return ids
}
