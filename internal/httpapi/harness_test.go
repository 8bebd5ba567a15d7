package httpapi_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/config"
	verrors "github.com/pb33f/libopenapi-validator/errors"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/httpapi"
)

const (
	skillID = "0190a0b0-0000-7000-8000-000000000001"
	sha     = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" // of "hello"
	digest  = "sha256:" + sha
)

func at(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return t
}

func now() time.Time { return at("2026-11-30T12:00:00Z") }

// world is an API with fakes behind it.
type world struct {
	t       *testing.T
	skills  *fakeSkills
	access  *fakeAccess
	secrets *fakeSecrets
	audit   *fakeAudit
	runs    *fakeRuns
	records *fakeRecords
	handler http.Handler
}

func principal() sallyport.Principal {
	return sallyport.Principal{
		ID: "alice", TenantID: "acme", Teams: []sallyport.TeamID{sallyport.DefaultTeam}, Scopes: sallyport.Scopes(),
	}
}

func newWorld(t *testing.T, change ...func(*httpapi.Config)) *world {
	t.Helper()
	w := &world{
		t: t, skills: &fakeSkills{t: t}, access: &fakeAccess{t: t}, secrets: &fakeSecrets{t: t}, audit: &fakeAudit{t: t}, runs: &fakeRuns{t: t}, records: &fakeRecords{t: t},
	}
	cfg := httpapi.Config{
		Auth:   fakeAuth(func(*http.Request) (sallyport.Principal, error) { return principal(), nil }),
		Skills: w.skills, Access: w.access, Secrets: w.secrets, Audit: w.audit, Runs: w.runs, Records: w.records,
		SpoolDir: t.TempDir(), Now: now, Version: "test",
	}
	for _, f := range change {
		f(&cfg)
	}
	w.handler = httpapi.New(cfg)
	return w
}

// answered is one answer, read.
type answered struct {
	status int
	header http.Header
	body   []byte
}

func (a answered) json(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(a.body, &v); err != nil {
		t.Fatalf("the answer is not JSON: %v\n%s", err, a.body)
	}
	return v
}

// refusal returns code and message of a problem.
func (a answered) refusal(t *testing.T) (code, message string) {
	t.Helper()
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		t.Fatalf("a refusal of type %q: %s", got, a.body)
	}
	e, _ := a.json(t)["error"].(map[string]any)
	code, _ = e["code"].(string)
	message, _ = e["message"].(string)
	return code, message
}

func (w *world) call(method, target, body string, headers ...string) answered {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), method, target, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return w.do(r)
}

// do sends r and holds request and answer against the OpenAPI document: every answer, and the requests that succeed.
func (w *world) do(r *http.Request) answered {
	w.t.Helper()
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(sent))
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	got := answered{rec.Code, rec.Header(), rec.Body.Bytes()}
	conforms(w.t, r, sent, got)
	return got
}

// document is compiled once: it is large.
var document = sync.OnceValues(func() (validator.Validator, error) {
	doc, err := libopenapi.NewDocument(httpapi.OpenAPI())
	if err != nil {
		return nil, err
	}
	v, errs := validator.NewValidator(doc, config.WithoutSecurityValidation(), config.WithStrictMode(),
		// Strict mode reports what the document does not declare; these are open on purpose.
		config.WithStrictIgnorePaths("$.body.**.frontmatter.**", "$.body.**.details.**", "$.body.**.detail.**", "$.body.input_args.**",
			"$.body.**.output_data.**", "$.body.**.input_schema.**", "$.body.**.argv.**", "$.body.**.arguments.**", "$.body.**.old_value.**", "$.body.**.new_value.**", "$.body.**.runtimes.**", "$.headers.**"))
	if len(errs) > 0 {
		return nil, errs[0]
	}
	return v, nil
})

// validating serialises the validator: it is a checker here, not what is tested.
var validating sync.Mutex

func conforms(t *testing.T, r *http.Request, sent []byte, got answered) {
	t.Helper()
	v, err := document()
	if err != nil {
		t.Fatalf("the OpenAPI document does not compile: %v", err)
	}
	validating.Lock()
	defer validating.Unlock()
	if got.status == http.StatusNotFound || got.status == http.StatusMethodNotAllowed {
		if code, _ := got.refusal(t); code == string(sallyport.CodeRouteNotFound) {
			return // No route, so nothing that describes it.
		}
	}
	if strings.HasSuffix(r.URL.Path, "/openapi.json") || r.URL.Path == "/mcp" {
		return // Another document describes them.
	}
	again := r.Clone(t.Context())
	again.URL.Path, again.URL.RawPath = oneSegment(again.URL.EscapedPath()), ""
	if again.Method == http.MethodHead {
		return
	}
	if got.status < http.StatusBadRequest {
		again.Body = io.NopCloser(bytes.NewReader(sent))
		if ok, errs := v.ValidateHttpRequest(again); !ok {
			report(t, "request", r, errs)
		}
	}
	if got.header.Get("Content-Type") == "application/x-ndjson" {
		// The validator knows no lines; the last one is the answer that a caller without them would have had.
		lines := bytes.Split(bytes.TrimSpace(got.body), []byte("\n"))
		if got.body = lines[len(lines)-1]; !bytes.Contains(got.body, []byte(`"error":null`)) {
			return
		}
		got.header = got.header.Clone()
		got.header.Set("Content-Type", "application/json")
	}
	cover(r, got.status)
	response := &http.Response{StatusCode: got.status, Header: got.header, Body: io.NopCloser(bytes.NewReader(got.body)), Request: again}
	if ok, errs := v.ValidateHttpResponse(again, response); !ok {
		report(t, "answer", r, errs)
		t.Logf("%d %s", got.status, got.body)
	}
}

// covered is what the tests of this package held against the document: by method and pattern, answers that succeeded and refusals.
var covered = struct {
	sync.Mutex

	succeeded, refused map[string]bool
}{succeeded: map[string]bool{}, refused: map[string]bool{}}

func cover(r *http.Request, status int) {
	route := httpapi.RouteOf(r)
	covered.Lock()
	defer covered.Unlock()
	if status < http.StatusBadRequest {
		covered.succeeded[route] = true
	} else {
		covered.refused[route] = true
	}
}

// TestMain fails a whole run in which some route's success or refusal was never held against the document.
func TestMain(m *testing.M) {
	status := m.Run()
	whole := true
	for _, name := range []string{"test.run", "test.skip", "test.list", "test.fuzz", "test.bench"} {
		whole = whole && flag.Lookup(name).Value.String() == ""
	}
	if whole && status == 0 && !testing.Short() {
		for _, route := range httpapi.Routes() {
			// The document itself, and a probe that cannot fail, have nothing to hold.
			if strings.HasSuffix(route, "openapi.json") || strings.HasSuffix(route, "/healthz") {
				continue
			}
			if !covered.succeeded[route] || !covered.refused[route] {
				fmt.Printf("%s: held against openapi.json were a success: %v, a refusal: %v\n", route, covered.succeeded[route], covered.refused[route])
				status = 1
			}
		}
	}
	os.Exit(status)
}

// oneSegment joins the slashes of a trailing path, which OpenAPI has no words for.
func oneSegment(path string) string {
	for _, before := range []string{"/components/", "/artifacts/"} {
		if head, tail, found := strings.Cut(path, before); found {
			return head + before + strings.ReplaceAll(strings.ReplaceAll(tail, "%2F", "-"), "/", "-")
		}
	}
	return path
}

func report(t *testing.T, what string, r *http.Request, errs []*verrors.ValidationError) {
	t.Helper()
	for _, err := range errs {
		t.Errorf("the %s of %s %s does not fit openapi.json: %s: %s", what, r.Method, r.URL, err.Message, err.Reason)
		for _, cause := range err.SchemaValidationErrors {
			t.Errorf("  at %s: %s", cause.FieldPath, cause.Reason)
		}
	}
}
