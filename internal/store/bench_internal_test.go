package store

import (
	"context"
	"encoding/json"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// BenchmarkAppendEntry measures durable audit entries: group commit against a transaction for each.
func BenchmarkAppendEntry(b *testing.B) {
	for _, mode := range []struct {
		name    string
		writers int
		batch   int
	}{
		{"writers=1", 1, batchLength},
		{"writers=32/group", 32, batchLength},
		{"writers=32/single", 32, 1},
	} {
		b.Run(mode.name, func(b *testing.B) {
			s, err := Open(b.Context(), Config{Path: filepath.Join(b.TempDir(), "bench.db")})
			if err != nil {
				b.Fatal(err)
			}
			// Set through the writer's own goroutine by replacing it before any write.
			s.writer.close()
			s.writer = newWriter(s.dialect, s.writer.db, Config{QueueLength: 1024}.withDefaults())
			s.writer.batch = mode.batch
			go s.writer.run(context.WithoutCancel(b.Context()))
			entry := sallyport.Entry{
				At: time.Now(), Actor: "bench", Action: sallyport.ActionScriptRun, Entity: "skill/scripts/run.py",
				Detail: json.RawMessage(`{"digest":"sha256:0000","grant_id":"g","input_args":{"n":1}}`),
			}
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ResetTimer()
			var wg sync.WaitGroup
			for range mode.writers {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						if _, err := s.AppendEntry(b.Context(), "bench", entry); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
			if err := s.Shutdown(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
