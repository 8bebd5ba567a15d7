package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/internal/canonical"
)

func auditTests() []test {
	return []test{
		{"an entry is linked and hashed", appendEntry},
		{"what is hashed is what is read", hashedIsRead},
		{"the chain under concurrency", chainUnderConcurrency},
		{"what cannot be hashed is refused", auditRefuses},
		{"deny", deny},
		{"filters and pages", entryFilters},
		{"each entry", eachEntry},
		{"head and tenants", headAndTenants},
		{"checkpoints", checkpoints},
		{"what can be pruned", prunable},
		{"prune", prune},
	}
}

// chain reads a tenant's whole trail and fails unless every entry follows from the one before it.
func chain(tb testing.TB, b Backend, tenant sallyport.TenantID) []sallyport.Entry {
	tb.Helper()
	var entries []sallyport.Entry
	must(tb, b.EachEntry(tb.Context(), tenant, func(e sallyport.Entry) error {
		previous := sallyport.Entry{}
		if len(entries) > 0 {
			previous = entries[len(entries)-1]
		}
		hash, err := canonical.EntryHash(e)
		switch {
		case err != nil:
			return err
		case hash != e.Hash:
			return fmt.Errorf("entry %d is not what was hashed", e.Sequence)
		case e.Sequence != previous.Sequence+1, e.PreviousHash != previous.Hash:
			return fmt.Errorf("entry %d does not follow entry %d", e.Sequence, previous.Sequence)
		case e.TenantID != tenant:
			return fmt.Errorf("entry %d is of the tenant %s", e.Sequence, e.TenantID)
		}
		entries = append(entries, e)
		return nil
	}))
	return entries
}

func appendEntry(t *trial, b Backend) {
	ctx := t.Context()
	given := entry(sallyport.ActionGrantIssue, "")
	// What the store assigns is not the caller's to say.
	given.TenantID, given.Sequence, given.PreviousHash, given.Hash = other, 99, sallyport.DigestOf(nil), sallyport.DigestOf(nil)
	first, err := b.AppendEntry(ctx, tenant, given)
	must(t, err)
	want := entry(sallyport.ActionGrantIssue, "")
	want.TenantID, want.Sequence, want.Detail = tenant, 1, json.RawMessage(`{"a":"é","b":1.5}`)
	want.Hash, err = canonical.EntryHash(want)
	must(t, err)
	same(t, "first", first, want)

	second, err := b.AppendEntry(ctx, tenant, sallyport.Entry{At: day(2), Action: sallyport.ActionKeyCreate, Entity: "k"})
	must(t, err)
	want = sallyport.Entry{
		TenantID: tenant, Sequence: 2, At: day(2), Action: sallyport.ActionKeyCreate, Entity: "k", Detail: json.RawMessage(`{}`), PreviousHash: first.Hash,
	}
	want.Hash, err = canonical.EntryHash(want)
	must(t, err)
	same(t, "second", second, want)
	same(t, "read", chain(t, b, tenant), []sallyport.Entry{first, second})
}

func hashedIsRead(t *trial, b Backend) {
	for _, e := range []sallyport.Entry{
		{At: day(1).Add(999 * time.Nanosecond), Action: "a"}, // cut to microseconds before it is hashed
		{At: day(1).In(time.FixedZone("east", 3*3600)), Action: "a"},
		{At: time.Date(1969, 12, 31, 23, 59, 59, 999_999_000, time.UTC), Action: "a"},
		{At: time.Time{}, Action: "a"},
		{At: day(1), Action: "a", Entity: "no\xffUTF-8\x00", Actor: "\xfe"},
		{At: day(1), Action: "a", Entity: `' " \ <&> ` + "\u2028\n😀"},
		{At: day(1), Action: "a", Detail: json.RawMessage(" {\"z\": 1e2, \"y\": [null, true], \"x\": \"\\u0000\\ud83d\\ude00/\", \"w\": 12345678901234567890} ")},
	} {
		stored, err := b.AppendEntry(t.Context(), tenant, e)
		must(t, err)
		entries := chain(t, b, tenant)
		same(t, "read", entries[len(entries)-1], stored)
	}
}

func chainUnderConcurrency(t *trial, b Backend) {
	const writers, each = 8, 25
	var wg sync.WaitGroup
	for w := range writers {
		for _, who := range []sallyport.TenantID{tenant, other} {
			wg.Go(func() {
				for n := range each {
					e := entry(sallyport.ActionSkillSave, "")
					e.Entity = fmt.Sprintf("%d/%d", w, n)
					if _, err := b.AppendEntry(t.Context(), who, e); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	for _, who := range []sallyport.TenantID{tenant, other} {
		entries := chain(t, b, who)
		same(t, "entries", len(entries), writers*each)
		seen := map[string]bool{}
		for _, e := range entries {
			seen[e.Entity] = true
		}
		same(t, "each once", len(seen), writers*each)
	}
}

func auditRefuses(t *trial, b Backend) {
	ctx := t.Context()
	for name, detail := range map[string]string{"a duplicate key": `{"a":1,"a":1}`, "no JSON": `{`, "out of range": `{"a":1e999}`, "no UTF-8": "{\"a\":\"\xff\"}"} {
		e := entry(sallyport.ActionSkillSave, "")
		e.Detail = json.RawMessage(detail)
		_, err := b.AppendEntry(ctx, tenant, e)
		if sallyport.CodeOf(err) != sallyport.CodeAuditUnavailable {
			t.Errorf("%s: got %v, want AUDIT_UNAVAILABLE", name, err)
		}
		if err := b.Deny(ctx, tenant, e); sallyport.CodeOf(err) != sallyport.CodeAuditUnavailable {
			t.Errorf("%s denied: got %v, want AUDIT_UNAVAILABLE", name, err)
		}
	}
	for name, spoil := range map[string]func(e *sallyport.Entry) sallyport.TenantID{
		"no object": func(e *sallyport.Entry) sallyport.TenantID { e.Detail = json.RawMessage(`[]`); return tenant },
		"no action": func(e *sallyport.Entry) sallyport.TenantID { e.Action = ""; return tenant },
		"no tenant": func(*sallyport.Entry) sallyport.TenantID { return "" },
	} {
		e := entry(sallyport.ActionSkillSave, "")
		who := spoil(&e)
		if _, err := b.AppendEntry(ctx, who, e); sallyport.CodeOf(err) != sallyport.CodeInternal {
			t.Errorf("%s: got %v, want INTERNAL", name, err)
		}
	}
	same(t, "entries", len(chain(t, b, tenant)), 0)
}

func deny(t *trial, b Backend) {
	must(t, b.Deny(t.Context(), tenant, entry(sallyport.ActionScriptDenied, "")))
	entries := chain(t, b, tenant)
	same(t, "entries", len(entries), 1)
	same(t, "action", entries[0].Action, sallyport.ActionScriptDenied)
}

func entryFilters(t *trial, b Backend) {
	ctx := t.Context()
	for n := 1; n <= 6; n++ {
		e := sallyport.Entry{At: day(n), Action: sallyport.ActionSkillSave, Entity: "alpha", ExecutionID: "x"}
		if n%2 == 0 {
			e.Action, e.Entity, e.ExecutionID, e.Actor = sallyport.ActionKeyCreate, "Alpha", "", "ada"
		}
		_, err := b.AppendEntry(ctx, tenant, e)
		must(t, err)
	}
	for name, test := range map[string]struct {
		filter audit.Filter
		want   []int64
	}{
		"all":                         {audit.Filter{}, []int64{1, 2, 3, 4, 5, 6}},
		"newest first":                {audit.Filter{NewestFirst: true}, []int64{6, 5, 4, 3, 2, 1}},
		"action":                      {audit.Filter{Action: sallyport.ActionKeyCreate}, []int64{2, 4, 6}},
		"actor":                       {audit.Filter{Actor: "ada"}, []int64{2, 4, 6}},
		"actor, newest first":         {audit.Filter{Actor: "ada", NewestFirst: true, Limit: 2}, []int64{6, 4}},
		"actor of that case":          {audit.Filter{Actor: "Ada"}, []int64{}},
		"actor and execution":         {audit.Filter{Actor: "ada", ExecutionID: "x"}, []int64{}},
		"entity is byte exact":        {audit.Filter{Entity: "alpha"}, []int64{1, 3, 5}},
		"execution":                   {audit.Filter{ExecutionID: "x"}, []int64{1, 3, 5}},
		"execution, newest first":     {audit.Filter{ExecutionID: "x", NewestFirst: true, Limit: 2}, []int64{5, 3}},
		"execution, next":             {audit.Filter{ExecutionID: "x", NewestFirst: true, After: 3}, []int64{1}},
		"execution, after":            {audit.Filter{ExecutionID: "x", After: 1}, []int64{3, 5}},
		"since is inclusive":          {audit.Filter{Since: day(4)}, []int64{4, 5, 6}},
		"until is exclusive":          {audit.Filter{Until: day(4)}, []int64{1, 2, 3}},
		"limit":                       {audit.Filter{Limit: 2}, []int64{1, 2}},
		"after":                       {audit.Filter{After: 4}, []int64{5, 6}},
		"below":                       {audit.Filter{After: 4, NewestFirst: true, Limit: 2}, []int64{3, 2}},
		"everything at once":          {audit.Filter{Action: sallyport.ActionSkillSave, Entity: "alpha", ExecutionID: "x", Since: day(2), Until: day(5), After: 1}, []int64{3}},
		"nothing":                     {audit.Filter{Entity: "none"}, []int64{}},
		"behind the end":              {audit.Filter{After: 6}, []int64{}},
		"a negative place is none":    {audit.Filter{After: -1, Limit: 1}, []int64{1}},
		"an execution of that case":   {audit.Filter{ExecutionID: "X"}, []int64{}},
		"a negative limit is default": {audit.Filter{Limit: -1}, []int64{1, 2, 3, 4, 5, 6}},
	} {
		entries, err := b.Entries(ctx, tenant, test.filter)
		must(t, err)
		got := []int64{}
		for _, e := range entries {
			got = append(got, e.Sequence)
		}
		same(t, name, got, test.want)
	}
}

func eachEntry(t *trial, b Backend) {
	// More than the store reads at a time.
	var wg sync.WaitGroup
	const writers, each = 12, 100
	for range writers {
		wg.Go(func() {
			for range each {
				if _, err := b.AppendEntry(t.Context(), tenant, entry(sallyport.ActionSkillSave, "")); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	same(t, "entries", len(chain(t, b, tenant)), writers*each)
	stop := errors.New("stop")
	seen := 0
	err := b.EachEntry(t.Context(), tenant, func(sallyport.Entry) error {
		if seen++; seen == 7 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || seen != 7 {
		t.Errorf("got %v after %d entries, want the function's error after 7", err, seen)
	}
	// A slow reader stands in nobody's way, itself included.
	must(t, b.EachEntry(t.Context(), tenant, func(e sallyport.Entry) error {
		if e.Sequence%400 != 0 {
			return nil
		}
		_, err := b.AppendEntry(t.Context(), other, e)
		return err
	}))
}

func headAndTenants(t *trial, b Backend) {
	ctx := t.Context()
	none, err := b.Tenants(ctx)
	must(t, err)
	same(t, "no tenants", len(none), 0)
	count, hash, err := b.Head(ctx, tenant)
	must(t, err)
	same(t, "empty", []any{count, hash}, []any{int64(0), sallyport.Digest("")})
	for _, who := range []sallyport.TenantID{"b", "B", tenant, tenant, "a"} {
		_, err := b.AppendEntry(ctx, who, entry(sallyport.ActionSkillSave, ""))
		must(t, err)
	}
	tenants, err := b.Tenants(ctx)
	must(t, err)
	same(t, "tenants", tenants, []sallyport.TenantID{"B", "a", tenant, "b"})
	entries := chain(t, b, tenant)
	count, hash, err = b.Head(ctx, tenant)
	must(t, err)
	same(t, "head", []any{count, hash}, []any{int64(2), entries[1].Hash})
}

func checkpoints(t *trial, b Backend) {
	ctx := t.Context()
	made := func(count int64, at time.Time) audit.Checkpoint {
		return audit.Checkpoint{TenantID: tenant, Count: count, Head: sallyport.DigestOf(nil), At: at, PublicKey: "key+/=", Signature: "sig"}
	}
	// The signature is over the time as it is written, nanoseconds and zone included.
	want := []audit.Checkpoint{
		made(1, day(1).Add(123*time.Nanosecond)), made(2, day(1)), made(2, day(2).In(time.FixedZone("", 5400))), made(3, day(3).Truncate(time.Second)),
	}
	for _, n := range []int{3, 1, 2, 0} {
		must(t, b.AddCheckpoint(ctx, tenant, want[n]))
	}
	got, err := b.Checkpoints(ctx, tenant)
	must(t, err)
	same(t, "checkpoints", got, want)
	for n := range want {
		before, err := json.Marshal(want[n])
		must(t, err)
		after, err := json.Marshal(got[n])
		must(t, err)
		same(t, "as JSON", string(after), string(before))
	}
	wantCode(t, b.AddCheckpoint(ctx, other, made(1, day(1))), sallyport.CodeInternal)
	got, err = b.Checkpoints(ctx, other)
	must(t, err)
	same(t, "of the other", len(got), 0)
}

// mark is a checkpoint at the entry numbered n.
func mark(entries []sallyport.Entry, n int64) audit.Checkpoint {
	return audit.Checkpoint{TenantID: tenant, Count: n, Head: entries[n-1].Hash, At: day(9), PublicKey: "p", Signature: fmt.Sprint("of ", n)}
}

func prunable(t *trial, b Backend) {
	ctx := t.Context()
	wants := func(before time.Time, want int64) {
		t.Helper()
		got, err := b.Prunable(ctx, tenant, before)
		if err != nil || got != want {
			t.Errorf("before %s: got %d, %v, want %d", before, got, err, want)
		}
	}
	wants(day(99), 0)
	for n := range 6 {
		e := entry(sallyport.ActionSkillSave, "")
		e.At = day(n)
		if _, err := b.AppendEntry(ctx, tenant, e); err != nil {
			t.Fatal(err)
		}
	}
	wants(day(0), 0)
	wants(day(1), 1)
	wants(day(3).Add(time.Second), 4)
	wants(day(99), 5) // the newest stays
	// An entry that is older than the one before it stays with it.
	old := entry(sallyport.ActionSkillSave, "")
	old.At = day(-5)
	if _, err := b.AppendEntry(ctx, tenant, old); err != nil {
		t.Fatal(err)
	}
	wants(day(2), 2)
	wants(day(99), 6)
	// What belongs to an execution that is open stays, and all behind it.
	e := execution("open", 1)
	opening := entry(sallyport.ActionScriptRun, "open")
	opening.At = day(1)
	if err := b.Open(ctx, tenant, e, opening); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := b.AppendEntry(ctx, tenant, old); err != nil {
			t.Fatal(err)
		}
	}
	wants(day(99), 7)
	e.Status = sallyport.StatusLost
	if err := b.Close(ctx, tenant, e, nil, entry(sallyport.ActionScriptFinished, "open")); err != nil {
		t.Fatal(err)
	}
	wants(day(99), 10)
}

func prune(t *trial, b Backend) {
	ctx := t.Context()
	for _, who := range []sallyport.TenantID{tenant, other} {
		for range 6 {
			if _, err := b.AppendEntry(ctx, who, entry(sallyport.ActionSkillSave, "")); err != nil {
				t.Fatal(err)
			}
		}
	}
	all := chain(t, b, tenant)
	for _, n := range []int64{2, 4, 5} {
		must(t, b.AddCheckpoint(ctx, tenant, mark(all, n)))
	}
	if _, found, err := b.Pruned(ctx, tenant); found || err != nil {
		t.Errorf("pruned before anything was: %v", err)
	}
	proof := mark(all, 4)
	proof.Pruned = true
	wrong, plain, last, foreign := proof, mark(all, 4), mark(all, 6), proof
	wrong.Head, last.Pruned, foreign.TenantID = all[1].Hash, true, other
	for name, bad := range map[string]audit.Checkpoint{"another hash": wrong, "no statement": plain, "the newest entry": last, "another tenant's": foreign, "none": {}} {
		if _, err := b.Prune(ctx, tenant, bad); sallyport.CodeOf(err) != sallyport.CodeInternal {
			t.Errorf("%s: got %v", name, err)
		}
	}
	same(t, "after the refusals", len(chain(t, b, tenant)), 6)
	removed, err := b.Prune(ctx, tenant, proof)
	must(t, err)
	same(t, "removed", removed, int64(4))
	var left []sallyport.Entry
	must(t, b.EachEntry(ctx, tenant, func(e sallyport.Entry) error { left = append(left, e); return nil }))
	same(t, "left", left, all[4:])
	got, found, err := b.Pruned(ctx, tenant)
	must(t, err)
	same(t, "statement", []any{got, found}, []any{proof, true})
	marks, err := b.Checkpoints(ctx, tenant)
	must(t, err)
	same(t, "checkpoints", marks, []audit.Checkpoint{mark(all, 4), proof, mark(all, 5)})
	// Again is refused: the entry is not there any more.
	if _, err := b.Prune(ctx, tenant, proof); sallyport.CodeOf(err) != sallyport.CodeInternal {
		t.Errorf("again: %v", err)
	}
	// The chain goes on where it was.
	next, err := b.AppendEntry(ctx, tenant, entry(sallyport.ActionSkillSave, ""))
	must(t, err)
	same(t, "the next entry", []any{next.Sequence, next.PreviousHash}, []any{int64(7), all[5].Hash})
	same(t, "another tenant's", len(chain(t, b, other)), 6)
}
