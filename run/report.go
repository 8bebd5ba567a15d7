package run

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/sallyport-dev/sallyport"
)

// The bounds of what an executor says about itself.
const (
	maxName     = 64
	maxLayers   = 64
	maxSentence = 512
	maxSignal   = 64
)

// isName reports whether text can be a name in a record and a label of a metric.
func isName(text string) bool {
	return text != "" && len(text) <= maxName && !strings.ContainsFunc(text, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-.", r)
	})
}

// sentence makes one bounded line of text.
func sentence(text string) string {
	if len(text) > 4*maxSentence {
		text = text[:4*maxSentence] // what is far over the bound is not even looked at
	}
	line := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	line, _, _ = bound([]byte(line), false, maxSentence)
	return line
}

// reported bounds what an executor says about itself, before anything counts or records it. kind stands for a name that is none.
func reported(r sallyport.Result, kind string) sallyport.Result {
	if r.Isolation.Executor != "" {
		if !isName(r.Isolation.Executor) {
			r.Isolation.Executor = kind
		}
		r.Isolation.Layers, r.Isolation.Missing = names(r.Isolation.Layers), names(r.Isolation.Missing)
		r.Isolation.Plan, r.Isolation.Profile = sentence(r.Isolation.Plan), sentence(r.Isolation.Profile)
	}
	if r.Signal < 0 || r.Signal > maxSignal {
		r.Signal = 0
	}
	r.Usage.MemoryPeakBytes, r.Usage.CPUTimeMS = measured(r.Usage.MemoryPeakBytes), measured(r.Usage.CPUTimeMS)
	return r
}

// names keeps the layers that have a name; nil stays nil.
func names(layers []sallyport.Layer) []sallyport.Layer {
	if layers == nil {
		return nil
	}
	kept := slices.DeleteFunc(slices.Clone(layers), func(l sallyport.Layer) bool { return !isName(string(l)) })
	return kept[:min(len(kept), maxLayers)]
}

// measured drops a number that nothing can have measured.
func measured(n *int64) *int64 {
	if n == nil || *n < 0 {
		return nil
	}
	return n
}

// settleStart takes the executor's word for when the script began, if that lies within the call: a clock elsewhere may be far off.
func settleStart(e *sallyport.Execution, said time.Time) {
	if said.IsZero() {
		return
	}
	if e.StartedAt != nil {
		const slack = time.Second // between our own look at the clock and the call
		latest := e.StartedAt.Add(time.Duration(e.DurationMS)*time.Millisecond + slack)
		if said.Before(*e.StartedAt) || said.After(latest) {
			return
		}
	}
	at := said.UTC()
	e.StartedAt = &at
}
