package run_test

import (
	"context"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/gate"
	"github.com/sallyport-dev/sallyport/run"
)

// The record names the bytes of the runtime: what was handed over, before the process and after it, and not what came back.
func TestRecordNamesTheRuntime(t *testing.T) {
	t.Parallel()
	pinned, other := "sha256:"+strings.Repeat("a", 64), "sha256:"+strings.Repeat("b", 64)
	for name, test := range map[string]struct{ handed, reported, want string }{
		"an image":                   {pinned, pinned, pinned},
		"an image, nothing reported": {pinned, "", pinned},
		"an image, another reported": {pinned, other, pinned},
		"a runner's own":             {"", other, other},
		"a runner's nonsense":        {"", "sha256:x\x00", ""},
		"the host's":                 {"", "", ""},
	} {
		w := newWorld(t)
		w.caps.Features = sallyport.Features()
		result := exitZero()
		result.Isolation = sallyport.Isolation{Executor: "fake", Layers: []sallyport.Layer{}, RuntimeDigest: test.reported}
		w.becomes(func(context.Context, sallyport.ExecRequest) (sallyport.Result, error) { return result, nil })
		s := w.service(func(c *run.Config) {
			c.Gates = gate.Standard(gate.Deps{
				Unattended: true,
				Enabled:    func(sallyport.TenantID) bool { return true }, Executor: w, MaxScriptBytes: 1 << 10, MaxRevisionBytes: 1 << 20,
				MaxArgumentBytes: 1 << 10,
				Interpreters:     []sallyport.Interpreter{{Extension: "py", Runtime: "ds", Program: "/usr/bin/python3", Root: "/r", Digest: test.handed}},
			})
		})
		e, err := s.Run(t.Context(), w.principal, request())
		if err != nil || e.Isolation.RuntimeDigest != test.want || e.Runtime != "ds" {
			t.Errorf("%s: got %q in %q (%v), want %q", name, e.Isolation.RuntimeDigest, e.Runtime, err, test.want)
		}
		opened := string(w.ledger.entries[0].Detail)
		if got := strings.Contains(opened, `"runtime_digest":"`+test.handed+`"`); got != (test.handed != "") || test.handed == "" && strings.Contains(opened, "runtime_digest") {
			t.Errorf("%s: the entry before the run is %s", name, opened)
		}
	}
}
