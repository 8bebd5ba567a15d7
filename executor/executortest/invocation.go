package executortest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
)

// invocation: what a script is started with is exactly what the request says.
func invocation() []attempt {
	return []attempt{
		{name: "stdin then end of file", run: func(t *testing.T, s *suite) {
			req := s.request(t, "python", "import sys\nfirst = sys.stdin.read()\nprint(first, repr(sys.stdin.read()), sep='|', end='')\n")
			req.Stdin = []byte("{\"a\": [1, 2], \"\u00e4\": null}")
			printed(t, s.do(t, req), string(req.Stdin)+"|''")
		}},
		{name: "empty stdin ends at once", run: func(t *testing.T, s *suite) {
			req := s.request(t, "bash", "cat\necho end\n")
			req.Stdin = nil
			printed(t, s.do(t, req), "end\n")
		}},
		{name: "large stdin", run: func(t *testing.T, s *suite) {
			req := s.request(t, "python", "import sys,hashlib\nprint(hashlib.sha256(sys.stdin.buffer.read()).hexdigest(), end='')\n")
			req.Stdin = bytes.Repeat([]byte("0123456789abcde\n"), 64<<10)
			printed(t, s.do(t, req), digest(req.Stdin))
		}},
		{name: "stdin is not read", run: func(t *testing.T, s *suite) {
			req := s.request(t, "bash", "exit 7\n")
			req.Stdin = bytes.Repeat([]byte("x"), 1<<20)
			exited(t, s.do(t, req), 7)
		}},
		{name: "argv is exact", wants: []sallyport.Feature{sallyport.FeatureArgv}, run: argvIsExact},
		{name: "current folder is the skill", wants: []sallyport.Feature{sallyport.FeatureRevision}, run: func(t *testing.T, s *suite) {
			r := s.do(t, s.request(t, "bash", "[ \"$PWD\" = \"$SKILL_ROOT\" ] && [ -f SKILL.md ] && echo yes\n"))
			printed(t, r, "yes\n")
		}},
		{name: "environment is the listed one", run: environmentIsExact},
		{name: "secrets by name", wants: []sallyport.Feature{sallyport.FeatureSecrets}, run: func(t *testing.T, s *suite) {
			req := s.request(t, "python", "import os\nprint(os.environ['API_KEY'], open('/proc/self/cmdline').read().count('hunter2'), end='')\n")
			req.Secrets = map[string]sallyport.Secret{"API_KEY": "hunter2 \u00e4\n=x"}
			printed(t, s.do(t, req), "hunter2 \u00e4\n=x 0")
		}},
		{name: "secret may not replace a variable", run: func(t *testing.T, s *suite) {
			req := s.request(t, "bash", "echo never\n")
			req.Secrets = map[string]sallyport.Secret{"PATH": "/skill"}
			if _, err := s.executor.Execute(t.Context(), req); !sallyport.IsNotStarted(err) {
				t.Errorf("got %v, want a refusal before the start", err)
			}
		}},
		{name: "node", run: func(t *testing.T, s *suite) {
			req := s.request(t, "node", "const fs = require('fs')\nconst a = JSON.parse(fs.readFileSync(0, 'utf8'))\nconsole.log(JSON.stringify({sum: a.x + a.y, cwd: process.cwd() === process.env.SKILL_ROOT}))\n")
			req.Limits.MemoryBytes = 512 << 20
			req.Stdin = []byte(`{"x": 2, "y": 3}`)
			printed(t, s.do(t, req), "{\"sum\":5,\"cwd\":true}\n")
		}},
		{name: "unset limit is refused", run: func(t *testing.T, s *suite) {
			req := s.request(t, "bash", "echo never\n")
			req.Limits.MemoryBytes = 0
			if _, err := s.executor.Execute(t.Context(), req); !sallyport.IsNotStarted(err) {
				t.Errorf("got %v, want a refusal before the start", err)
			}
		}},
	}
}

func argvIsExact(t *testing.T, s *suite) {
	req := s.request(t, "python", "import sys, json\njson.dump(sys.argv[1:], sys.stdout)\n")
	req.Argv = []string{
		"in.docx", "--output", "x", "", " two  words ", "line\nbreak", `quo"te'`, "$HOME", "`id`", "; exit 3", "-c", "--", "ä€😀",
		"\x1b[31m", "*", strings.Repeat("long ", 20<<10),
	}
	req.Limits.OutputBytes = 1 << 20
	r := s.do(t, req)
	exited(t, r, 0)
	var got []string
	if err := json.Unmarshal(r.Stdout, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(req.Argv, got); diff != "" {
		t.Errorf("argv (-sent +seen):\n%s", diff)
	}
}

func environmentIsExact(t *testing.T, s *suite) {
	t.Setenv("SALLYPORT_SUITE_MARKER", "of the server")
	req := s.request(t, "python", "import os, json, sys\nprint(json.dumps(dict(os.environ)))\n")
	r := s.do(t, req)
	exited(t, r, 0)
	env := map[string]string{}
	if err := json.Unmarshal(r.Stdout, &env); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"HOME", "LANG", "PATH", "SKILL_ARTIFACTS", "SKILL_EXECUTION_ID", "SKILL_INPUT", "SKILL_NAME", "SKILL_OUTPUT", "SKILL_ROOT", "TMPDIR",
	}
	for _, name := range want {
		if env[name] == "" {
			t.Errorf("%s is not set", name)
		}
	}
	if env["SKILL_NAME"] != req.Slug || env["SKILL_EXECUTION_ID"] != string(req.ExecutionID) {
		t.Errorf("name %q, execution %q", env["SKILL_NAME"], env["SKILL_EXECUTION_ID"])
	}
	for name := range env {
		// An executor may set what an interpreter needs; LC_CTYPE is python's own.
		if !slices.Contains(want, name) && name != "LC_CTYPE" && !strings.HasPrefix(name, "PYTHON") {
			t.Errorf("unexpected variable %s", name)
		}
	}
	if text := fmt.Sprint(env); strings.Contains(text, "of the server") {
		t.Error("the server's environment is visible")
	}
}
