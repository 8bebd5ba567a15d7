package run

import (
	"container/list"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// slots is the right to occupy capacity: so many runs in total and so many for one tenant. Waiting is bounded in number
// and time, and fair: tenants take turns, callers of one tenant are served in order. A caller takes its tenant's and the
// total slot at the same instant, so one that waits for the total holds none of its tenant's.
type slots struct {
	total, perTenant, maxWaiting int
	maxWait                      time.Duration

	mu      sync.Mutex // guards the fields below
	used    int
	usedBy  map[sallyport.TenantID]int
	waiting map[sallyport.TenantID]*list.List // of chan struct{}
	turns   []sallyport.TenantID              // tenants with waiters, the next to be served first
	queued  int
}

func newSlots(total, perTenant, maxWaiting int, maxWait time.Duration) *slots {
	return &slots{
		total: total, perTenant: min(perTenant, total), maxWaiting: maxWaiting, maxWait: maxWait,
		usedBy: map[sallyport.TenantID]int{}, waiting: map[sallyport.TenantID]*list.List{},
	}
}

// acquire takes a slot for tenant or waits for one. The returned release must be called once; calling it again does
// nothing. SLOTS_EXHAUSTED when the queue is full or the wait is over; ctx's error when the caller went away.
func (s *slots) acquire(ctx context.Context, tenant sallyport.TenantID) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	if s.waiting[tenant] == nil && s.fits(tenant) {
		s.take(tenant)
		s.mu.Unlock()
		return s.releaser(tenant), nil
	}
	if s.queued >= s.maxWaiting {
		s.mu.Unlock()
		return nil, sallyport.Errorf("run.slot", sallyport.CodeSlotsExhausted,
			"every execution slot is taken and %d callers wait already; try again later", s.maxWaiting)
	}
	ready, place := s.enqueue(tenant)
	s.mu.Unlock()

	timer := time.NewTimer(s.maxWait)
	defer timer.Stop()
	select {
	case <-ready:
		return s.releaser(tenant), nil
	case <-timer.C:
		err = sallyport.Errorf("run.slot", sallyport.CodeSlotsExhausted,
			"no execution slot became free within %s; try again later", s.maxWait)
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.mu.Lock()
	select {
	case <-ready:
		// The slot was handed over at the same instant: give it back rather than leak it.
		s.mu.Unlock()
		s.releaser(tenant)()
	default:
		s.dequeue(tenant, place)
		s.mu.Unlock()
	}
	return nil, err
}

func (s *slots) inUse() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

func (s *slots) fits(tenant sallyport.TenantID) bool {
	return s.used < s.total && s.usedBy[tenant] < s.perTenant
}

func (s *slots) take(tenant sallyport.TenantID) {
	s.used++
	s.usedBy[tenant]++
}

func (s *slots) releaser(tenant sallyport.TenantID) func() {
	var once sync.Once
	return func() {
		once.Do(func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.used--
			if s.usedBy[tenant]--; s.usedBy[tenant] == 0 {
				delete(s.usedBy, tenant)
			}
			s.dispatch()
		})
	}
}

// dispatch hands free slots to waiters, one tenant after the other.
func (s *slots) dispatch() {
	for s.used < s.total {
		next := slices.IndexFunc(s.turns, s.fits)
		if next < 0 {
			return
		}
		tenant := s.turns[next]
		s.turns = append(slices.Delete(s.turns, next, next+1), tenant)
		place := s.waiting[tenant].Front()
		ready, _ := place.Value.(chan struct{})
		s.dequeue(tenant, place)
		s.take(tenant)
		close(ready)
	}
}

func (s *slots) enqueue(tenant sallyport.TenantID) (ready chan struct{}, place *list.Element) {
	queue := s.waiting[tenant]
	if queue == nil {
		queue = list.New()
		s.waiting[tenant] = queue
		s.turns = append(s.turns, tenant)
	}
	ready = make(chan struct{})
	s.queued++
	return ready, queue.PushBack(ready)
}

func (s *slots) dequeue(tenant sallyport.TenantID, place *list.Element) {
	queue := s.waiting[tenant]
	queue.Remove(place)
	s.queued--
	if queue.Len() == 0 {
		delete(s.waiting, tenant)
		s.turns = slices.DeleteFunc(s.turns, func(t sallyport.TenantID) bool { return t == tenant })
	}
}
