package httpapi

import (
	"encoding/json"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/internal/strictjson"
)

func showPolicy(c *call, p sallyport.Principal) (answer, error) {
	view, err := c.api.cfg.Directory.ShowPolicy(c.ctx(), p)
	return shownPolicy(view), err
}

func shownPolicy(view access.PolicyView) answer {
	view.Effective.Interpreters = list(view.Effective.Interpreters)
	return ok(view)
}

type policyBody struct {
	// ExpectedVersion is the version that the change is based on.
	ExpectedVersion *int64          `json:"expected_version"`
	Policy          json.RawMessage `json:"policy"`
}

func setPolicy(c *call, p sallyport.Principal) (answer, error) {
	var body policyBody
	if err := c.decode(&body); err != nil {
		return answer{}, err
	}
	if body.ExpectedVersion == nil || len(body.Policy) == 0 || string(body.Policy) == "null" {
		return answer{}, invalid("expected_version and policy are required: read the policy, change it, and send both")
	}
	policy, err := readPolicy(body.Policy)
	if err != nil {
		return answer{}, err
	}
	view, err := c.api.cfg.Directory.SetPolicy(c.ctx(), p, *body.ExpectedVersion, policy)
	return shownPolicy(view), err
}

// readPolicy reads a policy strictly: a limit that is misspelt must not be one that is left out.
func readPolicy(sent json.RawMessage) (sallyport.Policy, error) {
	var (
		policy sallyport.Policy
		inner  struct {
			Limits json.RawMessage `json:"limits"`
		}
	)
	if err := strictjson.Decode(sent, &policy); err != nil {
		return policy, err
	}
	if err := json.Unmarshal(sent, &inner); err != nil {
		return policy, invalid("policy is not an object")
	}
	if len(inner.Limits) == 0 {
		return policy, nil
	}
	var limits limitsBody
	err := strictjson.Decode(inner.Limits, &limits)
	if err == nil {
		policy.Limits, err = limits.limits("/policy/limits")
	}
	return policy, err
}
