//go:build linux && (amd64 || arm64)

package bubblewrap

import (
	"os"
	"testing"

	"github.com/sallyport-dev/sallyport"
)

// A pool hands out each uid of its range once, and never anything else: not after it was exhausted, and not when somebody
// gives back what was not leased.
func TestUIDPool(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Fatal("uids are leased as root only; start this test as root")
	}
	const first, count = 61172, 3
	p, err := newUIDPool(first, count)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.close(); err != nil {
			t.Error(err)
		}
	}()
	leased := map[int]bool{}
	for range count {
		uid, err := p.lease()
		if err != nil {
			t.Fatal(err)
		}
		if uid < first || uid >= first+count || leased[uid] || !p.owns(uid) {
			t.Fatalf("leased %d, before it %v", uid, leased)
		}
		leased[uid] = true
	}
	for range 2 {
		uid, err := p.lease()
		if sallyport.CodeOf(err) != sallyport.CodeSlotsExhausted || uid != -1 {
			t.Fatalf("an exhausted pool: got %d, %v", uid, err)
		}
		for _, never := range []int{0, -1, uid, 1000, first - 1, first + count} {
			p.release(never)
			if p.owns(never) {
				t.Errorf("the pool owns %d", never)
			}
		}
	}
	p.release(first + 1)
	if uid, err := p.lease(); err != nil || uid != first+1 {
		t.Errorf("after a release: got %d, %v", uid, err)
	}

	other, err := newUIDPool(first, count)
	if err != nil {
		t.Fatal(err)
	}
	if uid, err := other.lease(); sallyport.CodeOf(err) != sallyport.CodeSlotsExhausted {
		t.Errorf("a second process got %d, %v", uid, err)
	}
}
