package store_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/store"
	"github.com/sallyport-dev/sallyport/registry"
)

// benchSkills is the size of a large installation.
const benchSkills = 10_000

// large opens a store with many skills of about 600 words each. The words are drawn so that few are common and most are rare, as
// in prose.
func large(b *testing.B) *store.Store {
	b.Helper()
	s, err := store.Open(b.Context(), store.Config{Path: filepath.Join(b.TempDir(), "sallyport.db")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Shutdown(); err != nil {
			b.Error(err)
		}
	})
	random := rand.New(rand.NewPCG(1, 2))
	prose := rand.NewZipf(random, 1.1, 4, 20_000)
	words := func(n int) string {
		var text strings.Builder
		for range n {
			fmt.Fprintf(&text, "word%d ", prose.Uint64())
		}
		return text.String()
	}
	for i := range benchSkills {
		save := skill(b, fmt.Sprintf("s%05d", i), words(600))
		save.Skill.Name, save.Skill.Description = fmt.Sprintf("skill %d", i), words(30)
		save.Instructions = string(save.Revision.Components[0].Content)
		if _, _, err := s.SaveRevision(b.Context(), "acme", save); err != nil {
			b.Fatal(err)
		}
	}
	return s
}

// cpuTime is what this process has used: on a machine that does other things too it tells more than the clock.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkSearch measures one page of 20 skills out of 10,000.
func BenchmarkSearch(b *testing.B) {
	s := large(b)
	for name, query := range map[string]string{
		"rare word":        "word9000",
		"common word":      "word1",
		"three words":      "word3 word40 word500",
		"no match, any of": "word7 nosuchword word9000",
		"slug":             "s04242",
		"list by slug":     "",
	} {
		b.Run(name, func(b *testing.B) {
			found, before := 0, cpuTime(b)
			for b.Loop() {
				page, err := s.ListSkills(b.Context(), "acme", registry.SkillFilter{Teams: []sallyport.TeamID{"default"}, Query: query, Limit: 20})
				if err != nil {
					b.Fatal(err)
				}
				found = page.Total
			}
			b.ReportMetric(float64(found), "matches")
			b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}
