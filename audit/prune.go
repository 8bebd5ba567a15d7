package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"time"

	"github.com/sallyport-dev/sallyport"
)

const opPrune = "audit.prune"

// Pruning is what Prune did for one tenant.
type Pruning struct {
	TenantID sallyport.TenantID
	// Through is the last entry that was removed, and Removed how many were.
	Through, Removed int64
}

// pruneDetail is the Detail of audit.prune, written before anything is removed.
type pruneDetail struct {
	Through   int64            `json:"through"`
	Head      sallyport.Digest `json:"head"`
	OlderThan time.Time        `json:"older_than"`
	Archive   string           `json:"archive,omitempty"` // the name of the file, in Config.Archive
	Before    any              `json:"before"`
	After     any              `json:"after"`
}

// Prune removes, for every tenant, the entries that are older than before: up to the newest signed checkpoint among them, and
// never one of an execution that is still open or the newest entry. What goes is checked first, a trail that is not whole is
// left as it is; it is written to Config.Archive when there is one; and that it goes is on the trail before it does. A signed
// statement with the count and the hash of the last entry that was removed stays, so that [Service.Verify] can tell a removal
// by these rules from any other. It needs Config.Key. One tenant's failure does not stop the others.
func (s *Service) Prune(ctx context.Context, before time.Time) ([]Pruning, error) {
	if s.cfg.Key == nil {
		return nil, &sallyport.Error{Op: opPrune, Code: sallyport.CodeInternal, Err: errors.New("no key to sign with")}
	}
	tenants, err := s.cfg.Store.Tenants(ctx)
	if err != nil {
		return nil, err
	}
	var done []Pruning
	var failures []error
	for _, tenant := range tenants {
		pruning, err := s.prune(ctx, tenant, before)
		if err != nil {
			failures = append(failures, fmt.Errorf("tenant %s: %w", tenant, err))
		}
		if pruning.Removed > 0 {
			done = append(done, pruning)
			s.cfg.Logger.InfoContext(ctx, "old audit entries were removed", "tenant_id", string(tenant), "through", pruning.Through, "removed", pruning.Removed)
		}
	}
	return done, errors.Join(failures...)
}

func (s *Service) prune(ctx context.Context, tenant sallyport.TenantID, before time.Time) (Pruning, error) {
	through, err := s.cfg.Store.Prunable(ctx, tenant, before)
	if err != nil || through == 0 {
		return Pruning{}, err
	}
	last, _, err := s.cfg.Store.Pruned(ctx, tenant)
	if err != nil {
		return Pruning{}, err
	}
	mark, err := s.markBelow(ctx, tenant, last.Count, through)
	if err != nil || mark.Count == 0 {
		return Pruning{}, err
	}
	proof, err := sign(s.cfg.Key, Checkpoint{TenantID: tenant, Count: mark.Count, Head: mark.Head, At: s.cfg.Now(), Pruned: true})
	if err != nil {
		return Pruning{}, err
	}
	archive, err := s.keep(ctx, tenant, last, mark.Count)
	if err != nil {
		return Pruning{}, err
	}
	detail, err := json.Marshal(pruneDetail{
		Through: mark.Count, Head: mark.Head, OlderThan: before.UTC(), Archive: archive,
		Before: map[string]int64{"first": last.Count + 1}, After: map[string]int64{"first": mark.Count + 1},
	})
	if err != nil {
		return Pruning{}, &sallyport.Error{Op: opPrune, Code: sallyport.CodeInternal, Err: err}
	}
	err = s.Append(ctx, sallyport.Entry{TenantID: tenant, Actor: "retention", Action: sallyport.ActionAuditPrune, Entity: "audit", Detail: detail})
	if err != nil {
		return Pruning{}, err
	}
	if err := s.writeLog(proof); err != nil {
		return Pruning{}, err
	}
	removed, err := s.cfg.Store.Prune(ctx, tenant, proof)
	return Pruning{tenant, mark.Count, removed}, err
}

// markBelow returns the newest checkpoint of ours behind the entry after and up to through; the zero Checkpoint when there is none.
func (s *Service) markBelow(ctx context.Context, tenant sallyport.TenantID, after, through int64) (Checkpoint, error) {
	stored, err := s.cfg.Store.Checkpoints(ctx, tenant)
	if err != nil {
		return Checkpoint{}, err
	}
	var newest Checkpoint
	for _, one := range stored {
		if one.TenantID == tenant && !one.Pruned && one.Count > max(after, newest.Count) && one.Count <= through && one.Holds(s.publicKey()) {
			newest = one
		}
	}
	return newest, nil
}

// keep checks every entry from the one behind last to the one numbered through, and writes them to a file of Config.Archive, whose name it
// returns. A file that is there already is of an earlier attempt and is replaced.
func (s *Service) keep(ctx context.Context, tenant sallyport.TenantID, last Checkpoint, through int64) (name string, err error) {
	stored, err := s.cfg.Store.Checkpoints(ctx, tenant)
	if err != nil {
		return "", err
	}
	evidence, _, _ := s.judge(tenant, stored)
	write := func(any) error { return nil }
	if s.cfg.Archive != "" {
		root, err := os.OpenRoot(s.cfg.Archive)
		if err != nil {
			return "", unkept(err)
		}
		defer func() { _ = root.Close() }()
		name = fmt.Sprintf("audit-%s-%d-%d.jsonl", url.PathEscape(string(tenant)), last.Count+1, through)
		fresh := name + ".new"
		file, err := root.OpenFile(fresh, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
		if err != nil {
			return "", unkept(err)
		}
		lines := json.NewEncoder(file)
		lines.SetEscapeHTML(false)
		write = func(line any) error {
			if err := lines.Encode(line); err != nil {
				return unkept(err)
			}
			return nil
		}
		if last.Count > 0 {
			err = write(last)
		}
		defer func() {
			closing := errors.Join(file.Sync(), file.Close())
			if err == nil && closing == nil {
				closing = root.Rename(fresh, name)
			}
			if err == nil && closing != nil {
				err = unkept(closing)
			}
			if err != nil {
				name = ""
				_ = root.Remove(fresh)
			}
		}()
		if err != nil {
			return "", err
		}
	}
	walk := newChain(tenant, evidence)
	err = s.cfg.Store.EachEntry(ctx, tenant, func(entry sallyport.Entry) error {
		if entry.Sequence > through {
			return errStop
		}
		if !walk.add(entry) {
			return errStop
		}
		return write(entry)
	})
	switch {
	case err != nil && !errors.Is(err, errStop):
		return "", err
	case walk.fault != nil:
		return "", &sallyport.Error{Op: opPrune, Code: sallyport.CodeInternal, Err: errors.New(walk.fault.Message + "; nothing was removed: run audit verify")}
	case walk.checked != through:
		return "", &sallyport.Error{Op: opPrune, Code: sallyport.CodeInternal, Err: fs.ErrInvalid}
	}
	return name, nil
}

func unkept(err error) error {
	return &sallyport.Error{
		Op: opPrune, Code: sallyport.CodeAuditUnavailable, Err: err,
		Message: "old entries cannot be written to audit.archive, so they were not removed",
	}
}

// Pruned returns the signed statement about what retention removed of the caller's tenant's trail; nil when it removed nothing. Needs
// audit:read.
func (s *Service) Pruned(ctx context.Context, p sallyport.Principal) (*Checkpoint, error) {
	if err := p.Require(opList, sallyport.ScopeAuditRead); err != nil {
		return nil, err
	}
	proof, found, err := s.cfg.Store.Pruned(ctx, p.TenantID)
	if err != nil || !found {
		return nil, err
	}
	return &proof, nil
}
