package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/httpapi"
	"github.com/sallyport-dev/sallyport/registry"
)

// formOf writes parts as a client does that sends paths as they are: name, content, name, content.
func formOf(t *testing.T, parts ...string) (body []byte, media string) {
	t.Helper()
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	for i := 0; i+1 < len(parts); i += 2 {
		part, err := form.CreatePart(textproto.MIMEHeader{"Content-Disposition": {`form-data; name="files"; filename="` + parts[i] + `"`}})
		if err == nil {
			_, err = part.Write([]byte(parts[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := form.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), form.FormDataContentType()
}

// A browser sends a folder as one part for each file; curl sends an archive as one part. Nothing of either has a name on disk.
func TestImportForm(t *testing.T) {
	t.Parallel()
	archive := string(gzipped(t, tarball(t, "pdf/SKILL.md", "hello")))
	for name, test := range map[string]struct {
		parts []string
		want  map[string]string
	}{
		"a folder":      {[]string{"pdf/SKILL.md", "hello", "pdf/scripts/run.py", "print(1)", "pdf/a b/ü.bin", "\x00\xff"}, map[string]string{"pdf/SKILL.md": "hello", "pdf/scripts/run.py": "print(1)", "pdf/a b/ü.bin": "\x00\xff"}},
		"dots before":   {[]string{"./pdf/SKILL.md", "hello", "./pdf/b", ""}, map[string]string{"pdf/SKILL.md": "hello", "pdf/b": ""}},
		"Windows":       {[]string{`pdf\\SKILL.md`, "hello", `pdf\\b`, ""}, map[string]string{"pdf/SKILL.md": "hello", "pdf/b": ""}},
		"a tar.gz":      {[]string{"whatever.bin", archive}, map[string]string{"pdf/SKILL.md": "hello"}},
		"a tar":         {[]string{"x", string(tarball(t, "pdf/SKILL.md", "hello"))}, map[string]string{"pdf/SKILL.md": "hello"}},
		"a zip":         {[]string{"x", string(zipped(t, "pdf/SKILL.md", "hello"))}, map[string]string{"pdf/SKILL.md": "hello"}},
		"one SKILL.md":  {[]string{"SKILL.md", "hello"}, map[string]string{"SKILL.md": "hello"}},
		"archive files": {[]string{"pdf/SKILL.md", "hello", "pdf/a.tgz", archive}, map[string]string{"pdf/SKILL.md": "hello", "pdf/a.tgz": archive}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spool := t.TempDir()
			w := newWorld(t, func(c *httpapi.Config) { c.SpoolDir = spool })
			got := map[string]string{}
			w.skills.importAll = func(ctx context.Context, tree registry.Tree, _ registry.ImportOptions) (registry.ImportReport, error) {
				entries, err := tree.Entries(ctx)
				if err != nil {
					t.Error(err)
				}
				for _, entry := range entries {
					content, err := tree.ReadFile(ctx, entry.Path, 1<<20)
					if err != nil || entry.Size != int64(len(content)) {
						t.Errorf("%+v %d %v", entry, len(content), err)
					}
					got[entry.Path] = string(content)
				}
				if names, err := os.ReadDir(spool); err != nil || len(names) != 0 {
					t.Errorf("the upload has a name on disk: %v, %v", names, err)
				}
				return sampleReport(), nil
			}
			body, media := formOf(t, test.parts...)
			answer := w.do(upload(t, "/v1/import?publish=true", media, bytes.NewReader(body)))
			if diff := cmp.Diff(test.want, got); answer.status != http.StatusOK || diff != "" {
				t.Errorf("%d %s (-want +got):\n%s", answer.status, answer.body, diff)
			}
		})
	}
}

// F48: a client that strips directories cannot say which file lies where, so the rule is stated instead of guessing at a SKILL.md.
func TestImportRefusesForms(t *testing.T) {
	t.Parallel()
	const limit = 64 << 10
	field := "--x\r\nContent-Disposition: form-data; name=\"publish\"\r\n\r\ntrue\r\n--x--\r\n"
	encoded := "--x\r\nContent-Disposition: form-data; name=\"a\"; filename=\"pdf/SKILL.md\"\r\nContent-Transfer-Encoding: base64\r\n\r\nAAAA\r\n--x--\r\n"
	stripped, media := formOf(t, "SKILL.md", "x", "run.py", "y")
	twice, twiceMedia := formOf(t, "a/SKILL.md", "x", "a/SKILL.md", "y")
	nameless, namelessMedia := formOf(t, "", "x")
	cut, cutMedia := formOf(t, "a/SKILL.md", "x")
	large, largeMedia := formOf(t, "a/SKILL.md", strings.Repeat("x", 2*limit))
	lone, loneMedia := formOf(t, "notes.txt", "x")
	none, noneMedia := formOf(t)
	for name, test := range map[string]struct {
		media, body string
		status      int
		says        string
	}{
		"stripped folders": {media, string(stripped), 400, "send every file with its path"},
		"no skill":         {loneMedia, string(lone), 400, "send every file with its path"},
		"one path twice":   {twiceMedia, string(twice), 400, "two files are named"},
		"no name":          {namelessMedia, string(nameless), 400, "has no name"},
		"no part":          {noneMedia, string(none), 400, "no file"},
		"a field":          {"multipart/form-data; boundary=x", field, 400, "into the query"},
		"an encoding":      {"multipart/form-data; boundary=x", encoded, 400, "Transfer-Encoding"},
		"no boundary":      {"multipart/form-data", "x", 400, "no boundary"},
		"cut off":          {cutMedia, string(cut[:len(cut)-10]), 400, "ends too early"},
		"too large":        {largeMedia, string(large), 413, "65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(c *httpapi.Config) { c.MaxImportBytes = limit })
			got := w.do(upload(t, "/v1/import", test.media, strings.NewReader(test.body)))
			if _, message := got.refusal(t); got.status != test.status || !strings.Contains(message, test.says) {
				t.Errorf("%d %q, want %q in it", got.status, message, test.says)
			}
		})
	}
}

// A name that leads out of the folder is left to the rules of every import, which refuse the whole of it.
func TestImportFormKeepsHostileNames(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]string{
		"../../etc/passwd": "../../etc/passwd", "/etc/passwd": "/etc/passwd", `C:\\x\\SKILL.md`: "C:/x/SKILL.md", `a\\..\\..\\x`: "a/../../x",
	} {
		w := newWorld(t)
		w.skills.importAll = func(ctx context.Context, tree registry.Tree, opts registry.ImportOptions) (registry.ImportReport, error) {
			entries, err := tree.Entries(ctx)
			if err != nil || entries[0].Path != want {
				t.Errorf("%q became %+v, %v", sent, entries, err)
			}
			return registry.New(registry.Config{}).Import(ctx, principal(), tree, opts)
		}
		body, media := formOf(t, sent, "x", "pdf/SKILL.md", "y")
		got := w.do(upload(t, "/v1/import", media, bytes.NewReader(body)))
		if code, _ := got.refusal(t); code != "UNSAFE_PATH" {
			t.Errorf("%q: %d %s", sent, got.status, got.body)
		}
	}
}

// Who accepts lines hears of every skill when it was dealt with; the last line is what the answer would have been.
func TestImportProgress(t *testing.T) {
	t.Parallel()
	steps := 0
	var fault error
	w := newWorld(t)
	run := func(opts registry.ImportOptions) (registry.ImportReport, error) {
		for i := range steps {
			opts.Progress(registry.ImportProgress{Done: i + 1, Total: steps, Path: fmt.Sprint("s", i), Slug: "s", Result: "imported"})
		}
		return sampleReport(), fault
	}
	w.skills.importAll = func(_ context.Context, _ registry.Tree, opts registry.ImportOptions) (registry.ImportReport, error) {
		return run(opts)
	}
	w.skills.importURL = func(_ string, opts registry.ImportOptions) (registry.ImportReport, registry.Source, error) {
		report, err := run(opts)
		return report, registry.Source{URL: "https://x.dev", Digest: digest}, err
	}
	for _, send := range []func() answered{
		func() answered {
			r := upload(t, "/v1/import", "application/x-tar", bytes.NewReader(tarball(t, "a", "b")))
			r.Header.Set("Accept", "application/json;q=0.5, application/x-ndjson")
			return w.do(r)
		},
		func() answered {
			return w.call("POST", "/v1/import/url", `{"url": "https://x.dev"}`, "Accept", "application/x-ndjson")
		},
	} {
		steps, fault = 2, nil
		got := send()
		lines := strings.Split(strings.TrimSuffix(string(got.body), "\n"), "\n")
		var kinds []string
		for _, line := range lines {
			var envelope sallyport.Envelope[json.RawMessage]
			if err := json.Unmarshal([]byte(line), &envelope); err != nil {
				t.Fatal(err)
			}
			kinds = append(kinds, envelope.Kind)
		}
		if diff := cmp.Diff([]string{"import_progress", "import_progress", "import"}, kinds); got.status != 200 || got.header.Get("Content-Type") != "application/x-ndjson" || diff != "" {
			t.Errorf("%d %v (-want +got):\n%s", got.status, got.header, diff)
		}
		// A refusal after the first line is in the last one; before it, it is what it always is.
		fault = sallyport.Errorf("x", sallyport.CodeStoreUnavailable, "away")
		if got := send(); got.status != 200 || !strings.Contains(string(got.body), `"code":"STORE_UNAVAILABLE"`) {
			t.Errorf("%d %s", got.status, got.body)
		}
		steps = 0
		if code, _ := send().refusal(t); code != "STORE_UNAVAILABLE" {
			t.Errorf("before the first line: %s", code)
		}
	}
}
