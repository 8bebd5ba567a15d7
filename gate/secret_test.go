package gate_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/gate"
)

// setSecrets knows which secrets are set; asked for others than its tenant's it fails the test.
type setSecrets struct {
	t   *testing.T
	set []string
	err error
}

func (s setSecrets) Missing(_ context.Context, tenant sallyport.TenantID, names []string) ([]string, error) {
	if tenant != "t" {
		s.t.Errorf("asked for the tenant %q", tenant)
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(s.set, name) }), s.err
}

func TestSecretGate(t *testing.T) {
	t.Parallel()
	broken := &sallyport.Error{Op: "x", Code: sallyport.CodeStoreUnavailable, Err: errors.New("no")}
	for name, test := range map[string]struct {
		declared []string
		secrets  gate.Secrets
		code     sallyport.Code
		says     string
	}{
		"none declared":        {nil, nil, "", ""},
		"none declared, none":  {nil, setSecrets{t: t}, "", ""},
		"set":                  {[]string{"A", "B"}, setSecrets{t: t, set: []string{"B", "A"}}, "", ""},
		"one missing":          {[]string{"A", "B", "C"}, setSecrets{t: t, set: []string{"B"}}, sallyport.CodeSecretMissing, "A, C; an administrator sets one with: sallyport secret set A"},
		"nobody to ask":        {[]string{"A"}, nil, sallyport.CodeSecretMissing, "A"},
		"the store is broken":  {[]string{"A"}, setSecrets{t: t, set: []string{"A"}, err: broken}, sallyport.CodeStoreUnavailable, ""},
		"an error of no known": {[]string{"A"}, setSecrets{t: t, set: []string{"A"}, err: errors.New("x")}, sallyport.CodeInternal, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := named(t, "secrets", gate.Deps{Secrets: test.secrets})
			c := &sallyport.Candidate{
				Principal: sallyport.Principal{ID: "p", TenantID: "t"},
				Script:    sallyport.Component{Path: "x.py", Script: &sallyport.ScriptSettings{Secrets: test.declared}},
			}
			refusal := g.Check(t.Context(), c)
			switch {
			case test.code == "" && refusal != nil:
				t.Errorf("refused: %+v", refusal)
			case test.code == "":
			case refusal == nil || refusal.Code != test.code || !strings.Contains(refusal.Message, test.says):
				t.Errorf("got %+v, want %s with %q", refusal, test.code, test.says)
			}
		})
	}
}

// An executor that cannot keep a secret from others is not handed one.
func TestSecretsAreAFeature(t *testing.T) {
	t.Parallel()
	c := &sallyport.Candidate{Script: sallyport.Component{Path: "x.py", Script: &sallyport.ScriptSettings{Secrets: []string{"A"}}}}
	for _, features := range [][]sallyport.Feature{{sallyport.FeatureArgv}, {sallyport.FeatureSecrets}} {
		g := named(t, "isolation", gate.Deps{Executor: able{features}})
		refusal := g.Check(t.Context(), c)
		if (refusal == nil) != slices.Contains(features, sallyport.FeatureSecrets) {
			t.Errorf("%v: got %+v", features, refusal)
		}
		if refusal != nil && !strings.Contains(refusal.Message, "secrets") {
			t.Errorf("the refusal does not name the feature: %q", refusal.Message)
		}
	}
}

type able struct{ features []sallyport.Feature }

func (able) Kind() string { return "able" }
func (a able) Capabilities(context.Context) sallyport.Capabilities {
	return sallyport.Capabilities{Available: true, Features: a.features}
}

func (able) Execute(context.Context, sallyport.ExecRequest) (sallyport.Result, error) {
	return sallyport.Result{}, errors.New("nothing runs here")
}
