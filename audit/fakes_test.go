package audit_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/internal/canonical"
)

const tenant = sallyport.TenantID("acme")

// bytewise compares digests as text: an empty Digest is not Equal to itself.
var bytewise = cmp.Comparer(func(a, b sallyport.Digest) bool { return a == b })

var errDisk = errors.New("disk full at /srv/secret-path")

// memory is a store that chains like the real one, and lets a test tamper with what it holds.
type memory struct {
	mu          sync.Mutex
	entries     map[sallyport.TenantID][]sallyport.Entry
	checkpoints map[sallyport.TenantID][]audit.Checkpoint
	filter      audit.Filter
	fault       error
}

func newMemory() *memory {
	return &memory{
		entries:     map[sallyport.TenantID][]sallyport.Entry{},
		checkpoints: map[sallyport.TenantID][]audit.Checkpoint{},
	}
}

func (m *memory) AppendEntry(_ context.Context, in sallyport.TenantID, entry sallyport.Entry) (sallyport.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fault != nil {
		return sallyport.Entry{}, m.fault
	}
	entry.TenantID = in
	m.entries[in] = chained(append(m.entries[in], entry), len(m.entries[in]))
	return m.entries[in][len(m.entries[in])-1], nil
}

func (m *memory) Entries(_ context.Context, in sallyport.TenantID, filter audit.Filter) ([]sallyport.Entry, error) {
	m.filter = filter
	return m.entries[in], nil
}

func (m *memory) EachEntry(_ context.Context, in sallyport.TenantID, fn func(sallyport.Entry) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, entry := range m.entries[in] {
		if err := fn(entry); err != nil {
			return err
		}
	}
	return m.fault
}

func (m *memory) Head(_ context.Context, in sallyport.TenantID) (int64, sallyport.Digest, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.entries[in])
	if n == 0 {
		return 0, "", m.fault
	}
	return int64(n), m.entries[in][n-1].Hash, m.fault
}

func (m *memory) Tenants(context.Context) ([]sallyport.TenantID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var tenants []sallyport.TenantID
	for in := range m.entries {
		tenants = append(tenants, in)
	}
	slices.Sort(tenants)
	return tenants, m.fault
}

func (m *memory) AddCheckpoint(_ context.Context, in sallyport.TenantID, checkpoint audit.Checkpoint) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fault != nil {
		return m.fault
	}
	m.checkpoints[in] = append(m.checkpoints[in], checkpoint)
	return nil
}

func (m *memory) Checkpoints(_ context.Context, in sallyport.TenantID) ([]audit.Checkpoint, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.checkpoints[in]), nil
}

// Nothing is ever removed here: prune_test.go does that to a real database.

func (m *memory) Prunable(context.Context, sallyport.TenantID, time.Time) (int64, error) {
	return 0, m.fault
}

func (m *memory) Prune(context.Context, sallyport.TenantID, audit.Checkpoint) (int64, error) {
	return 0, errDisk
}

func (m *memory) Pruned(context.Context, sallyport.TenantID) (audit.Checkpoint, bool, error) {
	return audit.Checkpoint{}, false, nil
}

// chained numbers, links and hashes entries from index from on, as somebody with the code of the store could.
func chained(entries []sallyport.Entry, from int) []sallyport.Entry {
	for i := from; i < len(entries); i++ {
		entries[i].Sequence = int64(i + 1)
		entries[i].PreviousHash = ""
		if i > 0 {
			entries[i].PreviousHash = entries[i-1].Hash
		}
		hash, err := canonical.EntryHash(entries[i])
		if err != nil {
			panic(err)
		}
		entries[i].Hash = hash
	}
	return entries
}

func newKey(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

// filled is a service whose tenant has n entries.
func filled(tb testing.TB, n int, cfg audit.Config) (*memory, *audit.Service) {
	tb.Helper()
	m := newMemory()
	cfg.Store = m
	service := audit.New(cfg)
	appendEntries(tb, service, n)
	return m, service
}

func appendEntries(tb testing.TB, service *audit.Service, n int) {
	tb.Helper()
	for i := range n {
		err := service.Append(tb.Context(), sallyport.Entry{
			TenantID: tenant, Actor: "p", Action: sallyport.ActionScriptDenied, Entity: fmt.Sprintf("csv/scripts/%d.py", i),
			At: time.Date(2026, 1, 1, 0, 0, i, 0, time.UTC), Detail: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i)),
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
}

func auditor() sallyport.Principal {
	return sallyport.Principal{ID: "a", TenantID: tenant, Scopes: []sallyport.Scope{sallyport.ScopeAuditRead}}
}

// signed is a checkpoint over the first count entries that m holds now.
func signed(tb testing.TB, m *memory, key ed25519.PrivateKey, count int) audit.Checkpoint {
	tb.Helper()
	checkpoint, err := audit.Sign(key, tenant, int64(count), m.entries[tenant][count-1].Hash, time.Unix(1_800_000_000, 0))
	if err != nil {
		tb.Fatal(err)
	}
	return checkpoint
}
