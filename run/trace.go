package run

import (
	"context"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// The steps of the pipeline that have a span of their own and none inside.

func (s *Service) traceResolve(ctx context.Context, p sallyport.Principal, req Request) (candidate *sallyport.Candidate, err error) {
	ctx, end := s.cfg.Observer.Span(ctx, "sallyport.resolve", "")
	defer func() { end(err) }()
	return s.resolve(ctx, p, req)
}

func (s *Service) traceAdmit(ctx context.Context, candidate *sallyport.Candidate) (refusal *sallyport.Refusal) {
	ctx, end := s.cfg.Observer.Span(ctx, "sallyport.gates", "")
	defer func() {
		if refusal != nil {
			end(refusal.Err())
			return
		}
		end(nil)
	}()
	return s.admit(ctx, candidate)
}

func (s *Service) traceSettle(ctx context.Context, e *sallyport.Execution, r sallyport.Result, limits sallyport.Limits, hide *hider) []sallyport.ArtifactFile {
	_, end := s.cfg.Observer.Span(ctx, "sallyport.settle", "")
	defer end(nil)
	return settle(e, r, limits, hide)
}

// traceStart tells when the script began. A runner on another machine may have another idea of the time; what lies outside the call
// is no measurement.
func (s *Service) traceStart(ctx context.Context, called time.Time, r sallyport.Result) {
	if r.StartedAt.IsZero() || r.StartedAt.Before(called) || r.StartedAt.After(time.Now()) {
		return
	}
	s.cfg.Observer.SandboxStarted(ctx, called, r.StartedAt, r.Isolation)
}
