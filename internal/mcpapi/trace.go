package mcpapi

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/run"
)

// traceParent is the W3C trace context of the call: _meta.traceparent, else the HTTP header. A malformed one counts as none.
func traceParent(req *mcp.CallToolRequest) string {
	if own, ok := req.Params.GetMeta()["traceparent"].(string); ok && validTraceParent(own) {
		return own
	}
	if req.Extra != nil && req.Extra.Header != nil {
		if header := req.Extra.Header.Get("Traceparent"); validTraceParent(header) {
			return header
		}
	}
	return ""
}

// validTraceParent accepts version 00 of the W3C format: lower-case hex, neither id all zeros.
func validTraceParent(s string) bool {
	parts := strings.Split(s, "-")
	if len(parts) != 4 || parts[0] != "00" {
		return false
	}
	for i, length := range []int{2, 32, 16, 2} {
		if len(parts[i]) != length || strings.Trim(parts[i], "0123456789abcdef") != "" {
			return false
		}
	}
	return strings.Trim(parts[1], "0") != "" && strings.Trim(parts[2], "0") != ""
}

// notifier sends progress for req; it is nil when the caller did not ask for any.
func notifier(req *mcp.CallToolRequest) func(ctx context.Context, progress float64, message string) {
	token := req.Params.GetProgressToken()
	if token == nil || req.Session == nil {
		return nil
	}
	return func(ctx context.Context, progress float64, message string) {
		// Progress is a courtesy: a caller who cannot take it still gets the result.
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: progress, Message: message,
		})
	}
}

// progressInterval is how often a waiting caller hears of its run.
const progressInterval = time.Second

// progress tells the caller that its run is queued, that its script started, and then every second that it lives, until the returned
// function is called. That function waits, so no notification follows the result. Values are seconds and always rise.
func (c *call) progress(ctx context.Context, req *run.Request) (stop func()) {
	if c.notify == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	what := req.ScriptPath
	stages := make(chan string, 2) // one for each status that Watch hears of
	req.Watch = func(e sallyport.Execution) {
		stage := "queued"
		if e.Status == sallyport.StatusRunning {
			stage = "running"
		}
		select {
		case stages <- stage:
		default:
		}
	}
	var ticking sync.WaitGroup
	ticking.Go(func() {
		started, last, stage := time.Now(), -1.0, "" // nothing is told of a call that is refused: it may be made again with the same token
		tell := func(message string) {
			seconds := max(time.Since(started).Seconds(), last+0.001)
			if last < 0 {
				seconds = 0
			}
			last = seconds
			c.notify(ctx, seconds, message)
		}
		ticker := time.NewTicker(progressInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case stage = <-stages:
				tell(what + " is " + stage)
			case <-ticker.C:
				if stage == "" {
					continue
				}
				tell(what + " is " + stage + ", " + time.Since(started).Round(time.Second).String())
			}
		}
	})
	return func() {
		cancel()
		ticking.Wait()
	}
}
