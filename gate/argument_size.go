package gate

import (
	"context"
	"fmt"

	"github.com/sallyport-dev/sallyport"
)

// argumentSizeGate: arguments and input files are within their limits, counted in bytes as received. Each word of argv, and each
// name, counts one byte more, its end: else any number of empty ones would fit, and all are recorded.
type argumentSizeGate struct {
	maxArguments  int64
	maxInputBytes int64
	maxInputFiles int
}

func (argumentSizeGate) Name() string { return "argument_size" }

func (g argumentSizeGate) Check(_ context.Context, c *sallyport.Candidate) *sallyport.Refusal {
	arguments, content := int64(len(c.Args)), int64(0)
	for _, arg := range c.Argv {
		arguments += int64(len(arg)) + 1
	}
	for _, file := range c.Files {
		arguments += int64(len(file.Name)) + 1
		content += int64(len(file.Content))
	}
	var message string
	switch {
	case arguments > g.maxArguments:
		message = fmt.Sprintf("input_args, argv and the names of files have %d bytes, the limit is %d; send large data as files", arguments, g.maxArguments)
	case len(c.Files) > g.maxInputFiles:
		message = fmt.Sprintf("there are %d input files, the limit is %d", len(c.Files), g.maxInputFiles)
	case content > g.maxInputBytes:
		message = fmt.Sprintf("the input files have %d bytes, the limit is %d", content, g.maxInputBytes)
	default:
		return nil
	}
	return &sallyport.Refusal{Code: sallyport.CodeArgumentsTooLarge, Gate: g.Name(), Message: message}
}
