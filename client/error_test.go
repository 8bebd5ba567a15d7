package client_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/client"
	"github.com/sallyport-dev/sallyport/internal/reply"
	"github.com/sallyport-dev/sallyport/registry"
)

// Every code survives the wire, and with it the exit code of the command line.
func TestEveryCodeSurvives(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, info := range sallyport.Catalogue() {
		sent := &sallyport.Error{Op: "x", Code: info.Code, Message: "do this", Details: map[string]any{"gate": "pin"}, Err: errors.New("cause")}
		w.skills.show = func(sallyport.SkillRef) (registry.SkillView, error) { return registry.SkillView{}, sent }
		envelope, err := w.client(t).Skill(t.Context(), sallyport.SkillRef{Slug: "x"})
		if diff := cmp.Diff(sallyport.Public(sent), sallyport.Public(err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", info.Code, diff)
		}
		if reply.ExitCode(err) != reply.ExitCode(sent) {
			t.Errorf("%s: exit %d, want %d", info.Code, reply.ExitCode(err), reply.ExitCode(sent))
		}
		if envelope.Error == nil || envelope.RequestID == "" || envelope.Kind != "skill" {
			t.Errorf("%s: the envelope is lost: %+v", info.Code, envelope)
		}
		if strings.Contains(err.Error(), "cause") {
			t.Errorf("%s: the cause crossed the wire", info.Code)
		}
	}
}

func TestKeyDecides(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, key := range []string{"", "spk_wrong"} {
		c := connect(t, client.Config{Key: key, Transport: client.InProcess(w.handler)})
		if _, err := c.Keys(t.Context()); sallyport.CodeOf(err) != sallyport.CodeUnauthenticated {
			t.Errorf("key %q: %v", key, err)
		}
	}
}

func TestReceived(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var raw []string
	c := connect(t, client.Config{
		Key: secret, Transport: client.InProcess(w.handler), Received: func(envelope []byte) { raw = append(raw, string(envelope)) },
	})
	w.skills.show = func(ref sallyport.SkillRef) (registry.SkillView, error) {
		if ref.Slug == "x" {
			return registry.SkillView{Skill: sallyport.Skill{Slug: "x"}}, nil
		}
		return registry.SkillView{}, &sallyport.Error{Op: "x", Code: sallyport.CodeSkillNotFound}
	}
	if _, err := c.Skill(t.Context(), sallyport.SkillRef{Slug: "x"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Skill(t.Context(), sallyport.SkillRef{Slug: "y"}); err == nil {
		t.Fatal("no refusal")
	}
	if _, err := c.Artifact(t.Context(), "e", "x"); err == nil {
		t.Fatal("no refusal")
	}
	if len(raw) != 3 || !strings.HasPrefix(raw[0], `{"kind":"skill","data":{`) || !strings.Contains(raw[1], `"SKILL_NOT_FOUND"`) ||
		!strings.Contains(raw[1], `"status":404`) || !strings.Contains(raw[2], `"INTERNAL"`) {
		t.Errorf("got %q", raw)
	}
}

// Answers that no Sallyport server gives.
func TestStrangeAnswers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status      int
		media, body string
		want        sallyport.Code
	}{
		"a page":            {200, "text/html", "<html>", sallyport.CodeInvalidArgument},
		"no type":           {200, "", "{}", sallyport.CodeInvalidArgument},
		"other JSON":        {200, "application/json", `{"hello":1}`, sallyport.CodeInvalidArgument},
		"broken JSON":       {200, "application/json", `{"kind":`, sallyport.CodeInternal},
		"null":              {200, "application/json", `null`, sallyport.CodeInvalidArgument},
		"data with a 500":   {500, "application/json", `{"kind":"keys","data":{"keys":[]}}`, sallyport.CodeInternal},
		"a proxy's 401":     {401, "text/html", "", sallyport.CodeUnauthenticated},
		"a proxy's 403":     {403, "text/html", "", sallyport.CodeAccessDenied},
		"a proxy's 404":     {404, "text/html", "", sallyport.CodeRouteNotFound},
		"a proxy's 413":     {413, "text/html", "", sallyport.CodeRequestTooLarge},
		"a proxy's 429":     {429, "text/html", "", sallyport.CodeRateLimited},
		"a proxy's 502":     {502, "text/html", "", sallyport.CodeStoreUnavailable},
		"a proxy's 503":     {503, "text/html", "", sallyport.CodeStoreUnavailable},
		"a proxy's 504":     {504, "text/html", "", sallyport.CodeDeadlineExceeded},
		"a later code":      {409, "application/problem+json", `{"error":{"code":"NEW_CONFLICT","message":"m"}}`, sallyport.CodeRevisionConflict},
		"error in a 200":    {200, "application/json", `{"error":{"code":"PIN_MISMATCH","message":"m"}}`, sallyport.CodePinMismatch},
		"error, data, 403":  {403, "application/json", `{"data":{},"error":{"code":"PIN_MISMATCH","message":"m"}}`, sallyport.CodePinMismatch},
		"over the bound":    {200, "application/json", strings.Repeat(" ", 2000), sallyport.CodeInternal},
		"more than one doc": {200, "application/json", `{"kind":"keys","data":{"keys":[]}} {}`, sallyport.CodeInternal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := connect(t, client.Config{MaxResponseBytes: 1000, Transport: client.InProcess(http.HandlerFunc(
				func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", test.media)
					w.WriteHeader(test.status)
					_, _ = w.Write([]byte(test.body))
				}))})
			_, err := c.Keys(t.Context())
			if code := sallyport.CodeOf(err); code != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
			if _, err := c.Artifact(t.Context(), "e", "x"); err == nil {
				t.Error("an artifact without its digest was taken")
			}
		})
	}
}

// A redirect would take the key to another server.
func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("followed, with the key %q", r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, status))
		_, err := connect(t, client.Config{URL: server.URL, Key: secret}).Keys(t.Context())
		if err == nil || !strings.Contains(sallyport.Public(err).Message, "redirects elsewhere") {
			t.Errorf("%d: %v", status, err)
		}
		server.Close()
	}
}

func TestNoServer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	for name, cfg := range map[string]client.Config{
		"closed port": {URL: server.URL},
		"no socket":   {Transport: client.Unix(t.TempDir() + "/absent.sock")},
	} {
		_, err := connect(t, cfg).Keys(t.Context())
		if sallyport.CodeOf(err) != sallyport.CodeStoreUnavailable || !strings.HasPrefix(sallyport.Public(err).Message, "no server answers at http://") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type failingTransport struct{ err error }

func (f failingTransport) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

func TestTransportKnowsBetter(t *testing.T) {
	t.Parallel()
	sent := &sallyport.Error{Op: "folder", Code: sallyport.CodeStoreUnavailable, Message: "another process owns the folder"}
	_, err := connect(t, client.Config{Transport: failingTransport{sent}}).Keys(t.Context())
	if sallyport.Public(err).Message != sent.Message {
		t.Errorf("got %v", err)
	}
}

func TestCallerGivesUp(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{}, 8)
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-r.Context().Done()
	})
	for name, cfg := range transports(t, handler) {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-entered
			cancel()
		}()
		if _, err := connect(t, cfg).Keys(ctx); sallyport.CodeOf(err) != sallyport.CodeCanceled {
			t.Errorf("%s: %v", name, err)
		}
		past, cancel := context.WithTimeout(t.Context(), 0)
		if _, err := connect(t, cfg).Keys(past); sallyport.CodeOf(err) != sallyport.CodeDeadlineExceeded {
			t.Errorf("%s, deadline: %v", name, err)
		}
		cancel()
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		cfg client.Config
		ok  bool
	}{
		"zero":          {client.Config{}, true},
		"https":         {client.Config{URL: "https://skills.example"}, true},
		"with a path":   {client.Config{URL: "https://example/sally/"}, true},
		"no scheme":     {client.Config{URL: "skills.example"}, false},
		"file":          {client.Config{URL: "file:///etc/passwd"}, false},
		"no host":       {client.Config{URL: "http://"}, false},
		"user":          {client.Config{URL: "http://user:spk_x@skills.example"}, false},
		"query":         {client.Config{URL: "http://skills.example?key=x"}, false},
		"fragment":      {client.Config{URL: "http://skills.example#x"}, false},
		"malformed":     {client.Config{URL: "http://[::1"}, false},
		"key":           {client.Config{Key: "spk_x"}, true},
		"key, new line": {client.Config{Key: "spk_MARKER\n"}, false},
		"key, blank":    {client.Config{Key: "spk_MARKER x"}, false},
		"key, injected": {client.Config{Key: "spk_MARKER\r\nX-Evil: 1"}, false},
	} {
		_, err := client.New(test.cfg)
		if (err == nil) != test.ok || err != nil && (sallyport.CodeOf(err) != sallyport.CodeInvalidArgument || strings.Contains(err.Error(), "MARKER")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestURLWithAPath(t *testing.T) {
	t.Parallel()
	var got string
	c := connect(t, client.Config{URL: "http://example/sally%20port/", Transport: client.InProcess(http.HandlerFunc(
		func(_ http.ResponseWriter, r *http.Request) { got = r.URL.EscapedPath() }))})
	_, _ = c.Component(t.Context(), sallyport.SkillRef{Slug: "a/b"}, "", "c d/e")
	if want := "/sally%20port/v1/skills/a%2Fb/components/c%20d/e"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
