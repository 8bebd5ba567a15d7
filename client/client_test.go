package client_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/client"
	"github.com/sallyport-dev/sallyport/internal/reply"
	"github.com/sallyport-dev/sallyport/registry"
	"github.com/sallyport-dev/sallyport/run"
)

const (
	skillID = "0190a0b0-0000-7000-8000-000000000001"
	sha     = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" // of "hello"
	digest  = "sha256:" + sha
)

// same fails the test when what a service was given is not what the caller gave.
func same[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// data fails the test unless the call succeeded.
func data[T any](t *testing.T, envelope sallyport.Envelope[T], err error) T {
	t.Helper()
	if err != nil {
		t.Fatalf("the call failed: %v", err)
	}
	if envelope.RequestID == "" || envelope.Kind == "" {
		t.Errorf("an envelope without kind or request id: %+v", envelope)
	}
	return *envelope.Data
}

// What a caller asks for reaches the service as it was asked, and what the service answers reaches the caller, over every
// transport.
func TestSkillsRoundTrip(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, cfg := range transports(t, w.handler) {
		c, ctx := connect(t, cfg), t.Context()
		skill := sallyport.Skill{ID: skillID, Slug: "x", CreatedAt: now(), UpdatedAt: now()}
		revision := sallyport.Revision{ID: "rev-1", SkillID: skillID, Digest: digest, Frontmatter: json.RawMessage(`{"a":1}`), CreatedAt: now()}
		bySlug, byID := sallyport.SkillRef{Slug: "x", TeamID: "ops"}, sallyport.SkillRef{SkillID: skillID}

		list := registry.ListRequest{TeamID: "ops", Query: "a & b", IncludeArchived: true, Limit: 7, Cursor: "c=/"}
		w.skills.list = func(got registry.ListRequest) (registry.ListResult, error) {
			same(t, name+": list", list, got)
			return registry.ListResult{Skills: []sallyport.Skill{skill}, NextCursor: "n", LeftOut: 2}, nil
		}
		envelope, err := c.Skills(ctx, list)
		same(t, name+": listed", registry.ListResult{Skills: []sallyport.Skill{skill}, NextCursor: "n", LeftOut: 2}, data(t, envelope, err))

		view := registry.SkillView{Skill: skill, Published: &revision}
		w.skills.show = func(got sallyport.SkillRef) (registry.SkillView, error) { same(t, name, bySlug, got); return view, nil }
		shown, err := c.Skill(ctx, bySlug)
		same(t, name+": skill", view, data(t, shown, err))

		w.skills.revisions = func(got sallyport.SkillRef) ([]sallyport.Revision, error) {
			same(t, name, byID, got)
			return []sallyport.Revision{revision}, nil
		}
		revisions, err := c.Revisions(ctx, byID)
		same(t, name+": revisions", []sallyport.Revision{revision}, data(t, revisions, err).Revisions)

		w.skills.revision = func(got sallyport.SkillRef, id sallyport.RevisionID) (sallyport.Revision, error) {
			same(t, name, bySlug, got)
			same(t, name, "rev-1", id)
			return revision, nil
		}
		one, err := c.Revision(ctx, bySlug, "rev-1")
		same(t, name+": revision", revision, data(t, one, err))
		manifest, err := c.Components(ctx, bySlug, "rev-1")
		same(t, name+": manifest", client.Manifest{RevisionID: "rev-1", RevisionDigest: digest, Components: []sallyport.Component{}}, data(t, manifest, err))

		w.skills.publish = func(got sallyport.SkillRef, id sallyport.RevisionID) (registry.SkillView, error) {
			same(t, name, bySlug, got)
			same(t, name, "rev-1", id)
			return view, nil
		}
		published, err := c.Publish(ctx, bySlug, "rev-1")
		same(t, name+": published", view, data(t, published, err).SkillView)
		w.skills.archive = func(got sallyport.SkillRef) (sallyport.Skill, error) { same(t, name, byID, got); return skill, nil }
		w.skills.restore = w.skills.archive
		archived, err := c.Archive(ctx, byID)
		same(t, name+": archived", skill, data(t, archived, err).Skill)
		restored, err := c.Restore(ctx, byID)
		same(t, name+": restored", skill, data(t, restored, err).Skill)
	}
}

func TestComponent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, test := range map[string]struct {
		content []byte
		path    string
	}{
		"text":   {[]byte("héllo <&>"), "scripts/a b%20.py"},
		"binary": {[]byte{0xff, 0}, "assets/ü/#?.bin"},
		"empty":  {[]byte{}, "x"},
	} {
		w.skills.component = func(_ sallyport.SkillRef, id sallyport.RevisionID, path string) (sallyport.Component, error) {
			same(t, name, "rev-1", id)
			same(t, name, test.path, path)
			return sallyport.Component{Path: path, SHA256: sallyport.DigestOf(test.content).Hex(), Content: test.content}, nil
		}
		envelope, err := w.client(t).Component(t.Context(), sallyport.SkillRef{Slug: "x"}, "rev-1", test.path)
		got, err := data(t, envelope, err).Bytes()
		if err != nil || !bytes.Equal(got, test.content) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	text := "tampered"
	if _, err := (client.ComponentContent{Component: sallyport.Component{SHA256: sha}, Content: &text}).Bytes(); sallyport.CodeOf(err) != sallyport.CodeInternal {
		t.Errorf("tampered: %v", err)
	}
	text = "***"
	if _, err := (client.ComponentContent{ContentBase64: &text}).Bytes(); sallyport.CodeOf(err) != sallyport.CodeInternal {
		t.Errorf("bad base64: %v", err)
	}
}

func TestSave(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	want := registry.SaveRequest{
		Ref: sallyport.SkillRef{SkillID: skillID, Slug: "x", TeamID: "ops"}, Personal: true, Remove: []string{"a"}, ReplaceAll: true,
		ExpectedRevisionID: "rev-0", CreateOnly: true, Publish: true, Message: "m",
		Files: []registry.File{
			{Path: "a", Content: []byte{0xff, 0}, Mode: 0o755, Kind: sallyport.KindScript, MediaType: "text/plain", Script: &sallyport.ScriptSettings{
				Runtime: "python", Input: sallyport.InputFlags, InputSchema: json.RawMessage(`{"type":"object"}`), Argv: json.RawMessage(`"none"`),
				Limits: sallyport.DefaultLimits(), Secrets: []string{"T"},
			}},
			{Path: "empty", Content: []byte{}},
		},
	}
	w.skills.save = func(got registry.SaveRequest) (registry.SaveResult, error) {
		same(t, "request", want, got)
		return registry.SaveResult{Skill: sallyport.Skill{ID: skillID}, Created: true}, nil
	}
	envelope, err := w.client(t).Save(t.Context(), want)
	if got := data(t, envelope, err); got.Skill.ID != skillID || !got.Created {
		t.Errorf("got %+v", got)
	}
}

func tarball(t *testing.T, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := w.WriteHeader(&tar.Header{Name: "a/SKILL.md", Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg})
	if err == nil {
		_, err = w.Write([]byte(content))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestImport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	plain := tarball(t, strings.Repeat("hello ", 100_000))
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	want := registry.ImportOptions{TeamID: "ops", Personal: true, Publish: true, DryRun: true, Message: "a=b&c"}
	w.skills.importAll = func(ctx context.Context, tree registry.Tree, got registry.ImportOptions) (registry.ImportReport, error) {
		same(t, "options", want, got)
		entries, err := tree.Entries(ctx)
		if err != nil || len(entries) != 1 || entries[0].Size != 600_000 {
			t.Errorf("entries %v, %v", entries, err)
		}
		return registry.ImportReport{Totals: registry.ImportTotals{Skills: 1}}, nil
	}
	for name, cfg := range transports(t, w.handler) {
		for kind, archive := range map[string][]byte{"tar": plain, "tar.gz": packed.Bytes()} {
			// A reader of unknown length, as a pipe is.
			envelope, err := connect(t, cfg).Import(t.Context(), io.MultiReader(bytes.NewReader(archive)), want)
			if got := data(t, envelope, err); got.Totals.Skills != 1 {
				t.Errorf("%s, %s: %+v", name, kind, got)
			}
		}
	}
}

// The caller learns why its own archive could not be read, not what the server made of half of it.
func TestImportWhoseReaderFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fault := &sallyport.Error{Op: "folder", Code: sallyport.CodeUnsafePath, Message: "the folder is gone"}
	for name, cfg := range transports(t, w.handler) {
		reader, writer := io.Pipe()
		go func() {
			_, _ = writer.Write(tarball(t, "hello")[:700])
			_ = writer.CloseWithError(fault)
		}()
		_, err := connect(t, cfg).Import(t.Context(), reader, registry.ImportOptions{})
		if sallyport.CodeOf(err) != sallyport.CodeUnsafePath || sallyport.Public(err).Message != fault.Message {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestRunRoundTrip(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seconds, zero := int64(60), int64(0)
	exit := 3
	execution := sallyport.Execution{
		ID: "e-1", RevisionDigest: digest, Status: sallyport.StatusError, ErrorKind: sallyport.CodeScriptExecutionError, ErrorMessage: "it failed", ExitCode: &exit,
		Stdout: "o <&>\u2028", OutputData: json.RawMessage(`{"n":12345678901234567890}`), Artifacts: []sallyport.Artifact{},
		Isolation: sallyport.Isolation{Layers: []sallyport.Layer{}}, Limits: sallyport.DefaultLimits(), CreatedAt: now(),
	}
	want := run.Request{
		Ref: sallyport.SkillRef{Slug: "x", TeamID: "ops"}, RevisionID: "rev-1", ScriptPath: "scripts/a.py",
		Args: json.RawMessage("{ \"a\" : 9007199254740993,\n\t\"b\": \"<&>\" }"), Argv: []string{"--x", ""},
		Files:   []sallyport.InputFile{{Name: "in.bin", Content: []byte{0xff}}},
		Timeout: time.Minute, TraceParent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}
	req := client.RunRequest{
		Ref: want.Ref, RevisionID: want.RevisionID, ScriptPath: want.ScriptPath, Args: want.Args, Argv: want.Argv, Files: want.Files,
		TimeoutSeconds: &seconds, TraceParent: want.TraceParent,
	}
	check := func(got run.Request) {
		got.RequestID = ""
		same(t, "request", want, got)
	}
	w.runs.run = func(_ context.Context, got run.Request) (sallyport.Execution, error) {
		check(got)
		return execution, nil
	}
	w.runs.explain = func(got run.Request) (run.Explanation, error) {
		check(got)
		return run.Explanation{Steps: []run.Step{{Name: "pin", Result: "refused"}}}, nil
	}
	for name, cfg := range transports(t, w.handler) {
		c := connect(t, cfg)
		envelope, err := c.Run(t.Context(), req)
		got := data(t, envelope, err)
		same(t, name+": execution", execution, got)
		if reply.ExitExecution(got) != 20 || reply.ExitCode(got.Err()) != 20 || envelope.Error == nil || envelope.Error.Code != execution.ErrorKind {
			t.Errorf("%s: exit %d, error %+v", name, reply.ExitExecution(got), envelope.Error)
		}
		explained, err := c.Explain(t.Context(), req)
		if got := data(t, explained, err); got.Steps[0].Name != "pin" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	want = run.Request{Ref: sallyport.SkillRef{Slug: "x"}, ScriptPath: "a", Argv: []string{}}
	if _, err := w.client(t).Run(t.Context(), client.RunRequest{Ref: want.Ref, ScriptPath: "a", Argv: []string{}}); err != nil {
		t.Errorf("empty argv: %v", err)
	}
	if _, err := w.client(t).Run(t.Context(), client.RunRequest{Ref: want.Ref, ScriptPath: "a", TimeoutSeconds: &zero}); sallyport.CodeOf(err) != sallyport.CodeInvalidArgument {
		t.Errorf("timeout 0: %v", err)
	}
	for _, args := range []string{`{"a":`, "", `{} {}`} {
		_, err := w.client(t).Run(t.Context(), client.RunRequest{Ref: want.Ref, ScriptPath: "a", Args: json.RawMessage(args)})
		if sallyport.CodeOf(err) != sallyport.CodeInvalidArgument {
			t.Errorf("args %q: %v", args, err)
		}
	}
	// What would break out of the object is no JSON value.
	_, err := w.client(t).Run(t.Context(), client.RunRequest{Ref: want.Ref, ScriptPath: "a", Args: json.RawMessage(`{},"revision_id":"evil"`)})
	if sallyport.CodeOf(err) != sallyport.CodeInvalidArgument {
		t.Errorf("smuggled field: %v", err)
	}
}

func TestExecutionsRoundTrip(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, ctx := w.client(t), t.Context()
	want := run.ListRequest{
		Ref: sallyport.SkillRef{SkillID: skillID, Slug: "x", TeamID: "ops"}, Status: sallyport.StatusLost, Limit: 3, Cursor: "c",
	}
	w.runs.list = func(got run.ListRequest) (run.ListResult, error) {
		same(t, "list", want, got)
		return run.ListResult{Executions: []sallyport.Execution{{ID: "e-1"}}, NextCursor: "n"}, nil
	}
	listed, err := c.Executions(ctx, want)
	if got := data(t, listed, err); got.NextCursor != "n" || got.Executions[0].ID != "e-1" {
		t.Errorf("got %+v", got)
	}
	w.runs.get = func(id sallyport.ExecutionID) (sallyport.Execution, error) {
		return sallyport.Execution{ID: id, Status: sallyport.StatusSuccess}, nil
	}
	one, err := c.Execution(ctx, "e/1")
	if got := data(t, one, err); got.ID != "e/1" {
		t.Errorf("got %+v", got)
	}
	w.runs.start = func(req run.Request) (sallyport.Execution, error) {
		return sallyport.Execution{ID: sallyport.ExecutionID(req.IdempotencyKey), Status: sallyport.StatusQueued}, nil
	}
	started, err := c.Start(ctx, client.RunRequest{Ref: sallyport.SkillRef{Slug: "x"}, ScriptPath: "a", IdempotencyKey: "k"})
	if got := data(t, started, err); got.ID != "k" || got.Status != sallyport.StatusQueued {
		t.Errorf("started %+v", got)
	}
	// It is asked again until the execution is over.
	asked := 0
	w.runs.get = func(id sallyport.ExecutionID) (sallyport.Execution, error) {
		if asked++; asked < 3 {
			return sallyport.Execution{ID: id, Status: sallyport.StatusRunning}, nil
		}
		return sallyport.Execution{ID: id, Status: sallyport.StatusSuccess}, nil
	}
	w.runs.waited = nil
	waited, err := c.Wait(ctx, "e-1", 0)
	if got := data(t, waited, err); got.Status != sallyport.StatusSuccess {
		t.Errorf("waited for %+v", got)
	}
	same(t, "waits", []time.Duration{30 * time.Second, 30 * time.Second, 30 * time.Second}, w.runs.waited)
	asked = -1 << 30
	waited, err = c.Wait(ctx, "e-1", time.Nanosecond)
	if got := data(t, waited, err); got.Status != sallyport.StatusRunning {
		t.Errorf("gave up with %+v", got)
	}
	w.runs.cancel = func(sallyport.ExecutionID) error { return nil }
	cancelled, err := c.Cancel(ctx, "e-1")
	same(t, "cancel", client.Cancellation{ExecutionID: "e-1", Requested: true}, data(t, cancelled, err))

	content := []byte("hello")
	w.runs.artifact = func(id sallyport.ExecutionID, path string) (sallyport.Artifact, []byte, error) {
		same(t, "artifact", "out/a b.txt", path)
		return sallyport.Artifact{Path: path, SHA256: sha}, content, nil
	}
	if got, err := c.Artifact(ctx, "e-1", "out/a b.txt"); err != nil || string(got) != "hello" {
		t.Errorf("artifact %q, %v", got, err)
	}
	w.runs.artifact = func(sallyport.ExecutionID, string) (sallyport.Artifact, []byte, error) {
		return sallyport.Artifact{}, nil, &sallyport.Error{Op: "x", Code: sallyport.CodeArtifactNotFound}
	}
	if _, err := c.Artifact(ctx, "e-1", "x"); sallyport.CodeOf(err) != sallyport.CodeArtifactNotFound {
		t.Errorf("absent artifact: %v", err)
	}
}

func TestGovernRoundTrip(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, ctx := w.client(t), t.Context()
	expires := now().Add(time.Hour + 123456*time.Microsecond)
	grant := sallyport.Grant{ID: "g-1", SkillID: skillID, Slug: "x", Pin: digest, IssuedAt: now(), ExpiresAt: &expires}
	issue := access.IssueRequest{
		Ref: sallyport.SkillRef{SkillID: skillID}, ScriptPath: "a", RevisionID: "rev-1", ExpectedDigest: digest, ExpiresAt: &expires,
	}
	w.access.issue = func(got access.IssueRequest) (sallyport.Grant, error) {
		same(t, "issue", issue, got)
		return grant, nil
	}
	w.access.list = func(got sallyport.SkillRef) ([]sallyport.Grant, error) {
		same(t, "grants", sallyport.SkillRef{Slug: "x"}, got)
		return []sallyport.Grant{grant}, nil
	}
	w.access.revoke = func(sallyport.GrantID) (sallyport.Grant, error) { return grant, nil }
	want := client.Grant{Grant: grant, State: sallyport.GrantActive}
	issued, err := c.IssueGrant(ctx, issue)
	same(t, "issued", want, data(t, issued, err))
	grants, err := c.Grants(ctx, sallyport.SkillRef{Slug: "x"})
	same(t, "grants", []client.Grant{want}, data(t, grants, err).Grants)
	revoked, err := c.RevokeGrant(ctx, "g-1")
	same(t, "revoked", want, data(t, revoked, err))

	filter := audit.Filter{
		Action: sallyport.ActionScriptRun, Entity: "x/a b", ExecutionID: "e-1", Since: now().Add(time.Microsecond), Until: now().Add(time.Hour),
		After: 7, NewestFirst: true, Limit: 1,
	}
	entry := sallyport.Entry{Sequence: 9, TenantID: "acme", At: now(), Detail: json.RawMessage(`{"n":12345678901234567890}`), PreviousHash: digest, Hash: digest}
	w.audit.list = func(got audit.Filter) ([]sallyport.Entry, error) {
		same(t, "filter", filter, got)
		return []sallyport.Entry{entry}, nil
	}
	entries, err := c.Entries(ctx, filter)
	same(t, "entries", client.EntryList{Entries: []sallyport.Entry{entry}, NextAfter: 9}, data(t, entries, err))

	var outside []audit.Checkpoint
	w.audit.verify = func(got []audit.Checkpoint) (audit.Verdict, error) {
		outside = got
		return audit.Verdict{Result: "valid"}, nil
	}
	verdict, err := c.VerifyTrail(ctx, nil)
	if got := data(t, verdict, err); got.Result != "valid" || outside != nil {
		t.Errorf("verdict %+v, outside %v", got, outside)
	}
	checkpoints := []audit.Checkpoint{{TenantID: "acme", Count: 3, Head: digest, At: now(), PublicKey: "p", Signature: "s"}}
	if _, err := c.VerifyTrail(ctx, checkpoints); err != nil {
		t.Error(err)
	}
	same(t, "checkpoints", checkpoints, outside)

	request := access.KeyRequest{Name: "ci", Scopes: []sallyport.Scope{sallyport.ScopeMemoryRead}, Teams: []sallyport.TeamID{"ops"}, ExpiresAt: &expires}
	key := access.NewKey{Key: sallyport.Key{ID: "k-1", Scopes: request.Scopes, Teams: request.Teams, CreatedAt: now()}, Secret: "s"}
	w.access.createKey = func(got access.KeyRequest) (access.NewKey, error) { same(t, "key", request, got); return key, nil }
	w.access.keys = func() ([]sallyport.Key, error) { return []sallyport.Key{key.Key}, nil }
	w.access.revokeKey = func(sallyport.KeyID) error { return nil }
	made, err := c.CreateKey(ctx, request)
	same(t, "made", key, data(t, made, err))
	keys, err := c.Keys(ctx)
	same(t, "keys", []sallyport.Key{key.Key}, data(t, keys, err).Keys)
	ended, err := c.RevokeKey(ctx, "k-1")
	same(t, "ended", client.KeyRevocation{KeyID: "k-1", Revoked: true}, data(t, ended, err))

	capabilities, err := c.Capabilities(ctx)
	if got := data(t, capabilities, err); got.Version != "test" || !got.Executor.Available || got.Principal.ID != "alice" {
		t.Errorf("capabilities %+v", got)
	}
	ready, err := c.Ready(ctx)
	same(t, "ready", client.ServerStatus{Status: "ready"}, data(t, ready, err))
	if document, err := c.OpenAPI(ctx); err != nil || !bytes.Contains(document, []byte(`"3.1.0"`)) {
		t.Errorf("openapi: %d bytes, %v", len(document), err)
	}
}

func TestRefusedBeforeSending(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, ctx := w.client(t), t.Context()
	for name, test := range map[string]struct {
		call func() error
		want sallyport.Code
	}{
		"no skill":         {func() error { _, err := c.Skill(ctx, sallyport.SkillRef{}); return err }, sallyport.CodeInvalidArgument},
		"slug and id":      {func() error { _, err := c.Skill(ctx, sallyport.SkillRef{Slug: "x", SkillID: skillID}); return err }, sallyport.CodeInvalidArgument},
		"no revision":      {func() error { _, err := c.Revision(ctx, sallyport.SkillRef{Slug: "x"}, ""); return err }, sallyport.CodeInvalidArgument},
		"no execution":     {func() error { _, err := c.Execution(ctx, ""); return err }, sallyport.CodeInvalidArgument},
		"no grant":         {func() error { _, err := c.RevokeGrant(ctx, ""); return err }, sallyport.CodeInvalidArgument},
		"no key":           {func() error { _, err := c.RevokeKey(ctx, ""); return err }, sallyport.CodeInvalidArgument},
		"component path":   {func() error { _, err := c.Component(ctx, sallyport.SkillRef{Slug: "x"}, "", "../x"); return err }, sallyport.CodeUnsafePath},
		"artifact path":    {func() error { _, err := c.Artifact(ctx, "e", "/etc/passwd"); return err }, sallyport.CodeUnsafePath},
		"run of no skill":  {func() error { _, err := c.Run(ctx, client.RunRequest{ScriptPath: "a"}); return err }, sallyport.CodeInvalidArgument},
		"slug of two dots": {func() error { _, err := c.Skill(ctx, sallyport.SkillRef{Slug: ".."}); return err }, sallyport.CodeUnsafePath},
	} {
		if err := test.call(); sallyport.CodeOf(err) != test.want {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
	}
}
