package server

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A job is done on its time, again and again, whatever a round comes to, until the context ends.
func TestJobsRepeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &Server{cfg: Config{}.withDefaults()}
		ctx, stop := context.WithCancel(t.Context())
		var good, bad, mad atomic.Int32
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.work(ctx, []job{
				{"good", time.Minute, time.Hour, func(context.Context) error { good.Add(1); return nil }},
				{"bad", time.Minute, time.Hour, func(context.Context) error { bad.Add(1); return errors.New("no") }},
				{"mad", time.Minute, time.Hour, func(context.Context) error { mad.Add(1); panic("no") }},
			})
		}()
		for _, want := range []struct {
			sleep time.Duration
			count int32
		}{{30 * time.Second, 0}, {31 * time.Second, 1}, {time.Hour, 2}, {3 * time.Hour, 5}} {
			time.Sleep(want.sleep)
			synctest.Wait()
			for name, count := range map[string]*atomic.Int32{"good": &good, "bad": &bad, "mad": &mad} {
				if got := count.Load(); got != want.count {
					t.Errorf("%s: done %d times, want %d", name, got, want.count)
				}
			}
		}
		stop()
		<-done
	})
}

// A job that takes its time ends before Run does.
func TestJobsAreAwaited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &Server{cfg: Config{}.withDefaults()}
		ctx, stop := context.WithCancel(t.Context())
		ended := false
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.work(ctx, []job{{"slow", time.Second, time.Hour, func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(time.Minute)
				ended = true
				return nil
			}}})
		}()
		time.Sleep(2 * time.Second)
		stop()
		<-done
		if !ended {
			t.Error("work returned before its job")
		}
	})
}
