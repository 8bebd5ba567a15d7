package registry

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// SaveOnce is the idempotency key of one save.
type SaveOnce struct {
	Key string
	// Request is the digest of what was asked for: the same key must not stand for two things.
	Request sallyport.Digest
	// Since is when a key must have been recorded, after which, to count.
	Since time.Time
}

// Saved is what the idempotency key of a save stands for.
type Saved struct {
	Request    sallyport.Digest
	SkillID    sallyport.SkillID
	RevisionID sallyport.RevisionID
}

// saveOnce is save for a request with an idempotency key: it makes at most one revision for each key of a principal, and answers with
// that one however often it is asked. A save that was refused or changed nothing leaves no key behind.
func (s *Service) saveOnce(ctx context.Context, p sallyport.Principal, req SaveRequest) (SaveResult, error) {
	if err := sallyport.CheckIdempotencyKey(opSave, req.IdempotencyKey); err != nil {
		return SaveResult{}, err
	}
	data, err := json.Marshal(req)
	if err != nil {
		return SaveResult{}, &sallyport.Error{Op: opSave, Code: sallyport.CodeInternal, Err: err}
	}
	once := SaveOnce{Key: req.IdempotencyKey, Request: sallyport.DigestOf(data), Since: s.now().Add(-sallyport.IdempotencyKeyLife)}
	if result, found, err := s.repeated(ctx, p, once); err != nil || found {
		return result, err
	}
	result, err := s.save(ctx, p, req, &once)
	if err != nil {
		// Another call with the key may have been faster; then its revision is what this one ran into.
		if repeated, found, lookErr := s.repeated(ctx, p, once); lookErr == nil && found {
			return repeated, nil
		}
	}
	return result, err
}

// repeated returns what a key stands for already.
func (s *Service) repeated(ctx context.Context, p sallyport.Principal, once SaveOnce) (SaveResult, bool, error) {
	saved, found, err := s.cfg.Store.SavedOnce(ctx, p.TenantID, p.ID, once.Key, once.Since)
	if err != nil || !found {
		return SaveResult{}, false, err
	}
	if !saved.Request.Equal(once.Request) {
		return SaveResult{}, true, sallyport.Errorf(opSave, sallyport.CodeInvalidArgument,
			"the idempotency key stands for another request; send a new key with a new request")
	}
	skill, err := s.Resolve(ctx, p, sallyport.SkillRef{SkillID: saved.SkillID})
	if err != nil {
		return SaveResult{}, true, err
	}
	revision, err := s.cfg.Store.Revision(ctx, p.TenantID, saved.SkillID, saved.RevisionID)
	if err != nil {
		return SaveResult{}, true, err
	}
	return SaveResult{
		Skill: skill, Revision: withoutContent(revision), Created: revision.Number == 1, Problems: []Problem{}, Repeated: true,
	}, true, nil
}
