package run_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/run"
)

// policies is the policy of every tenant, or why there is none.
type policies struct {
	policy sallyport.Policy
	err    error
}

func (p *policies) Policy(context.Context, sallyport.TenantID) (sallyport.Policy, error) {
	return p.policy, p.err
}

// What a tenant shuts for itself, explain names with who opens it; what would widen changes nothing.
func TestPolicyAtTheGates(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		policy sallyport.Policy
		err    error
		code   sallyport.Code
		remedy string
	}{
		"nothing":         {},
		"scripts off":     {policy: sallyport.Policy{ScriptsDisabled: true}, code: sallyport.CodeFeatureDisabled, remedy: "an administrator of the tenant changes scripts_disabled with: sallyport policy set"},
		"no interpreter":  {policy: sallyport.Policy{Interpreters: []string{}}, code: sallyport.CodeInterpreterNotAllowed},
		"a further layer": {policy: sallyport.Policy{RequiredLayers: []sallyport.Layer{sallyport.LayerLandlock}}, code: sallyport.CodeSandboxUnavailable, remedy: "an administrator of the tenant changes required_layers with: sallyport policy set"},
		"wide": {policy: sallyport.Policy{
			Interpreters: []string{"py", "exe"}, RequiredLayers: []sallyport.Layer{sallyport.LayerSeccomp}, Limits: sallyport.Limits{MemoryBytes: 1 << 50},
		}},
		"a tenant that is shut": {err: &sallyport.Error{Op: "x", Code: sallyport.CodeAccessDenied}, code: sallyport.CodeAccessDenied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := w.service(func(c *run.Config) { c.Policies = &policies{test.policy, test.err} })
			explained, err := s.Explain(t.Context(), w.principal, request())
			if err != nil {
				t.Fatal(err)
			}
			execution, err := s.Run(t.Context(), w.principal, request())
			if got := sallyport.CodeOf(err); got != test.code || explained.Runnable != (test.code == "") {
				t.Fatalf("got %q and runnable %t, want %q", got, explained.Runnable, test.code)
			}
			if test.remedy != "" && explained.Remedy != test.remedy {
				t.Errorf("remedy: got %q, want %q", explained.Remedy, test.remedy)
			}
			if test.code == "" && execution.Limits.MemoryBytes != sallyport.DefaultMemoryBytes {
				t.Errorf("a policy widened the memory to %d", execution.Limits.MemoryBytes)
			}
		})
	}
}

// A tenant's quota narrows the installation's, is counted from when it is set, and takes nothing of what the installation counts.
func TestPolicyQuota(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		own := &policies{}
		s := w.service(func(c *run.Config) {
			c.Policies, c.Quotas = own, run.Quotas{Tenant: run.Quota{RunsPerMinute: 5}}
		})
		again := func() error {
			_, err := s.Run(t.Context(), w.principal, request())
			return err
		}
		own.policy.TenantQuota = sallyport.Quota{RunsPerMinute: 2}
		for range 2 {
			if err := again(); err != nil {
				t.Fatal(err)
			}
		}
		quota(t, "the tenant's own", again(), "policy.tenant_quota.runs_per_minute", 30*time.Second)
		own.policy = sallyport.Policy{PrincipalQuota: sallyport.Quota{RunsPerMinute: 100}}
		for range 3 {
			if err := again(); err != nil {
				t.Fatal(err)
			}
		}
		quota(t, "the installation's, whatever the tenant says", again(), "tenant.runs_per_minute", 12*time.Second)
		own.policy = sallyport.Policy{}
		quota(t, "and without a policy", again(), "tenant.runs_per_minute", 12*time.Second)
	})
}

// A tenant bounds the runs that it has under way.
func TestPolicyConcurrency(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		release := make(chan struct{})
		w.execute = func(context.Context, sallyport.ExecRequest) (sallyport.Result, error) {
			<-release
			return exitZero(), nil
		}
		s := w.service(func(c *run.Config) {
			c.Policies = &policies{policy: sallyport.Policy{TenantQuota: sallyport.Quota{ConcurrentRuns: 1}}}
		})
		first := make(chan error)
		go func() {
			_, err := s.Run(t.Context(), w.principal, request())
			first <- err
		}()
		synctest.Wait()
		_, err := s.Run(t.Context(), w.principal, request())
		quota(t, "beside another", err, "tenant.concurrent_runs", time.Second)
		close(release)
		if err := <-first; err != nil {
			t.Fatal(err)
		}
		if _, err := s.Run(t.Context(), w.principal, request()); err != nil {
			t.Fatal(err)
		}
	})
}
