// Package storetest is the suite that every database of the product passes.
//
// It owns the rules that do not depend on a database: what is found, who sees it, who wins a race, what survives. It
// leaves files, crashes and full disks to the tests of each database. Its one invariant: a rule is tested through the
// interfaces that the product uses, never through SQL.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/internal/canonical"
	"github.com/sallyport-dev/sallyport/records"
	"github.com/sallyport-dev/sallyport/registry"
	"github.com/sallyport-dev/sallyport/run"
	"github.com/sallyport-dev/sallyport/secret"
)

// Backend is everything that the product asks of its database.
type Backend interface {
	registry.Store
	access.Store
	audit.Store
	secret.Store
	run.Ledger
	run.Grants
	run.Confirmations
	records.Store
	audit.CallStore
}

// Run tests the backends that factory makes. factory is called for each test, with a database that is empty, and
// cleans up after the test.
func Run(t *testing.T, factory func(testing.TB) Backend) {
	for _, group := range []struct {
		name  string
		tests []test
	}{
		{"Skill", skillTests()},
		{"Save", saveTests()},
		{"Retain", retainTests()},
		{"Purge", purgeTests()},
		{"Search", searchTests()},
		{"Grant", grantTests()},
		{"Key", keyTests()},
		{"Secret", secretTests()},
		{"Directory", directoryTests()},
		{"Execution", executionTests()},
		{"Once", onceTests()},
		{"Confirmation", confirmationTests()},
		{"Audit", auditTests()},
		{"ToolCall", toolCallTests()},
		{"Tenant", tenantTests()},
	} {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			for _, test := range group.tests {
				t.Run(test.name, func(t *testing.T) {
					t.Parallel()
					test.run(&trial{t}, factory(t))
				})
			}
		})
	}
}

type test struct {
	name string
	run  func(t *trial, b Backend)
}

// trial is the test that a case runs in. It has a type of its own because a case is no helper: what fails is reported
// where it failed.
type trial struct{ *testing.T }

const (
	tenant  sallyport.TenantID    = "acme"
	other   sallyport.TenantID    = "globex"
	owner   sallyport.PrincipalID = "ada"
	teamOne sallyport.TeamID      = "default"
	teamTwo sallyport.TeamID      = "research"
)

// day is the n-th day of the suite's calendar, with microseconds.
func day(n int) time.Time {
	return time.Date(2026, 3, 1, 12, 30, 45, 123_456_000, time.UTC).AddDate(0, 0, n)
}

func pointer[T any](value T) *T { return &value }

// wantCode fails unless err has the code, and is an Error at all.
func wantCode(tb testing.TB, err error, code sallyport.Code) {
	tb.Helper()
	if _, own := errors.AsType[*sallyport.Error](err); !own || sallyport.CodeOf(err) != code {
		tb.Fatalf("got %v, want %s", err, code)
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func same(tb testing.TB, what string, got, want any) {
	tb.Helper()
	// A Digest's own Equal is for pins: an empty one equals nothing.
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b sallyport.Digest) bool { return a == b })); diff != "" {
		tb.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// component makes a file of a revision.
func component(path string, kind sallyport.Kind, content string) sallyport.Component {
	return sallyport.Component{
		ID: sallyport.ComponentID("c:" + path), Path: path, Kind: kind, MediaType: "text/plain", Size: int64(len(content)),
		SHA256: sallyport.DigestOf([]byte(content)).Hex(), Mode: 0o644, Content: []byte(content),
	}
}

// files is a small revision; marker makes its content, and so its digest, its own.
func files(marker string) []sallyport.Component {
	script := component("scripts/run.py", sallyport.KindScript, "print('"+marker+"')\n")
	script.Mode = 0o755
	script.Script = &sallyport.ScriptSettings{Runtime: "python", Input: sallyport.InputStdin}
	return []sallyport.Component{component("SKILL.md", sallyport.KindDocument, "# "+marker+"\n"), script}
}

// create is the save of a new team skill. The ids are made from the slug.
func create(tb testing.TB, slug string, components ...sallyport.Component) registry.RevisionSave {
	tb.Helper()
	if len(components) == 0 {
		components = files(slug)
	}
	return registry.RevisionSave{
		Create: true,
		Skill: sallyport.Skill{
			ID: sallyport.SkillID("s:" + slug), TeamID: teamOne, Slug: slug, Name: slug, Description: "what " + slug + " does",
			CreatedAt: day(0), UpdatedAt: day(0),
		},
		Revision: revision(tb, slug+":1", components),
	}
}

func revision(tb testing.TB, id string, components []sallyport.Component) sallyport.Revision {
	tb.Helper()
	digest, err := canonical.RevisionDigest(components)
	must(tb, err)
	return sallyport.Revision{
		ID: sallyport.RevisionID("r:" + id), State: sallyport.RevisionDraft, Digest: digest,
		Frontmatter: []byte(`{"name": "x",  "number": 12345678901234567890}`), Message: "message of " + id, Author: owner,
		CreatedAt: day(0), Components: components,
	}
}

// next is the save of a further revision of the skill.
func next(tb testing.TB, skill sallyport.Skill, id string, components []sallyport.Component) registry.RevisionSave {
	tb.Helper()
	skill.UpdatedAt = day(1)
	return registry.RevisionSave{Skill: skill, ExpectedLatest: skill.LatestRevisionID, Revision: revision(tb, id, components)}
}

func save(tb testing.TB, b Backend, s registry.RevisionSave) (sallyport.Skill, sallyport.Revision) {
	tb.Helper()
	skill, revision, err := b.SaveRevision(context.Background(), tenant, s)
	must(tb, err)
	return skill, revision
}

func slugs(skills []sallyport.Skill) []string {
	names := []string{}
	for _, skill := range skills {
		names = append(names, skill.Slug)
	}
	return names
}

func numbered(prefix string, n int) string { return fmt.Sprintf("%s-%03d", prefix, n) }
