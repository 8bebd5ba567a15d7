// Package secret keeps the secrets of tenants: values that scripts get by name, encrypted at rest and shown to nobody again.
//
// It owns what is encrypted with what, and the key file of an installation without a key management service. It leaves SQL to
// its Store and the injection into a run to executors. Its one invariant: a value leaves this package only through Open, for
// one run.
package secret

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport"
)

const (
	opSet    = "secret.set"
	opList   = "secret.list"
	opRemove = "secret.remove"
	opOpen   = "secret.open"
	opRotate = "secret.rotate"
)

// Config is what a Service needs. Store, Trail and Keys are required.
type Config struct {
	Store  Store
	Trail  Trail
	Keys   KeyProvider
	Logger *slog.Logger     // nil discards
	Now    func() time.Time // nil means time.Now
}

// Trail is the audit trail as this package needs it.
type Trail interface {
	Append(ctx context.Context, entry sallyport.Entry) error
}

// Sealed is a secret as it is stored. Nothing in it tells the value.
type Sealed struct {
	sallyport.SecretInfo

	// Box is the value, encrypted under a data key of its own.
	Box []byte
	// KeyID names the key of the KeyProvider under which WrappedKey, the data key, is encrypted.
	KeyID      string
	WrappedKey []byte
}

// Store is what this package needs of the database. Every method takes the tenant first.
type Store interface {
	// PutSecret stores s over what its name had, keeping the first CreatedAt. A new name over most is INVALID_ARGUMENT.
	PutSecret(ctx context.Context, tenant sallyport.TenantID, s Sealed, most int) error
	// Secret returns what is stored under a name; SECRET_NOT_FOUND.
	Secret(ctx context.Context, tenant sallyport.TenantID, name string) (Sealed, error)
	// Secrets returns all of a tenant's, by name.
	Secrets(ctx context.Context, tenant sallyport.TenantID) ([]Sealed, error)
	// RemoveSecret removes one; SECRET_NOT_FOUND.
	RemoveSecret(ctx context.Context, tenant sallyport.TenantID, name string) error
	// RewrapSecret replaces KeyID and WrappedKey when the stored WrappedKey is still old; false when it is not, or gone.
	RewrapSecret(ctx context.Context, tenant sallyport.TenantID, name string, old []byte, keyID string, wrapped []byte) (bool, error)
	// SecretTenants lists the tenants that have secrets.
	SecretTenants(ctx context.Context) ([]sallyport.TenantID, error)
}

// Service is safe for concurrent use.
type Service struct {
	cfg Config
	// changes lets one change through at a time: what is audited as the state before is the state before.
	changes sync.Mutex
}

// New returns a Service.
func New(cfg Config) *Service {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Service{cfg: cfg}
}

// now is the time that is stored.
func (s *Service) now() time.Time { return s.cfg.Now().UTC().Truncate(time.Microsecond) }

// state is what the trail says of a secret before and after a change; nil when there is none.
type state struct {
	UpdatedAt time.Time             `json:"updated_at"`
	UpdatedBy sallyport.PrincipalID `json:"updated_by"`
	KeyID     string                `json:"key_id"`
}

func stateOf(sealed Sealed) *state { return &state{sealed.UpdatedAt, sealed.UpdatedBy, sealed.KeyID} }

// change is the Detail of secret.set and secret.remove. It never holds the value, nor anything made of it.
type change struct {
	Name   string `json:"name"`
	Before *state `json:"before"`
	After  *state `json:"after"`
}

// Set stores the value of a secret of p's tenant, over the one it had, after auditing that. Needs admin. A name or value that
// cannot be one is INVALID_ARGUMENT, and so is a name too many. AUDIT_UNAVAILABLE when the trail cannot be written.
func (s *Service) Set(ctx context.Context, p sallyport.Principal, name string, value sallyport.Secret) (sallyport.SecretInfo, error) {
	if err := p.Require(opSet, sallyport.ScopeAdmin); err != nil {
		return sallyport.SecretInfo{}, err
	}
	if err := sallyport.CheckSecretName(name); err != nil {
		return sallyport.SecretInfo{}, err
	}
	if err := sallyport.CheckSecretValue(value); err != nil {
		return sallyport.SecretInfo{}, err
	}
	s.changes.Lock()
	defer s.changes.Unlock()
	all, err := s.cfg.Store.Secrets(ctx, p.TenantID)
	if err != nil {
		return sallyport.SecretInfo{}, err
	}
	now := s.now()
	sealed := Sealed{SecretInfo: sallyport.SecretInfo{Name: name, CreatedAt: now, UpdatedAt: now, UpdatedBy: p.ID}}
	detail := change{Name: name}
	if at := slices.IndexFunc(all, func(one Sealed) bool { return one.Name == name }); at >= 0 {
		sealed.CreatedAt, detail.Before = all[at].CreatedAt, stateOf(all[at])
	} else if len(all) >= sallyport.MaxSecrets {
		return sallyport.SecretInfo{}, sallyport.Errorf(opSet, sallyport.CodeInvalidArgument,
			"the tenant has %d secrets, which is the most it can have; remove one that is not needed any more", len(all))
	}
	if err := seal(ctx, s.cfg.Keys, p.TenantID, &sealed, value); err != nil {
		return sallyport.SecretInfo{}, err
	}
	detail.After = stateOf(sealed)
	if err := s.record(ctx, p, now, sallyport.ActionSecretSet, name, detail); err != nil {
		return sallyport.SecretInfo{}, err
	}
	if err := s.cfg.Store.PutSecret(ctx, p.TenantID, sealed, sallyport.MaxSecrets); err != nil {
		s.cfg.Logger.ErrorContext(ctx, "a secret was audited and then not stored", "name", name, "error", err)
		return sallyport.SecretInfo{}, err
	}
	return sealed.SecretInfo, nil
}

// List returns the secrets of p's tenant by name, without their values. Needs admin.
func (s *Service) List(ctx context.Context, p sallyport.Principal) ([]sallyport.SecretInfo, error) {
	if err := p.Require(opList, sallyport.ScopeAdmin); err != nil {
		return nil, err
	}
	all, err := s.cfg.Store.Secrets(ctx, p.TenantID)
	infos := make([]sallyport.SecretInfo, 0, len(all))
	for _, one := range all {
		infos = append(infos, one.SecretInfo)
	}
	return infos, err
}

// Remove removes a secret of p's tenant, for every run that begins after it, and audits that before. Needs admin.
// SECRET_NOT_FOUND.
func (s *Service) Remove(ctx context.Context, p sallyport.Principal, name string) error {
	if err := p.Require(opRemove, sallyport.ScopeAdmin); err != nil {
		return err
	}
	s.changes.Lock()
	defer s.changes.Unlock()
	sealed, err := s.cfg.Store.Secret(ctx, p.TenantID, name)
	if err != nil {
		return err
	}
	if err := s.record(ctx, p, s.now(), sallyport.ActionSecretRemove, name, change{Name: name, Before: stateOf(sealed)}); err != nil {
		return err
	}
	if err := s.cfg.Store.RemoveSecret(ctx, p.TenantID, name); err != nil {
		s.cfg.Logger.ErrorContext(ctx, "the removal of a secret was audited and then not stored", "name", name, "error", err)
		return err
	}
	return nil
}

// Missing returns those of names that the tenant has not set, in their order. It opens none.
func (s *Service) Missing(ctx context.Context, tenant sallyport.TenantID, names []string) ([]string, error) {
	all, err := s.cfg.Store.Secrets(ctx, tenant)
	if err != nil {
		return nil, err
	}
	var missing []string
	for _, name := range names {
		if !slices.ContainsFunc(all, func(one Sealed) bool { return one.Name == name }) {
			missing = append(missing, name)
		}
	}
	return missing, nil
}

// Open returns the values of names for one run of the tenant. SECRET_MISSING names those that are not set; a value that cannot be
// decrypted is STORE_UNAVAILABLE.
func (s *Service) Open(ctx context.Context, tenant sallyport.TenantID, names []string) (map[string]sallyport.Secret, error) {
	values := make(map[string]sallyport.Secret, len(names))
	var missing []string
	for _, name := range names {
		sealed, err := s.cfg.Store.Secret(ctx, tenant, name)
		if sallyport.CodeOf(err) == sallyport.CodeSecretNotFound {
			missing = append(missing, name)
			continue
		}
		if err != nil {
			return nil, err
		}
		if subtle.ConstantTimeCompare([]byte(sealed.Name), []byte(name)) != 1 {
			return nil, &sallyport.Error{Op: opOpen, Code: sallyport.CodeInternal, Err: errors.New("the store answered with another secret")}
		}
		if values[name], err = open(ctx, s.cfg.Keys, tenant, sealed); err != nil {
			return nil, err
		}
	}
	if len(missing) > 0 {
		return nil, sallyport.SecretMissing(opOpen, missing)
	}
	return values, nil
}

// record writes one audit entry; what it describes may be stored only after it returned nil.
func (s *Service) record(
	ctx context.Context, p sallyport.Principal, at time.Time, action sallyport.Action, entity string, detail any,
) error {
	op := "secret." + string(action)
	encoded, err := json.Marshal(detail)
	if err != nil {
		return &sallyport.Error{Op: op, Code: sallyport.CodeInternal, Err: err}
	}
	err = s.cfg.Trail.Append(ctx, sallyport.Entry{
		TenantID: p.TenantID, At: at, Actor: p.ID, Action: action, Entity: entity, Detail: encoded,
	})
	if err != nil {
		return &sallyport.Error{
			Op: op, Code: sallyport.CodeAuditUnavailable, Err: err,
			Message: "the audit trail cannot be written, so nothing was changed",
		}
	}
	return nil
}
