package run

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/bucket"
)

// Quota bounds the runs of one tenant or one principal over time. Zero fields bound nothing. What was used is counted since the
// service was made.
type Quota struct {
	RunsPerMinute, RunsPerDay int
	// CPUSecondsPerDay is counted when a run ends; a run begins while anything is left.
	CPUSecondsPerDay int
	// ConcurrentRuns are runs under way, waiting ones too.
	ConcurrentRuns int
}

// Quotas bound what passed every gate, before anything is recorded. The zero value bounds nothing.
type Quotas struct {
	// Tenant holds for each tenant, Principal for each principal of one.
	Tenant, Principal Quota
	// Failures is how many runs of the same script, with the same content and by the same principal, may fail one after the other
	// before the next is refused; zero is no bound. FailureWindow after the last of them they are forgotten; zero means ten
	// minutes.
	Failures      int
	FailureWindow time.Duration
}

const (
	defaultFailureWindow = 10 * time.Minute
	// maxStreaks bounds the scripts whose failures are remembered.
	maxStreaks = 10_000
	day        = 24 * time.Hour
	// retrySoon is for what has no known end: somebody's run.
	retrySoon = time.Second
)

// quotas counts. It is safe for concurrent use.
type quotas struct {
	cfg Quotas

	mu       sync.Mutex // guards what follows
	counters []counter
	own      map[sallyport.TenantID]*ownQuota
	running  map[string]int
	streaks  map[streakKey]streak
}

// ownQuota counts what a tenant's policy bounds, besides the installation's counters: a policy can only narrow. It begins anew when
// the policy's numbers change.
type ownQuota struct {
	tenant, principal sallyport.Quota
	counters          []counter
}

// maxOwn bounds the tenants whose policies are counted.
const maxOwn = 10_000

// counter is one kind of thing that is counted for one kind of owner.
type counter struct {
	set   *bucket.Set
	owner func(sallyport.Principal) string
	what  string // for the refusal, after "has used"
	name  string // of the setting, below quotas
	cpu   bool   // spent when a run ends
}

type streakKey struct {
	principal, script string
	skill             sallyport.SkillID
	digest            sallyport.Digest
}

// streak is failures one after the other.
type streak struct {
	count int
	last  time.Time
}

func ofTenant(p sallyport.Principal) string { return string(p.TenantID) }

func ofPrincipal(p sallyport.Principal) string { return string(p.TenantID) + "\x00" + string(p.ID) }

func newQuotas(cfg Quotas) *quotas {
	if cfg.FailureWindow == 0 {
		cfg.FailureWindow = defaultFailureWindow
	}
	return &quotas{
		cfg: cfg, running: map[string]int{}, streaks: map[streakKey]streak{}, own: map[sallyport.TenantID]*ownQuota{},
		counters: slices.Concat(bind("tenant", ofTenant, cfg.Tenant), bind("principal", ofPrincipal, cfg.Principal)),
	}
}

func quotaOf(q sallyport.Quota) Quota {
	return Quota{
		RunsPerMinute: q.RunsPerMinute, RunsPerDay: q.RunsPerDay, CPUSecondsPerDay: q.CPUSecondsPerDay, ConcurrentRuns: q.ConcurrentRuns,
	}
}

// ownOf returns the counters of the tenant's policy.
func (q *quotas) ownOf(tenant sallyport.TenantID, policy sallyport.Policy) []counter {
	if policy.TenantQuota.IsZero() && policy.PrincipalQuota.IsZero() {
		delete(q.own, tenant)
		return nil
	}
	own := q.own[tenant]
	if own == nil || own.tenant != policy.TenantQuota || own.principal != policy.PrincipalQuota {
		if len(q.own) >= maxOwn {
			clear(q.own)
		}
		own = &ownQuota{policy.TenantQuota, policy.PrincipalQuota, slices.Concat(
			bind("policy.tenant_quota", ofTenant, quotaOf(policy.TenantQuota)), bind("policy.principal_quota", ofPrincipal, quotaOf(policy.PrincipalQuota)))}
		q.own[tenant] = own
	}
	return own.counters
}

// bind makes the counters of one quota.
func bind(who string, owner func(sallyport.Principal) string, quota Quota) []counter {
	var counters []counter
	subject := "the tenant"
	if strings.Contains(who, "principal") {
		subject = "the principal"
	}
	for _, b := range []struct {
		amount int
		per    time.Duration
		name   string
		what   string
		cpu    bool
	}{
		{quota.RunsPerMinute, time.Minute, "runs_per_minute", "%d runs a minute", false},
		{quota.RunsPerDay, day, "runs_per_day", "%d runs a day", false},
		{quota.CPUSecondsPerDay, day, "cpu_seconds_per_day", "%d seconds of CPU a day", true},
	} {
		if b.amount > 0 {
			counters = append(counters, counter{
				set: bucket.NewSet(bucket.Rate{Amount: float64(b.amount), Per: b.per}), owner: owner,
				what: subject + " has used its " + fmt.Sprintf(b.what, b.amount), name: who + "." + b.name, cpu: b.cpu,
			})
		}
	}
	return counters
}

// admit takes what one run uses, or returns RATE_LIMITED and takes nothing. Unless it does, done must be called once with the
// execution as it ended; one that never began gives everything back.
func (q *quotas) admit(c *sallyport.Candidate) (done func(sallyport.Execution), err error) {
	now := time.Now()
	p := c.Principal
	key := streakKey{ofPrincipal(p), c.Script.Path, c.Skill.ID, c.Digest}
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.failing(key, now); err != nil {
		return nil, err
	}
	if err := q.crowded(p, c.Policy); err != nil {
		return nil, err
	}
	counters := slices.Concat(q.counters, q.ownOf(p.TenantID, c.Policy))
	for _, b := range counters {
		if wait := b.set.Wait(b.owner(p), 1, now); wait > 0 {
			return nil, limited(b.name, wait, b.what)
		}
	}
	spend(counters, p, 1, 0, now)
	q.running["t\x00"+ofTenant(p)]++
	q.running["p\x00"+ofPrincipal(p)]++
	return func(e sallyport.Execution) { q.done(counters, p, key, e) }, nil
}

// crowded refuses a run beside too many others.
func (q *quotas) crowded(p sallyport.Principal, policy sallyport.Policy) error {
	installation := sallyport.Quota{ConcurrentRuns: q.cfg.Tenant.ConcurrentRuns}
	each := sallyport.Quota{ConcurrentRuns: q.cfg.Principal.ConcurrentRuns}
	for _, b := range []struct {
		key, name, who string
		most           int
	}{
		{"t\x00" + ofTenant(p), "tenant.concurrent_runs", "the tenant", installation.Narrow(policy.TenantQuota).ConcurrentRuns},
		{"p\x00" + ofPrincipal(p), "principal.concurrent_runs", "the principal", each.Narrow(policy.PrincipalQuota).ConcurrentRuns},
	} {
		if b.most > 0 && q.running[b.key] >= b.most {
			return limited(b.name, retrySoon, fmt.Sprintf("%s has %d runs under way, as many as it may; wait for one to end", b.who, b.most))
		}
	}
	return nil
}

// failing refuses a script that did nothing but fail lately.
func (q *quotas) failing(key streakKey, now time.Time) error {
	s, known := q.streaks[key]
	if !known || q.cfg.Failures <= 0 || s.count < q.cfg.Failures {
		return nil
	}
	wait := s.last.Add(q.cfg.FailureWindow).Sub(now)
	if wait <= 0 {
		return nil
	}
	return limited("failures", wait, fmt.Sprintf(
		"%s failed %d times in a row with this content; read its last error and mend the call or the script, or tell a person",
		key.script, s.count))
}

// done counts what a run used and how it ended.
func (q *quotas) done(counters []counter, p sallyport.Principal, key streakKey, e sallyport.Execution) {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, k := range []string{"t\x00" + ofTenant(p), "p\x00" + ofPrincipal(p)} {
		if q.running[k]--; q.running[k] <= 0 {
			delete(q.running, k)
		}
	}
	switch e.Status {
	case "", sallyport.StatusNotStarted:
		spend(counters, p, -1, 0, now)
	case sallyport.StatusSuccess:
		spend(counters, p, 0, cpuSeconds(e), now)
		delete(q.streaks, key)
	case sallyport.StatusError, sallyport.StatusTimeout, sallyport.StatusResourceExhausted:
		spend(counters, p, 0, cpuSeconds(e), now)
		q.failed(key, now)
	case sallyport.StatusCanceled, sallyport.StatusLost, sallyport.StatusQueued, sallyport.StatusRunning:
		spend(counters, p, 0, cpuSeconds(e), now)
	}
}

func spend(counters []counter, p sallyport.Principal, runs, cpu float64, now time.Time) {
	for _, b := range counters {
		if b.cpu {
			b.set.Spend(b.owner(p), cpu, now)
		} else {
			b.set.Spend(b.owner(p), runs, now)
		}
	}
}

// cpuSeconds is what a run used; the time it took when the executor could not measure.
func cpuSeconds(e sallyport.Execution) float64 {
	if e.CPUTimeMS != nil {
		return float64(*e.CPUTimeMS) / 1000
	}
	return float64(e.DurationMS) / 1000
}

func (q *quotas) failed(key streakKey, now time.Time) {
	if q.cfg.Failures <= 0 {
		return
	}
	s := q.streaks[key]
	if now.Sub(s.last) > q.cfg.FailureWindow {
		s.count = 0
	}
	if len(q.streaks) >= maxStreaks {
		q.forget(now)
	}
	q.streaks[key] = streak{count: s.count + 1, last: now}
}

// forget makes room: for streaks that are over, and when there is none for any other.
func (q *quotas) forget(now time.Time) {
	for key, s := range q.streaks {
		if now.Sub(s.last) > q.cfg.FailureWindow {
			delete(q.streaks, key)
		}
	}
	for key := range q.streaks {
		if len(q.streaks) < maxStreaks {
			return
		}
		delete(q.streaks, key)
	}
}

// limited is the refusal by the quota name, which is over after wait.
func limited(name string, wait time.Duration, sentence string) *sallyport.Error {
	return sallyport.RateLimited("run.quota", sentence, wait, map[string]any{"quota": name})
}
