package gate

import (
	"context"
	"strings"

	"github.com/sallyport-dev/sallyport"
)

// pathGate: every stored path that will be staged is plain and collides with no other by case; the script is one of them. Saving
// checks this too: the gate is for rows written before the rule or outside it.
type pathGate struct{}

func (pathGate) Name() string { return "path" }

func (g pathGate) Check(_ context.Context, c *sallyport.Candidate) *sallyport.Refusal {
	refuse := func(message string) *sallyport.Refusal {
		return &sallyport.Refusal{Code: sallyport.CodeUnsafePath, Gate: g.Name(), Message: message}
	}
	seen := make(map[string]bool, len(c.Revision.Components))
	inside := false
	for _, component := range c.Revision.Components {
		if err := sallyport.CheckPath(component.Path); err != nil {
			return refuse("a stored path of this revision is not plain: " + sallyport.Public(err).Message)
		}
		folded := fold(component.Path)
		if seen[folded] {
			return refuse("two stored paths of this revision differ only by case")
		}
		seen[folded] = true
		inside = inside || component.Path == c.Script.Path
	}
	if !inside {
		return refuse("the script is not inside the revision")
	}
	return nil
}

// fold maps paths that a case-insensitive file system would confuse to one key.
func fold(path string) string { return strings.ToLower(strings.ToUpper(path)) }
