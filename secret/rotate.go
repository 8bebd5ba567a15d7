package secret

import (
	"context"
	"fmt"

	"github.com/sallyport-dev/sallyport"
)

// Rotation is what RotateKey did.
type Rotation struct {
	// KeyID names the key that encrypts every secret now; empty when there are none.
	KeyID string `json:"key_id,omitempty"`
	// Rewrapped counts the secrets whose data key was encrypted again, of all tenants together.
	Rewrapped int `json:"rewrapped"`
	// Retired says that the keys before are gone.
	Retired bool `json:"retired"`
}

// rotation is the Detail of secret.rotate.
type rotation struct {
	Count  int      `json:"count"`
	Before []string `json:"before"` // the ids of the keys in use
}

// maxRounds bounds how often RotateKey looks for secrets that were set under an old key meanwhile.
const maxRounds = 5

// RotateKey makes a new key and encrypts the data key of every secret of the installation under it; the values themselves are
// not touched. It may be interrupted at any point and called again. Needs admin and the operator of the
// data folder: the key is everybody's. In the trail of every tenant that has secrets it is written before.
func (s *Service) RotateKey(ctx context.Context, p sallyport.Principal) (Rotation, error) {
	if err := p.Require(opRotate, sallyport.ScopeAdmin); err != nil {
		return Rotation{}, err
	}
	if !p.Operator {
		return Rotation{}, sallyport.Errorf(opRotate, sallyport.CodeAccessDenied,
			"the key encrypts the secrets of every tenant, so only the operator can replace it, on the data folder itself")
	}
	s.changes.Lock()
	defer s.changes.Unlock()
	tenants, err := s.announce(ctx, p)
	if err != nil {
		return Rotation{}, err
	}
	rotator, local := s.cfg.Keys.(Rotator)
	if local {
		if err := rotator.Rotate(ctx); err != nil {
			return Rotation{}, keyFault(opRotate, err)
		}
	}
	var done Rotation
	for range maxRounds {
		behind := 0
		for _, tenant := range tenants {
			changed, missed, err := s.rewrap(ctx, tenant, &done)
			if err != nil {
				return done, err
			}
			done.Rewrapped += changed
			behind += missed
		}
		if behind > 0 {
			continue
		}
		if local {
			if err := rotator.Retire(ctx); err != nil {
				return done, keyFault(opRotate, err)
			}
			done.Retired = true
		}
		return done, nil
	}
	return done, sallyport.Errorf(opRotate, sallyport.CodeStoreUnavailable, "secrets kept changing; the old keys are kept: try again")
}

// announce writes to the trail of every tenant with secrets that they are about to be encrypted under another key.
func (s *Service) announce(ctx context.Context, p sallyport.Principal) ([]sallyport.TenantID, error) {
	tenants, err := s.cfg.Store.SecretTenants(ctx)
	if err != nil {
		return nil, err
	}
	now := s.now()
	for _, tenant := range tenants {
		all, err := s.cfg.Store.Secrets(ctx, tenant)
		if err != nil {
			return nil, err
		}
		detail := rotation{Count: len(all), Before: []string{}}
		seen := map[string]bool{}
		for _, one := range all {
			if !seen[one.KeyID] {
				seen[one.KeyID] = true
				detail.Before = append(detail.Before, one.KeyID)
			}
		}
		in := p
		in.TenantID = tenant
		if err := s.record(ctx, in, now, sallyport.ActionSecretRotate, "secrets", detail); err != nil {
			return nil, err
		}
	}
	return tenants, nil
}

// rewrap encrypts the data keys of a tenant's secrets under the current key. missed counts those that changed meanwhile.
func (s *Service) rewrap(ctx context.Context, tenant sallyport.TenantID, done *Rotation) (changed, missed int, err error) {
	all, err := s.cfg.Store.Secrets(ctx, tenant)
	if err != nil {
		return 0, 0, err
	}
	for _, one := range all {
		if done.KeyID != "" && one.KeyID == done.KeyID {
			continue
		}
		bound := binding(tenant, one.Name)
		dataKey, err := s.cfg.Keys.Unwrap(ctx, one.KeyID, one.WrappedKey, bound)
		if err != nil {
			return changed, missed, keyFault(opRotate, fmt.Errorf("%s: %w", one.Name, err))
		}
		keyID, wrapped, err := s.cfg.Keys.Wrap(ctx, dataKey, bound)
		clear(dataKey)
		if err != nil {
			return changed, missed, keyFault(opRotate, err)
		}
		stored, err := s.cfg.Store.RewrapSecret(ctx, tenant, one.Name, one.WrappedKey, keyID, wrapped)
		if err != nil {
			return changed, missed, err
		}
		done.KeyID = keyID
		if stored {
			changed++
		} else {
			missed++
		}
	}
	return changed, missed, nil
}
