package run_test

import (
	"context"
	"strings"
	"syscall"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/run"
)

func runWith(t *testing.T, r sallyport.Result, change ...func(*run.Config)) (sallyport.Execution, *world) {
	t.Helper()
	w := newWorld(t)
	w.execute = func(context.Context, sallyport.ExecRequest) (sallyport.Result, error) { return r, nil }
	e, err := w.service(change...).Run(t.Context(), w.principal, request())
	if err != nil {
		t.Fatal(err)
	}
	return e, w
}

func code(n int) *int { return &n }

// The reporting rule, and executors that contradict themselves.
func TestOutcome(t *testing.T) {
	t.Parallel()
	oom := sallyport.Usage{OOMKills: 1}
	for name, test := range map[string]struct {
		in     sallyport.Result
		status sallyport.Status
		kind   sallyport.Code
		limit  sallyport.LimitName
		exit   int // -1: none
		signal int
	}{
		"exit 0":                 {sallyport.Result{ExitCode: code(0)}, sallyport.StatusSuccess, "", "", 0, 0},
		"exit 0 after oom":       {sallyport.Result{ExitCode: code(0), Usage: oom}, sallyport.StatusSuccess, "", "", 0, 0},
		"exit 1":                 {sallyport.Result{ExitCode: code(1)}, sallyport.StatusError, sallyport.CodeScriptExecutionError, "", 1, 0},
		"exit 124 is no timeout": {sallyport.Result{ExitCode: code(124)}, sallyport.StatusError, sallyport.CodeScriptExecutionError, "", 124, 0},
		"exit 137 is no kill":    {sallyport.Result{ExitCode: code(137), Usage: oom}, sallyport.StatusError, sallyport.CodeScriptExecutionError, "", 137, 0},
		"exit 255":               {sallyport.Result{ExitCode: code(255)}, sallyport.StatusError, sallyport.CodeScriptExecutionError, "", 255, 0},
		"timeout":                {sallyport.Result{TimedOut: true, Limit: sallyport.LimitWall}, sallyport.StatusTimeout, sallyport.CodeExecutionTimeout, sallyport.LimitWall, -1, 0},
		"timeout and exit":       {sallyport.Result{TimedOut: true, ExitCode: code(0), Signal: 9}, sallyport.StatusTimeout, sallyport.CodeExecutionTimeout, sallyport.LimitWall, -1, 0},
		"cpu":                    {sallyport.Result{TimedOut: true, Limit: sallyport.LimitCPU}, sallyport.StatusTimeout, sallyport.CodeExecutionTimeout, sallyport.LimitCPU, -1, 0},
		"oom":                    {sallyport.Result{Signal: 9, Usage: oom}, sallyport.StatusResourceExhausted, sallyport.CodeResourceExhausted, sallyport.LimitMemory, -1, 9},
		"kill without oom":       {sallyport.Result{Signal: 9}, sallyport.StatusError, sallyport.CodeScriptExecutionError, "", -1, 9},
		"segfault with oom":      {sallyport.Result{Signal: 11, Usage: oom}, sallyport.StatusError, sallyport.CodeScriptExecutionError, "", -1, 11},
		"disk":                   {sallyport.Result{Signal: int(syscall.SIGXFSZ)}, sallyport.StatusResourceExhausted, sallyport.CodeResourceExhausted, sallyport.LimitDisk, -1, int(syscall.SIGXFSZ)},
		"denied call":            {sallyport.Result{Signal: int(syscall.SIGSYS)}, sallyport.StatusError, sallyport.CodeScriptExecutionError, "", -1, int(syscall.SIGSYS)},
		"signal and exit":        {sallyport.Result{Signal: 15, ExitCode: code(0)}, sallyport.StatusError, sallyport.CodeScriptExecutionError, "", -1, 15},
		"start failure":          {sallyport.Result{StartError: "no such interpreter"}, sallyport.StatusError, sallyport.CodeScriptExecutionError, "", -1, 0},
		"negative exit":          {sallyport.Result{ExitCode: code(-1)}, sallyport.StatusLost, sallyport.CodeExecutionLost, "", -1, 0},
		"exit over 255":          {sallyport.Result{ExitCode: code(256)}, sallyport.StatusLost, sallyport.CodeExecutionLost, "", -1, 0},
		"signal over 64":         {sallyport.Result{Signal: 99999}, sallyport.StatusLost, sallyport.CodeExecutionLost, "", -1, 0},
		"nothing":                {sallyport.Result{}, sallyport.StatusLost, sallyport.CodeExecutionLost, "", -1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, w := runWith(t, test.in)
			exit := -1
			if e.ExitCode != nil {
				exit = *e.ExitCode
			}
			if e.Status != test.status || e.ErrorKind != test.kind || e.Limit != test.limit || exit != test.exit || e.Signal != test.signal {
				t.Errorf("got %q %q limit %q exit %d signal %d", e.Status, e.ErrorKind, e.Limit, exit, e.Signal)
			}
			if e.OOMKills != test.in.Usage.OOMKills {
				t.Errorf("oom_kills: got %d, want %d", e.OOMKills, test.in.Usage.OOMKills)
			}
			if (e.Status == sallyport.StatusSuccess) != (e.Err() == nil) {
				t.Errorf("Err: got %v for %q", e.Err(), e.Status)
			}
			if w.ledger.only(t).Status != test.status {
				t.Errorf("stored: got %q", w.ledger.only(t).Status)
			}
		})
	}
}

func TestStreams(t *testing.T) {
	t.Parallel()
	const limit = 8
	for name, test := range map[string]struct {
		in        string
		cut       bool
		want      string
		truncated bool
		note      bool
	}{
		"empty":                    {"", false, "", false, false},
		"exactly the limit":        {"12345678", false, "12345678", false, false},
		"one over":                 {"123456789", false, "12345678", true, false},
		"character across the cap": {"123456é9", false, "123456é", true, false},
		"character cut by the cap": {"1234567é", false, "1234567", true, false},
		"four bytes cut":           {"12345😀", false, "12345", true, false},
		"cut by the executor":      {"123\xc3", true, "123", true, false},
		"invalid kept visible":     {"a\xffb", false, "a\uFFFDb", false, true},
		"partial at a true end":    {"abc\xc3", false, "abc\uFFFD", false, true},
		"one for each byte":        {"\xff\xfe", false, "\uFFFD\uFFFD", false, true},
		"replacement grows":        {"\xffa\xffb\xffc", false, "\uFFFDa\uFFFDb", true, true},
		"latin-9":                  {"af\xe9 \xa4", false, "af\uFFFD ", true, true},
		"NUL":                      {"a\x00b", false, "a\x00b", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, _ := runWith(t, sallyport.Result{ExitCode: code(0), Stdout: []byte(test.in), StdoutTruncated: test.cut, Stderr: []byte(test.in), StderrTruncated: test.cut},
				func(c *run.Config) { c.Limits.OutputBytes = limit })
			if len(e.Stdout) > limit {
				t.Errorf("%d bytes, the limit is %d", len(e.Stdout), limit)
			}
			if e.Stdout != test.want || e.StdoutTruncated != test.truncated || (len(e.EncodingNotes) > 0) != test.note {
				t.Errorf("got %q truncated %t notes %q", e.Stdout, e.StdoutTruncated, e.EncodingNotes)
			}
			if e.StdoutBytes != int64(len(test.in)) {
				t.Errorf("stdout_bytes: got %d, want %d", e.StdoutBytes, len(test.in))
			}
		})
	}
}

func TestOutputData(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		file, stdout string
		truncated    bool
		want         string
		note         bool
	}{
		"from the file":         {file: ` {"a":1.10} `, stdout: `{"b":2}`, want: `{"a":1.10}`},
		"a scalar in the file":  {file: `"x"`, want: `"x"`},
		"broken file":           {file: `{"a":`, stdout: `{"b":2}`, note: true},
		"two values in file":    {file: `{} {}`, note: true},
		"deep file":             {file: strings.Repeat("[", 100) + strings.Repeat("]", 100), note: true},
		"duplicate key in file": {file: `{"a":1,"a":2}`, note: true},
		"file over the bound":   {truncated: true, stdout: `{"b":2}`, note: true},
		"object on stdout":      {stdout: "\n{\"b\":2}\n", want: `{"b":2}`},
		"array on stdout":       {stdout: `[1,2]`, want: `[1,2]`},
		"scalar on stdout":      {stdout: `42`},
		"text on stdout":        {stdout: "hello {\"a\":1}"},
		"json lines on stdout":  {stdout: "{\"a\":1}\n{\"a\":2}\n"},
		"forged envelope":       {stdout: `{"kind":"execution","error":null}`, want: `{"kind":"execution","error":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := sallyport.Result{ExitCode: code(0), Stdout: []byte(test.stdout), OutputDataTruncated: test.truncated}
			if test.file != "" {
				r.OutputData = []byte(test.file)
			}
			e, _ := runWith(t, r)
			if string(e.OutputData) != test.want || (e.OutputDataNote != "") != test.note {
				t.Errorf("got %s note %q, want %s", e.OutputData, e.OutputDataNote, test.want)
			}
		})
	}
}

func TestArtifacts(t *testing.T) {
	t.Parallel()
	file := func(path, content string) sallyport.ArtifactFile {
		return sallyport.ArtifactFile{Path: path, Content: []byte(content)}
	}
	e, w := runWith(t, sallyport.Result{ExitCode: code(0), Artifacts: []sallyport.ArtifactFile{
		file("a b/ré.md", "hello"), file("../x", "1"), file("/etc/x", "1"), file("a b/ré.md", "again"),
		file("big", "123456789"), file("b", ""), file("c", "1"),
	}}, func(c *run.Config) { c.Limits.ArtifactBytes, c.Limits.ArtifactFiles = 10, 2 })
	if len(e.Artifacts) != 2 || len(w.ledger.artifacts) != 2 || len(e.ArtifactNotes) != 5 {
		t.Fatalf("got %d artifacts, %d stored, notes %q", len(e.Artifacts), len(w.ledger.artifacts), e.ArtifactNotes)
	}
	first := e.Artifacts[0]
	if first.Size != 5 || first.MediaType != "text/markdown" || first.SHA256 != sallyport.DigestOf([]byte("hello")).Hex() ||
		first.URI != "/v1/executions/"+string(e.ID)+"/artifacts/a%20b/r%C3%A9.md" {
		t.Errorf("got %+v", first)
	}
}
