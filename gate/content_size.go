package gate

import (
	"context"
	"fmt"

	"github.com/sallyport-dev/sallyport"
)

// contentSizeGate: the script and its revision are within their limits, by the bytes at hand and not by a stored size.
type contentSizeGate struct {
	maxScript   int64
	maxRevision int64
}

func (contentSizeGate) Name() string { return "content_size" }

func (g contentSizeGate) Check(_ context.Context, c *sallyport.Candidate) *sallyport.Refusal {
	var total int64
	for _, component := range c.Revision.Components {
		total += int64(len(component.Content))
	}
	var message string
	switch size := int64(len(c.Script.Content)); {
	case size > g.maxScript:
		message = fmt.Sprintf("the script has %d bytes, the limit is %d", size, g.maxScript)
	case total > g.maxRevision:
		message = fmt.Sprintf("the revision has %d bytes, the limit is %d", total, g.maxRevision)
	default:
		return nil
	}
	return &sallyport.Refusal{Code: sallyport.CodeContentTooLarge, Gate: g.Name(), Message: message}
}
