package store_test

import (
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/internal/canonical"
	"github.com/sallyport-dev/sallyport/internal/store"
	"github.com/sallyport-dev/sallyport/registry"
	"github.com/sallyport-dev/sallyport/run"
)

// sameDigest compares as text: a Digest's own Equal is for pins, and an empty one equals nothing.
func sameDigest(a, b sallyport.Digest) bool { return a == b }

// skill is the save of a new skill with one file.
func skill(tb testing.TB, id, content string) registry.RevisionSave {
	tb.Helper()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	components := []sallyport.Component{{
		ID: "c", Path: "SKILL.md", Kind: sallyport.KindDocument, Size: int64(len(content)), SHA256: sallyport.DigestOf([]byte(content)).Hex(), Content: []byte(content),
	}}
	digest, err := canonical.RevisionDigest(components)
	if err != nil {
		tb.Fatal(err)
	}
	return registry.RevisionSave{
		Create: true, Publish: true, Instructions: content,
		Skill:    sallyport.Skill{ID: sallyport.SkillID(id), TeamID: "default", Slug: id, Name: id, CreatedAt: at, UpdatedAt: at},
		Revision: sallyport.Revision{ID: sallyport.RevisionID("r" + id[1:]), Digest: digest, Author: "ada", CreatedAt: at, Components: components},
	}
}

// furnish stores one of everything for the tenant acme and returns what everything returns.
func furnish(tb testing.TB, s *store.Store) map[string]any {
	tb.Helper()
	ctx, at := tb.Context(), time.Date(2026, 2, 3, 4, 5, 6, 7000, time.UTC)
	check := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
	}
	_, _, err := s.SaveRevision(ctx, "acme", skill(tb, "s", "# hello walrus\n"))
	check(err)
	check(s.AddGrant(ctx, "acme", sallyport.Grant{ID: "g", SkillID: "s", Pin: sallyport.DigestOf(nil), IssuedAt: at}))
	check(s.AddKey(ctx, "acme", sallyport.Key{ID: "k", PrincipalID: "robot", CreatedAt: at}, make([]byte, 32)))
	e := sallyport.Execution{ID: "e", Status: sallyport.StatusQueued, CreatedAt: at}
	check(s.Open(ctx, "acme", e, sallyport.Entry{At: at, Action: sallyport.ActionScriptRun}))
	e.Status, e.Stdout = sallyport.StatusSuccess, "hello\x00"
	e.Artifacts = []sallyport.Artifact{{Path: "a.txt", Size: 5, SHA256: sallyport.DigestOf([]byte("hello")).Hex()}}
	check(s.Close(ctx, "acme", e, []sallyport.ArtifactFile{{Path: "a.txt", Content: []byte("hello")}}, sallyport.Entry{At: at, Action: sallyport.ActionScriptFinished}))
	check(s.AddCheckpoint(ctx, "acme", audit.Checkpoint{TenantID: "acme", Count: 2, At: at}))
	return everything(tb, s)
}

// everything is what the tenant acme can read.
func everything(tb testing.TB, s *store.Store) map[string]any {
	tb.Helper()
	ctx, all := tb.Context(), map[string]any{}
	note := func(name string) func(value any, err error) {
		return func(value any, err error) {
			tb.Helper()
			if err != nil {
				tb.Fatalf("%s: %v", name, err)
			}
			all[name] = value
		}
	}
	page, err := s.ListSkills(ctx, "acme", registry.SkillFilter{Teams: []sallyport.TeamID{"default"}, Query: "walrus"})
	note("search")(page, err)
	revision, err := s.RevisionContent(ctx, "acme", "s", "r")
	note("revision")(revision, err)
	grants, err := s.Grants(ctx, "acme", "")
	note("grants")(grants, err)
	keys, err := s.Keys(ctx, "acme")
	note("keys")(keys, err)
	execution, err := s.Execution(ctx, "acme", "e")
	note("execution")(execution, err)
	executions, _, err := s.Executions(ctx, "acme", run.ExecutionFilter{})
	note("executions")(executions, err)
	_, content, err := s.ArtifactContent(ctx, "acme", "e", "a.txt")
	note("artifact")(content, err)
	entries, err := s.Entries(ctx, "acme", audit.Filter{})
	note("entries")(entries, err)
	checkpoints, err := s.Checkpoints(ctx, "acme")
	note("checkpoints")(checkpoints, err)
	return all
}
