package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/records"
	"github.com/sallyport-dev/sallyport/registry"
	"github.com/sallyport-dev/sallyport/run"
	"github.com/sallyport-dev/sallyport/server"
)

// leaver is an executor whose scripts leave one artifact.
type leaver struct{ keeper }

func (l *leaver) Execute(ctx context.Context, req sallyport.ExecRequest) (sallyport.Result, error) {
	result, err := l.keeper.Execute(ctx, req)
	result.Artifacts = []sallyport.ArtifactFile{{Path: "out.txt", Content: []byte("left by " + req.ExecutionID)}}
	return result, err
}

// clock is a time that a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// recordServer has one skill, published and granted.
func recordServer(t *testing.T, change func(*server.Config)) (*server.Server, server.Config, *clock) {
	t.Helper()
	time0 := &clock{now: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)}
	cfg := server.Config{
		DataDir: t.TempDir(), Executor: &leaver{}, ScriptsEnabled: true, RequiredLayers: []sallyport.Layer{}, Now: time0.Now,
		Interpreters: []sallyport.Interpreter{{Extension: "sh", Runtime: "bash", Program: "/bin/bash"}},
	}
	if change != nil {
		change(&cfg)
	}
	s := newServer(t, cfg)
	saved, err := s.Registry().Save(t.Context(), server.Operator(), registry.SaveRequest{Publish: true, Files: []registry.File{
		{Path: "SKILL.md", Content: []byte("---\nname: greet\ndescription: d\n---\n")}, {Path: "scripts/run.sh", Content: []byte("echo hi")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Access().Issue(t.Context(), server.Operator(), access.IssueRequest{
		Ref: sallyport.SkillRef{Slug: "greet"}, ExpectedDigest: saved.Revision.Digest,
	}); err != nil {
		t.Fatal(err)
	}
	return s, cfg, time0
}

func newServer(t *testing.T, cfg server.Config) *server.Server {
	t.Helper()
	s, err := server.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func ranOnce(t *testing.T, s *server.Server) sallyport.ExecutionID {
	t.Helper()
	e, err := s.Runs().Run(t.Context(), server.Operator(), run.Request{Ref: sallyport.SkillRef{Slug: "greet"}, ScriptPath: "scripts/run.sh"})
	if err != nil {
		t.Fatal(err)
	}
	return e.ID
}

func entriesOf(t *testing.T, s *server.Server, action sallyport.Action) []sallyport.Entry {
	t.Helper()
	entries, err := s.Audit().List(t.Context(), server.Operator(), audit.Filter{Action: action})
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// By default artifacts go after a week and executions after a month, each sweep with one entry, and none when nothing went.
func TestSweep(t *testing.T) {
	t.Parallel()
	s, _, now := recordServer(t, nil)
	id, operator := ranOnce(t, s), server.Operator()
	sweep := func() {
		t.Helper()
		if err := s.Records().Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	now.pass(6 * 24 * time.Hour)
	sweep()
	if _, content, err := s.Runs().Artifact(t.Context(), operator, id, "out.txt"); err != nil || string(content) != "left by "+string(id) {
		t.Fatalf("after six days: %q, %v", content, err)
	}
	if entries := entriesOf(t, s, sallyport.ActionRecordsPurge); len(entries) != 0 {
		t.Errorf("nothing went, and there are %d entries", len(entries))
	}
	now.pass(48 * time.Hour)
	sweep()
	_, _, err := s.Runs().Artifact(t.Context(), operator, id, "out.txt")
	if sallyport.CodeOf(err) != sallyport.CodeArtifactNotFound || !strings.Contains(sallyport.Public(err).Message, "expired on 2026-05-09") {
		t.Errorf("after eight days: %v", err)
	}
	e, err := s.Runs().Get(t.Context(), operator, id)
	if err != nil || len(e.Artifacts) != 1 || e.Artifacts[0].ExpiredAt == nil || e.Artifacts[0].SHA256 == "" {
		t.Errorf("the record: %+v, %v", e.Artifacts, err)
	}
	now.pass(30 * 24 * time.Hour)
	sweep()
	if _, err := s.Runs().Get(t.Context(), operator, id); sallyport.CodeOf(err) != sallyport.CodeExecutionNotFound {
		t.Errorf("after a month: %v", err)
	}
	entries := entriesOf(t, s, sallyport.ActionRecordsPurge)
	if len(entries) != 2 || entries[0].Actor != "retention" || !strings.Contains(string(entries[1].Detail), `"executions":1`) {
		t.Errorf("got %d entries: %+v", len(entries), entries)
	}
	verdict, err := s.Audit().Verify(t.Context(), operator, nil)
	if err != nil || verdict.Result != audit.ResultValid {
		t.Errorf("the trail: %+v, %v", verdict, err)
	}
}

// Zero keeps, and a deleted skill is purged on its day unless it was restored.
func TestSweepKeepsAndPurges(t *testing.T) {
	t.Parallel()
	s, _, now := recordServer(t, func(c *server.Config) { c.Retention = &records.Policy{Deleted: 24 * time.Hour} })
	id, operator, ref := ranOnce(t, s), server.Operator(), sallyport.SkillRef{Slug: "other"}
	save := func() {
		t.Helper()
		if _, err := s.Registry().Save(t.Context(), operator, registry.SaveRequest{
			Ref: ref, Files: []registry.File{{Path: "SKILL.md", Content: []byte("---\nname: other\ndescription: d\n---\n")}},
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Registry().Delete(t.Context(), operator, ref); err != nil {
			t.Fatal(err)
		}
	}
	save()
	if _, err := s.Registry().Restore(t.Context(), operator, ref); err != nil {
		t.Fatal(err)
	}
	now.pass(1000 * 24 * time.Hour)
	for _, want := range []sallyport.Code{"", sallyport.CodeSkillNotFound} {
		if err := s.Records().Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Registry().Show(t.Context(), operator, ref); sallyport.CodeOf(err) != want {
			t.Errorf("got %v, want %q", err, want)
		}
		if want == "" {
			if _, err := s.Registry().Delete(t.Context(), operator, ref); err != nil {
				t.Fatal(err)
			}
			now.pass(25 * time.Hour)
		}
	}
	if _, _, err := s.Runs().Artifact(t.Context(), operator, id, "out.txt"); err != nil {
		t.Errorf("what is kept for ever: %v", err)
	}
	if entries := entriesOf(t, s, sallyport.ActionSkillPurge); len(entries) != 1 || entries[0].Actor != "retention" {
		t.Errorf("got %d entries", len(entries))
	}
}

// Purging is for who has the scope, and for what has passed.
func TestPurgeRefuses(t *testing.T) {
	t.Parallel()
	s, _, now := recordServer(t, nil)
	agent := server.Loopback()
	if _, err := s.Records().Purge(t.Context(), agent, records.PurgeRequest{Before: now.Now()}); sallyport.CodeOf(err) != sallyport.CodeAccessDenied {
		t.Errorf("without the scope: %v", err)
	}
	if _, err := s.Registry().Purge(t.Context(), agent, sallyport.SkillRef{Slug: "greet"}, true); sallyport.CodeOf(err) != sallyport.CodeAccessDenied {
		t.Errorf("a skill without the scope: %v", err)
	}
	for name, before := range map[string]time.Time{"none": {}, "ahead": now.Now().Add(time.Second)} {
		if _, err := s.Records().Purge(t.Context(), server.Operator(), records.PurgeRequest{Before: before}); sallyport.CodeOf(err) != sallyport.CodeInvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Every call of an MCP tool is on record, without secrets and contents, and the server's end waits for the last.
func TestToolCallRecords(t *testing.T) {
	t.Parallel()
	s, cfg, _ := recordServer(t, nil)
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	call := func(tool string, arguments map[string]any) {
		t.Helper()
		var result struct{ IsError bool }
		rpc(t, s.LocalHandler(), "tools/call", map[string]any{"name": tool, "arguments": arguments, "_meta": map[string]any{"traceparent": parent}}, &result)
	}
	call("execute_cloud_skill", map[string]any{
		"slug": "greet", "script_path": "scripts/run.sh", "input_args": map[string]any{"api_key": "hunter2", "n": 1},
		"argv": []string{"--token", "hunter2", "--password=hunter2", "plain"},
	})
	call("save_cloud_skill", map[string]any{"name": "x", "instructions": "hunter2", "url": "https://user:hunter2@example.com/x?token=hunter2"})
	call("recall_cloud_skill", map[string]any{"slug": "nowhere"})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = newServer(t, cfg)
	calls, err := s.Audit().ToolCalls(t.Context(), server.Operator(), audit.CallFilter{})
	if err != nil || len(calls) != 3 {
		t.Fatalf("%d calls, %v", len(calls), err)
	}
	for i, want := range []struct{ tool, code string }{
		{"recall_cloud_skill", "SKILL_NOT_FOUND"}, {"save_cloud_skill", "INVALID_ARGUMENT"}, {"execute_cloud_skill", ""},
	} {
		c := calls[i]
		if c.Tool != want.tool || string(c.Code) != want.code || c.PrincipalID != "operator" || c.TraceID != parent[3:35] || c.RequestID == "" {
			t.Errorf("got %+v", c)
		}
		if !json.Valid(c.Arguments) || bytes.Contains(c.Arguments, []byte("hunter2")) {
			t.Errorf("the arguments of %s: %s", c.Tool, c.Arguments)
		}
	}
	ran := calls[2]
	if ran.ExecutionID == "" || !bytes.Contains(ran.Arguments, []byte(`"slug":"greet"`)) || !bytes.Contains(ran.Arguments, []byte(`"plain"`)) {
		t.Errorf("got %+v %s", ran, ran.Arguments)
	}
	if _, err := s.Audit().ToolCalls(t.Context(), server.Loopback(), audit.CallFilter{}); sallyport.CodeOf(err) != sallyport.CodeAccessDenied {
		t.Errorf("without the scope: %v", err)
	}
}

// Backups of a server at work are whole, whatever is written meanwhile; one at a time.
func TestBackupOfALiveServer(t *testing.T) {
	t.Parallel()
	s, cfg, _ := recordServer(t, nil)
	ctx, stop := context.WithCancel(t.Context())
	var working sync.WaitGroup
	for range 2 {
		working.Go(func() {
			for ctx.Err() == nil {
				ranOnce(t, s)
			}
		})
	}
	var last bytes.Buffer
	for range 5 {
		write, err := s.Backup(t.Context(), true)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Backup(t.Context(), false); sallyport.CodeOf(err) != sallyport.CodeStoreUnavailable {
			t.Errorf("a second at the same time: %v", err)
		}
		last.Reset()
		if err := write(t.Context(), &last); err != nil {
			t.Fatal(err)
		}
		report, err := server.VerifyBackup(t.Context(), bytes.NewReader(last.Bytes()), t.TempDir(), "")
		if err != nil || len(report.Trails) != 1 || report.Trails[0].Result != audit.ResultValid {
			t.Fatalf("%+v, %v", report, err)
		}
	}
	stop()
	working.Wait()
	if left, err := os.ReadDir(filepath.Join(cfg.DataDir, "spool")); err != nil || len(left) != 0 {
		t.Errorf("the spool holds %v, %v", left, err)
	}

	cfg.DataDir = filepath.Join(t.TempDir(), "restored")
	if _, err := server.Restore(t.Context(), bytes.NewReader(last.Bytes()), cfg.DataDir, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Restore(t.Context(), bytes.NewReader(last.Bytes()), cfg.DataDir, ""); sallyport.CodeOf(err) != sallyport.CodeInvalidArgument {
		t.Errorf("over a folder that is in use: %v", err)
	}
	again := newServer(t, cfg)
	list, err := again.Runs().List(t.Context(), server.Operator(), run.ListRequest{})
	if err != nil || len(list.Executions) == 0 {
		t.Fatalf("%d executions, %v", len(list.Executions), err)
	}
	for _, e := range list.Executions {
		if !e.Status.Terminal() {
			t.Errorf("%s is %s", e.ID, e.Status)
		}
	}
	ranOnce(t, again)
}

// A backup that is not on the trail is none.
func TestBackupIsAuditedFirst(t *testing.T) {
	t.Parallel()
	s, _, _ := recordServer(t, nil)
	write, err := s.Backup(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	if entries := entriesOf(t, s, sallyport.ActionBackupCreate); len(entries) != 1 {
		t.Errorf("got %d entries", len(entries))
	}
	if err := write(t.Context(), failing{}); err == nil {
		t.Error("a writer that fails went unnoticed")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Backup(ended, false); err == nil {
		t.Error("a backup was begun that could not be recorded")
	}
	if write, err = s.Backup(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if err := write(t.Context(), &bytes.Buffer{}); err != nil {
		t.Error(err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, os.ErrClosed }

// A backup of a trail whose old entries were removed by the rules is whole; one of a trail that lost others is not.
func TestBackupOfAPrunedTrail(t *testing.T) {
	t.Parallel()
	s, _, now := recordServer(t, nil)
	ranOnce(t, s)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := s.Run(ctx); err != nil { // the checkpoints at the end
		t.Fatal(err)
	}
	now.pass(48 * time.Hour)
	ranOnce(t, s)
	done, err := s.Audit().Prune(t.Context(), now.Now().Add(-24*time.Hour))
	if err != nil || len(done) != 1 || done[0].Removed == 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	var archive bytes.Buffer
	write, err := s.Backup(t.Context(), false)
	if err == nil {
		err = write(t.Context(), &archive)
	}
	if err != nil {
		t.Fatal(err)
	}
	report, err := server.VerifyBackup(t.Context(), &archive, t.TempDir(), "")
	if err != nil || len(report.Trails) != 1 || report.Trails[0].Result != audit.ResultValid {
		t.Errorf("%+v, %v", report, err)
	}
}
