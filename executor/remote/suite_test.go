//go:build linux

package remote_test

import (
	"crypto/tls"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
	"github.com/sallyport-dev/sallyport/executor/executortest"
	"github.com/sallyport-dev/sallyport/executor/remote"
)

func newExecutor(tb testing.TB, cfg remote.Config) *remote.Executor {
	tb.Helper()
	if cfg.PollInterval == 0 {
		cfg.PollInterval = 200 * time.Millisecond
	}
	e, err := remote.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	return e
}

// Everything that is true of the sandbox is true of a sandbox behind a runner: another process, over TLS with certificates on
// both sides and a key. Not parallel: the suite looks at the whole host after every attempt.
func TestSuite(t *testing.T) {
	authority := newAuthority(t)
	dir := stateDir(t)
	p := startRunner(t, authority.secured(t, played{StateDir: dir}))
	executortest.Run(t, executortest.Factory{
		New: func(tb testing.TB) sallyport.Executor {
			tb.Helper()
			return newExecutor(tb, remote.Config{
				Runners: []string{"https://" + p.address}, Key: key, PollInterval: time.Second,
				TLS: &tls.Config{RootCAs: authority.pool(), Certificates: []tls.Certificate{authority.issue(tb, time.Now().Add(time.Hour))}},
			})
		},
		Interpreters: bubblewrap.FindInterpreters(),
		Leftovers: func(tb testing.TB) []string {
			tb.Helper()
			return leftovers(tb, dir)
		},
	})
}
