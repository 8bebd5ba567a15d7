package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/httpapi"
	"github.com/sallyport-dev/sallyport/registry"
)

// shelf is a catalogue of revisions with content, a page for each.
type shelf struct {
	entries  []registry.CatalogueEntry
	unlisted int
	read     int // calls of Content
}

func (s *shelf) Catalogue(_ context.Context, _ sallyport.Principal, req registry.CatalogueRequest) (registry.CataloguePage, error) {
	page := registry.CataloguePage{Unlisted: s.unlisted}
	for i, entry := range s.entries {
		if id := string(entry.Skill.ID); i == 0 && req.Cursor == "" || id == req.Cursor {
			page.Entries = []registry.CatalogueEntry{withoutContent(entry)}
			if i+1 < len(s.entries) {
				page.NextCursor = string(s.entries[i+1].Skill.ID)
			}
		}
	}
	return page, nil
}

func (s *shelf) Served(_ context.Context, _ sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID) (registry.CatalogueEntry, error) {
	for _, entry := range s.entries {
		if entry.Skill.ID == ref.SkillID && entry.Revision.ID == id {
			return withoutContent(entry), nil
		}
	}
	return registry.CatalogueEntry{}, &sallyport.Error{Op: "shelf", Code: sallyport.CodeAccessDenied}
}

func (s *shelf) Content(_ context.Context, _ sallyport.Principal, want registry.CatalogueEntry) (sallyport.Revision, error) {
	s.read++
	for _, entry := range s.entries {
		if entry.Revision.ID == want.Revision.ID {
			return entry.Revision, nil
		}
	}
	return sallyport.Revision{}, &sallyport.Error{Op: "shelf", Code: sallyport.CodeRevisionNotFound}
}

func withoutContent(entry registry.CatalogueEntry) registry.CatalogueEntry {
	components := []sallyport.Component{}
	for _, c := range entry.Revision.Components {
		c.Content = nil
		components = append(components, c)
	}
	entry.Revision.Components = components
	return entry
}

func shelved(id, team, name, description string, paths ...string) registry.CatalogueEntry {
	frontmatter, err := json.Marshal(map[string]string{"name": name, "description": description})
	if err != nil {
		panic(err)
	}
	entry := registry.CatalogueEntry{
		Skill:    sallyport.Skill{ID: sallyport.SkillID("s-" + id), TeamID: sallyport.TeamID(team)},
		Revision: sallyport.Revision{ID: sallyport.RevisionID("r-" + id), Frontmatter: frontmatter},
	}
	for _, path := range append([]string{"SKILL.md"}, paths...) {
		content := []byte(id + " " + path)
		entry.Revision.Components = append(entry.Revision.Components, sallyport.Component{
			Path: path, Size: int64(len(content)), SHA256: sallyport.DigestOf(content).Hex(), Content: content, Mode: 0o644,
		})
	}
	return entry
}

type discovered struct {
	Schema string `json:"$schema"`
	Skills []struct {
		Name, Type, Description, URL string
		Digest                       sallyport.Digest
	}
	Unlisted int
}

// Every entry leads to an artifact whose bytes its digest names; the older path has the same index.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("d", 150)
	s := &shelf{unlisted: 1, entries: []registry.CatalogueEntry{
		shelved("1", "default", "beta", "b", "a/é.txt"), shelved("2", "default", "alpha", "a"),
		shelved("3", "default", "deep", strings.Repeat("x", 1023)+"😀😀", long+"/"+long), shelved("4", "", "beta", "mine", "own.txt"),
	}}
	w := newWorld(t, func(c *httpapi.Config) { c.Catalogue = s })
	first := w.call(http.MethodGet, "/.well-known/agent-skills/index.json", "")
	if first.status != http.StatusOK {
		t.Fatalf("%d %s", first.status, first.body)
	}
	read := s.read
	second := w.call(http.MethodGet, "/.well-known/skills/index.json", "")
	if !bytes.Equal(first.body, second.body) || s.read != read {
		t.Errorf("the older path says %s after %d reads more, want %s", second.body, s.read-read, first.body)
	}
	var index discovered
	if err := json.Unmarshal(first.body, &index); err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, entry := range index.Skills {
		artifact := w.call(http.MethodGet, entry.URL, "")
		if artifact.status != http.StatusOK || sallyport.DigestOf(artifact.body) != entry.Digest {
			t.Errorf("%s: %d, %s, want %s", entry.URL, artifact.status, sallyport.DigestOf(artifact.body), entry.Digest)
		}
		again := w.call(http.MethodGet, entry.URL, "")
		if !bytes.Equal(artifact.body, again.body) {
			t.Errorf("%s: other bytes the second time", entry.URL)
		}
		got = append(got, entry.Name+" "+entry.Type+" "+entry.URL+" "+artifact.header.Get("Content-Type"))
	}
	want := []string{
		"alpha skill-md /.well-known/agent-skills/s-2/r-2/SKILL.md text/markdown; charset=utf-8",
		"beta archive /.well-known/agent-skills/s-4/r-4/skill.tar.gz application/gzip",
		"deep archive /.well-known/agent-skills/s-3/r-3/skill.zip application/zip",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	if index.Unlisted != 5 { // one of each page, and the second beta
		t.Errorf("unlisted %d, want 5", index.Unlisted)
	}
	if d := index.Skills[2].Description; d != strings.Repeat("x", 1023) {
		t.Errorf("the description is cut to %d bytes that end in %q", len(d), d[len(d)-4:])
	}
}

func TestDiscoveryRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *httpapi.Config) {
		c.Catalogue = &shelf{entries: []registry.CatalogueEntry{shelved("1", "default", "one", "d", "a"), shelved("2", "default", "two", "d")}}
	})
	for target, want := range map[string]string{
		"/.well-known/agent-skills/s-1/r-1/SKILL.md":     "ARTIFACT_NOT_FOUND",
		"/.well-known/agent-skills/s-1/r-1/skill.zip":    "ARTIFACT_NOT_FOUND",
		"/.well-known/agent-skills/s-2/r-2/skill.tar.gz": "ARTIFACT_NOT_FOUND",
		"/.well-known/agent-skills/s-1/r-2/skill.tar.gz": "ACCESS_DENIED",
		"/.well-known/agent-skills/s-9/r-1/skill.tar.gz": "ACCESS_DENIED",
		"/.well-known/agent-skills/index.json?x=1":       "INVALID_ARGUMENT",
	} {
		if code, _ := w.call(http.MethodGet, target, "").refusal(t); code != want {
			t.Errorf("%s: %s, want %s", target, code, want)
		}
	}
	closed := newWorld(t, func(c *httpapi.Config) {
		c.Auth = fakeAuth(func(*http.Request) (sallyport.Principal, error) {
			return sallyport.Principal{}, &sallyport.Error{Op: "test", Code: sallyport.CodeUnauthenticated}
		})
	})
	for _, target := range []string{"/.well-known/agent-skills/index.json", "/.well-known/skills/index.json", "/.well-known/agent-skills/s-1/r-1/skill.tar.gz"} {
		if got := closed.call(http.MethodGet, target, ""); got.status != http.StatusUnauthorized {
			t.Errorf("%s without a key: %d", target, got.status)
		}
	}
}

// A component that is not what its record says is sent to nobody.
func TestDiscoveryOfDamagedContent(t *testing.T) {
	t.Parallel()
	damaged := shelved("1", "default", "one", "d", "a")
	damaged.Revision.Components[1].Content = []byte("changed")
	w := newWorld(t, func(c *httpapi.Config) { c.Catalogue = &shelf{entries: []registry.CatalogueEntry{damaged}} })
	for _, target := range []string{"/.well-known/agent-skills/index.json", "/.well-known/agent-skills/s-1/r-1/skill.tar.gz"} {
		if got := w.call(http.MethodGet, target, ""); got.status != http.StatusInternalServerError {
			t.Errorf("%s: %d %s", target, got.status, got.body)
		}
	}
}
