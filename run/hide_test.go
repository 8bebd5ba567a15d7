package run_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/run"
)

// vault is what package secret does, for one tenant.
type vault map[string]sallyport.Secret

func (v vault) Open(_ context.Context, tenant sallyport.TenantID, names []string) (map[string]sallyport.Secret, error) {
	opened := map[string]sallyport.Secret{}
	for _, name := range names {
		if value, set := v[name]; set && tenant == "t1" {
			opened[name] = value
		}
	}
	return opened, nil
}

func (v vault) Missing(_ context.Context, _ sallyport.TenantID, names []string) ([]string, error) {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return v[name] != "" }), nil
}

// declare makes scripts/x.py declare every secret of v, and an executor that can be given them.
func declare(t *testing.T, w *world, v vault) {
	t.Helper()
	settings := sallyport.ScriptSettings{Runtime: "python", Input: sallyport.InputStdin}
	for name := range v {
		settings.Secrets = append(settings.Secrets, name)
	}
	slices.Sort(settings.Secrets)
	w.setScript(t, settings)
	w.caps.Features = sallyport.Features()
	w.secrets = v
}

// runHidden runs a script that answers r, with the secrets of v declared.
func runHidden(t *testing.T, v vault, r sallyport.Result, change ...func(*run.Config)) (sallyport.Execution, *world) {
	t.Helper()
	w := newWorld(t)
	declare(t, w, v)
	w.execute = func(context.Context, sallyport.ExecRequest) (sallyport.Result, error) { return r, nil }
	e, err := w.service(change...).Run(t.Context(), w.principal, request())
	if err != nil {
		t.Fatal(err)
	}
	return e, w
}

func TestSecretsReachTheExecutor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	declare(t, w, vault{"TOKEN": "hunter2hunter2", "OTHER": "swordfish"})
	e, err := w.service().Run(t.Context(), w.principal, request())
	if err != nil || e.Status != sallyport.StatusSuccess {
		t.Fatalf("%+v, %v", e, err)
	}
	got := w.calls[0].Secrets
	if len(got) != 2 || got["TOKEN"] != "hunter2hunter2" || got["OTHER"] != "swordfish" {
		t.Errorf("got %d secrets", len(got))
	}
	for what, text := range map[string]string{
		"the request, printed": fmt.Sprintf("%v %+v", w.calls[0], w.calls[0]),
		"the record":           fmt.Sprintf("%+v", w.ledger.executions),
		"the trail":            entriesText(t, w),
	} {
		if strings.Contains(text, "hunter2") || strings.Contains(text, "swordfish") {
			t.Errorf("%s holds a value", what)
		}
	}
}

func entriesText(t *testing.T, w *world) string {
	t.Helper()
	text, err := json.Marshal(w.ledger.entries)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A script whose secrets are not all set is refused before anything is recorded as begun.
func TestSecretMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	declare(t, w, vault{"TOKEN": "hunter2hunter2", "OTHER": "swordfish"})
	s := w.service()
	delete(w.secrets, "TOKEN")
	_, err := s.Run(t.Context(), w.principal, request())
	if sallyport.CodeOf(err) != sallyport.CodeSecretMissing || !strings.Contains(sallyport.Public(err).Message, "TOKEN") ||
		strings.Contains(sallyport.Public(err).Message, "OTHER") {
		t.Errorf("got %v", err)
	}
	if got := w.ledger.actions(); !slices.Equal(got, []sallyport.Action{sallyport.ActionScriptDenied}) {
		t.Errorf("the trail: %v", got)
	}
	x, err := s.Explain(t.Context(), w.principal, request())
	if err != nil || x.Runnable || x.Refusal.Code != sallyport.CodeSecretMissing || !strings.Contains(x.Remedy, "sallyport secret set") {
		t.Errorf("explained: %+v, %v", x, err)
	}
	if w.called() != 0 {
		t.Error("the executor was reached")
	}
}

// One that goes away between the gate and the call is refused the same way, and so is everything without a vault.
func TestSecretGoesAway(t *testing.T) {
	t.Parallel()
	for name, secrets := range map[string]run.Secrets{"gone": vault{}, "no vault": nil} {
		w := newWorld(t)
		declare(t, w, vault{"TOKEN": "hunter2hunter2"})
		_, err := w.service(func(cfg *run.Config) { cfg.Secrets = secrets }).Run(t.Context(), w.principal, request())
		if sallyport.CodeOf(err) != sallyport.CodeSecretMissing || w.called() != 0 {
			t.Errorf("%s: got %v, %d calls", name, err, w.called())
		}
	}
}

const token = "s3cr3t/Tok+en=\"ä\" &x"

func TestHidesEveryForm(t *testing.T) {
	t.Parallel()
	quoted, err := json.Marshal(token)
	if err != nil {
		t.Fatal(err)
	}
	forms := map[string]string{
		"plain": token, "hex": hex.EncodeToString([]byte(token)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(token))),
		"url": url.QueryEscape(token), "path": url.PathEscape(token), "json": string(quoted[1 : len(quoted)-1]),
		"base64": base64.StdEncoding.EncodeToString([]byte(token)), "base64url": base64.URLEncoding.EncodeToString([]byte(token)),
		"twice": token + token, "json in ASCII": `s3cr3t/Tok+en=\"\u00e4\" &x`, "json with slashes": `s3cr3t\/Tok+en=\"ä\" &x`,
		"json in ASCII with slashes": `s3cr3t\/Tok+en=\"\u00e4\" \u0026x`,
	}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, _ := runHidden(t, vault{"TOKEN": token}, sallyport.Result{
				ExitCode: code(0), Stdout: []byte("before " + form + " after"), Stderr: []byte(form),
			})
			if e.Stdout != "before *** after" || e.Stderr != "***" {
				t.Errorf("got %q and %q", e.Stdout, e.Stderr)
			}
			if notes := strings.Join(e.EncodingNotes, "; "); !strings.Contains(notes, "stdout: the value of a secret was hidden in 1 place") ||
				!strings.Contains(notes, "stderr: ") {
				t.Errorf("notes: %q", notes)
			}
		})
	}
}

// Beyond the first plane a writer of ASCII needs two escapes for one character.
func TestHidesPairsInJSON(t *testing.T) {
	t.Parallel()
	e, _ := runHidden(t, vault{"TOKEN": "key-😀-key"}, sallyport.Result{ExitCode: code(0), Stdout: []byte(`[1, "key-\ud83d\ude00-key"]`)})
	if e.Stdout != `[1, "***"]` {
		t.Errorf("got %q", e.Stdout)
	}
}

// However a value lies in something that is encoded as a whole, as in a basic authorization, nothing that decodes to it is left.
func TestHidesInsideBase64(t *testing.T) {
	t.Parallel()
	for before := range 7 {
		for after := range 4 {
			whole := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("u", before) + token + strings.Repeat("v", after)))
			e, _ := runHidden(t, vault{"TOKEN": token}, sallyport.Result{ExitCode: code(0), Stdout: []byte(whole)})
			if left := len(e.Stdout) - len("***"); !strings.Contains(e.Stdout, "***") || left > len(whole)-4*len(token)/3+4 {
				t.Errorf("%d before, %d after: %q of %q", before, after, e.Stdout, whole)
			}
		}
	}
}

// A value that the bound of a stream cuts is hidden up to where it is cut, wherever that is.
func TestHidesAtTheCut(t *testing.T) {
	t.Parallel()
	for kept := 4; kept < len(token); kept++ {
		e, _ := runHidden(t, vault{"TOKEN": token}, sallyport.Result{
			ExitCode: code(0), Stdout: []byte("out " + token[:kept]), StdoutTruncated: true, StdoutBytes: 1 << 20,
		})
		if e.Stdout != "out ***" || !e.StdoutTruncated {
			t.Errorf("%d bytes kept: %q", kept, e.Stdout)
		}
	}
	// What is whole is the beginning of nothing.
	e, _ := runHidden(t, vault{"TOKEN": token}, sallyport.Result{ExitCode: code(0), Stdout: []byte("out " + token[:6])})
	if e.Stdout != "out "+token[:6] {
		t.Errorf("got %q", e.Stdout)
	}
	// And our own bound comes after the hiding.
	const limit = 32
	for at := range 2 * limit {
		e, _ := runHidden(t, vault{"TOKEN": token}, sallyport.Result{ExitCode: code(0), Stdout: []byte(strings.Repeat(".", at) + token + token)},
			func(cfg *run.Config) { cfg.Limits.OutputBytes = limit })
		if strings.Contains(e.Stdout, token[:4]) || len(e.Stdout) > limit {
			t.Errorf("at %d: %q", at, e.Stdout)
		}
	}
}

func TestHidesInJSON(t *testing.T) {
	t.Parallel()
	escaped := ""
	for _, r := range "hunter2!" {
		escaped += fmt.Sprintf(`\u%04x`, r)
	}
	v := vault{"TOKEN": "hunter2!", "PIN": "90817263"}
	e, _ := runHidden(t, v, sallyport.Result{ExitCode: code(0), OutputData: []byte(`{"a hunter2!":["` + escaped + `",90817263,12345678901234567890]}`)})
	if got := string(e.OutputData); got != `{"a ***":["***","***",12345678901234567890]}` {
		t.Errorf("got %s", got)
	}
	// Standard output that is JSON becomes the data, and says no more than that.
	e, _ = runHidden(t, v, sallyport.Result{ExitCode: code(0), Stdout: []byte(`{"a":"` + escaped + `"}`)})
	if string(e.OutputData) != `{"a":"***"}` || e.Stdout != "{\"a\":\"***\"}\n" {
		t.Errorf("got %s and %q", e.OutputData, e.Stdout)
	}
	// What is no JSON is not repeated in the note about it.
	e, _ = runHidden(t, v, sallyport.Result{ExitCode: code(0), OutputData: []byte(`{"hunter2!":1,"hunter2!":2}`)})
	if strings.Contains(e.OutputDataNote, "hunter2!") || e.OutputDataNote == "" {
		t.Errorf("got %q", e.OutputDataNote)
	}
	// What holds no value keeps its bytes.
	e, _ = runHidden(t, v, sallyport.Result{ExitCode: code(0), OutputData: []byte(`{ "a" : 1.00 }`)})
	if string(e.OutputData) != `{ "a" : 1.00 }` {
		t.Errorf("got %s", e.OutputData)
	}
}

func TestHidesInNames(t *testing.T) {
	t.Parallel()
	e, w := runHidden(t, vault{"TOKEN": "hunter2!"}, sallyport.Result{
		ExitCode: code(0), Artifacts: []sallyport.ArtifactFile{{Path: "a-hunter2!.txt", Content: []byte("x")}},
		ArtifactNotes: []string{"hunter2! is a link"}, Isolation: sallyport.Isolation{Executor: "x", Notes: []string{"hunter2!"}},
	})
	if e.Artifacts[0].Path != "a-***.txt" {
		t.Errorf("got %q", e.Artifacts[0].Path)
	}
	if text := fmt.Sprintf("%+v %s", e, entriesText(t, w)); strings.Contains(text, "hunter2!") {
		t.Errorf("the value is still there: %s", text)
	}
}

func TestHidesLinesOfAKey(t *testing.T) {
	t.Parallel()
	pem := "-----BEGIN KEY-----\nAAAAB3NzaC1yc2EAAAADAQABAAABgQ\nC7vbqajDhA0pXx7i9q4b2m1zZ0yYv5\n-----END KEY-----\n"
	wrapped := base64.StdEncoding.EncodeToString([]byte(pem))
	var lines []string
	for line := range slices.Chunk([]byte(wrapped), 76) {
		lines = append(lines, string(line))
	}
	e, _ := runHidden(t, vault{"KEY": sallyport.Secret(pem)}, sallyport.Result{
		ExitCode: code(0), Stdout: []byte("line: C7vbqajDhA0pXx7i9q4b2m1zZ0yYv5 end"), Stderr: []byte(strings.Join(lines, "\n")),
	})
	if e.Stdout != "line: *** end" {
		t.Errorf("got %q", e.Stdout)
	}
	if strings.Contains(e.Stderr, lines[0][8:40]) || strings.Contains(e.Stderr, lines[1][8:40]) {
		t.Errorf("got %q", e.Stderr)
	}
}

// Values too short to look for are counted, and what an installation shows a tenant can still hide.
func TestHidingCanBeLeftOut(t *testing.T) {
	t.Parallel()
	result := sallyport.Result{ExitCode: code(0), Stdout: []byte("hunter2! abc")}
	e, _ := runHidden(t, vault{"TOKEN": "hunter2!", "SHORT": "abc"}, result)
	if e.Stdout != "*** abc" || !strings.Contains(strings.Join(e.EncodingNotes, ";"), "1 secret") {
		t.Errorf("got %q, %v", e.Stdout, e.EncodingNotes)
	}
	show := func(cfg *run.Config) { cfg.ShowSecrets = true }
	if e, _ := runHidden(t, vault{"TOKEN": "hunter2!"}, result, show); e.Stdout != "hunter2! abc" || len(e.EncodingNotes) != 0 {
		t.Errorf("got %q, %v", e.Stdout, e.EncodingNotes)
	}
	hide := func(cfg *run.Config) { cfg.ShowSecrets, cfg.Policies = true, maskPolicy{} }
	if e, _ := runHidden(t, vault{"TOKEN": "hunter2!"}, result, hide); e.Stdout != "*** abc" {
		t.Errorf("got %q", e.Stdout)
	}
}

type maskPolicy struct{}

func (maskPolicy) Policy(context.Context, sallyport.TenantID) (sallyport.Policy, error) {
	return sallyport.Policy{MaskOutputs: true}, nil
}

// A large output with hostile values is hidden in a bounded way: this test would not end otherwise.
func TestHidingIsBounded(t *testing.T) {
	t.Parallel()
	v := vault{"A": sallyport.Secret(strings.Repeat("a", sallyport.MaxSecretBytes)), "B": sallyport.Secret(strings.Repeat("a\n", sallyport.MaxSecretBytes/2))}
	e, _ := runHidden(t, v, sallyport.Result{ExitCode: code(0), Stdout: []byte(strings.Repeat("a", 256<<10)), StdoutTruncated: true})
	if e.Stdout != "***" {
		t.Errorf("%d bytes are left", len(e.Stdout))
	}
}
