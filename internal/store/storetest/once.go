package storetest

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/run"
)

func onceTests() []test {
	return []test{
		{"a key stands for one execution", keyStandsForOne},
		{"a key is its principal's and its tenant's", keyHasAnOwner},
		{"a key is over after its time", keyEnds},
		{"what never began leaves the key free", keyOfNothing},
		{"a race has one winner", onceRace},
		{"what does not fit is refused", onceRefuses},
	}
}

func once(since time.Time, request string) run.Once {
	return run.Once{Key: "k", Request: sallyport.DigestOf([]byte(request)), Since: since}
}

func openOnce(t *trial, b Backend, in sallyport.TenantID, e sallyport.Execution, o run.Once) bool {
	t.Helper()
	e.TenantID = in
	taken, err := b.OpenOnce(t.Context(), in, e, entry(sallyport.ActionScriptRun, string(e.ID)), o)
	must(t, err)
	return taken
}

// standsFor is the execution that the key k stands for, empty for none.
func standsFor(t *trial, b Backend, in sallyport.TenantID, who sallyport.PrincipalID, since time.Time) string {
	t.Helper()
	recorded, found, err := b.Recorded(t.Context(), in, who, "k", since)
	must(t, err)
	if found != (recorded.ExecutionID != "") {
		t.Errorf("found is %v, with %+v", found, recorded)
	}
	return string(recorded.ExecutionID)
}

func keyStandsForOne(t *trial, b Backend) {
	same(t, "before", standsFor(t, b, tenant, owner, day(0)), "")
	same(t, "the first is taken", openOnce(t, b, tenant, execution("one", 1), once(day(0), "x")), false)
	same(t, "the second is taken", openOnce(t, b, tenant, execution("two", 1), once(day(0), "y")), true)
	recorded, _, err := b.Recorded(t.Context(), tenant, owner, "k", day(0))
	must(t, err)
	same(t, "recorded", recorded, run.Recorded{Request: sallyport.DigestOf([]byte("x")), ExecutionID: "one"})
	_, err = b.Execution(t.Context(), tenant, "two")
	wantCode(t, err, sallyport.CodeExecutionNotFound)
	entries, err := b.Unfinished(t.Context())
	must(t, err)
	same(t, "open executions", len(entries), 1)
}

func keyHasAnOwner(t *trial, b Backend) {
	openOnce(t, b, tenant, execution("one", 1), once(day(0), "x"))
	bob := execution("two", 1)
	bob.PrincipalID = "bob"
	same(t, "another principal", openOnce(t, b, tenant, bob, once(day(0), "x")), false)
	same(t, "another tenant", openOnce(t, b, other, execution("three", 1), once(day(0), "x")), false)
	same(t, "ada's", standsFor(t, b, tenant, owner, day(0)), "one")
	same(t, "bob's", standsFor(t, b, tenant, "bob", day(0)), "two")
	same(t, "ada's elsewhere", standsFor(t, b, other, owner, day(0)), "three")
	same(t, "nobody's", standsFor(t, b, tenant, "cem", day(0)), "")
}

func keyEnds(t *trial, b Backend) {
	openOnce(t, b, tenant, execution("one", 1), once(day(0), "x"))
	same(t, "after its time", standsFor(t, b, tenant, owner, day(1)), "")
	same(t, "taken after its time", openOnce(t, b, tenant, execution("two", 3), once(day(2), "y")), false)
	same(t, "now", standsFor(t, b, tenant, owner, day(0)), "two")
}

func keyOfNothing(t *trial, b Backend) {
	e := execution("one", 1)
	openOnce(t, b, tenant, e, once(day(0), "x"))
	e.Status = sallyport.StatusNotStarted
	closed(t, b, e)
	same(t, "stands for", standsFor(t, b, tenant, owner, day(0)), "")
	same(t, "taken", openOnce(t, b, tenant, execution("two", 1), once(day(0), "x")), false)
	same(t, "then", standsFor(t, b, tenant, owner, day(0)), "two")
}

func onceRace(t *trial, b Backend) {
	var (
		all  sync.WaitGroup
		wins atomic.Int64
	)
	for i := range 8 {
		all.Go(func() {
			e := execution("e"+strconv.Itoa(i), 1)
			taken, err := b.OpenOnce(t.Context(), tenant, e, entry(sallyport.ActionScriptRun, string(e.ID)), once(day(0), "x"))
			if err != nil {
				t.Error(err)
			}
			if !taken {
				wins.Add(1)
			}
		})
	}
	all.Wait()
	same(t, "winners", wins.Load(), int64(1))
	unfinished, err := b.Unfinished(t.Context())
	must(t, err)
	same(t, "executions", len(unfinished), 1)
}

func onceRefuses(t *trial, b Backend) {
	for name, change := range map[string]func(*sallyport.Execution, *run.Once){
		"no key":       func(_ *sallyport.Execution, o *run.Once) { o.Key = "" },
		"no request":   func(_ *sallyport.Execution, o *run.Once) { o.Request = "" },
		"no principal": func(e *sallyport.Execution, _ *run.Once) { e.PrincipalID = "" },
		"no id":        func(e *sallyport.Execution, _ *run.Once) { e.ID = "" },
		"running":      func(e *sallyport.Execution, _ *run.Once) { e.Status = sallyport.StatusRunning },
	} {
		e, o := execution("one", 1), once(day(0), "x")
		change(&e, &o)
		if taken, err := b.OpenOnce(t.Context(), tenant, e, entry(sallyport.ActionScriptRun, string(e.ID)), o); err == nil || taken {
			t.Errorf("%s: taken %v, %v", name, taken, err)
		}
	}
	same(t, "stands for", standsFor(t, b, tenant, owner, day(0)), "")
}
