package httpapi_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/httpapi"
	"github.com/sallyport-dev/sallyport/registry"
)

func tarball(t *testing.T, name, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipped(t *testing.T, name, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func upload(t *testing.T, target, media string, body io.Reader) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, target, body)
	r.Header.Set("Content-Type", media)
	return r
}

func sampleReport() registry.ImportReport {
	return registry.ImportReport{
		Skills: []registry.ImportedSkill{
			{
				Path: "a", Slug: "a", Name: "A", Usable: true, SpecClean: true, Result: "imported", Published: true, SkillID: skillID,
				RevisionID: "rev-1", Digest: digest, Files: []registry.ImportedFile{{Path: "SKILL.md", Result: "repaired", Reason: "BOM"}},
				Problems: []registry.Problem{{Code: "C", File: "SKILL.md", Line: 1, Message: "m", Severity: "note"}},
			},
			{Path: "b", Result: "refused"},
		},
		Totals: registry.ImportTotals{Skills: 2, Imported: 1, Refused: 1},
	}
}

func TestImport(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		media string
		body  []byte
	}{
		"tar":            {"application/x-tar", tarball(t, "a/SKILL.md", "hello")},
		"tar.gz":         {"application/gzip", gzipped(t, tarball(t, "a/SKILL.md", "hello"))},
		"zip":            {"application/zip", zipped(t, "a/SKILL.md", "hello")},
		"with parameter": {"application/x-tar; format=pax", tarball(t, "a/SKILL.md", "hello")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spool := t.TempDir()
			w := newWorld(t, func(c *httpapi.Config) { c.SpoolDir = spool })
			var opts registry.ImportOptions
			w.skills.importAll = func(ctx context.Context, tree registry.Tree, o registry.ImportOptions) (registry.ImportReport, error) {
				opts = o
				entries, err := tree.Entries(ctx)
				if err != nil || len(entries) != 1 || entries[0].Path != "a/SKILL.md" {
					t.Errorf("entries %v, %v", entries, err)
				}
				if content, err := tree.ReadFile(ctx, "a/SKILL.md", 100); err != nil || string(content) != "hello" {
					t.Errorf("content %q, %v", content, err)
				}
				if names, err := os.ReadDir(spool); err != nil || len(names) != 0 {
					t.Errorf("the upload has a name on disk: %v, %v", names, err)
				}
				return sampleReport(), nil
			}
			target := "/v1/import?team_id=ops&personal=true&publish=true&dry_run=true&message=hi"
			got := w.do(upload(t, target, test.media, bytes.NewReader(test.body)))
			if got.status != http.StatusOK || got.json(t)["kind"] != "import" {
				t.Fatalf("%d %s", got.status, got.body)
			}
			want := registry.ImportOptions{TeamID: "ops", Personal: true, Publish: true, DryRun: true, Message: "hi"}
			if diff := cmp.Diff(want, opts); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
			if !bytes.Contains(got.body, []byte(`"ignored":[]`)) || bytes.Contains(got.body, []byte("null,\"problems")) {
				t.Errorf("lists are lists: %s", got.body)
			}
		})
	}
}

func TestBadUploads(t *testing.T) {
	t.Parallel()
	const limit = 64 << 10
	w := newWorld(t, func(c *httpapi.Config) { c.MaxImportBytes = limit })
	big := tarball(t, "a", strings.Repeat("x", 2*limit))
	unpacks, small := gzipped(t, big), tarball(t, "a", "x")
	cut := gzipped(t, small)
	cut = cut[:len(cut)/2]
	torn := gzipped(t, small)
	copy(torn[len(torn)-8:], "checksum")
	for name, test := range map[string]struct {
		media  string
		body   []byte
		length int64
		status int
		code   sallyport.Code
		want   string
	}{
		"no type":            {"", small, 0, 400, sallyport.CodeInvalidArgument, "application/x-tar"},
		"JSON":               {"application/json", []byte("{}"), 0, 400, sallyport.CodeInvalidArgument, "application/x-tar"},
		"octets":             {"application/octet-stream", small, 0, 400, sallyport.CodeInvalidArgument, "application/x-tar"},
		"not a tar":          {"application/x-tar", []byte(strings.Repeat("x", 1024)), 0, 400, sallyport.CodeInvalidArgument, "archive"},
		"not a zip":          {"application/zip", []byte("PK nothing"), 0, 400, sallyport.CodeInvalidArgument, "archive"},
		"empty zip":          {"application/zip", nil, 0, 400, sallyport.CodeInvalidArgument, "archive"},
		"cut gzip":           {"application/gzip", cut, 0, 400, sallyport.CodeInvalidArgument, "archive"},
		"over, declared":     {"application/x-tar", big, int64(len(big)), 413, sallyport.CodeRequestTooLarge, "65536 bytes"},
		"over, undeclared":   {"application/x-tar", big, -1, 413, sallyport.CodeRequestTooLarge, "65536 bytes"},
		"over, zip":          {"application/zip", big, -1, 413, sallyport.CodeRequestTooLarge, "65536 bytes"},
		"over when unpacked": {"application/gzip", unpacks, 0, 413, sallyport.CodeRequestTooLarge, "unpacks to more than"},
		"wrong checksum":     {"application/gzip", torn, 0, 400, sallyport.CodeInvalidArgument, "archive"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := upload(t, "/v1/import", test.media, bytes.NewReader(test.body))
			if test.media == "" {
				r.Header.Del("Content-Type")
			}
			if test.length != 0 {
				r.ContentLength = test.length
			}
			got := (&world{t: t, handler: w.handler}).do(r)
			code, message := got.refusal(t)
			if got.status != test.status || code != string(test.code) || !strings.Contains(message, test.want) {
				t.Errorf("%d %s %q", got.status, code, message)
			}
		})
	}
}

func TestImportNeedsItsScopeBeforeTheBody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *httpapi.Config) {
		c.Auth = fakeAuth(func(*http.Request) (sallyport.Principal, error) {
			return sallyport.Principal{ID: "r", TenantID: "acme", Scopes: []sallyport.Scope{sallyport.ScopeMemoryRead}}, nil
		})
	})
	r := upload(t, "/v1/import", "application/x-tar", unread{t})
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	if rec.Code != http.StatusForbidden || !strings.Contains(rec.Header().Get("WWW-Authenticate"), `scope="memory:write"`) {
		t.Errorf("%d %v", rec.Code, rec.Header())
	}
}

type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

func TestUploadsAtOnceAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	w.skills.importAll = func(context.Context, registry.Tree, registry.ImportOptions) (registry.ImportReport, error) {
		entered <- struct{}{}
		<-leave
		return registry.ImportReport{}, nil
	}
	done := make(chan int)
	body := tarball(t, "a", "x")
	send := func() int {
		rec := httptest.NewRecorder()
		w.handler.ServeHTTP(rec, upload(t, "/v1/import", "application/x-tar", bytes.NewReader(body)))
		return rec.Code
	}
	for range 4 {
		go func() { done <- send() }()
		<-entered
	}
	if got := send(); got != http.StatusTooManyRequests {
		t.Errorf("the fifth: %d", got)
	}
	close(leave)
	for range 4 {
		if got := <-done; got != http.StatusOK {
			t.Errorf("one of four: %d", got)
		}
	}
	go func() { <-entered }()
	if got := send(); got != http.StatusOK {
		t.Errorf("afterwards: %d", got)
	}
}

func TestUploadCannotBeStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *httpapi.Config) { c.SpoolDir = "/nonexistent/spool" })
	got := w.do(upload(t, "/v1/import", "application/zip", bytes.NewReader(zipped(t, "a", "b"))))
	code, message := got.refusal(t)
	if got.status != http.StatusServiceUnavailable || code != "STORE_UNAVAILABLE" || strings.Contains(message, "nonexistent") {
		t.Errorf("%d %s %q", got.status, code, message)
	}
}

func TestImportErrorWins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.skills.importAll = func(context.Context, registry.Tree, registry.ImportOptions) (registry.ImportReport, error) {
		return registry.ImportReport{}, &sallyport.Error{Op: "x", Code: sallyport.CodeStoreUnavailable, Err: errors.New("cause")}
	}
	got := w.do(upload(t, "/v1/import", "application/x-tar", bytes.NewReader(tarball(t, "a", "b"))))
	if code, _ := got.refusal(t); code != "STORE_UNAVAILABLE" {
		t.Errorf("%d %s", got.status, got.body)
	}
}
