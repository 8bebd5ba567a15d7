package server

import (
	"context"
	"time"
)

// pruneEvery is how often old entries of the audit trail are looked for.
const pruneEvery = time.Hour

// pruneAudit is the job that removes what is older than the audit's retention.
func (s *Server) pruneAudit() job {
	return job{"audit.prune", time.Minute, pruneEvery, func(ctx context.Context) error {
		_, err := s.audit.Prune(ctx, s.cfg.Now().Add(-s.cfg.AuditRetention))
		return err
	}}
}
