package audit

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/canonical"
	"github.com/sallyport-dev/sallyport/internal/strictjson"
)

const (
	opCheckpoint = "audit.checkpoint"
	// lastTimeout bounds the checkpoints that are written when Run ends.
	lastTimeout = 10 * time.Second
)

// Sign returns a checkpoint of tenant's chain, signed with key. At is cut to whole microseconds of UTC.
func Sign(key ed25519.PrivateKey, tenant sallyport.TenantID, count int64, head sallyport.Digest, at time.Time) (Checkpoint, error) {
	return sign(key, Checkpoint{TenantID: tenant, Count: count, Head: head, At: at})
}

// sign completes a checkpoint.
func sign(key ed25519.PrivateKey, checkpoint Checkpoint) (Checkpoint, error) {
	public, ok := key.Public().(ed25519.PublicKey)
	if !ok {
		return Checkpoint{}, &sallyport.Error{Op: opCheckpoint, Code: sallyport.CodeInternal}
	}
	checkpoint.At, checkpoint.PublicKey = checkpoint.At.UTC().Truncate(time.Microsecond), base64.StdEncoding.EncodeToString(public)
	form, err := checkpoint.form()
	if err != nil {
		return Checkpoint{}, err
	}
	checkpoint.Signature = base64.StdEncoding.EncodeToString(ed25519.Sign(key, form))
	return checkpoint, nil
}

// Holds reports whether the checkpoint's signature is by key over exactly this content. A nil key means the key that the
// checkpoint itself names, which proves only that whoever holds that key made it.
func (c Checkpoint) Holds(key ed25519.PublicKey) bool {
	named, err := base64.StdEncoding.DecodeString(c.PublicKey)
	if err != nil || len(named) != ed25519.PublicKeySize {
		return false
	}
	if key == nil {
		key = named
	}
	signature, err := base64.StdEncoding.DecodeString(c.Signature)
	if err != nil || !key.Equal(ed25519.PublicKey(named)) {
		return false
	}
	form, err := c.form()
	return err == nil && ed25519.Verify(key, form, signature)
}

// form is what is signed: the RFC 8785 form of the checkpoint without its signature.
func (c Checkpoint) form() ([]byte, error) {
	return canonical.JSON(struct {
		TenantID  sallyport.TenantID `json:"tenant_id"`
		Count     int64              `json:"count"`
		Head      sallyport.Digest   `json:"head"`
		At        string             `json:"at"`
		PublicKey string             `json:"public_key"`
		Pruned    bool               `json:"pruned,omitempty"`
	}{c.TenantID, c.Count, c.Head, c.At.UTC().Format(canonical.TimeFormat), c.PublicKey, c.Pruned})
}

// ReadCheckpoints reads a checkpoint log: one checkpoint as JSON per line, as Config.CheckpointLog receives them. A last line
// without its end is left out, because a crash may have cut it; any other line that is no checkpoint is
// INVALID_ARGUMENT. Signatures are not checked here.
func ReadCheckpoints(r io.Reader) ([]Checkpoint, error) {
	var checkpoints []Checkpoint
	lines := bufio.NewReaderSize(r, maxCheckpointLine)
	for number := 1; ; number++ {
		line, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF):
			return checkpoints, nil
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, sallyport.Errorf(opCheckpoint, sallyport.CodeInvalidArgument, "line %d of the checkpoint log is too long to be a checkpoint", number)
		case err != nil:
			return nil, &sallyport.Error{Op: opCheckpoint, Code: sallyport.CodeInternal, Err: err}
		}
		var checkpoint Checkpoint
		if err := strictjson.Decode(line, &checkpoint); err != nil {
			return nil, &sallyport.Error{
				Op: opCheckpoint, Code: sallyport.CodeInvalidArgument, Err: err,
				Message: sentence("line %d of the checkpoint log is not a checkpoint: %s", number, sallyport.Public(err).Message),
			}
		}
		checkpoints = append(checkpoints, checkpoint)
	}
}

// maxCheckpointLine bounds a line of a checkpoint log, in bytes.
const maxCheckpointLine = 16 << 10

// Run writes checkpoints on the interval until ctx ends, and one at the end. A chain whose head did not move gets none; nor
// does one that is shorter than its newest checkpoint or differs from it: that is logged as an error, because a new signature
// would bless the loss. Without Config.Key it only waits. It returns the error of the checkpoints at the end.
func (s *Service) Run(ctx context.Context) error {
	if s.cfg.Key == nil {
		<-ctx.Done()
		return nil
	}
	ticker := time.NewTicker(s.cfg.Interval)
	defer ticker.Stop()
	newest := map[sallyport.TenantID]Checkpoint{}
	for {
		select {
		case <-ticker.C:
			if err := s.checkpoints(ctx, newest); err != nil {
				s.cfg.Logger.ErrorContext(ctx, "a checkpoint was not written", "error", err)
			}
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTimeout)
			defer cancel()
			return s.checkpoints(last, newest)
		}
	}
}

// checkpoints writes one checkpoint for every tenant whose head moved. One tenant's failure does not stop the others.
func (s *Service) checkpoints(ctx context.Context, newest map[sallyport.TenantID]Checkpoint) error {
	tenants, err := s.cfg.Store.Tenants(ctx)
	if err != nil {
		return err
	}
	var failures []error
	for _, tenant := range tenants {
		last, known := newest[tenant]
		if !known {
			if last, err = s.newest(ctx, tenant); err != nil {
				failures = append(failures, err)
				continue
			}
		}
		if last, err = s.checkpoint(ctx, tenant, last); err != nil {
			failures = append(failures, err)
			continue
		}
		newest[tenant] = last
	}
	return errors.Join(failures...)
}

// newest returns the stored checkpoint with the largest count that this server's key signed.
func (s *Service) newest(ctx context.Context, tenant sallyport.TenantID) (Checkpoint, error) {
	stored, err := s.cfg.Store.Checkpoints(ctx, tenant)
	if err != nil {
		return Checkpoint{}, err
	}
	var newest Checkpoint
	for _, checkpoint := range stored {
		if checkpoint.TenantID == tenant && checkpoint.Count > newest.Count && checkpoint.Holds(s.publicKey()) {
			newest = checkpoint
		}
	}
	return newest, nil
}

// checkpoint signs the head of tenant's chain when it moved since last, and returns the checkpoint that is the newest then.
func (s *Service) checkpoint(ctx context.Context, tenant sallyport.TenantID, last Checkpoint) (Checkpoint, error) {
	count, head, err := s.cfg.Store.Head(ctx, tenant)
	if err != nil {
		return last, err
	}
	switch {
	case count < last.Count, count == last.Count && count > 0 && !head.Equal(last.Head):
		return last, &sallyport.Error{
			Op: opCheckpoint, Code: sallyport.CodeInternal,
			Err: fmt.Errorf("tenant %s: the trail of %d entries contradicts the checkpoint of %d entries; run audit verify", tenant, count, last.Count),
		}
	case count == last.Count:
		return last, nil
	}
	checkpoint, err := Sign(s.cfg.Key, tenant, count, head, s.cfg.Now())
	if err != nil {
		return last, err
	}
	// The log comes first: what is only in the database proves nothing. A line written twice does no harm.
	if err := s.writeLog(checkpoint); err != nil {
		return last, err
	}
	if err := s.cfg.Store.AddCheckpoint(ctx, tenant, checkpoint); err != nil {
		return last, err
	}
	s.cfg.Logger.InfoContext(ctx, "audit checkpoint", "tenant_id", string(tenant), "count", count, "head", string(head),
		"at", checkpoint.At.Format(canonical.TimeFormat), "public_key", checkpoint.PublicKey, "signature", checkpoint.Signature)
	return checkpoint, nil
}

func (s *Service) writeLog(checkpoint Checkpoint) error {
	if s.cfg.CheckpointLog == nil {
		return nil
	}
	line, err := json.Marshal(checkpoint)
	if err != nil {
		return err
	}
	if _, err := s.cfg.CheckpointLog.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("checkpoint log: %w", err)
	}
	if file, ok := s.cfg.CheckpointLog.(interface{ Sync() error }); ok {
		if err := file.Sync(); err != nil {
			return fmt.Errorf("checkpoint log: %w", err)
		}
	}
	return nil
}

// publicKey is the half of Config.Key that verifies; nil without a key.
func (s *Service) publicKey() ed25519.PublicKey {
	if s.cfg.Key == nil {
		return s.cfg.PublicKey
	}
	public, _ := s.cfg.Key.Public().(ed25519.PublicKey)
	return public
}
