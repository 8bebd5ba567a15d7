package gate

import (
	"context"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// pinGate: the pin of an active grant equals the digest of the bytes about to run. A narrow grant is looked at before a
// wide one; the one that matches is recorded.
type pinGate struct {
	now func() time.Time
}

func (pinGate) Name() string { return "pin" }

func (g pinGate) Check(_ context.Context, c *sallyport.Candidate) *sallyport.Refusal {
	for _, narrow := range []bool{true, false} {
		for i := range c.Grants {
			grant := c.Grants[i]
			if covers(&grant, c) && (grant.ScriptPath != "") == narrow &&
				grant.State(g.now()) == sallyport.GrantActive && grant.Pin.Equal(c.Digest) {
				c.Grant = &grant
				return nil
			}
		}
	}
	// The digest that would match is not told: a caller must not learn which content was reviewed.
	return &sallyport.Refusal{
		Code: sallyport.CodePinMismatch, Gate: g.Name(),
		Message: "the revision differs from every content that an active grant pins; " +
			"name a granted revision, or have a reviewer read and grant this one",
	}
}
