//go:build amd64 || arm64

package bubblewrap

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// cpuPool spreads runs over the CPUs that this process may use. A run gets as many as its quota needs, a fraction counted
// as a whole one, so that programs that size themselves by the number of processors size themselves by the quota.
type cpuPool struct {
	mu   sync.Mutex
	load map[int]int // runs per CPU
	next int         // where the next search begins, so that equal CPUs take turns
}

// cpuSet are the CPUs of one run, in order.
type cpuSet struct {
	cpus []int
	// all says that these are all there are, so nothing needs to be restricted.
	all bool
}

// take chooses the least used CPUs for a quota in thousandths of a CPU.
func (p *cpuPool) take(millis int64) cpuSet {
	usable := usableCPUs()
	count := max((millis+999)/1000, 1)
	if count >= int64(len(usable)) {
		return cpuSet{usable, true}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return cpuSet{cpus: p.choose(usable, int(count))}
}

func (p *cpuPool) choose(usable []int, count int) []int {
	p.next = (p.next + 1) % len(usable)
	order := slices.Concat(usable[p.next:], usable[:p.next])
	slices.SortStableFunc(order, func(a, b int) int { return p.load[a] - p.load[b] })
	chosen := order[:count]
	if p.load == nil {
		p.load = map[int]int{}
	}
	for _, cpu := range chosen {
		p.load[cpu]++
	}
	slices.Sort(chosen)
	return chosen
}

// give returns what take chose.
func (p *cpuPool) give(s cpuSet) {
	if s.all {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, cpu := range s.cpus {
		if p.load[cpu]--; p.load[cpu] <= 0 {
			delete(p.load, cpu)
		}
	}
}

// mask is empty when there is nothing to restrict.
func (s cpuSet) mask() cpuMask {
	var m cpuMask
	if s.all {
		return m
	}
	for _, cpu := range s.cpus {
		m[cpu/64] |= 1 << (cpu % 64)
	}
	return m
}

// list is the set as the kernel writes one.
func (s cpuSet) list() string {
	words := make([]string, 0, len(s.cpus))
	for _, cpu := range s.cpus {
		words = append(words, strconv.Itoa(cpu))
	}
	return strings.Join(words, ",")
}

// usableCPUs are those this process may run on now.
func usableCPUs() []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return []int{0}
	}
	var usable []int
	for cpu := range 64 * cpuWords {
		if set.IsSet(cpu) {
			usable = append(usable, cpu)
		}
	}
	return usable
}
