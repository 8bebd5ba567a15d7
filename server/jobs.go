package server

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// job is work that a running server does again and again in the background. One job never runs twice at the same time, and a
// failure or a panic of one is logged and ends neither it nor the others.
type job struct {
	name string
	// after is when it is done first, counted from the start of Run; a process that only carries one command is gone before.
	after time.Duration
	// every is the time from the end of one round to the begin of the next.
	every time.Duration
	// do ends when ctx does. What it returns goes to the log.
	do func(ctx context.Context) error
}

// jobs is the one list.
func (s *Server) jobs() []job {
	jobs := []job{
		{"retention", time.Minute, time.Hour, s.records.Sweep},
		{"grant expiry", 10 * time.Second, time.Hour, s.noteExpiring},
	}
	if s.cfg.AuditRetention > 0 {
		jobs = append(jobs, s.pruneAudit())
	}
	return jobs
}

// noteExpiring announces the grants that end soon.
func (s *Server) noteExpiring(ctx context.Context) error {
	count, err := s.access.NoteExpiring(ctx, s.cfg.GrantNotice)
	if err == nil {
		s.telemetry.GrantsExpiring(count)
	}
	return err
}

// work does every job on its time until ctx ends, and returns when all of them have.
func (s *Server) work(ctx context.Context, jobs []job) {
	var working sync.WaitGroup
	for _, j := range jobs {
		working.Go(func() { s.repeat(ctx, j) })
	}
	working.Wait()
}

func (s *Server) repeat(ctx context.Context, j job) {
	timer := time.NewTimer(j.after)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if err := once(ctx, j); err != nil && ctx.Err() == nil {
			s.cfg.Logger.ErrorContext(ctx, "a background job failed", "job", j.name, "error", err)
		}
		timer.Reset(j.every)
	}
}

// once does one round; a panic is an error of this round only.
func once(ctx context.Context, j job) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	return j.do(ctx)
}
