package httpapi_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/internal/httpapi"
	"github.com/sallyport-dev/sallyport/run"
)

// Whatever is wrong with a body is told by place, before any service is reached: the fakes fail the test when one is.
func TestBadBodies(t *testing.T) {
	t.Parallel()
	const (
		save    = "/v1/skills"
		execute = "/v1/skills/x/execute"
		explain = "/v1/skills/x/explain"
		grants  = "/v1/grants"
		keys    = "/v1/keys"
	)
	w := newWorld(t)
	for name, test := range map[string]struct{ target, body, want string }{
		"empty":                    {save, ``, "the body is empty"},
		"blank":                    {save, "  ", "empty or ends too early"},
		"malformed":                {save, `{"slug":`, "ends too early"},
		"not JSON":                 {save, `slug=x`, "malformed"},
		"two values":               {save, `{} {}`, "after the JSON value"},
		"array":                    {save, `[]`, "wrong type"},
		"string":                   {save, `"x"`, "wrong type"},
		"unknown field":            {save, `{"slug":"x","slugg":1}`, "unknown field at /slugg"},
		"wrong case":               {save, `{"Slug":"x"}`, "unknown field at /Slug"},
		"duplicate key":            {save, `{"slug":"x","slug":"y"}`, "malformed"},
		"duplicate deep":           {execute, `{"script_path":"a","input_args":{"a":{"b":1,"b":2}}}`, "malformed"},
		"wrong type":               {save, `{"publish":"yes"}`, "wrong type at /publish"},
		"wrong type deep":          {save, `{"files":[{"path":7,"content":""}]}`, "wrong type at /files/0/path"},
		"unknown field deep":       {save, `{"files":[{"path":"a","contents":""}]}`, "unknown field at /files/0/contents"},
		"bad UTF-8":                {save, "{\"slug\":\"\xff\"}", "malformed"},
		"half a surrogate":         {save, `{"slug":"\ud800"}`, "malformed"},
		"deep":                     {execute, `{"input_args":` + strings.Repeat(`{"a":`, 70) + `1` + strings.Repeat(`}`, 71), "nested deeper"},
		"NaN":                      {execute, `{"timeout_seconds":NaN}`, "malformed"},
		"byte order mark":          {save, "\ufeff{}", "malformed"},
		"file without content":     {save, `{"files":[{"path":"a"}]}`, "/files/0 has neither content nor content_base64"},
		"file with both":           {save, `{"files":[{"path":"a","content":"","content_base64":""}]}`, "/files/0 has both"},
		"bad base64":               {save, `{"files":[{"path":"a","content_base64":"***"}]}`, "/files/0/content_base64 is not standard base64"},
		"base64 without padding":   {save, `{"files":[{"path":"a","content_base64":"/w"}]}`, "/files/0/content_base64"},
		"base64 with loose bits":   {save, `{"files":[{"path":"a","content_base64":"/x=="}]}`, "/files/0/content_base64"},
		"base64 with line breaks":  {save, `{"files":[{"path":"a","content_base64":"/w=\n="}]}`, "/files/0/content_base64"},
		"URL base64":               {save, `{"files":[{"path":"a","content_base64":"_w=="}]}`, "/files/0/content_base64"},
		"mode over":                {save, `{"files":[{"path":"a","content":"","mode":2541}]}`, "/files/0/mode"},
		"mode zero":                {save, `{"files":[{"path":"a","content":"","mode":0}]}`, "/files/0/mode"},
		"mode as text":             {save, `{"files":[{"path":"a","content":"","mode":"0755"}]}`, "wrong type at /files/0/mode"},
		"kind":                     {save, `{"files":[{"path":"a","content":"","kind":"tool"}]}`, "/files/0/kind is none of"},
		"input mode":               {save, `{"files":[{"path":"a","content":"","script":{"input":"argv"}}]}`, "/files/0/script/input is none of"},
		"limit zero":               {save, `{"files":[{"path":"a","content":"","script":{"limits":{"memory_bytes":0}}}]}`, "/script/limits/memory_bytes must be at least 1"},
		"limit negative":           {save, `{"files":[{"path":"a","content":"","script":{"limits":{"timeout_ms":-1}}}]}`, "limits/timeout_ms"},
		"CPU budget beyond one":    {save, `{"files":[{"path":"a","content":"","script":{"limits":{"cpu_time_ms":9223372036854775807}}}]}`, "limits/cpu_time_ms"},
		"limit beyond a duration":  {save, `{"files":[{"path":"a","content":"","script":{"limits":{"timeout_ms":9223372036854775807}}}]}`, "limits/timeout_ms"},
		"unknown limit":            {save, `{"files":[{"path":"a","content":"","script":{"limits":{"timeout":1}}}]}`, "unknown field at /files/0/script/limits/timeout"},
		"null among paths":         {save, `{"remove":["a",null]}`, "/remove/1 must be a string, not null"},
		"null among secrets":       {save, `{"files":[{"path":"a","content":"","script":{"secrets":[null]}}]}`, "/files/0/script/secrets/0"},
		"execute without body":     {execute, ``, "the body is empty"},
		"args array":               {execute, `{"script_path":"a","input_args":[]}`, "input_args must be a JSON object"},
		"args text":                {execute, `{"script_path":"a","input_args":"{}"}`, "input_args must be a JSON object"},
		"args null":                {execute, `{"script_path":"a","input_args":null}`, "input_args must be a JSON object"},
		"args number":              {execute, `{"script_path":"a","input_args":1}`, "input_args must be a JSON object"},
		"argv text":                {execute, `{"script_path":"a","argv":"-x"}`, "wrong type at /argv"},
		"argv number":              {execute, `{"script_path":"a","argv":[1]}`, "wrong type at /argv/0"},
		"argv null":                {execute, `{"script_path":"a","argv":["a",null]}`, "/argv/1 must be a string, not null"},
		"input file without bytes": {execute, `{"script_path":"a","files":[{"name":"a"}]}`, "/files/0 has neither"},
		"timeout 0":                {execute, `{"script_path":"a","timeout_seconds":0}`, "timeout_seconds must be at least 1, got 0"},
		"timeout -0":               {execute, `{"script_path":"a","timeout_seconds":-0}`, "timeout_seconds must be at least 1"},
		"timeout negative":         {execute, `{"script_path":"a","timeout_seconds":-5}`, "timeout_seconds must be at least 1, got -5"},
		"timeout text":             {execute, `{"script_path":"a","timeout_seconds":"x"}`, `timeout_seconds must be a whole number of seconds, such as 30; got "x"`},
		"timeout number as text":   {execute, `{"script_path":"a","timeout_seconds":"30"}`, "timeout_seconds must be a whole number"},
		"timeout fraction":         {execute, `{"script_path":"a","timeout_seconds":1.5}`, "timeout_seconds must be a whole number of seconds, such as 30; got 1.5"},
		"timeout exponent":         {execute, `{"script_path":"a","timeout_seconds":3e1}`, "timeout_seconds must be a whole number"},
		"timeout null":             {execute, `{"script_path":"a","timeout_seconds":null}`, "timeout_seconds must be a whole number"},
		"timeout object":           {execute, `{"script_path":"a","timeout_seconds":{}}`, "timeout_seconds must be a whole number"},
		"timeout huge":             {execute, `{"script_path":"a","timeout_seconds":1000000001}`, "timeout_seconds is far too large"},
		"timeout beyond 64 bits":   {execute, `{"script_path":"a","timeout_seconds":99999999999999999999}`, "timeout_seconds is far too large"},
		"skill in the body":        {execute, `{"script_path":"a","slug":"y"}`, "unknown field at /slug"},
		"explain reads the same":   {explain, `{"script_path":"a","timeout_seconds":0}`, "timeout_seconds must be at least 1"},
		"publish unknown field":    {"/v1/skills/x/publish", `{"revision":"r"}`, "unknown field at /revision"},
		"archive takes nothing":    {"/v1/skills/x/archive", `{"force":true}`, "unknown field at /force"},
		"restore takes nothing":    {"/v1/skills/x/restore", `{"a":1}`, "unknown field at /a"},
		"cancel takes nothing":     {"/v1/executions/e/cancel", `[]`, "wrong type"},
		"revoke takes nothing":     {"/v1/grants/g/revoke", `{"reason":"x"}`, "unknown field at /reason"},
		"key revoke takes nothing": {"/v1/keys/k/revoke", `{"reason":"x"}`, "unknown field at /reason"},
		"grant without digest":     {grants, `{"slug":"x"}`, "expected_digest is required"},
		"grant with a short one":   {grants, `{"slug":"x","expected_digest":"sha256:ab"}`, "expected_digest must be sha256:"},
		"grant with a bare one":    {grants, `{"slug":"x","expected_digest":"` + sha + `"}`, "expected_digest must be sha256:"},
		"grant expiry":             {grants, `{"slug":"x","expected_digest":"` + digest + `","expires_at":"tomorrow"}`, "expires_at must be an RFC 3339 time"},
		"key scope":                {keys, `{"name":"x","scopes":["memory:read","root"]}`, "/scopes/1 is none of"},
		"key expiry":               {keys, `{"name":"x","expires_at":"2026-13-01T00:00:00Z"}`, "expires_at must be an RFC 3339 time"},
		"key team null":            {keys, `{"name":"x","teams":[null]}`, "/teams/0"},
		"verify without body":      {"/v1/audit/verify", ``, "the body is empty"},
		"verify unknown field":     {"/v1/audit/verify", `{"checkpoints":[{"tenant":"x"}]}`, "unknown field at /checkpoints/0/tenant"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := (&world{t: t, handler: w.handler}).call(http.MethodPost, test.target, test.body)
			code, message := got.refusal(t)
			if got.status != http.StatusBadRequest || code != "INVALID_ARGUMENT" || !strings.Contains(message, test.want) {
				t.Errorf("%d %s %q, want it to contain %q", got.status, code, message, test.want)
			}
		})
	}
}

func TestContentType(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runs.explain = func(run.Request) (run.Explanation, error) { return run.Explanation{}, nil }
	for name, test := range map[string]struct {
		header, value string
		refused       bool
	}{
		"plain":          {"Content-Type", "application/json", false},
		"UTF-8":          {"Content-Type", "application/json; charset=UTF-8", false},
		"capitals":       {"Content-Type", "Application/JSON", false},
		"another text":   {"Content-Type", "text/plain", true},
		"form":           {"Content-Type", "application/x-www-form-urlencoded", true},
		"another set":    {"Content-Type", "application/json; charset=utf-16", true},
		"malformed":      {"Content-Type", "application/json; charset", true},
		"empty":          {"Content-Type", "", true},
		"JSON by suffix": {"Content-Type", "application/merge-patch+json", true},
		"compressed":     {"Content-Encoding", "gzip", true},
		"identity":       {"Content-Encoding", "identity", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/skills/x/explain", strings.NewReader(`{"script_path":"a"}`))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set(test.header, test.value)
			rec := httptest.NewRecorder()
			w.handler.ServeHTTP(rec, r)
			if refused := rec.Code == http.StatusBadRequest; refused != test.refused || rec.Code >= 500 {
				t.Errorf("%d %s", rec.Code, rec.Body)
			}
		})
	}
}

func TestBodyOverTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *httpapi.Config) { c.MaxBodyBytes = 64 })
	w.access.createKey = func(access.KeyRequest) (access.NewKey, error) {
		return access.NewKey{Key: sampleKey(), Secret: "s"}, nil
	}
	fits := `{"name":"` + strings.Repeat("a", 53) + `"}`
	if len(fits) != 64 {
		t.Fatalf("the fixture is %d bytes", len(fits))
	}
	if got := w.call(http.MethodPost, "/v1/keys", fits); got.status != http.StatusCreated {
		t.Errorf("at the limit: %d %s", got.status, got.body)
	}
	over := `{"name":"` + strings.Repeat("a", 54) + `"}`
	for name, length := range map[string]int64{"declared": int64(len(over)), "undeclared": -1} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/keys", strings.NewReader(over))
		r.Header.Set("Content-Type", "application/json")
		r.ContentLength = length
		got := w.do(r)
		code, message := got.refusal(t)
		if got.status != http.StatusRequestEntityTooLarge || code != "REQUEST_TOO_LARGE" || !strings.Contains(message, "64 bytes") {
			t.Errorf("%s: %d %s %q", name, got.status, code, message)
		}
	}
	if got := w.call(http.MethodPost, "/v1/keys", fits); got.status != http.StatusCreated {
		t.Errorf("afterwards: %d", got.status)
	}
}

func TestBodyThatEndsEarly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/keys", nil)
	r.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"na`), failing{}))
	r.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	if rec.Code != http.StatusBadRequest || !strings.Contains(rec.Body.String(), string(sallyport.CodeInvalidArgument)) ||
		strings.Contains(rec.Body.String(), "wire") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("the wire is cut") }
