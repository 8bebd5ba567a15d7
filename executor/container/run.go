package container

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// containerName names a container before there is one.
func containerName() string {
	return "sallyport-" + strconv.FormatUint(rand.Uint64(), 36) //nolint:gosec // a name, not a secret
}

// outcome is what was seen of one run, not yet judged.
type outcome struct {
	begun       bool // the word was given: from here on the script may have run
	misplaced   bool // the kernel refused the CPUs of the run
	shortened   bool // the engine was so slow that the script had less than its timeout
	startedAt   time.Time
	startFailed *frame
	exited      *frame
	timedOut    bool // PID 1 was told to stop, or the container was removed, because of the deadline
	lost        bool // the report did not end in time
	report      *report
	oomKilled   bool // the engine saw it, where PID 1 could not
}

// active is a run between its first resource and the release of its last.
type active struct {
	e       *Executor
	engine  *session
	spec    spec
	name    string
	begin   time.Time
	uid     int
	made    bool // there may be a container
	stream  *stream
	written chan error // the orders were handed over, or not
	ended   time.Time  // when whatever is left to do must be done
}

// The parts of the grace. What comes before the word may take the first of them without cost to the script; what comes behind
// its end has the last.
const (
	graceToStart = 5 // tenths
	graceToEnd   = 4
)

// run carries out one spec. An error means that the engine could not do its work; it is marked as not started when nothing of
// the script began. The outcome is nil when there was no report at all.
func (e *Executor) run(ctx context.Context, engine *session, s spec) (*outcome, error) {
	a := &active{e: e, engine: engine, spec: s, name: containerName(), begin: time.Now(), uid: -1}
	a.ended = a.begin.Add(s.limits.Timeout + s.grace)
	o := &outcome{}
	err := a.start(ctx)
	if err == nil {
		err = a.watch(ctx, o)
		a.askForMemory(ctx, o)
	}
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	a.finish(ctx, o)
	if err != nil && !o.begun {
		err = sallyport.NotStarted(err)
	}
	return o, err
}

// start makes a container, attaches to it and starts its PID 1, which waits for orders. A caller that gives up is listened to
// between the steps only: an engine that is left alone in the middle of one may go on with it, and would make what nobody
// removes.
func (a *active) start(caller context.Context) error {
	ctx, cancel := context.WithDeadline(context.WithoutCancel(caller), a.begin.Add((a.spec.limits.Timeout+a.spec.grace)/2))
	defer cancel()
	uid, err := a.e.uids.lease()
	if err != nil {
		return err
	}
	a.uid = uid
	// PID 1 ends by itself a little after nobody can want it any more.
	lifetime := a.spec.limits.Timeout + a.spec.grace + 2*time.Second
	labels := map[string]string{labelExecution: string(a.spec.execution), labelExpires: strconv.FormatInt(a.begin.Add(lifetime).Unix(), 10)}
	maps.Copy(labels, a.e.labels())
	body := a.spec.body(place{uid: uid, volume: a.engine.volume, cpus: a.engine.cpus}, lifetime, labels)
	a.made = true
	if err := a.engine.create(ctx, a.name, body); err != nil {
		return err
	}
	if caller.Err() != nil {
		return caller.Err()
	}
	if a.stream, err = a.engine.attach(ctx, a.engine.prefix, a.name); err != nil {
		return err
	}
	if caller.Err() != nil {
		return caller.Err()
	}
	if err := a.engine.start(ctx, a.name); err != nil {
		return a.withNoise(err)
	}
	return nil
}

// withNoise adds what the runtime said on the container's error stream to why it did not start.
func (a *active) withNoise(err error) error {
	noise := strings.Join(strings.Fields(strings.ToValidUTF8(string(a.stream.noise), "?")), " ")
	if noise == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, noise)
}

var errNoReport = errors.New("the container ended without a report")

// watch hands over the orders, gives the word and follows the report to its end, the deadline, or the caller's.
func (a *active) watch(ctx context.Context, o *outcome) error {
	setUp := a.begin.Add((a.spec.limits.Timeout + a.spec.grace) / 2)
	_ = a.stream.conn.SetWriteDeadline(setUp)
	o.report = newReport(a.stream, a.spec.limits)
	a.written = make(chan error, 1)
	go func() {
		defer close(a.written)
		// What PID 1 has to say about orders that it did not take is in the report.
		a.written <- a.spec.orders(a.engine.filter, a.e.cpus.Add(1)).write(a.stream.conn)
	}()
	if err := a.ready(ctx, o, setUp); err != nil || o.startFailed != nil {
		return err
	}
	o.begun = true
	_ = a.stream.conn.SetWriteDeadline(a.ended)
	if _, err := a.stream.conn.Write([]byte{commandGo}); err != nil {
		return fmt.Errorf("the word could not be given: %w", err)
	}
	// The script has its whole timeout, unless too little is left for its end.
	deadline, latest := time.Now().Add(a.spec.limits.Timeout), a.ended.Add(-a.spec.grace*graceToEnd/10)
	if deadline.After(latest) {
		deadline, o.shortened = latest, true
	}
	return a.follow(ctx, o, deadline)
}

// ready waits until everything is staged.
func (a *active) ready(ctx context.Context, o *outcome, until time.Time) error {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	written := a.written
	for {
		select {
		case ev, open := <-o.report.events:
			switch {
			case !open:
				return a.withNoise(errors.Join(errNoReport, o.report.err))
			case ev.kind == frameStartFailed:
				o.startFailed = &ev.frame
				return nil
			case ev.kind != frameReady:
				return errReport
			}
			o.misplaced = ev.value != 0
			return nil
		case err := <-written:
			if err != nil {
				// The report has a moment to say why.
				written = nil
				timer.Reset(min(time.Until(until), time.Second))
				continue
			}
			written = nil
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return errors.New("the container was not ready in time")
		}
	}
}

// follow reads the report from the word on.
func (a *active) follow(ctx context.Context, o *outcome, deadline time.Time) error {
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	for told, gaveUp := false, ctx.Done(); ; {
		select {
		case ev, open := <-o.report.events:
			if !open {
				o.lost = !o.report.complete
				switch {
				case o.report.complete, o.timedOut, o.startFailed != nil, o.exited != nil:
					return nil
				}
				return errors.Join(errNoReport, o.report.err)
			}
			switch ev.kind {
			case frameStarted:
				o.startedAt = ev.at
			case frameStartFailed:
				o.startFailed = &ev.frame
				return nil
			case frameExited:
				o.exited = &ev.frame
				// What PID 1 still has to do is bounded by what it may send.
				timer.Reset(time.Until(a.ended.Add(-a.spec.grace / 5)))
				told = true
			}
		case <-timer.C:
			if told {
				o.lost = true
				return nil
			}
			told, o.timedOut = true, true
			_, _ = a.stream.conn.Write([]byte{commandKill})
			timer.Reset(time.Until(a.ended.Add(-a.spec.grace / 5)))
		case <-gaveUp:
			if o.exited != nil && o.exited.size == 0 {
				// It ended by itself: what it did is worth having, and comes at once.
				gaveUp = nil
				continue
			}
			return ctx.Err()
		}
	}
}

// askForMemory asks the engine what PID 1 could not see, while the container is still there: whether the kernel killed for memory.
func (a *active) askForMemory(ctx context.Context, o *outcome) {
	const killed = 9
	suspect := o.exited != nil && o.exited.value&0x7f == killed && o.exited.size == 0 || o.exited == nil && o.lost && !o.timedOut
	if o.report == nil || !suspect || o.report.oomKnown && o.report.complete {
		return
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), a.ended.Add(-a.spec.grace/5))
	defer cancel()
	since := a.begin.Unix() - 1
	for range 3 { // the news may be on its way
		found, err := a.engine.killedForMemory(ctx, a.name, since, time.Now().Unix()+1)
		if o.oomKilled = found; found || err != nil {
			return
		}
	}
}

// finish ends the container for good. What the engine does not do in time is parked, and done later.
func (a *active) finish(ctx context.Context, o *outcome) {
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), time.Now().Add(max(time.Until(a.ended)*3/4, a.spec.grace/10)))
	defer cancel()
	gone := !a.made || a.remove(ctx)
	if a.stream != nil {
		_ = a.stream.conn.Close()
	}
	if o.report != nil {
		for range o.report.events {
		}
		for range a.written { // until the orders are written, or cannot be any more
		}
	}
	switch {
	case a.uid < 0:
	case gone:
		a.e.uids.release(a.uid)
	default:
		a.e.park(ctx, a)
	}
}

// remove reports whether the container is gone.
func (a *active) remove(ctx context.Context) bool {
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, 500*time.Millisecond) {
		err := a.engine.remove(ctx, a.name)
		// An engine that removes already refuses to do it again, and an answer that was lost says nothing.
		if err == nil || a.engine.gone(ctx, a.name) {
			return true
		}
		if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
			return false // there is no engine: waiting for it is not the caller's business
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
}

// labels are those of every container of this process.
func (e *Executor) labels() map[string]string {
	return map[string]string{labelOwner: e.cfg.Owner, labelProcess: processName(os.Getpid())}
}
