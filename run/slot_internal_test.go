package run

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// This file is inside the package: the slots are not exported, and their fairness cannot be seen through Run.

// Tenants take turns although one of them queued first and long.
func TestSlotsAreFair(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1, 1, 100, time.Hour)
		hold, err := s.acquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var order []sallyport.TenantID
		var waiters sync.WaitGroup
		for _, tenant := range []sallyport.TenantID{"a", "a", "a", "b", "c", "b"} {
			waiters.Go(func() {
				release, err := s.acquire(t.Context(), tenant)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, tenant)
				mu.Unlock()
				time.Sleep(time.Second)
				release()
			})
			synctest.Wait()
		}
		hold()
		waiters.Wait()
		if want := []sallyport.TenantID{"a", "b", "c", "a", "b", "a"}; !slices.Equal(order, want) {
			t.Errorf("got %q, want %q", order, want)
		}
		if s.used != 0 || s.queued != 0 || len(s.usedBy)+len(s.waiting)+len(s.turns) != 0 {
			t.Errorf("left behind: %+v", s)
		}
	})
}

// The tenant's bound holds back that tenant only; its waiters occupy nothing.
func TestSlotsPerTenant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(3, 1, 10, time.Minute)
		release, err := s.acquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan error, 1)
		go func() {
			_, err := s.acquire(t.Context(), "a")
			got <- err
		}()
		synctest.Wait()
		for _, tenant := range []sallyport.TenantID{"b", "c"} {
			if _, err := s.acquire(t.Context(), tenant); err != nil {
				t.Errorf("tenant %s: %v", tenant, err)
			}
		}
		release()
		release() // a second call gives nothing back
		if err := <-got; err != nil {
			t.Error(err)
		}
		if s.inUse() != 3 {
			t.Errorf("in use: got %d, want 3", s.inUse())
		}
	})
}

// A waiter that goes away, or whose time is over, leaves no hole, also at the instant when a slot is handed to it.
func TestSlotsWaiterLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1, 1, 10, time.Second)
		release, err := s.acquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if held, err := s.acquire(ctx, "b"); err == nil {
					held()
				}
			})
		}
		synctest.Wait()
		wg.Go(cancel)
		wg.Go(release)
		wg.Wait()
		if s.used != 0 || s.queued != 0 || len(s.usedBy)+len(s.waiting)+len(s.turns) != 0 {
			t.Errorf("left behind: used %d queued %d", s.used, s.queued)
		}
	})
}
