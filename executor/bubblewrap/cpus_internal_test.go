//go:build linux && (amd64 || arm64)

package bubblewrap

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The least used CPUs are chosen, equal ones in turn, and what was given back is used again.
func TestCPUPool(t *testing.T) {
	t.Parallel()
	usable := []int{2, 3, 65, 70}
	var p cpuPool
	seen := map[int]int{}
	var taken []cpuSet
	for range 8 {
		cpus := p.choose(usable, 2)
		if len(cpus) != 2 || cpus[0] >= cpus[1] {
			t.Fatalf("chose %v", cpus)
		}
		for _, cpu := range cpus {
			seen[cpu]++
		}
		taken = append(taken, cpuSet{cpus: cpus})
	}
	if diff := cmp.Diff(map[int]int{2: 4, 3: 4, 65: 4, 70: 4}, seen); diff != "" {
		t.Errorf("runs per CPU (-want +got):\n%s", diff)
	}
	for _, s := range taken[1:] {
		p.give(s)
	}
	other := p.choose(usable, 2)
	for _, cpu := range other {
		if cpu == taken[0].cpus[0] || cpu == taken[0].cpus[1] {
			t.Errorf("chose %v beside %v", other, taken[0].cpus)
		}
	}
	p.give(cpuSet{cpus: other})
	p.give(taken[0])
	if len(p.load) != 0 {
		t.Errorf("load left: %v", p.load)
	}
	s := cpuSet{cpus: []int{2, 65}}
	if got, want := s.mask(), (cpuMask{0: 4, 1: 2}); got != want || s.list() != "2,65" {
		t.Errorf("mask %v, list %s", got, s.list())
	}
	if all := (cpuSet{usable, true}); all.mask() != (cpuMask{}) {
		t.Error("all CPUs are restricted")
	}
}
