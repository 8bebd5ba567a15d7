// Package unsafelocal is the executor without isolation, for development on machines that have no sandbox.
//
// It owns a folder of its own for every run, the process, its timeout and what it wrote; it leaves everything else open: a script
// runs as whoever started the server, with that user's files and network. Its one invariant: nobody gets it by accident. It is
// made only by a Config that says in so many words that there is no isolation, it claims no layer, and every result lists the
// layers that were missing.
package unsafelocal

import (
	"github.com/sallyport-dev/sallyport"
)

// Kind is the name of this executor.
const Kind = "unsafelocal"

// Config describes the executor. The zero value is refused.
type Config struct {
	// AcceptNoIsolation says that whoever configures this knows that scripts are not isolated at all.
	AcceptNoIsolation bool
}

func (c Config) validate() error {
	if c.AcceptNoIsolation {
		return nil
	}
	return sallyport.Errorf("unsafelocal.new", sallyport.CodeInvalidArgument,
		"the executor unsafelocal has no isolation and is only made for a configuration that accepts that by name (accept: unsafelocal)")
}

// missing are the layers of a result: all there are.
func missing() []sallyport.Layer { return sallyport.Layers() }
