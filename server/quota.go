package server

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/bucket"
	"github.com/sallyport-dev/sallyport/internal/httpapi"
	"github.com/sallyport-dev/sallyport/run"
)

// Quota bounds what one tenant or one principal uses over time. Zero fields bound nothing. What was used is counted since the server
// started.
type Quota struct {
	// RequestsPerSecond counts every authenticated request over the network.
	RequestsPerSecond int
	// RunsPerMinute and RunsPerDay count runs that passed every gate.
	RunsPerMinute, RunsPerDay int
	// CPUSecondsPerDay is counted when a run ends; a run begins while anything is left.
	CPUSecondsPerDay int
	// ConcurrentRuns are runs under way, waiting ones too.
	ConcurrentRuns int
}

// Quotas bound use over time. The zero value bounds nothing.
type Quotas struct {
	// Tenant holds for each tenant, Principal for each principal of one.
	Tenant, Principal Quota
	// Failures is how many runs of the same script, with the same content and by the same principal, may fail one after the other
	// before the next is refused; zero is no bound. FailureWindow after the last of them they are forgotten; zero means ten
	// minutes.
	Failures      int
	FailureWindow time.Duration
}

func (q Quota) run() run.Quota {
	return run.Quota{
		RunsPerMinute: q.RunsPerMinute, RunsPerDay: q.RunsPerDay, CPUSecondsPerDay: q.CPUSecondsPerDay, ConcurrentRuns: q.ConcurrentRuns,
	}
}

func (q Quotas) run() run.Quotas {
	return run.Quotas{Tenant: q.Tenant.run(), Principal: q.Principal.run(), Failures: q.Failures, FailureWindow: q.FailureWindow}
}

// fields are what must not be negative, by name.
func (q Quotas) fields() map[string]int64 {
	all := map[string]int64{"Quotas.Failures": int64(q.Failures), "Quotas.FailureWindow": int64(q.FailureWindow)}
	for who, one := range map[string]Quota{"Tenant": q.Tenant, "Principal": q.Principal} {
		for name, value := range map[string]int{
			"RequestsPerSecond": one.RequestsPerSecond, "RunsPerMinute": one.RunsPerMinute, "RunsPerDay": one.RunsPerDay,
			"CPUSecondsPerDay": one.CPUSecondsPerDay, "ConcurrentRuns": one.ConcurrentRuns,
		} {
			all["Quotas."+who+"."+name] = int64(value)
		}
	}
	return all
}

// limiter counts the requests of those whom another Authenticator let in. It is safe for concurrent use.
type limiter struct {
	who    httpapi.Authenticator
	quotas Quotas

	mu        sync.Mutex // guards what follows
	tenant    *bucket.Set
	principal *bucket.Set
}

func newLimiter(who httpapi.Authenticator, quotas Quotas) *limiter {
	perSecond := func(q Quota) *bucket.Set {
		return bucket.NewSet(bucket.Rate{Amount: float64(q.RequestsPerSecond), Per: time.Second})
	}
	return &limiter{who: who, quotas: quotas, tenant: perSecond(quotas.Tenant), principal: perSecond(quotas.Principal)}
}

// Principal returns who sent r, or RATE_LIMITED when that is one request too many.
func (l *limiter) Principal(r *http.Request) (sallyport.Principal, error) {
	p, err := l.who.Principal(r)
	if err != nil {
		return p, err
	}
	now := time.Now()
	tenant, principal := string(p.TenantID), string(p.TenantID)+"\x00"+string(p.ID)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range []struct {
		set  *bucket.Set
		key  string
		who  string
		most int
	}{
		{l.principal, principal, "principal", l.quotas.Principal.RequestsPerSecond},
		{l.tenant, tenant, "tenant", l.quotas.Tenant.RequestsPerSecond},
	} {
		if wait := one.set.Wait(one.key, 1, now); wait > 0 {
			return sallyport.Principal{}, sallyport.RateLimited("server.requests",
				fmt.Sprintf("the %s has used its %d requests a second", one.who, one.most), wait,
				map[string]any{"quota": one.who + ".requests_per_second"})
		}
	}
	l.principal.Spend(principal, 1, now)
	l.tenant.Spend(tenant, 1, now)
	return p, nil
}
