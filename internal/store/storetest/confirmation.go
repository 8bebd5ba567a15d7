package storetest

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/sallyport-dev/sallyport"
)

func confirmationTests() []test {
	return []test{
		{"a yes is for one request of one principal, once", confirmOnce},
		{"a question is asked once, and so many", questionsAreBounded},
		{"a question is over after its time", questionEnds},
		{"a no is no yes", questionDenied},
		{"tenants do not meet", questionsOfTenants},
		{"a race has one winner", confirmRace},
		{"what does not fit is refused", confirmationRefuses},
	}
}

func question(id string) sallyport.Confirmation {
	return sallyport.Confirmation{
		ID: sallyport.ConfirmationID(id), TenantID: tenant, PrincipalID: owner, SkillID: "s", Slug: "slug", RevisionID: "r",
		RevisionDigest: sallyport.DigestOf([]byte("revision")), ScriptPath: "scripts/ä.py", RequestDigest: sallyport.DigestOf([]byte("request")),
		Request: []byte(`{"input_args":"{}"}`), State: sallyport.ConfirmationPending, CreatedAt: day(0), ExpiresAt: day(0).Add(10 * time.Minute),
	}
}

func askQuestion(t *trial, b Backend, in sallyport.TenantID, q sallyport.Confirmation, most int) (sallyport.Confirmation, bool) {
	t.Helper()
	asked, found, err := b.AskConfirmation(t.Context(), in, q, most, entry(sallyport.ActionConfirmationAsk, string(q.ID)))
	must(t, err)
	return asked, found
}

func decideQuestion(t *trial, b Backend, q sallyport.Confirmation, state sallyport.ConfirmationState, at time.Time) bool {
	t.Helper()
	q.State, q.DecidedAt, q.DecidedBy, q.ExpiresAt = state, &at, "grace", at.Add(10*time.Minute)
	decided, err := b.DecideConfirmation(t.Context(), tenant, q, at, entry(sallyport.ActionConfirmationApprove, string(q.ID)))
	must(t, err)
	return decided
}

func confirmOnce(t *trial, b Backend) {
	q := question("q")
	asked, found := askQuestion(t, b, tenant, q, 9)
	same(t, "asked", asked, q)
	same(t, "found", found, true)
	got, err := b.PendingConfirmation(t.Context(), tenant, "q", day(0))
	must(t, err)
	same(t, "pending", got, q)
	_, found, err = b.Confirmed(t.Context(), tenant, owner, q.RequestDigest, q.RevisionDigest, day(0))
	must(t, err)
	same(t, "a question is no yes", found, false)
	used, err := b.UseConfirmation(t.Context(), tenant, "q", day(0))
	must(t, err)
	same(t, "nor can it be used", used, false)

	at := day(0).Add(time.Minute)
	same(t, "decided", decideQuestion(t, b, q, sallyport.ConfirmationApproved, at), true)
	same(t, "decided again", decideQuestion(t, b, q, sallyport.ConfirmationDenied, at), false)
	want := q
	want.State, want.DecidedAt, want.DecidedBy, want.ExpiresAt = sallyport.ConfirmationApproved, &at, "grace", at.Add(10*time.Minute)
	for name, test := range map[string]struct {
		who               sallyport.PrincipalID
		request, revision string
		at                time.Time
		found             bool
	}{
		"the same":         {owner, "request", "revision", at, true},
		"another":          {"bob", "request", "revision", at, false},
		"another request":  {owner, "other", "revision", at, false},
		"another revision": {owner, "request", "other", at, false},
		"too late":         {owner, "request", "revision", at.Add(10 * time.Minute), false},
	} {
		got, found, err := b.Confirmed(t.Context(), tenant, test.who, sallyport.DigestOf([]byte(test.request)), sallyport.DigestOf([]byte(test.revision)), test.at)
		must(t, err)
		same(t, name, found, test.found)
		if found {
			same(t, name, got, want)
		}
	}
	for i, want := range []bool{true, false} {
		used, err := b.UseConfirmation(t.Context(), tenant, "q", at)
		must(t, err)
		same(t, "used "+string(rune('0'+i)), used, want)
	}
	_, found, err = b.Confirmed(t.Context(), tenant, owner, q.RequestDigest, q.RevisionDigest, at)
	must(t, err)
	same(t, "a used one is none", found, false)
}

func questionsAreBounded(t *trial, b Backend) {
	first := question("1")
	askQuestion(t, b, tenant, first, 2)
	again, _ := askQuestion(t, b, tenant, question("2"), 2)
	same(t, "the same question", again.ID, sallyport.ConfirmationID("1"))
	for _, test := range []struct {
		id    string
		found bool
	}{{"3", true}, {"4", false}} {
		q := question(test.id)
		q.RequestDigest = sallyport.DigestOf([]byte(test.id))
		_, found := askQuestion(t, b, tenant, q, 2)
		same(t, "question "+test.id, found, test.found)
	}
	pending, err := b.PendingConfirmations(t.Context(), tenant, day(0), 9)
	must(t, err)
	same(t, "pending", len(pending), 2)
	pending, err = b.PendingConfirmations(t.Context(), tenant, day(0), 1)
	must(t, err)
	same(t, "the oldest", pending, []sallyport.Confirmation{first})
}

func questionEnds(t *trial, b Backend) {
	q := question("q")
	askQuestion(t, b, tenant, q, 1)
	late := q.ExpiresAt
	_, err := b.PendingConfirmation(t.Context(), tenant, "q", late)
	wantCode(t, err, sallyport.CodeConfirmationNotFound)
	same(t, "decided too late", decideQuestion(t, b, q, sallyport.ConfirmationApproved, late), false)
	pending, err := b.PendingConfirmations(t.Context(), tenant, late, 9)
	must(t, err)
	same(t, "pending", len(pending), 0)
	next := question("next")
	next.CreatedAt, next.ExpiresAt = day(3), day(3).Add(time.Minute)
	asked, found := askQuestion(t, b, tenant, next, 1)
	same(t, "asked anew", asked, next)
	same(t, "found", found, true)
}

func questionDenied(t *trial, b Backend) {
	q := question("q")
	askQuestion(t, b, tenant, q, 1)
	same(t, "denied", decideQuestion(t, b, q, sallyport.ConfirmationDenied, day(0)), true)
	_, found, err := b.Confirmed(t.Context(), tenant, owner, q.RequestDigest, q.RevisionDigest, day(0))
	must(t, err)
	same(t, "confirmed", found, false)
	_, found = askQuestion(t, b, tenant, question("again"), 1)
	same(t, "asked again", found, true)
}

func questionsOfTenants(t *trial, b Backend) {
	q := question("q")
	askQuestion(t, b, tenant, q, 1)
	decideQuestion(t, b, q, sallyport.ConfirmationApproved, day(0))
	_, err := b.PendingConfirmation(t.Context(), other, "q", day(0))
	wantCode(t, err, sallyport.CodeConfirmationNotFound)
	_, found, err := b.Confirmed(t.Context(), other, owner, q.RequestDigest, q.RevisionDigest, day(0))
	must(t, err)
	same(t, "confirmed elsewhere", found, false)
	used, err := b.UseConfirmation(t.Context(), other, "q", day(0))
	must(t, err)
	same(t, "used elsewhere", used, false)
	theirs, found := askQuestion(t, b, other, question("q"), 1)
	same(t, "the same question elsewhere", theirs.TenantID, other)
	same(t, "asked", found, true)
}

func confirmRace(t *trial, b Backend) {
	q := question("q")
	askQuestion(t, b, tenant, q, 1)
	decideQuestion(t, b, q, sallyport.ConfirmationApproved, day(0))
	var winners atomic.Int64
	var racing sync.WaitGroup
	for range 8 {
		racing.Go(func() {
			if used, err := b.UseConfirmation(t.Context(), tenant, "q", day(0)); err == nil && used {
				winners.Add(1)
			}
		})
	}
	racing.Wait()
	same(t, "winners", winners.Load(), int64(1))
}

func confirmationRefuses(t *trial, b Backend) {
	for _, spoil := range []func(*sallyport.Confirmation){
		func(q *sallyport.Confirmation) { q.ID = "" },
		func(q *sallyport.Confirmation) { q.PrincipalID = "" },
		func(q *sallyport.Confirmation) { q.RequestDigest = "" },
		func(q *sallyport.Confirmation) { q.RevisionDigest = "" },
	} {
		q := question("q")
		spoil(&q)
		_, _, err := b.AskConfirmation(t.Context(), tenant, q, 1, entry(sallyport.ActionConfirmationAsk, "q"))
		wantCode(t, err, sallyport.CodeInternal)
	}
	q := question("q") // pending is no decision
	_, err := b.DecideConfirmation(t.Context(), tenant, q, day(0), entry(sallyport.ActionConfirmationApprove, "q"))
	wantCode(t, err, sallyport.CodeInternal)
}
