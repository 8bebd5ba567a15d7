package container

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// sweepEvery is how often a busy executor looks for what was left.
const sweepEvery = time.Minute

// sweepSometimes removes leftovers when nobody has for a while.
func (e *Executor) sweepSometimes(ctx context.Context, engine *session) {
	e.mu.Lock()
	due := time.Since(e.sweptAt) > sweepEvery
	if due {
		e.sweptAt = time.Now()
	}
	e.mu.Unlock()
	if due {
		e.sweep(ctx, engine)
	}
}

// sweep removes the containers of this server that nobody will ever remove: those of a process that is gone, those whose time is
// over, and those that were made long ago and never started. Containers of other servers have another owner.
func (e *Executor) sweep(ctx context.Context, engine *session) {
	found, err := engine.list(ctx, labelOwner+"="+e.cfg.Owner)
	if err != nil {
		e.log.WarnContext(ctx, "containers that a crash left could not be looked for", "error", err.Error())
		return
	}
	for _, c := range found {
		if c.Labels[labelOwner] != e.cfg.Owner || !e.leftover(c, time.Now()) {
			continue // what the engine filters is checked again: removing is final
		}
		err := engine.remove(ctx, c.ID)
		e.log.InfoContext(ctx, "removed a container that was left", "execution", c.Labels[labelExecution], "gone", err == nil)
	}
}

func (e *Executor) leftover(c listed, now time.Time) bool {
	if dead(c.Labels[labelProcess]) {
		return true
	}
	if expires, err := strconv.ParseInt(c.Labels[labelExpires], 10, 64); err == nil && now.Unix() > expires {
		return true
	}
	created, err := c.Created.Int64()
	return err == nil && !strings.EqualFold(c.State, "running") && now.Sub(time.Unix(created, 0)) > e.cfg.leftoverAge
}
