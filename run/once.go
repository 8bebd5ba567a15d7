package run

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// onceTries bounds how often a call that finds its key taken looks again.
const onceTries = 3

// Once is the idempotency key of one call.
type Once struct {
	Key string
	// Request is the digest of what was asked for: the same key must not stand for two things.
	Request sallyport.Digest
	// Since is when a key must have been recorded, after which, to count.
	Since time.Time
}

// Recorded is what an idempotency key stands for.
type Recorded struct {
	Request     sallyport.Digest
	ExecutionID sallyport.ExecutionID
}

// errTaken says that another call with the same key began first. It never leaves the package.
var errTaken = errors.New("the idempotency key is taken")

// once is a call with an idempotency key: it begins at most one execution for each key of a principal, and answers with that one
// however often it is asked. What the gates refused, or never began, leaves no key behind. begin is how the first call runs and
// recall what the others get.
func (s *Service) once(
	ctx context.Context, p sallyport.Principal, req Request,
	begin func(context.Context, sallyport.Principal, Request, *Once) (sallyport.Execution, error),
	recall func(context.Context, sallyport.TenantID, sallyport.ExecutionID) (sallyport.Execution, error),
) (sallyport.Execution, error) {
	const op = "run.once"
	if err := p.Require(op, sallyport.ScopeMemoryWrite); err != nil {
		return begin(ctx, p, req, nil) // which refuses it for the record too
	}
	if err := sallyport.CheckIdempotencyKey(op, req.IdempotencyKey); err != nil {
		return sallyport.Execution{}, err
	}
	request, err := requestDigest(req)
	if err != nil {
		return sallyport.Execution{}, err
	}
	for range onceTries {
		key := Once{Key: req.IdempotencyKey, Request: request, Since: s.cfg.Now().UTC().Add(-sallyport.IdempotencyKeyLife)}
		recorded, found, err := s.cfg.Ledger.Recorded(ctx, p.TenantID, p.ID, key.Key, key.Since)
		if err != nil {
			return sallyport.Execution{}, err
		}
		if !found {
			execution, err := begin(ctx, p, req, &key)
			if errors.Is(err, errTaken) {
				continue
			}
			return execution, err
		}
		if recorded.Request != request {
			return sallyport.Execution{}, sallyport.Errorf(op, sallyport.CodeInvalidArgument,
				"the idempotency key stands for another request; send a new key with a new request")
		}
		execution, err := recall(ctx, p.TenantID, recorded.ExecutionID)
		if err != nil || execution.Status != sallyport.StatusNotStarted {
			return execution, err
		}
	}
	return sallyport.Execution{}, &sallyport.Error{Op: op, Code: sallyport.CodeSlotsExhausted}
}

// await returns the execution when it is over, or as it stands when it takes longer than a run can.
func (s *Service) await(ctx context.Context, tenant sallyport.TenantID, id sallyport.ExecutionID) (sallyport.Execution, error) {
	return s.watchRecord(ctx, tenant, id, s.cfg.MaxTimeout+s.cfg.Grace+s.cfg.QueueWait)
}

// requestDigest is over all that decides what would run. The trace and the name of the request do not.
func requestDigest(req Request) (sallyport.Digest, error) {
	type file struct {
		Name   string
		SHA256 string
	}
	files := make([]file, len(req.Files))
	for i, f := range req.Files {
		files[i] = file{f.Name, sallyport.DigestOf(f.Content).Hex()}
	}
	data, err := json.Marshal(struct {
		Ref        sallyport.SkillRef
		RevisionID sallyport.RevisionID
		ScriptPath string
		Args       []byte
		Argv       []string
		Files      []file
		Timeout    time.Duration
	}{req.Ref, req.RevisionID, req.ScriptPath, req.Args, req.Argv, files, req.Timeout})
	if err != nil {
		return "", &sallyport.Error{Op: "run.once", Code: sallyport.CodeInternal, Err: err}
	}
	return sallyport.DigestOf(data), nil
}
