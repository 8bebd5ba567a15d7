package runnerwire_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/runnerwire"
)

// A result that went over the wire is the result that was sent, every field of it.
func TestOutcomeIsWhole(t *testing.T) {
	t.Parallel()
	began := time.Now()
	want := sallyport.Result{
		ExitCode: new(3), Signal: 9, Limit: sallyport.LimitMemory, Stdout: []byte("a\xffb"), Stderr: []byte("é"), StdoutTruncated: true,
		StdoutBytes: 900, StderrBytes: 2, OutputData: []byte(`{"a":1}`), OutputDataTruncated: true,
		Artifacts:     []sallyport.ArtifactFile{{Path: "a b/é", Content: []byte{0, 255}}},
		ArtifactsLost: true, ArtifactNotes: []string{`"x": too large`},
		Usage: sallyport.Usage{MemoryPeakBytes: new(int64(5)), CPUTimeMS: new(int64(6)), OOMKills: 7},
		Isolation: sallyport.Isolation{
			Executor: "remote", Layers: []sallyport.Layer{"seccomp"}, Missing: []sallyport.Layer{"landlock"}, Warm: true, Plan: "p",
			Profile: "q", Notes: []string{"n"},
		},
		StartedAt: began.Add(40 * time.Millisecond),
	}
	encoded, err := runnerwire.Encode(runnerwire.FromResult(want, 1024, began))
	if err != nil {
		t.Fatal(err)
	}
	if bound := runnerwire.MaxOutcomeBytes(sallyport.Limits{OutputBytes: 3, ArtifactBytes: 2, ArtifactFiles: 1}); int64(len(encoded)) > bound {
		t.Errorf("%d bytes, the bound is %d", len(encoded), bound)
	}
	var got runnerwire.Outcome
	if err := runnerwire.Decode(encoded, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.Result("remote", began)); diff != "" {
		t.Errorf("result (-sent +received):\n%s", diff)
	}
}

// A request that went over the wire is the request that was sent, and a runner that knows the seven fields only is sent no other.
func TestRequestIsWhole(t *testing.T) {
	t.Parallel()
	script := []byte("print('\xff')")
	want := sallyport.ExecRequest{
		ExecutionID: "e", TenantID: "t", Slug: "s", Digest: sallyport.DigestOf([]byte("d")), ScriptPath: "scripts/x.py",
		Interpreter: sallyport.Interpreter{Extension: "py", Runtime: "python", Program: "/usr/bin/python3"},
		Content:     script, ContentSHA256: sallyport.DigestOf(script).Hex(), Stdin: []byte(`{"n": 1e400}`), Argv: []string{"", "a b", "é"},
		Inputs: []sallyport.InputFile{{Name: "in/x", Content: []byte{0xff}}}, Secrets: map[string]sallyport.Secret{"K": "v"},
		Limits: sallyport.DefaultLimits(), Grace: 1500 * time.Millisecond, TraceParent: "00-x",
	}
	want.Files = []sallyport.Component{
		{Path: "SKILL.md", Kind: sallyport.KindDocument, Size: 1, SHA256: sallyport.DigestOf([]byte("x")).Hex(), Content: []byte("x")},
		{Path: "scripts/x.py", Kind: sallyport.KindScript, Size: int64(len(script)), SHA256: want.ContentSHA256, Content: script},
	}
	message := runnerwire.FromRequest(want, true)
	message.Revision = runnerwire.Key(want.Files)
	encoded, err := runnerwire.Encode(message)
	if err != nil {
		t.Fatal(err)
	}
	var received runnerwire.Run
	if err := runnerwire.Decode(encoded, &received); err != nil {
		t.Fatal(err)
	}
	uploaded, err := runnerwire.Encode(runnerwire.FromFiles(want.Files))
	if err != nil {
		t.Fatal(err)
	}
	var revision runnerwire.Revision
	if err := runnerwire.Decode(uploaded, &revision); err != nil {
		t.Fatal(err)
	}
	files := revision.Components()
	if runnerwire.Key(files) != received.Revision {
		t.Error("the uploaded files have another key")
	}
	got, err := received.Request(want.Interpreter, files, sallyport.Limits{}, sallyport.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("request (-sent +received):\n%s", diff)
	}
}

// A budget is optional on both sides, unless the runner gives none without one; nothing is clamped.
func TestBudgetOverTheWire(t *testing.T) {
	t.Parallel()
	every := runnerwire.Limits{MemoryBytes: 1 << 28, Processes: 8, CPUMillis: 100, ScratchBytes: 1 << 20, ArtifactBytes: 1, ArtifactFiles: 1}
	with := func(ms int64) *runnerwire.Limits {
		l := every
		l.CPUTimeMS = ms
		return &l
	}
	for name, test := range map[string]struct {
		sent *runnerwire.Limits
		top  time.Duration
		want time.Duration // -1 for a refusal
	}{
		"none":                           {with(0), 0, 0},
		"none, from another server":      {nil, 0, 0},
		"one":                            {with(1500), 0, 1500 * time.Millisecond},
		"within the top":                 {with(1500), 2 * time.Second, 1500 * time.Millisecond},
		"the top, for another server":    {nil, 2 * time.Second, 2 * time.Second},
		"over the top":                   {with(2001), 2 * time.Second, -1},
		"none where the runner wants it": {with(0), 2 * time.Second, -1},
		"negative":                       {with(-1), 0, -1},
		"beyond a duration":              {with(1 << 62), 0, -1},
	} {
		r := runnerwire.Run{Tenant: "t", SourceSHA256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", TimeoutSeconds: 1, MaxOutputBytes: 1, Limits: test.sent}
		tops := sallyport.DefaultLimits()
		tops.CPUTime = test.top
		req, err := r.Request(sallyport.Interpreter{}, nil, sallyport.DefaultLimits(), tops)
		if refused := err != nil; refused != (test.want < 0) || !refused && req.Limits.CPUTime != test.want {
			t.Errorf("%s: got %s, %v", name, req.Limits.CPUTime, err)
		}
	}
}

// FuzzRun holds that no message panics, and that what is taken is within the bounds.
func FuzzRun(f *testing.F) {
	f.Add([]byte(`{"tenant":"t","runtime":"r","source":"","sourceSha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","standardInput":null,"timeoutSeconds":1,"maxOutputBytes":1}`))
	f.Add([]byte(`{"timeoutSeconds":1e999}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var r runnerwire.Run
		if runnerwire.Decode(data, &r) != nil {
			return
		}
		tops := sallyport.DefaultLimits()
		req, err := r.Request(sallyport.Interpreter{}, nil, sallyport.DefaultLimits(), tops)
		if err == nil && (req.Limits.Timeout > tops.Timeout || req.Limits.OutputBytes > tops.OutputBytes || req.Limits.MemoryBytes <= 0 || req.Grace <= 0) {
			t.Errorf("%s was taken as %+v", data, req.Limits)
		}
	})
}
