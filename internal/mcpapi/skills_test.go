package mcpapi_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/mcpapi"
	"github.com/sallyport-dev/sallyport/internal/store"
	"github.com/sallyport-dev/sallyport/registry"
)

// library is a real registry over a real database, and an API that serves it.
type library struct {
	*registry.Service
	*fixture
}

type noTrail struct{}

func (noTrail) Append(context.Context, sallyport.Entry) error { return nil }

func newLibrary(t *testing.T, change ...func(*mcpapi.Config)) library {
	t.Helper()
	database, err := store.Open(t.Context(), store.Config{Path: filepath.Join(t.TempDir(), "sallyport.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = database.Shutdown() })
	l := library{Service: registry.New(registry.Config{Store: database, Trail: noTrail{}})}
	l.fixture = newFixture(t, append([]func(*mcpapi.Config){func(c *mcpapi.Config) { c.Skills, c.Catalogue = l.Service, l.Service }}, change...)...)
	return l
}

func manifest(name string) string {
	return "---\nname: " + name + "\ndescription: Does " + name + ".\n---\n# " + name + "\n"
}

// keep saves and publishes a skill of alice's from paths and contents.
func (l library) keep(t *testing.T, req registry.SaveRequest, files ...string) registry.SaveResult {
	t.Helper()
	for i := 0; i < len(files); i += 2 {
		req.Files = append(req.Files, registry.File{Path: files[i], Content: []byte(files[i+1])})
	}
	saved, err := l.Save(t.Context(), alice(), req)
	if err != nil {
		t.Fatal(err)
	}
	return saved
}

func published() registry.SaveRequest { return registry.SaveRequest{Publish: true} }

// protocolAnswer is an answer of a method that is no tool.
type protocolAnswer struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

// ask sends one request of the older revision on stdio.
func (l library) ask(t *testing.T, p sallyport.Principal, method, params string) protocolAnswer {
	t.Helper()
	answers := l.stdio(t, p, initializeLine, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`)
	var answer protocolAnswer
	if err := json.Unmarshal(answers["1"], &answer); err != nil {
		t.Fatalf("%s: %v", answers["1"], err)
	}
	return answer
}

// get asks and decodes the result into v.
func (l library) get(t *testing.T, p sallyport.Principal, method, params string, v any) {
	t.Helper()
	answer := l.ask(t, p, method, params)
	if answer.Error != nil {
		t.Fatalf("%s %s: %+v", method, params, answer.Error)
	}
	if err := json.Unmarshal(answer.Result, v); err != nil {
		t.Fatal(err)
	}
}

type skillsPage struct {
	Meta       map[string]json.RawMessage `json:"_meta"`
	ResultType string                     `json:"resultType"`
	TTLMs      *int                       `json:"ttlMs"`
	CacheScope string                     `json:"cacheScope"`
	NextCursor string                     `json:"nextCursor"`
	Skills     []entry                    `json:"skills"`
	Skill      entry                      `json:"skill"`
	Resources  []element                  `json:"resources"`
	Contents   []contents                 `json:"contents"`
}

type contents struct {
	URI  string  `json:"uri"`
	Text *string `json:"text"`
	Blob *string `json:"blob"`
}

func (c contents) bytes() ([]byte, error) {
	if c.Text != nil {
		return []byte(*c.Text), nil
	}
	return base64.StdEncoding.DecodeString(*c.Blob)
}

type entry struct {
	Meta        map[string]string `json:"_meta"`
	URI         string            `json:"uri"`
	Frontmatter json.RawMessage   `json:"frontmatter"`
	Resources   []element         `json:"resources"`
}

type element struct {
	URI      string `json:"uri"`
	Name     string `json:"name"`
	MIMEType string `json:"mimeType"`
	Digest   string `json:"digest"`
	Size     *int64 `json:"size"`
}

func uris(elements []element) []string {
	out := []string{}
	for _, e := range elements {
		out = append(out, e.URI)
	}
	return out
}

// cacheable fails the test unless the page says that it is whole and private.
func (p skillsPage) cacheable(t *testing.T, what string, ttl int) {
	t.Helper()
	if p.ResultType != "complete" || p.TTLMs == nil || *p.TTLMs != ttl || p.CacheScope != "private" {
		t.Errorf("%s: resultType %q, ttlMs %v, cacheScope %q; want complete, %d, private", what, p.ResultType, p.TTLMs, p.CacheScope, ttl)
	}
}

// Every file of a skill is listed once, and what is read under its URI is what its digest and size say, whatever its name and bytes.
func TestSkillsAreServedByteForByte(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	saved := l.keep(
		t, published(), "SKILL.md", "---\nname: hard\ndescription: d\nversion: 1.10\nbig: 12345678901234567890\nx: {\"<&>\": [1, null]}\n---\n",
		"assets/all.bin", "\x00\xff\xfe", "assets/empty", "", "références/a b#?%25.md", "é", "nested/SKILL.md", manifest("nested"), "nul.txt", "a\x00b", "bom.txt", "\ufeffx",
	)
	var page skillsPage
	l.get(t, bob(), "skills/list", `{}`, &page)
	page.cacheable(t, "skills/list", 0)
	if len(page.Skills) != 1 {
		t.Fatalf("listed %+v, want one skill", page.Skills)
	}
	got := page.Skills[0]
	if got.URI != "skill://default/hard/SKILL.md" || got.Meta["dev.sallyport/skill_id"] != string(saved.Skill.ID) ||
		got.Meta["dev.sallyport/revision_digest"] != string(saved.Revision.Digest) {
		t.Errorf("entry %+v", got)
	}
	want := json.RawMessage(`{"name":"hard","description":"d","version":1.1,"big":12345678901234567890,"x":{"<&>":[1,null]}}`)
	if diff := cmp.Diff(want, got.Frontmatter, sameJSON(t)); diff != "" {
		t.Errorf("frontmatter (-want +got):\n%s", diff)
	}
	wantURIs := []string{
		"skill://default/hard/SKILL.md", "skill://default/hard/assets/all.bin", "skill://default/hard/assets/empty", "skill://default/hard/bom.txt",
		"skill://default/hard/nested/SKILL.md", "skill://default/hard/nul.txt", "skill://default/hard/r%C3%A9f%C3%A9rences/a%20b%23%3F%2525.md",
	}
	if diff := cmp.Diff(wantURIs, uris(got.Resources)); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
	var alone skillsPage
	l.get(t, bob(), "skills/get", `{"uri":"`+got.Meta["dev.sallyport/revision_uri"]+`"}`, &alone)
	alone.cacheable(t, "skills/get of a revision", 3_600_000)
	for _, served := range []entry{got, alone.Skill} {
		for i, resource := range served.Resources {
			var read skillsPage
			l.get(t, bob(), "resources/read", `{"uri":"`+resource.URI+`"}`, &read)
			if len(read.Contents) != 1 || read.CacheScope != "private" || read.Contents[0].URI != resource.URI || (read.Contents[0].Text == nil) == (read.Contents[0].Blob == nil) {
				t.Fatalf("%s: %+v", resource.URI, read)
			}
			content, err := read.Contents[0].bytes()
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(content)
			if resource.Digest != "sha256:"+hex.EncodeToString(sum[:]) || *resource.Size != int64(len(content)) || resource.Digest != got.Resources[i].Digest {
				t.Errorf("%s: %d bytes %x, listed %s %d", resource.URI, len(content), sum, resource.Digest, *resource.Size)
			}
		}
	}
}

// What a caller may not see is as unknown as what is not there, on every method.
func TestUnknownSkillURIs(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	plain := l.keep(t, published(), "SKILL.md", manifest("plain"), "a/b.txt", "b")
	draft := l.keep(t, registry.SaveRequest{}, "SKILL.md", manifest("draft"))
	mine := l.keep(t, registry.SaveRequest{Publish: true, Personal: true}, "SKILL.md", manifest("mine"))
	gone := l.keep(t, published(), "SKILL.md", manifest("gone"))
	if _, err := l.Archive(t.Context(), alice(), sallyport.SkillRef{SkillID: gone.Skill.ID}); err != nil {
		t.Fatal(err)
	}
	pin := func(s registry.SaveResult, place string) string {
		return "skill://" + place + "/" + s.Skill.Slug + "@" + string(s.Revision.ID) + "/" + s.Skill.Slug
	}
	stranger := bob()
	stranger.Teams = nil
	neighbour := alice()
	neighbour.TenantID = "other"
	for name, test := range map[string]struct {
		p     sallyport.Principal
		root  string
		known bool
	}{
		"published":                          {bob(), "skill://default/plain", true},
		"published, to who is in no team":    {stranger, "skill://default/plain", false},
		"published, to another tenant":       {neighbour, "skill://default/plain", false},
		"as a personal one":                  {bob(), "skill://personal/plain", false},
		"another place":                      {bob(), "skill://elsewhere/plain", false},
		"a revision":                         {bob(), pin(plain, "default"), true},
		"a revision, to who is in no team":   {stranger, pin(plain, "default"), false},
		"a revision of another skill":        {bob(), "skill://default/plain@" + string(draft.Revision.ID) + "/plain", false},
		"a revision that is not":             {bob(), "skill://default/plain@x/plain", false},
		"a revision without the name":        {bob(), "skill://default/plain@" + string(plain.Revision.ID), false},
		"a revision with another name":       {bob(), "skill://default/plain@" + string(plain.Revision.ID) + "/other", false},
		"a draft by its slug":                {bob(), "skill://default/draft", false},
		"a draft by its revision":            {bob(), pin(draft, "default"), true},
		"personal":                           {alice(), "skill://personal/mine", true},
		"personal, to another":               {bob(), "skill://personal/mine", false},
		"personal, in the team":              {alice(), "skill://default/mine", false},
		"a personal revision, to another":    {bob(), pin(mine, "personal"), false},
		"archived":                           {bob(), "skill://default/gone", false},
		"archived, by its revision":          {bob(), pin(gone, "default"), true},
		"a name that is a path":              {bob(), "skill://default/plain/..", false},
		"a name that is an encoded path":     {bob(), "skill://default/%2e%2e/plain", false},
		"an encoded slash":                   {bob(), "skill://default/plain%2Fa", false},
		"an empty segment":                   {bob(), "skill://default//plain", false},
		"broken encoding":                    {bob(), "skill://default/plain%zz", false},
		"a query":                            {bob(), "skill://default/plain?x", false},
		"another scheme":                     {bob(), "file:///plain", false},
		"a long one":                         {bob(), "skill://default/plain/" + strings.Repeat("a", 5000), false},
		"the slug written in another way":    {bob(), "skill://default/pl%61in", true},
		"the file of a skill as a directory": {bob(), "skill://default/plain/a/b.txt", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for method, uri := range map[string]string{
				"skills/get": test.root + "/SKILL.md", "resources/read": test.root + "/SKILL.md", "resources/directory/read": test.root,
			} {
				answer := l.ask(t, test.p, method, `{"uri":"`+uri+`"}`)
				switch {
				case test.known && answer.Error != nil:
					t.Errorf("%s %s: %+v", method, uri, answer.Error)
				case !test.known && (answer.Error == nil || answer.Error.Code != -32602):
					t.Errorf("%s %s: %s %+v, want -32602", method, uri, answer.Result, answer.Error)
				}
			}
		})
	}
}

func TestSkillsListLeavesOut(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.keep(t, published(), "SKILL.md", manifest("one"))
	l.keep(t, published(), "SKILL.md", "---\nname: loose\ndescription: d\nmetadata: {version: 1.0}\n---\n")
	l.keep(t, published(), "SKILL.md", "---\nname: Pdf Tools\ndescription: d\n---\n", "a.txt", "a")
	l.keep(t, registry.SaveRequest{}, "SKILL.md", manifest("draft"))
	l.keep(t, registry.SaveRequest{Publish: true, Ref: sallyport.SkillRef{Slug: "slug"}}, "SKILL.md", manifest("name"))
	var page skillsPage
	l.get(t, bob(), "skills/list", `{}`, &page)
	got := []string{}
	for _, e := range page.Skills {
		got = append(got, e.URI)
	}
	if diff := cmp.Diff([]string{"skill://default/one/SKILL.md", "skill://default/slug/name/SKILL.md"}, got); diff != "" || string(page.Meta["dev.sallyport/unlisted"]) != "2" {
		t.Errorf("_meta %s, skills (-want +got):\n%s", page.Meta, diff)
	}
	var resources skillsPage
	l.get(t, bob(), "resources/list", `{}`, &resources)
	if diff := cmp.Diff(got, uris(resources.Resources)); diff != "" {
		t.Errorf("resources/list (-skills/list +got):\n%s", diff)
	}
	// A skill that no list holds is still an entry of its own when its name can be, and its files have URIs in any case.
	l.get(t, bob(), "skills/get", `{"uri":"skill://default/loose/SKILL.md"}`, &page)
	if answer := l.ask(t, bob(), "skills/get", `{"uri":"skill://default/pdf-tools/SKILL.md"}`); answer.Error == nil || answer.Error.Code != -32602 {
		t.Errorf("a name that hosts refuse: %+v", answer)
	}
	l.get(t, bob(), "resources/read", `{"uri":"skill://default/pdf-tools/a.txt"}`, &page)
	// recall finds both.
	for _, slug := range []string{"loose", "pdf-tools"} {
		if r := l.call(t, bob(), recall, `{"slug":"`+slug+`"}`); r.code() != "" {
			t.Errorf("recall of %s: %s", slug, r.Structured)
		}
	}
}

// A page never splits an entry, keeps to its size, and all pages together hold every skill once.
func TestSkillsListPages(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	want := []string{}
	for i := range 120 {
		name := fmt.Sprintf("skill-%03d", i)
		files := []string{"SKILL.md", manifest(name)}
		if i < 6 { // large entries
			for j := range 300 {
				files = append(files, fmt.Sprintf("%s/%03d", strings.Repeat("é", 100), j), "x")
			}
		}
		l.keep(t, published(), files...)
		want = append(want, "skill://default/"+name+"/SKILL.md")
	}
	for _, method := range []string{"skills/list", "resources/list"} {
		var got []string
		params, pages := `{}`, 0
		for {
			var page skillsPage
			answer := l.ask(t, bob(), method, params)
			if answer.Error != nil {
				t.Fatalf("%s: %+v", method, answer.Error)
			}
			if len(answer.Result) > 2<<20 {
				t.Errorf("%s: a page of %d bytes", method, len(answer.Result))
			}
			if err := json.Unmarshal(answer.Result, &page); err != nil {
				t.Fatal(err)
			}
			for _, e := range page.Skills {
				got = append(got, e.URI)
			}
			got = append(got, uris(page.Resources)...)
			if pages++; page.NextCursor == "" || pages > 100 {
				break
			}
			cursor, err := json.Marshal(map[string]string{"cursor": page.NextCursor})
			if err != nil {
				t.Fatal(err)
			}
			params = string(cursor)
		}
		if diff := cmp.Diff(want, got); diff != "" || pages < 3 {
			t.Errorf("%s in %d pages (-want +got):\n%s", method, pages, diff)
		}
		if answer := l.ask(t, bob(), method, `{"cursor":"x"}`); answer.Error == nil || answer.Error.Code != -32602 {
			t.Errorf("%s with a made-up cursor: %+v", method, answer)
		}
	}
}

func TestDirectoryRead(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.keep(t, published(), "SKILL.md", manifest("dirs"), "a/b/c.txt", "c", "a/b.txt", "b", "a-b", "", "ü/x", "x")
	for root, want := range map[string][]string{
		"skill://default/dirs":        {"SKILL.md text/markdown", "a inode/directory", "a-b ", "ü inode/directory"},
		"skill://default/dirs/a":      {"b inode/directory", "b.txt text/plain"},
		"skill://default/dirs/a/b":    {"c.txt text/plain"},
		"skill://default/dirs/%C3%BC": {"x "},
	} {
		var page skillsPage
		l.get(t, bob(), "resources/directory/read", `{"uri":"`+root+`"}`, &page)
		page.cacheable(t, root, 0)
		var got []string
		for _, child := range page.Resources {
			media, _, _ := strings.Cut(child.MIMEType, ";")
			if (media == "inode/directory") != (child.Size == nil) || !strings.HasPrefix(child.URI, root+"/") {
				t.Errorf("%s: child %+v", root, child)
			}
			if !strings.Contains(child.Name, ".") && media != "inode/directory" {
				media = "" // of a file without an extension
			}
			got = append(got, child.Name+" "+media)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", root, diff)
		}
	}
	for _, params := range []string{`{}`, `{"uri":""}`, `{"uri":"skill://default/dirs/"}`, `{"uri":"skill://default"}`, `{"uri":"skill://default/dirs/SKILL.md"}`, `{"uri":"skill://default/dirs/a","cursor":"1"}`} {
		if answer := l.ask(t, bob(), "resources/directory/read", params); answer.Error == nil || answer.Error.Code != -32602 {
			t.Errorf("%s: %s %+v, want -32602", params, answer.Result, answer.Error)
		}
	}
}

// Without memory:read nothing of the extension answers, and with StepUp the refusal is a challenge.
func TestSkillsNeedTheScope(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.keep(t, published(), "SKILL.md", manifest("plain"))
	nobody := alice()
	nobody.Scopes = []sallyport.Scope{sallyport.ScopeMemoryWrite}
	methods := []string{"skills/list", "skills/get", "resources/list", "resources/read", "resources/directory/read"}
	for _, method := range methods {
		answer := l.ask(t, nobody, method, `{"uri":"skill://default/plain/SKILL.md"}`)
		if answer.Error == nil || answer.Error.Code != -32000 || !strings.Contains(string(answer.Error.Data), "ACCESS_DENIED") {
			t.Errorf("%s: %s %+v", method, answer.Result, answer.Error)
		}
	}
	nobody.KeyID = ""
	url := serve(t, newLibrary(t, func(c *mcpapi.Config) { c.StepUp = true }).Handler(as(nobody)))
	for _, method := range methods {
		body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"uri":"skill://default/plain/SKILL.md"}}`
		if resp := post(t, url, legacy, method, "", body); resp.status != http.StatusForbidden || !strings.Contains(resp.header.Get("WWW-Authenticate"), "memory:read") {
			t.Errorf("%s: %d %q", method, resp.status, resp.header.Get("WWW-Authenticate"))
		}
	}
}

// The places of two teams never meet, and none meets the personal one.
func TestPlacesOfTeams(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	teams := []sallyport.TeamID{"default", "personal", "Ops Team", "ops-team", "x--dead", "a.b", "é", sallyport.TeamID(strings.Repeat("t", 80))}
	p := alice()
	p.Teams = teams
	for _, team := range teams {
		_, err := l.Save(t.Context(), p, registry.SaveRequest{
			Ref: sallyport.SkillRef{Slug: "same", TeamID: team}, Publish: true, Files: []registry.File{{Path: "SKILL.md", Content: []byte(manifest("same") + string(team))}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Save(t.Context(), p, registry.SaveRequest{Personal: true, Publish: true, Files: []registry.File{{Path: "SKILL.md", Content: []byte(manifest("same"))}}}); err != nil {
		t.Fatal(err)
	}
	var page skillsPage
	l.get(t, p, "skills/list", `{}`, &page)
	seen := []string{}
	for _, e := range page.Skills {
		host, _, _ := strings.Cut(strings.TrimPrefix(e.URI, "skill://"), "/")
		if host == "" || strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || slices.Contains(seen, host) {
			t.Errorf("the place %q is no host name or comes twice", host)
		}
		seen = append(seen, host)
		var alone skillsPage
		l.get(t, p, "skills/get", `{"uri":"`+e.URI+`"}`, &alone)
		if diff := cmp.Diff(e, alone.Skill, sameJSON(t)); diff != "" {
			t.Errorf("%s (-list +get):\n%s", e.URI, diff)
		}
	}
	if len(seen) != len(teams)+1 {
		t.Errorf("listed in %q, want %d places", seen, len(teams)+1)
	}
}
