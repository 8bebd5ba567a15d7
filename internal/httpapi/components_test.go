package httpapi_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"mime"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
)

func TestRevisionsAndManifest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.skills.revisions = func(ref sallyport.SkillRef) ([]sallyport.Revision, error) {
		if ref != (sallyport.SkillRef{Slug: "x", TeamID: "ops"}) {
			t.Errorf("got %+v", ref)
		}
		return []sallyport.Revision{sampleRevision()}, nil
	}
	w.skills.revision = func(_ sallyport.SkillRef, id sallyport.RevisionID) (sallyport.Revision, error) {
		if id == "none" {
			return sallyport.Revision{}, &sallyport.Error{Op: "x", Code: sallyport.CodeRevisionNotFound}
		}
		if id != "rev-1" && id != "" {
			t.Errorf("got revision %q", id)
		}
		return sampleRevision(), nil
	}
	for _, target := range []string{
		"/v1/skills/x/revisions?team_id=ops", "/v1/skills/x/revisions/rev-1", "/v1/skills/x/components",
		"/v1/skills/x/components?revision_id=rev-1",
	} {
		if got := w.call(http.MethodGet, target, ""); got.status != http.StatusOK || bytes.Contains(got.body, []byte("hello")) {
			t.Errorf("%s: %d %s", target, got.status, got.body)
		}
	}
	if got := w.call(http.MethodGet, "/v1/skills/x/revisions/none", ""); got.status != http.StatusNotFound {
		t.Errorf("unknown revision: %d", got.status)
	}
	w.skills.revisions = func(sallyport.SkillRef) ([]sallyport.Revision, error) { return nil, nil }
	if got := w.call(http.MethodGet, "/v1/skills/x/revisions", ""); !bytes.Contains(got.body, []byte(`"revisions":[]`)) {
		t.Errorf("none: %s", got.body)
	}
}

func TestComponentAsEnvelope(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		content       []byte
		field, absent string
		want          string
	}{
		"text":   {[]byte("héllo\x00<&>"), "content", "content_base64", "héllo\x00<&>"},
		"empty":  {[]byte{}, "content", "content_base64", ""},
		"binary": {[]byte{0xff, 0xfe}, "content_base64", "content", "//4="},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.skills.component = func(ref sallyport.SkillRef, revision sallyport.RevisionID, path string) (sallyport.Component, error) {
				if ref.Slug != "x" || revision != "rev-1" || path != "scripts/a b.py" {
					t.Errorf("got %+v %q %q", ref, revision, path)
				}
				c := sampleComponent()
				c.Content = test.content
				return c, nil
			}
			got := w.call(http.MethodGet, "/v1/skills/x/components/scripts%2Fa%20b.py?revision_id=rev-1", "", "Accept", "*/*")
			data, _ := got.json(t)["data"].(map[string]any)
			if data[test.field] != test.want {
				t.Errorf("%s: got %q, want %q", test.field, data[test.field], test.want)
			}
			if _, there := data[test.absent]; there {
				t.Errorf("%s is there too", test.absent)
			}
		})
	}
}

func TestComponentAsBytes(t *testing.T) {
	t.Parallel()
	html := []byte("<script>alert(1)</script>")
	sum := sha256.Sum256(html)
	w := newWorld(t)
	w.skills.component = func(_ sallyport.SkillRef, _ sallyport.RevisionID, path string) (sallyport.Component, error) {
		return sallyport.Component{
			ID: "c", Path: path, Kind: sallyport.KindArtifact, MediaType: "text/html; charset=utf-8", Size: int64(len(html)),
			SHA256: hex.EncodeToString(sum[:]), Content: html,
		}, nil
	}
	for name, call := range map[string][]string{
		"raw=1":       {"/v1/skills/x/components/assets/a.html?raw=1"},
		"raw=true":    {"/v1/skills/x/components/assets/a.html?raw=true"},
		"accept":      {"/v1/skills/x/components/assets/a.html", "Accept", "application/octet-stream"},
		"accept list": {"/v1/skills/x/components/assets/a.html", "Accept", "text/html, application/octet-stream;q=0.5"},
	} {
		got := w.call(http.MethodGet, call[0], "", call[1:]...)
		if !bytes.Equal(got.body, html) {
			t.Errorf("%s: got %q", name, got.body)
		}
		for header, want := range map[string]string{
			"Content-Type":                 "text/html; charset=utf-8",
			"Content-Disposition":          "attachment; filename=a.html",
			"X-Content-Type-Options":       "nosniff",
			"Content-Security-Policy":      "default-src 'none'; sandbox; frame-ancestors 'none'",
			"Cross-Origin-Resource-Policy": "same-origin",
			"Cache-Control":                "no-store",
			"Content-Length":               "25",
		} {
			if got := got.header.Get(header); got != want {
				t.Errorf("%s: %s is %q, want %q", name, header, got, want)
			}
		}
		if got := got.header.Get("Content-Digest"); !strings.HasPrefix(got, "sha-256=:") || !strings.HasSuffix(got, "=:") {
			t.Errorf("%s: digest %q", name, got)
		}
	}
	for _, accept := range []string{"", "*/*", "application/json", "application/*"} {
		if got := w.call(http.MethodGet, "/v1/skills/x/components/a", "", "Accept", accept); got.header.Get("Content-Type") != "application/json" {
			t.Errorf("Accept %q: %s", accept, got.header.Get("Content-Type"))
		}
	}
}

func TestBytesThatDifferFromTheirDigestAreNotSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.skills.component = func(sallyport.SkillRef, sallyport.RevisionID, string) (sallyport.Component, error) {
		c := sampleComponent()
		c.Content = []byte("tampered")
		return c, nil
	}
	w.runs.artifact = func(sallyport.ExecutionID, string) (sallyport.Artifact, []byte, error) {
		return sallyport.Artifact{Path: "a", SHA256: sha}, []byte("tampered"), nil
	}
	for _, target := range []string{"/v1/skills/x/components/a?raw=1", "/v1/executions/e/artifacts/a"} {
		got := w.call(http.MethodGet, target, "")
		if got.status != http.StatusInternalServerError || bytes.Contains(got.body, []byte("tampered")) {
			t.Errorf("%s: %d %s", target, got.status, got.body)
		}
	}
}

func TestArtifact(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ path, media, wantType, wantName string }{
		"plain":         {"out/report.md", "text/markdown", "text/markdown", "report.md"},
		"no type":       {"x", "", "application/octet-stream", "x"},
		"broken type":   {"x", "text/html\r\nX-Evil: 1", "application/octet-stream", "x"},
		"quoted name":   {`a"b.txt`, "text/plain", "text/plain", `a"b.txt`},
		"unicode name":  {"réport €.txt", "text/plain", "text/plain", "réport €.txt"},
		"name of parts": {"a;filename=evil.exe", "text/plain", "text/plain", "a;filename=evil.exe"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.runs.artifact = func(id sallyport.ExecutionID, path string) (sallyport.Artifact, []byte, error) {
				if id != "e-1" || path != test.path {
					t.Errorf("got %q %q", id, path)
				}
				return sallyport.Artifact{Path: test.path, Size: 5, SHA256: sha, MediaType: test.media}, []byte("hello"), nil
			}
			escaped := strings.NewReplacer("/", "%2F", `"`, "%22", " ", "%20", "€", "%E2%82%AC", "é", "%C3%A9", ";", "%3B").Replace(test.path)
			got := w.call(http.MethodGet, "/v1/executions/e-1/artifacts/"+escaped, "")
			if got.status != http.StatusOK || string(got.body) != "hello" {
				t.Fatalf("%d %s", got.status, got.body)
			}
			if media := got.header.Get("Content-Type"); media != test.wantType {
				t.Errorf("type %q, want %q", media, test.wantType)
			}
			kind, params, err := mime.ParseMediaType(got.header.Get("Content-Disposition"))
			if err != nil || kind != "attachment" {
				t.Errorf("disposition %q: %v", got.header.Get("Content-Disposition"), err)
			}
			if diff := cmp.Diff(map[string]string{"filename": test.wantName}, params); diff != "" {
				t.Errorf("disposition (-want +got):\n%s", diff)
			}
		})
	}
}
