package cli

import (
	"bufio"
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
func (a *app) confirm(question string) error {
	_, _ = a.stderr.Write([]byte(question + " [y/N] "))
	answer, err := bufio.NewReader(a.stdin).ReadString('\n')
	if err != nil {
		a.notes.line("")
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return sallyport.Errorf("cli.confirm", sallyport.CodeCanceled, "nothing was changed")
}
