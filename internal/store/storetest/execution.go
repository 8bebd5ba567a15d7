package storetest

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/run"
)

func executionTests() []test {
	return []test{
		{"every field round trips", everyFieldRoundTrips},
		{"open, start, close", openStartClose},
		{"open is one transaction", openIsOneTransaction},
		{"close once", closeOnce},
		{"closing at once has one ending", closeRace},
		{"what does not fit is refused", executionRefuses},
		{"unfinished", unfinished},
		{"pages, newest first", executionPages},
		{"filters", executionFilters},
		{"artifacts", artifacts},
		{"streams hold any bytes", anyBytes},
	}
}

func execution(id string, at int) sallyport.Execution {
	return sallyport.Execution{
		ID: sallyport.ExecutionID(id), TenantID: tenant, PrincipalID: owner, SkillID: "s:alpha", Slug: "alpha", RevisionID: "r:alpha:1",
		RevisionDigest: sallyport.DigestOf([]byte("alpha")), ScriptPath: "scripts/run.py", Runtime: "python", Status: sallyport.StatusQueued,
		Artifacts: []sallyport.Artifact{}, GrantID: "g", CreatedAt: day(at),
	}
}

func entry(action sallyport.Action, id string) sallyport.Entry {
	return sallyport.Entry{
		At: day(1), Actor: owner, Action: action, Entity: "alpha/scripts/run.py", ExecutionID: sallyport.ExecutionID(id),
		Detail: json.RawMessage(`{"b": 1.50, "a": "é"}`),
	}
}

func open(tb testing.TB, b Backend, e sallyport.Execution) {
	tb.Helper()
	must(tb, b.Open(tb.Context(), tenant, e, entry(sallyport.ActionScriptRun, string(e.ID))))
}

func closed(tb testing.TB, b Backend, e sallyport.Execution, files ...sallyport.ArtifactFile) {
	tb.Helper()
	must(tb, b.Close(tb.Context(), tenant, e, files, entry(sallyport.ActionScriptFinished, string(e.ID))))
}

func artifact(path, content string) (sallyport.Artifact, sallyport.ArtifactFile) {
	return sallyport.Artifact{
		Path: path, Size: int64(len(content)), SHA256: sallyport.DigestOf([]byte(content)).Hex(), MediaType: "text/plain", URI: "/v1/x/" + path,
	}, sallyport.ArtifactFile{Path: path, Content: []byte(content)}
}

// full sets every field of an execution.
func full() (sallyport.Execution, []sallyport.ArtifactFile) {
	one, oneFile := artifact("b.txt", "hello")
	two, twoFile := artifact("a/empty", "")
	e := sallyport.Execution{
		ID: "full", TenantID: tenant, PrincipalID: owner, SkillID: "s", Slug: "slug", RevisionID: "r", RevisionDigest: sallyport.DigestOf(nil),
		ScriptPath: "scripts/ä.sh", Runtime: "bash", Status: sallyport.StatusResourceExhausted, ExitCode: pointer(137), Signal: 9, SignalName: "SIGKILL",
		Limit: sallyport.LimitMemory, ErrorKind: sallyport.CodeResourceExhausted, ErrorMessage: "used \"all\"", Stdout: "out\x00\r\n\xff", Stderr: strings.Repeat("é", 1000),
		StdoutTruncated: true, StderrTruncated: true, StdoutBytes: 1 << 40, StderrBytes: 2, EncodingNotes: []string{"stdout: invalid UTF-8 replaced"},
		OutputData: json.RawMessage(`{ "n": 12345678901234567890, "s": "<&>" }`), OutputDataNote: "note", Artifacts: []sallyport.Artifact{one, two},
		ArtifactsLost: true, ArtifactNotes: []string{"c: too large"}, DurationMS: 3, QueueMS: 4, MemoryPeakBytes: pointer(int64(5)), CPUTimeMS: pointer(int64(0)),
		OOMKills: 6, ProcessLimitHits: 7, Isolation: sallyport.Isolation{Executor: "bubblewrap", Layers: []sallyport.Layer{sallyport.LayerSeccomp}, Missing: []sallyport.Layer{sallyport.LayerLandlock}, Warm: true, Plan: "root", Profile: "strict", Notes: []string{"note"}},
		Limits:  sallyport.Limits{Timeout: 1500 * time.Millisecond, MemoryBytes: 1, Processes: 2, CPUMillis: 3, ScratchBytes: 4, OutputBytes: 5, ArtifactBytes: 6, ArtifactFiles: 7, CPUTime: 8 * time.Second},
		GrantID: "g", TraceID: "trace", CreatedAt: day(1), StartedAt: pointer(day(2)), FinishedAt: pointer(day(3)),
	}
	return e, []sallyport.ArtifactFile{twoFile, oneFile}
}

func everyFieldRoundTrips(t *trial, b Backend) {
	e, files := full()
	for i := range reflect.TypeFor[sallyport.Execution]().NumField() {
		if reflect.ValueOf(e).Field(i).IsZero() {
			t.Errorf("the field %s is not set: this test proves nothing about it", reflect.TypeFor[sallyport.Execution]().Field(i).Name)
		}
	}
	queued := e
	queued.Status = sallyport.StatusQueued
	queued.Artifacts = nil
	open(t, b, queued)
	got, err := b.Execution(t.Context(), tenant, e.ID)
	must(t, err)
	queued.Artifacts = []sallyport.Artifact{}
	same(t, "open", got, queued)
	closed(t, b, e, files...)
	got, err = b.Execution(t.Context(), tenant, e.ID)
	must(t, err)
	same(t, "closed", got, e)

	// And with nothing set that may be absent.
	bare := execution("bare", 1)
	open(t, b, bare)
	got, err = b.Execution(t.Context(), tenant, bare.ID)
	must(t, err)
	same(t, "bare, open", got, bare)
	bare.Status = sallyport.StatusLost
	closed(t, b, bare)
	got, err = b.Execution(t.Context(), tenant, bare.ID)
	must(t, err)
	same(t, "bare, closed", got, bare)
}

func openStartClose(t *trial, b Backend) {
	ctx := t.Context()
	e := execution("1", 1)
	open(t, b, e)
	must(t, b.Start(ctx, tenant, e.ID, day(2)))
	e.Status, e.StartedAt = sallyport.StatusRunning, pointer(day(2))
	got, err := b.Execution(ctx, tenant, e.ID)
	must(t, err)
	same(t, "running", got, e)
	must(t, b.Start(ctx, tenant, e.ID, day(8)))
	got, err = b.Execution(ctx, tenant, e.ID)
	must(t, err)
	same(t, "started twice", got, e)

	outcome := e
	// What the opening decided stays, whatever the closing says.
	outcome.PrincipalID, outcome.SkillID, outcome.Slug, outcome.RevisionID, outcome.RevisionDigest = "mallory", "x", "x", "x", "x"
	outcome.ScriptPath, outcome.CreatedAt, outcome.StartedAt = "x", day(9), nil
	outcome.Status, outcome.ExitCode, outcome.Stdout, outcome.FinishedAt = sallyport.StatusSuccess, pointer(0), "out", pointer(day(3))
	closed(t, b, outcome)
	want := e
	want.Status, want.ExitCode, want.Stdout, want.FinishedAt = outcome.Status, outcome.ExitCode, outcome.Stdout, outcome.FinishedAt
	got, err = b.Execution(ctx, tenant, e.ID)
	must(t, err)
	same(t, "closed", got, want)
	must(t, b.Start(ctx, tenant, e.ID, day(8)))
	got, err = b.Execution(ctx, tenant, e.ID)
	must(t, err)
	same(t, "a closed one does not start", got, want)

	trail, err := b.Entries(ctx, tenant, audit.Filter{ExecutionID: e.ID})
	must(t, err)
	var actions []sallyport.Action
	for _, entry := range trail {
		actions = append(actions, entry.Action)
	}
	same(t, "trail", actions, []sallyport.Action{sallyport.ActionScriptRun, sallyport.ActionScriptFinished})

	for name, err := range map[string]error{
		"start": b.Start(ctx, tenant, "none", day(2)),
		"close": b.Close(ctx, tenant, sallyport.Execution{ID: "none", Status: sallyport.StatusLost}, nil, entry(sallyport.ActionScriptFinished, "none")),
		"read":  func() error { _, err := b.Execution(ctx, tenant, "none"); return err }(),
	} {
		if sallyport.CodeOf(err) != sallyport.CodeExecutionNotFound {
			t.Errorf("%s: got %v, want EXECUTION_NOT_FOUND", name, err)
		}
	}
	count, _, err := b.Head(ctx, tenant)
	must(t, err)
	same(t, "entries", count, int64(2))
}

func openIsOneTransaction(t *trial, b Backend) {
	ctx := t.Context()
	// The entry cannot be written, so the execution is not.
	bad := entry(sallyport.ActionScriptRun, "1")
	bad.Detail = json.RawMessage(`{"a":1,"a":2}`)
	wantCode(t, b.Open(ctx, tenant, execution("1", 1), bad), sallyport.CodeAuditUnavailable)
	_, err := b.Execution(ctx, tenant, "1")
	wantCode(t, err, sallyport.CodeExecutionNotFound)
	// The execution cannot be written, so the entry is not.
	open(t, b, execution("2", 1))
	wantCode(t, b.Open(ctx, tenant, execution("2", 2), entry(sallyport.ActionScriptRun, "2")), sallyport.CodeInternal)
	count, _, err := b.Head(ctx, tenant)
	must(t, err)
	same(t, "entries", count, int64(1))
	got, err := b.Execution(ctx, tenant, "2")
	must(t, err)
	same(t, "the first one", got, execution("2", 1))
}

func closeOnce(t *trial, b Backend) {
	e := execution("1", 1)
	open(t, b, e)
	e.Status, e.ExitCode, e.Stdout = sallyport.StatusError, pointer(3), "first"
	closed(t, b, e)
	other := e
	other.Status, other.Stdout = sallyport.StatusLost, "second"
	meta, file := artifact("late.txt", "late")
	other.Artifacts = []sallyport.Artifact{meta}
	closed(t, b, other, file)
	got, err := b.Execution(t.Context(), tenant, e.ID)
	must(t, err)
	same(t, "the first ending stays", got, e)
	_, _, err = b.ArtifactContent(t.Context(), tenant, e.ID, "late.txt")
	wantCode(t, err, sallyport.CodeArtifactNotFound)
	count, _, err := b.Head(t.Context(), tenant)
	must(t, err)
	same(t, "no second entry", count, int64(2))
}

func closeRace(t *trial, b Backend) {
	open(t, b, execution("1", 1))
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			e := execution("1", 1)
			e.Status, e.Stdout = sallyport.StatusSuccess, numbered("out", n)
			if err := b.Close(t.Context(), tenant, e, nil, entry(sallyport.ActionScriptFinished, "1")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	count, _, err := b.Head(t.Context(), tenant)
	must(t, err)
	same(t, "entries", count, int64(2))
}

func executionRefuses(t *trial, b Backend) {
	ctx := t.Context()
	running, done := execution("1", 1), execution("1", 1)
	running.Status, done.Status = sallyport.StatusRunning, sallyport.StatusSuccess
	stranger := entry(sallyport.ActionScriptRun, "2")
	for name, err := range map[string]error{
		"opened running":           b.Open(ctx, tenant, running, entry(sallyport.ActionScriptRun, "1")),
		"opened closed":            b.Open(ctx, tenant, done, entry(sallyport.ActionScriptRun, "1")),
		"no id":                    b.Open(ctx, tenant, execution("", 1), entry(sallyport.ActionScriptRun, "")),
		"no tenant":                b.Open(ctx, "", execution("1", 1), entry(sallyport.ActionScriptRun, "1")),
		"entry of another":         b.Open(ctx, tenant, execution("1", 1), stranger),
		"closed without an ending": b.Close(ctx, tenant, execution("1", 1), nil, entry(sallyport.ActionScriptFinished, "1")),
	} {
		if sallyport.CodeOf(err) != sallyport.CodeInternal {
			t.Errorf("%s: got %v, want INTERNAL", name, err)
		}
	}
	count, _, err := b.Head(ctx, tenant)
	must(t, err)
	same(t, "entries", count, int64(0))
}

func unfinished(t *trial, b Backend) {
	ctx := t.Context()
	for n, id := range []string{"queued", "running", "closed"} {
		open(t, b, execution(id, 3-n))
	}
	must(t, b.Start(ctx, tenant, "running", day(2)))
	done := execution("closed", 1)
	done.Status = sallyport.StatusCanceled
	closed(t, b, done)
	foreign := execution("queued", 0)
	foreign.TenantID = other
	must(t, b.Open(ctx, other, foreign, entry(sallyport.ActionScriptRun, "queued")))

	running := execution("running", 2)
	running.Status, running.StartedAt = sallyport.StatusRunning, pointer(day(2))
	got, err := b.Unfinished(ctx)
	must(t, err)
	same(t, "unfinished", got, []sallyport.Execution{foreign, running, execution("queued", 3)})
	for _, e := range got {
		e.Status = sallyport.StatusLost
		must(t, b.Close(ctx, e.TenantID, e, nil, entry(sallyport.ActionScriptFinished, string(e.ID))))
	}
	got, err = b.Unfinished(ctx)
	must(t, err)
	same(t, "after closing them", got, []sallyport.Execution{})
}

func ids(executions []sallyport.Execution) []sallyport.ExecutionID {
	list := []sallyport.ExecutionID{}
	for _, e := range executions {
		list = append(list, e.ID)
	}
	return list
}

func executionPages(t *trial, b Backend) {
	ctx := t.Context()
	for n := range 7 {
		open(t, b, execution(numbered("e", n), n/2)) // two at the same instant
	}
	e, files := full()
	queued := e
	queued.Status, queued.CreatedAt = sallyport.StatusQueued, day(50)
	open(t, b, queued)
	e.CreatedAt = day(50)
	closed(t, b, e, files...)

	filter := run.ExecutionFilter{Limit: 3}
	var got []sallyport.ExecutionID
	for pages := 0; ; pages++ {
		page, next, err := b.Executions(ctx, tenant, filter)
		must(t, err)
		if pages == 0 {
			summary := e
			summary.Stdout, summary.Stderr, summary.OutputData = "", "", nil
			same(t, "a summary", page[0], summary)
			open(t, b, execution("late", 60))
		}
		got = append(got, ids(page)...)
		if filter.Cursor = next; next == "" {
			break
		}
		if pages > 5 {
			t.Fatal("the pages do not end")
		}
	}
	same(t, "order", got, []sallyport.ExecutionID{"full", "e-006", "e-005", "e-004", "e-003", "e-002", "e-001", "e-000"})
	for name, cursor := range map[string]string{"nonsense": "?", "of another kind": "eyJrIjoiMDAwMDAwMDAwMDAwIiwiYXQiOnt9fQ"} {
		_, _, err := b.Executions(ctx, tenant, run.ExecutionFilter{Cursor: cursor})
		if sallyport.CodeOf(err) != sallyport.CodeInvalidArgument {
			t.Errorf("%s: got %v, want INVALID_ARGUMENT", name, err)
		}
	}
	_, next, err := b.Executions(ctx, tenant, run.ExecutionFilter{Limit: 1})
	must(t, err)
	_, _, err = b.Executions(ctx, tenant, run.ExecutionFilter{Limit: 1, Cursor: next, Status: sallyport.StatusLost})
	wantCode(t, err, sallyport.CodeInvalidArgument)
}

func executionFilters(t *trial, b Backend) {
	for n, spoil := range []func(e *sallyport.Execution){
		func(*sallyport.Execution) {},
		func(e *sallyport.Execution) { e.SkillID = "s:beta" },
		func(e *sallyport.Execution) { e.PrincipalID = "grace" },
		func(e *sallyport.Execution) { e.SkillID, e.PrincipalID = "s:beta", "grace" },
	} {
		e := execution(numbered("e", n), n)
		spoil(&e)
		open(t, b, e)
	}
	lost := execution("e-000", 0)
	lost.Status = sallyport.StatusLost
	closed(t, b, lost)
	for name, test := range map[string]struct {
		filter run.ExecutionFilter
		want   []sallyport.ExecutionID
	}{
		"all":           {run.ExecutionFilter{}, []sallyport.ExecutionID{"e-003", "e-002", "e-001", "e-000"}},
		"skill":         {run.ExecutionFilter{SkillID: "s:beta"}, []sallyport.ExecutionID{"e-003", "e-001"}},
		"principal":     {run.ExecutionFilter{PrincipalID: owner}, []sallyport.ExecutionID{"e-001", "e-000"}},
		"status":        {run.ExecutionFilter{Status: sallyport.StatusLost}, []sallyport.ExecutionID{"e-000"}},
		"both":          {run.ExecutionFilter{SkillID: "s:beta", PrincipalID: "grace", Status: sallyport.StatusQueued}, []sallyport.ExecutionID{"e-003"}},
		"case":          {run.ExecutionFilter{PrincipalID: "ADA"}, []sallyport.ExecutionID{}},
		"nothing of it": {run.ExecutionFilter{SkillID: "none"}, []sallyport.ExecutionID{}},
	} {
		page, next, err := b.Executions(t.Context(), tenant, test.filter)
		must(t, err)
		same(t, name, ids(page), test.want)
		same(t, name+" cursor", next, "")
	}
}

func artifacts(t *trial, b Backend) {
	ctx := t.Context()
	one, oneFile := artifact("out/ä.csv", "a,b\x00\xff")
	two, twoFile := artifact("empty", "")
	e := execution("1", 1)
	open(t, b, e)
	e.Status, e.ExitCode, e.Artifacts = sallyport.StatusSuccess, pointer(0), []sallyport.Artifact{one, two}
	for name, files := range map[string][]sallyport.ArtifactFile{
		"a file is missing":    {oneFile},
		"a file too many":      {oneFile, twoFile, {Path: "more"}},
		"one file twice":       {oneFile, oneFile},
		"another content":      {oneFile, {Path: "empty", Content: []byte("x")}},
		"content of that size": {{Path: "out/ä.csv", Content: []byte("A,b\x00\xff")}, twoFile},
		"another path":         {oneFile, {Path: "Empty"}},
		"nothing but names":    {{Path: "out/ä.csv"}, {Path: "empty"}},
		"no files whatever":    nil,
		"the same path twice":  {twoFile, {Path: "empty"}},
	} {
		err := b.Close(ctx, tenant, e, files, entry(sallyport.ActionScriptFinished, "1"))
		if sallyport.CodeOf(err) != sallyport.CodeInternal {
			t.Errorf("%s: got %v, want INTERNAL", name, err)
		}
	}
	closed(t, b, e, twoFile, oneFile)
	for _, want := range []struct {
		artifact sallyport.Artifact
		file     sallyport.ArtifactFile
	}{{one, oneFile}, {two, twoFile}} {
		got, content, err := b.ArtifactContent(ctx, tenant, "1", want.artifact.Path)
		must(t, err)
		same(t, "artifact", got, want.artifact)
		same(t, "content", content, want.file.Content)
	}
	for _, path := range []string{"", "none", "EMPTY", "out/ä.csv/"} {
		_, _, err := b.ArtifactContent(ctx, tenant, "1", path)
		wantCode(t, err, sallyport.CodeArtifactNotFound)
	}
	_, _, err := b.ArtifactContent(ctx, tenant, "2", "empty")
	wantCode(t, err, sallyport.CodeArtifactNotFound)
}

func anyBytes(t *trial, b Backend) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	e := execution("1", 1)
	open(t, b, e)
	e.Status, e.Stdout, e.Stderr = sallyport.StatusLost, strings.Repeat(string(every), 1024), string(every)
	closed(t, b, e)
	got, err := b.Execution(t.Context(), tenant, "1")
	must(t, err)
	same(t, "streams", []bool{got.Stdout == e.Stdout, got.Stderr == e.Stderr}, []bool{true, true})
}
