package registry_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

// names is a Resolver of a test's own. A host that it does not know does not exist.
type names struct {
	mu    sync.Mutex
	hosts map[string][]string
	asked []string
}

func (n *names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked = append(n.asked, host)
	var out []netip.Addr
	for _, text := range n.hosts[host] {
		out = append(out, netip.MustParseAddr(text))
	}
	if out == nil {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return out, nil
}

// site serves over TLS as example.com on loopback, and counts its visitors.
type site struct {
	*httptest.Server

	hits  atomic.Int64
	names *names
}

func newSite(tb testing.TB, handler http.HandlerFunc) *site {
	tb.Helper()
	s := &site{names: &names{hosts: map[string][]string{"example.com": {"127.0.0.1"}}}}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.hits.Add(1)
		handler(w, r)
	}))
	tb.Cleanup(s.Close)
	return s
}

// at is the URL of a path, by name.
func (s *site) at(path string) string {
	u, err := url.Parse(s.URL)
	if err != nil {
		panic(err)
	}
	return "https://example.com:" + u.Port() + path
}

func (s *site) config() registry.FetchConfig {
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	trusted := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	return registry.FetchConfig{AllowPrivate: true, Resolver: s.names, TLS: trusted, Timeout: 10 * time.Second}
}

// fetching is a bench whose service may fetch.
func fetching(cfg registry.FetchConfig) bench {
	b := bench{store: newMemory(), trail: &trail{}}
	b.Service = registry.New(registry.Config{Store: b.store, Trail: b.trail, Logger: slog.New(slog.DiscardHandler), Fetcher: registry.NewFetcher(cfg)})
	return b
}

func serve(content []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) }
}

func packedZip(tb testing.TB, files map[string]string) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, content := range files {
		f, err := w.Create(name)
		if err == nil {
			_, err = f.Write([]byte(content))
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func packedTar(tb testing.TB, files map[string]string, packed bool) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, content := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg, Format: tar.FormatPAX}); err != nil {
			tb.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	if !packed {
		return b.Bytes()
	}
	var z bytes.Buffer
	g := gzip.NewWriter(&z)
	if _, err := g.Write(b.Bytes()); err != nil || g.Close() != nil {
		tb.Fatal(err)
	}
	return z.Bytes()
}

// What a URL serves is told by its bytes, whatever its name and its server say.
func TestImportURL(t *testing.T) {
	t.Parallel()
	files := map[string]string{"repo-main/skills/pdf/SKILL.md": skillMD("pdf"), "repo-main/skills/pdf/scripts/a.py": "print(1)\n", "repo-main/README.md": "x"}
	for name, test := range map[string]struct {
		path    string
		content []byte
		want    string // path of the skill in the report
		clean   bool
	}{
		"zip":                  {"/x", packedZip(t, files), "repo-main/skills/pdf", true},
		"tar":                  {"/x.bin", packedTar(t, files, false), "repo-main/skills/pdf", true},
		"tar.gz":               {"/x.zip", packedTar(t, files, true), "repo-main/skills/pdf", true},
		"SKILL.md":             {"/skills/pdf/SKILL.md?token=secret", []byte(skillMD("pdf")), "pdf", true},
		"skill.md of a folder": {"/pdf/skill.md", []byte("\ufeff" + skillMD("pdf")), "pdf", false},
		"another name":         {"/raw/pdf.md", []byte(skillMD("pdf")), "pdf", true},
		"no name at all":       {"/", []byte(skillMD("pdf")), ".", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Cookie") != "" || r.Header.Get("Authorization") != "" || r.Method != http.MethodGet {
					t.Errorf("asked with %v", r.Header)
				}
				w.Header().Set("Content-Type", "text/html")
				http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
				_, _ = w.Write(test.content)
			})
			b := fetching(s.config())
			report, source, err := b.ImportURL(t.Context(), alice, s.at(test.path), registry.ImportOptions{Publish: true})
			if err != nil {
				t.Fatal(err)
			}
			if len(report.Skills) != 1 || report.Skills[0].Path != test.want || report.Skills[0].Result != registry.ResultImported ||
				report.Skills[0].Slug != "pdf" || !report.Skills[0].Published || report.Skills[0].SpecClean != test.clean {
				t.Errorf("%+v", report)
			}
			plain, _, _ := strings.Cut(s.at(test.path), "?")
			if source.URL != plain || source.SizeBytes != int64(len(test.content)) || source.Digest != sallyport.DigestOf(test.content) {
				t.Errorf("%+v", source)
			}
			revisions, err := b.Revisions(t.Context(), alice, sallyport.SkillRef{Slug: "pdf"})
			if err != nil || revisions[0].Message != "imported from "+plain {
				t.Errorf("%+v %v", revisions, err)
			}
		})
	}
}

// F69: a source that answers with a refusal is an error, never an import of nothing.
func TestImportURLRefusesWhatIsNoSkill(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		code    sallyport.Code
		says    string
	}{
		"a web page":      {serve([]byte("<!DOCTYPE html><html>")), sallyport.CodeInvalidArgument, "web page"},
		"JSON":            {serve([]byte(`{"message": "not found"}`)), sallyport.CodeInvalidArgument, "neither"},
		"nothing":         {serve(nil), sallyport.CodeInvalidArgument, "neither"},
		"a large text":    {serve(bytes.Repeat([]byte("---\n"), 300_000)), sallyport.CodeInvalidArgument, "too large"},
		"binary":          {serve([]byte("---\n\x00\x01")), sallyport.CodeInvalidArgument, "neither"},
		"a broken zip":    {serve([]byte("PK\x03\x04 and no more")), sallyport.CodeInvalidArgument, "damaged"},
		"a broken gzip":   {serve([]byte("\x1f\x8b\x08 and no more")), sallyport.CodeInvalidArgument, "damaged"},
		"not logged in":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, sallyport.CodeInvalidArgument, "401"},
		"forbidden":       {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, sallyport.CodeInvalidArgument, "403"},
		"absent":          {http.NotFound, sallyport.CodeInvalidArgument, "404"},
		"not modified":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, sallyport.CodeInvalidArgument, "204"},
		"an error's page": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "boom", http.StatusInternalServerError) }, sallyport.CodeInvalidArgument, "500"},
		"too large, said": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "70000000")
			w.WriteHeader(http.StatusOK)
		}, sallyport.CodeRequestTooLarge, "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, test.handler)
			b := fetching(s.config())
			_, _, err := b.ImportURL(t.Context(), alice, s.at("/x"), registry.ImportOptions{})
			wantCode(t, err, test.code)
			if message := sallyport.Public(err).Message; !strings.Contains(message, test.says) || strings.Contains(message, "127.0.0.1") {
				t.Errorf("message %q", message)
			}
			if len(b.store.skills) != 0 {
				t.Error("something was saved")
			}
		})
	}
}

// The size is counted while it comes, and the time runs until the last byte.
func TestImportURLIsBounded(t *testing.T) {
	t.Parallel()
	endless := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1000)); err != nil {
				return
			}
		}
	})
	cfg := endless.config()
	cfg.MaxBytes = 100_000
	_, _, err := fetching(cfg).ImportURL(t.Context(), alice, endless.at("/x"), registry.ImportOptions{})
	wantCode(t, err, sallyport.CodeRequestTooLarge)

	slow := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	cfg = slow.config()
	cfg.Timeout = 200 * time.Millisecond
	begin := time.Now()
	_, _, err = fetching(cfg).ImportURL(t.Context(), alice, slow.at("/x"), registry.ImportOptions{})
	wantCode(t, err, sallyport.CodeDeadlineExceeded)
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, _, err = fetching(slow.config()).ImportURL(ctx, alice, slow.at("/x"), registry.ImportOptions{})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a caller that goes away: %v", err)
	}
}

// Few at a time: the next is told to come again.
func TestImportURLTakesTurns(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := newSite(t, func(w http.ResponseWriter, _ *http.Request) { <-release; _, _ = w.Write([]byte(skillMD("x"))) })
	b := fetching(s.config())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, _, err := b.ImportURL(t.Context(), alice, s.at("/x"), registry.ImportOptions{DryRun: true}); err != nil {
				t.Error(err)
			}
		})
	}
	for begin := time.Now(); s.hits.Load() < 4 && time.Since(begin) < 10*time.Second; time.Sleep(time.Millisecond) {
	}
	_, _, err := b.ImportURL(t.Context(), alice, s.at("/x"), registry.ImportOptions{DryRun: true})
	wantCode(t, err, sallyport.CodeRateLimited)
	close(release)
	wg.Wait()
}

func TestImportURLChecksBeforeItDials(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		url     string
		private bool
		says    string
	}{
		"http":                       {"http://example.com/x", false, "https://"},
		"file":                       {"file:///etc/passwd", true, "https://"},
		"ftp":                        {"ftp://example.com/x", true, "https://"},
		"git":                        {"git+https://nowhere.example/x", true, "not known"},
		"git over http":              {"git+http://inside.example/x", true, "http is for this machine"},
		"git of a private network":   {"https://inside.example/x.git", false, "public internet"},
		"git over ssh":               {"git@example.com:x/y", true, "malformed"},
		"no scheme":                  {"example.com/x", false, "https://"},
		"a password":                 {"https://me:secret@example.com/x", false, "user name"},
		"no host":                    {"https:///x", false, "no host"},
		"opaque":                     {"https:example.com", false, "no host"},
		"malformed":                  {"https://exa mple.com/%zz", false, "malformed"},
		"long":                       {"https://example.com/" + strings.Repeat("x", 3000), false, "2048"},
		"http to the internet":       {"http://public.example/x", true, "http is for this machine"},
		"http to a private network":  {"http://inside.example/x", true, "http is for this machine"},
		"loopback":                   {"https://127.0.0.1/x", false, "public internet"},
		"loopback by another number": {"https://0x7f000001/x", false, "not known"},
		"loopback of version 6":      {"https://[::1]/x", false, "public internet"},
		"mapped loopback":            {"https://[::ffff:127.0.0.1]/x", false, "public internet"},
		"a name of loopback":         {"https://loop.example/x", false, "public internet"},
		"a private network":          {"https://inside.example/x", false, "public internet"},
		"carrier-grade":              {"https://carrier.example/x", false, "public internet"},
		"metadata":                   {"https://169.254.169.254/latest", false, "nothing is fetched from"},
		"metadata, private allowed":  {"https://meta.example/latest", true, "nothing is fetched from"},
		"metadata over http":         {"http://meta.example/latest", true, "http is for this machine"},
		"NAT64":                      {"https://[64:ff9b::7f00:1]/x", true, "nothing is fetched from"},
		"6to4":                       {"https://[2002:7f00:1::]/x", true, "nothing is fetched from"},
		"unspecified":                {"https://0.0.0.0/x", true, "nothing is fetched from"},
		"multicast":                  {"https://224.0.0.1/x", true, "nothing is fetched from"},
		"a zone":                     {"https://[fe80::1%25eth0]/x", true, "nothing is fetched from"},
		"one of two is inside":       {"https://both.example/x", false, "public internet"},
		"unknown":                    {"https://nowhere.example/x", false, "not known"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resolver := &names{hosts: map[string][]string{
				"loop.example": {"127.0.0.1"}, "inside.example": {"10.1.2.3"}, "carrier.example": {"100.64.0.1"}, "meta.example": {"169.254.169.254"},
				"public.example": {"8.8.8.8"}, "both.example": {"8.8.8.8", "127.0.0.1"},
			}}
			b := fetching(registry.FetchConfig{AllowPrivate: test.private, Resolver: resolver, Timeout: 5 * time.Second})
			_, _, err := b.ImportURL(t.Context(), alice, test.url, registry.ImportOptions{})
			wantCode(t, err, sallyport.CodeInvalidArgument)
			if message := sallyport.Public(err).Message; !strings.Contains(message, test.says) || strings.Contains(message, "secret") {
				t.Errorf("message %q, want %q in it", message, test.says)
			}
			if strings.Contains(sallyport.Public(err).Message, "10.1.2.3") {
				t.Error("the message tells an address")
			}
		})
	}
}

// Every hop is checked as the first was, and a hop learns nothing of the one before.
func TestImportURLFollowsRedirects(t *testing.T) {
	t.Parallel()
	var referers, cookies []string
	var mu sync.Mutex
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		referers, cookies = append(referers, r.Header.Get("Referer")), append(cookies, r.Header.Get("Cookie"))
		mu.Unlock()
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "x"})
		switch r.URL.Path {
		case "/pdf/SKILL.md":
			_, _ = w.Write([]byte(skillMD("pdf")))
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		default:
			http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
		}
	})
	s.names.hosts["meta.example"] = []string{"169.254.169.254"}
	s.names.hosts["inside.example"] = []string{"10.1.2.3"}
	b := fetching(s.config())
	_, source, err := b.ImportURL(t.Context(), alice, s.at("/go?token=secret&to=/pdf/SKILL.md"), registry.ImportOptions{})
	if err != nil || source.URL != s.at("/pdf/SKILL.md") {
		t.Fatalf("%+v %v", source, err)
	}
	for i := range referers {
		if referers[i] != "" || cookies[i] != "" {
			t.Errorf("hop %d was told %q %q", i, referers[i], cookies[i])
		}
	}
	for to, says := range map[string]string{
		"https://meta.example/latest":   "nothing is fetched from",
		"http://inside.example/x":       "http is for this machine",
		"file:///etc/passwd":            "https://",
		"https://user:pass@example.com": "user name",
		"https://[64:ff9b::7f00:1]/":    "nothing is fetched from",
		"https://nowhere.example/":      "not known",
	} {
		_, _, err := b.ImportURL(t.Context(), alice, s.at("/go?to="+url.QueryEscape(to)), registry.ImportOptions{})
		wantCode(t, err, sallyport.CodeInvalidArgument)
		if message := sallyport.Public(err).Message; !strings.Contains(message, says) {
			t.Errorf("%s: message %q", to, message)
		}
	}
	before := s.hits.Load()
	_, _, err = b.ImportURL(t.Context(), alice, s.at("/loop"), registry.ImportOptions{})
	wantCode(t, err, sallyport.CodeInvalidArgument)
	if hops := s.hits.Load() - before; hops > 7 || !strings.Contains(sallyport.Public(err).Message, "redirects") {
		t.Errorf("%d hops, %v", hops, err)
	}
}

// A name that leads outside when it is checked and inside when it is dialled has no second chance: what was checked is dialled.
func TestImportURLLooksNamesUpOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, serve([]byte(skillMD("x"))))
	if _, _, err := fetching(s.config()).ImportURL(t.Context(), alice, s.at("/x"), registry.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(s.names.asked); got != "[example.com]" {
		t.Errorf("asked for %s", got)
	}
}

func TestImportURLTrustsNoUnknownCertificate(t *testing.T) {
	t.Parallel()
	s := newSite(t, serve([]byte(skillMD("x"))))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	cfg := s.config()
	cfg.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	_, _, err := fetching(cfg).ImportURL(t.Context(), alice, s.at("/x"), registry.ImportOptions{})
	wantCode(t, err, sallyport.CodeInvalidArgument)
	if message := sallyport.Public(err).Message; !strings.Contains(message, "certificate") || s.hits.Load() != 0 {
		t.Errorf("%q, %d visits", message, s.hits.Load())
	}
}

// Plain http reaches this machine alone, and only where private addresses are allowed.
func TestImportURLOverPlainLoopback(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(serve([]byte(skillMD("x"))))
	t.Cleanup(plain.Close)
	_, _, err := fetching(registry.FetchConfig{AllowPrivate: true}).ImportURL(t.Context(), alice, plain.URL, registry.ImportOptions{})
	if err != nil {
		t.Error(err)
	}
	_, _, err = fetching(registry.FetchConfig{}).ImportURL(t.Context(), alice, plain.URL, registry.ImportOptions{})
	wantCode(t, err, sallyport.CodeInvalidArgument)
}

// Not parallel: it sets the environment. A proxy would dial for us, past every check.
func TestImportURLIgnoresProxies(t *testing.T) {
	visits := atomic.Int64{}
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) }))
	t.Cleanup(proxy.Close)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"} {
		t.Setenv(name, proxy.URL)
	}
	s := newSite(t, serve([]byte(skillMD("x"))))
	if _, _, err := fetching(s.config()).ImportURL(t.Context(), alice, s.at("/x"), registry.ImportOptions{}); err != nil || visits.Load() != 0 {
		t.Errorf("%v, %d visits to the proxy", err, visits.Load())
	}
}

func TestImportURLIsOffByDefault(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, _, err := b.ImportURL(t.Context(), alice, "https://example.com/x", registry.ImportOptions{})
	wantCode(t, err, sallyport.CodeFeatureDisabled)
	if message := sallyport.Public(err).Message; !strings.Contains(message, "url_import") {
		t.Errorf("message %q", message)
	}
	// Nothing is fetched for somebody who may not import.
	s := newSite(t, serve([]byte(skillMD("x"))))
	reader := alice
	reader.Scopes = []sallyport.Scope{sallyport.ScopeMemoryRead}
	_, _, err = fetching(s.config()).ImportURL(t.Context(), reader, s.at("/x"), registry.ImportOptions{})
	wantCode(t, err, sallyport.CodeAccessDenied)
	_, _, err = fetching(s.config()).ImportURL(t.Context(), alice, s.at("/x"), registry.ImportOptions{TeamID: "strangers"})
	wantCode(t, err, sallyport.CodeAccessDenied)
	if s.hits.Load() != 0 {
		t.Error("it was fetched all the same")
	}
}

// SaveURL wants exactly one skill, and saves nothing when there are more or none.
func TestSaveURL(t *testing.T) {
	t.Parallel()
	one, two := map[string]string{"a/SKILL.md": skillMD("a")}, map[string]string{"a/SKILL.md": skillMD("a"), "b/SKILL.md": skillMD("b")}
	bad := map[string]string{"a/SKILL.md": "---\nname: a\n---\n"}
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(packedZip(t, map[string]map[string]string{"/one": one, "/two": two, "/bad": bad, "/none": {"README.md": "x"}}[r.URL.Path]))
	})
	b := fetching(s.config())
	for path, code := range map[string]sallyport.Code{
		"/two": sallyport.CodeInvalidArgument, "/none": sallyport.CodeInvalidArgument, "/bad": sallyport.CodeSkillInvalid,
	} {
		_, _, err := b.SaveURL(t.Context(), alice, s.at(path), registry.ImportOptions{})
		wantCode(t, err, code)
	}
	if len(b.store.skills) != 0 {
		t.Error("something was saved")
	}
	for i, unchanged := range []bool{false, true} {
		got, source, err := b.SaveURL(t.Context(), alice, s.at("/one"), registry.ImportOptions{Publish: true})
		if err != nil || got.Skill.Slug != "a" || got.Revision.ID == "" || got.Unchanged != unchanged || got.Created == unchanged ||
			got.Skill.PublishedRevisionID != got.Revision.ID || source.URL != s.at("/one") {
			t.Errorf("%d: %+v %v", i, got, err)
		}
	}
}
