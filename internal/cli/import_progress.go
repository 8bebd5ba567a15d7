package cli

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sallyport-dev/sallyport/registry"
)

// importProgress says on standard error how far an import is: on a terminal in one line that is written over, else a line at most once a
// second; with --json each step as a JSON document of its own. Nothing is said unless a person waits or --progress asks for it.
type importProgress struct {
	app      *app
	on       bool
	terminal bool // one line is written over
	last     time.Time
	written  bool
}

func (a *app) importProgress(asked bool) *importProgress {
	terminal := a.errTerminal && !a.args.JSON
	return &importProgress{app: a, on: asked || terminal, terminal: terminal}
}

// step is what the import reports to; nil when nobody listens.
func (p *importProgress) step() func(registry.ImportProgress) {
	if !p.on {
		return nil
	}
	return func(at registry.ImportProgress) {
		if p.app.args.JSON {
			line, err := json.Marshal(struct {
				Kind string                  `json:"kind"`
				Data registry.ImportProgress `json:"data"`
			}{"import_progress", at})
			if err == nil {
				_, _ = p.app.stderr.Write(append(line, '\n')) // a reader who went away misses progress only
			}
			return
		}
		if now := time.Now(); at.Done == at.Total || now.Sub(p.last) >= p.pause() {
			p.last = now
			p.say(fmt.Sprintf("%d of %s: %s", at.Done, plural(at.Total, "skill", "skills"), cut(clean(at.Path), 60)))
		}
	}
}

func (p *importProgress) pause() time.Duration {
	if p.terminal {
		return 100 * time.Millisecond
	}
	return time.Second
}

// say writes a sentence for people.
func (p *importProgress) say(text string) {
	switch {
	case !p.on || p.app.args.JSON:
	case p.terminal:
		p.written = true
		_, _ = fmt.Fprintf(p.app.stderr, "\r\x1b[K%s", p.app.notes.dim(text))
	default:
		p.app.notes.line("%s", text)
	}
}

// done takes the line away.
func (p *importProgress) done() {
	if p.written {
		p.written = false
		_, _ = fmt.Fprint(p.app.stderr, "\r\x1b[K")
	}
}
