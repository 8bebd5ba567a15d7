package run

import (
	"fmt"
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
	running  map[string]int
	streaks  map[streakKey]streak
}

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
	q := &quotas{cfg: cfg, running: map[string]int{}, streaks: map[streakKey]streak{}}
	q.bind("tenant", ofTenant, cfg.Tenant)
	q.bind("principal", ofPrincipal, cfg.Principal)
	return q
}

func (q *quotas) bind(who string, owner func(sallyport.Principal) string, quota Quota) {
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
			q.counters = append(q.counters, counter{
				set: bucket.NewSet(bucket.Rate{Amount: float64(b.amount), Per: b.per}), owner: owner,
				what: "the " + who + " has used its " + fmt.Sprintf(b.what, b.amount), name: who + "." + b.name, cpu: b.cpu,
			})
		}
	}
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
	if err := q.crowded(p); err != nil {
		return nil, err
	}
	for _, b := range q.counters {
		if wait := b.set.Wait(b.owner(p), 1, now); wait > 0 {
			return nil, limited(b.name, wait, b.what)
		}
	}
	q.spend(p, 1, 0, now)
	q.running["t\x00"+ofTenant(p)]++
	q.running["p\x00"+ofPrincipal(p)]++
	return func(e sallyport.Execution) { q.done(p, key, e) }, nil
}

// crowded refuses a run beside too many others.
func (q *quotas) crowded(p sallyport.Principal) error {
	for _, b := range []struct {
		key, name, who string
		most           int
	}{
		{"t\x00" + ofTenant(p), "tenant.concurrent_runs", "the tenant", q.cfg.Tenant.ConcurrentRuns},
		{"p\x00" + ofPrincipal(p), "principal.concurrent_runs", "the principal", q.cfg.Principal.ConcurrentRuns},
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
func (q *quotas) done(p sallyport.Principal, key streakKey, e sallyport.Execution) {
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
		q.spend(p, -1, 0, now)
	case sallyport.StatusSuccess:
		q.spend(p, 0, cpuSeconds(e), now)
		delete(q.streaks, key)
	case sallyport.StatusError, sallyport.StatusTimeout, sallyport.StatusResourceExhausted:
		q.spend(p, 0, cpuSeconds(e), now)
		q.failed(key, now)
	case sallyport.StatusCanceled, sallyport.StatusLost, sallyport.StatusQueued, sallyport.StatusRunning:
		q.spend(p, 0, cpuSeconds(e), now)
	}
}

func (q *quotas) spend(p sallyport.Principal, runs, cpu float64, now time.Time) {
	for _, b := range q.counters {
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
