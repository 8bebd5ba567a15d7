package cli

import (
	"bufio"
	"context"
	"strings"

	"github.com/sallyport-dev/sallyport"
)

// canAsk refuses when no person is at the other end, and names the flag that answers for one.
func (a *app) canAsk() error {
	if a.args.JSON || !isTerminal(a.stdin) {
		return badUsage("this needs a yes, and nobody is there to give it: add --yes")
	}
	return nil
}

// confirm asks a question on standard error and reads the answer from standard input. Only y and yes agree.
func (a *app) confirm(ctx context.Context, question string) error {
	_, _ = a.stderr.Write([]byte(question + " [y/N] "))
	// A goroutine of its own, because a read of a terminal cannot be interrupted; it ends with the process.
	lines := make(chan string, 1)
	go func() {
		line, err := bufio.NewReader(a.stdin).ReadString('\n')
		if err != nil {
			a.notes.line("")
		}
		lines <- line
	}()
	answer := ""
	select {
	case answer = <-lines:
	case <-ctx.Done():
		a.notes.line("")
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return sallyport.Errorf("cli.confirm", sallyport.CodeCanceled, "nothing was changed")
}
