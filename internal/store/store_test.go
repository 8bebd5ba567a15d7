package store_test

import (
	"path/filepath"
	"testing"

	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/internal/store"
	"github.com/sallyport-dev/sallyport/internal/store/storetest"
	"github.com/sallyport-dev/sallyport/registry"
	"github.com/sallyport-dev/sallyport/run"
)

var (
	_ registry.Store    = (*store.Store)(nil)
	_ access.Store      = (*store.Store)(nil)
	_ audit.Store       = (*store.Store)(nil)
	_ run.Ledger        = (*store.Store)(nil)
	_ run.Grants        = (*store.Store)(nil)
	_ storetest.Backend = (*store.Store)(nil)
)

// open opens the database of a folder, and closes it after the test.
func open(tb testing.TB, path string) *store.Store {
	tb.Helper()
	s, err := store.Open(tb.Context(), store.Config{Path: path})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Shutdown(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

func fresh(tb testing.TB) *store.Store {
	tb.Helper()
	return open(tb, filepath.Join(tb.TempDir(), "sallyport.db"))
}

func TestSQLite(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(tb testing.TB) storetest.Backend {
		tb.Helper()
		return fresh(tb)
	})
}
