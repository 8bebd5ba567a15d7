package server

import (
	"context"
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
	// Address holds for each remote address whose caller has not proved who it is.
	Address AddressQuota
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
	// policy gives the tenant's own quotas, which narrow.
	policy func(ctx context.Context, tenant sallyport.TenantID) (sallyport.Policy, error)

	mu        sync.Mutex // guards what follows
	tenant    *bucket.Set
	principal *bucket.Set
	own       map[sallyport.TenantID]*ownRate
}

// ownRate counts what a tenant's policy bounds, besides the installation's rates.
type ownRate struct {
	tenant, principal int // a second, as the policy says
	tenants           *bucket.Set
	principals        *bucket.Set
}

// maxOwn bounds the tenants whose policies are counted.
const maxOwn = 10_000

// ownOf returns the counters of a tenant's policy; nil when it bounds nothing.
func (l *limiter) ownOf(tenant sallyport.TenantID, policy sallyport.Policy) *ownRate {
	each, all := policy.PrincipalQuota.RequestsPerSecond, policy.TenantQuota.RequestsPerSecond
	if each == 0 && all == 0 {
		delete(l.own, tenant)
		return nil
	}
	own := l.own[tenant]
	if own == nil || own.tenant != all || own.principal != each {
		if len(l.own) >= maxOwn {
			clear(l.own)
		}
		own = &ownRate{all, each, perSecond(all), perSecond(each)}
		l.own[tenant] = own
	}
	return own
}

func perSecond(amount int) *bucket.Set {
	return bucket.NewSet(bucket.Rate{Amount: float64(amount), Per: time.Second})
}

func newLimiter(who httpapi.Authenticator, quotas Quotas, policy func(context.Context, sallyport.TenantID) (sallyport.Policy, error)) *limiter {
	return &limiter{
		who: who, quotas: quotas, policy: policy, own: map[sallyport.TenantID]*ownRate{},
		tenant: perSecond(quotas.Tenant.RequestsPerSecond), principal: perSecond(quotas.Principal.RequestsPerSecond),
	}
}

// Principal returns who sent r, or RATE_LIMITED when that is one request too many.
func (l *limiter) Principal(r *http.Request) (sallyport.Principal, error) {
	p, err := l.who.Principal(r)
	if err != nil {
		return p, err
	}
	policy, err := l.policy(r.Context(), p.TenantID)
	if err != nil {
		return sallyport.Principal{}, err
	}
	now := time.Now()
	tenant, principal := string(p.TenantID), string(p.TenantID)+"\x00"+string(p.ID)
	l.mu.Lock()
	defer l.mu.Unlock()
	counted := []rate{
		{l.principal, principal, "principal", "principal", l.quotas.Principal.RequestsPerSecond},
		{l.tenant, tenant, "tenant", "tenant", l.quotas.Tenant.RequestsPerSecond},
	}
	if own := l.ownOf(p.TenantID, policy); own != nil {
		counted = append(counted, rate{own.principals, principal, "principal", "policy.principal_quota", own.principal},
			rate{own.tenants, tenant, "tenant", "policy.tenant_quota", own.tenant})
	}
	for _, one := range counted {
		if wait := one.set.Wait(one.key, 1, now); wait > 0 {
			return sallyport.Principal{}, sallyport.RateLimited("server.requests",
				fmt.Sprintf("the %s has used its %d requests a second", one.who, one.most), wait,
				map[string]any{"quota": one.setting + ".requests_per_second"})
		}
	}
	for _, one := range counted {
		one.set.Spend(one.key, 1, now)
	}
	return p, nil
}

// rate is one thing that a request is counted for.
type rate struct {
	set     *bucket.Set
	key     string
	who     string
	setting string
	most    int
}
