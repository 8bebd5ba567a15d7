package container

import (
	"math/rand/v2"
	"sync"

	"github.com/sallyport-dev/sallyport"
)

// uidPool leases uids to runs: one uid serves one run at a time. Runs are told apart by it in the kernel's process counts and
// files. It begins at a random place, so that two servers of one engine seldom meet.
type uidPool struct {
	first, count int

	mu    sync.Mutex
	taken map[int]bool
	next  int
}

func newUIDPool(first, count int) *uidPool {
	return &uidPool{first: first, count: count, taken: map[int]bool{}, next: rand.IntN(count)} //nolint:gosec // nobody gains by guessing it
}

func (p *uidPool) lease() (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range p.count {
		uid := p.first + p.next
		p.next = (p.next + 1) % p.count
		if !p.taken[uid] {
			p.taken[uid] = true
			return uid, nil
		}
	}
	return 0, sallyport.Errorf("container.uid", sallyport.CodeSlotsExhausted, "every uid for runs is in use: wait for a run to end")
}

// release gives a uid back. The caller knows that its container is gone; otherwise it must keep the uid.
func (p *uidPool) release(uid int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.taken, uid)
}
