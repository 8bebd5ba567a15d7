package storetest

import (
	"fmt"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/registry"
	"github.com/sallyport-dev/sallyport/run"
)

func tenantTests() []test {
	return []test{
		{"nothing crosses", nothingCrosses},
		{"two tenants have the same ids", sameIDs},
		{"tenants are byte exact", tenantsAreByteExact},
	}
}

// furnish gives a tenant one of everything.
func furnish(t *trial, b Backend, who sallyport.TenantID, marker string) registry.RevisionSave {
	t.Helper()
	ctx := t.Context()
	s := create(t, "alpha", files(marker)...)
	s.Skill.Description, s.Instructions = marker, "walrus "+marker
	_, _, err := b.SaveRevision(ctx, who, s)
	must(t, err)
	g := grant("g", s.Skill.ID, 1)
	g.Slug = marker
	must(t, b.AddGrant(ctx, who, g))
	k := key("k", 1)
	k.Name = marker
	must(t, b.AddKey(ctx, who, k, secretHash(marker)))
	own := sealed("SECRET", 1)
	own.KeyID = marker
	must(t, b.PutSecret(ctx, who, own, 10))
	e := execution("e", 1)
	e.TraceID = marker
	must(t, b.Open(ctx, who, e, entry(sallyport.ActionScriptRun, "e")))
	meta, file := artifact("a", marker)
	e.Status, e.Artifacts = sallyport.StatusLost, []sallyport.Artifact{meta}
	must(t, b.Close(ctx, who, e, []sallyport.ArtifactFile{file}, entry(sallyport.ActionScriptFinished, "e")))
	must(t, b.AddCheckpoint(ctx, who, audit.Checkpoint{TenantID: who, Count: 2, At: day(1), Signature: marker}))
	return s
}

// seen is all that a tenant can read, by the ids that furnish uses.
func seen(t *trial, b Backend, who sallyport.TenantID) map[string]string {
	t.Helper()
	ctx := t.Context()
	all := map[string]string{}
	note := func(name string, value any, err error) {
		if err != nil {
			all[name] = string(sallyport.CodeOf(err))
			return
		}
		all[name] = fmt.Sprint(value)
	}
	skill, err := b.Skill(ctx, who, "s:alpha")
	note("skill", skill.Description, err)
	bySlug, err := b.SkillsBySlug(ctx, who, "alpha")
	note("skills by slug", len(bySlug), err)
	for _, text := range []string{"", "walrus"} {
		page, err := b.ListSkills(ctx, who, registry.SkillFilter{Owner: owner, Teams: []sallyport.TeamID{teamOne}, Query: text, IncludeArchived: true})
		note("skills listed "+text, fmt.Sprint(len(page.Skills), page.Total), err)
	}
	revisions, err := b.Revisions(ctx, who, "s:alpha")
	note("revisions", len(revisions), err)
	revision, err := b.Revision(ctx, who, "s:alpha", "r:alpha:1")
	note("revision", len(revision.Components), err)
	revision, err = b.RevisionContent(ctx, who, "s:alpha", "r:alpha:1")
	note("revision content", len(revision.Components), err)
	c, err := b.ComponentContent(ctx, who, "r:alpha:1", "SKILL.md")
	note("component", string(c.Content), err)
	g, err := b.Grant(ctx, who, "g")
	note("grant", g.Slug, err)
	for _, skill := range []sallyport.SkillID{"", "s:alpha"} {
		grants, err := b.Grants(ctx, who, skill)
		note("grants "+string(skill), len(grants), err)
	}
	keys, err := b.Keys(ctx, who)
	note("keys", len(keys), err)
	secrets, err := b.Secrets(ctx, who)
	note("secrets", len(secrets), err)
	own, err := b.Secret(ctx, who, "SECRET")
	note("secret", own.KeyID, err)
	e, err := b.Execution(ctx, who, "e")
	note("execution", e.TraceID, err)
	executions, _, err := b.Executions(ctx, who, run.ExecutionFilter{})
	note("executions", len(executions), err)
	executions, _, err = b.Executions(ctx, who, run.ExecutionFilter{SkillID: "s:alpha"})
	note("executions of the skill", len(executions), err)
	_, content, err := b.ArtifactContent(ctx, who, "e", "a")
	note("artifact", string(content), err)
	for _, filter := range []audit.Filter{{}, {NewestFirst: true}, {ExecutionID: "e"}, {ExecutionID: "e", NewestFirst: true}} {
		entries, err := b.Entries(ctx, who, filter)
		note(fmt.Sprint("entries ", filter), len(entries), err)
	}
	count, _, err := b.Head(ctx, who)
	note("head", count, err)
	marks, err := b.Checkpoints(ctx, who)
	note("checkpoints", len(marks), err)
	note("each entry", len(chain(t, b, who)), nil)
	return all
}

func nothingCrosses(t *trial, b Backend) {
	ctx := t.Context()
	before := seen(t, b, other)
	s := furnish(t, b, tenant, "ours")
	ours := seen(t, b, tenant)
	same(t, "what another tenant sees", seen(t, b, other), before)
	if ours["skill"] != "ours" || ours["artifact"] != "ours" {
		t.Fatalf("the tenant does not see its own: %v", ours)
	}

	// And what another tenant tries to change.
	revoked, err := b.RevokeGrant(ctx, other, "g", "mallory", day(2))
	wantCode(t, err, sallyport.CodeGrantNotFound)
	same(t, "revoked", revoked, false)
	revoked, err = b.RevokeKey(ctx, other, "k", day(2), nil)
	wantCode(t, err, sallyport.CodeKeyNotFound)
	same(t, "revoked", revoked, false)
	wantCode(t, b.TouchKey(ctx, other, "k", day(2)), sallyport.CodeKeyNotFound)
	wantCode(t, b.RemoveSecret(ctx, other, "SECRET"), sallyport.CodeSecretNotFound)
	replaced, err := b.RewrapSecret(ctx, other, "SECRET", sealed("SECRET", 1).WrappedKey, "theirs", []byte("theirs"))
	must(t, err)
	same(t, "replaced", replaced, false)
	_, err = b.Publish(ctx, other, s.Skill.ID, s.Revision.ID, day(2), owner)
	wantCode(t, err, sallyport.CodeSkillNotFound)
	_, err = b.SetArchived(ctx, other, s.Skill.ID, pointer(day(2)))
	wantCode(t, err, sallyport.CodeSkillNotFound)
	change := next(t, s.Skill, "alpha:2", files("theirs"))
	change.ExpectedLatest = s.Revision.ID
	_, _, err = b.SaveRevision(ctx, other, change)
	wantCode(t, err, sallyport.CodeSkillNotFound)
	wantCode(t, b.Start(ctx, other, "e", day(2)), sallyport.CodeExecutionNotFound)
	err = b.Close(ctx, other, sallyport.Execution{ID: "e", Status: sallyport.StatusLost}, nil, entry(sallyport.ActionScriptFinished, "e"))
	wantCode(t, err, sallyport.CodeExecutionNotFound)
	same(t, "what the tenant sees", seen(t, b, tenant), ours)
	same(t, "what the other sees", seen(t, b, other), before)

	// A key leads to its own tenant.
	k, err := b.KeyByHash(ctx, secretHash("ours"))
	must(t, err)
	same(t, "tenant of the key", k.TenantID, tenant)
	same(t, "the key", []any{k.RevokedAt == nil, k.LastUsedAt == nil}, []any{true, true})
}

func sameIDs(t *trial, b Backend) {
	furnish(t, b, tenant, "ours")
	ours := seen(t, b, tenant)
	furnish(t, b, other, "theirs")
	same(t, "ours", seen(t, b, tenant), ours)
	theirs := seen(t, b, other)
	same(t, "theirs", []string{theirs["skill"], theirs["component"], theirs["grant"], theirs["execution"], theirs["artifact"]},
		[]string{"theirs", "# theirs\n", "theirs", "theirs", "theirs"})
	_, err := b.RevokeGrant(t.Context(), other, "g", owner, day(2))
	must(t, err)
	_, err = b.SetArchived(t.Context(), other, "s:alpha", pointer(day(2)))
	must(t, err)
	same(t, "ours after theirs changed", seen(t, b, tenant), ours)
	g, err := b.Grant(t.Context(), tenant, "g")
	must(t, err)
	same(t, "our grant", g.RevokedAt == nil, true)
}

func tenantsAreByteExact(t *trial, b Backend) {
	furnish(t, b, tenant, "ours")
	empty := seen(t, b, other)
	for _, who := range []sallyport.TenantID{"ACME", "Acme", "acme ", " acme", "acme\x00", "", "acm", "acmé", "' OR '1'='1", "%"} {
		same(t, fmt.Sprintf("%q", who), seen(t, b, who), empty)
	}
}
