package access

import (
	"context"
	"crypto/subtle"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport"
)

const (
	opCreateKey    = "access.create_key"
	opKeys         = "access.keys"
	opRevokeKey    = "access.revoke_key"
	opAuthenticate = "access.authenticate"
)

const (
	// maxKeyName bounds a key's name, in bytes.
	maxKeyName = 100
	// touchInterval is how often the use of a key is recorded at most.
	touchInterval = time.Minute
)

// keyDetail is the Detail of key.create and key.revoke. It never holds the secret or its hash.
type keyDetail struct {
	KeyID       sallyport.KeyID       `json:"key_id"`
	PrincipalID sallyport.PrincipalID `json:"principal_id"`
	Name        string                `json:"name"`
	Prefix      string                `json:"prefix"`
	Scopes      []sallyport.Scope     `json:"scopes"`
	Roles       []sallyport.RoleName  `json:"roles,omitempty"`
	Teams       []sallyport.TeamID    `json:"teams"`
	ExpiresAt   *time.Time            `json:"expires_at,omitempty"`
	Before      *stateDetail          `json:"before"`
	After       *stateDetail          `json:"after"`
}

func keyDetailOf(k sallyport.Key, before, after *stateDetail) keyDetail {
	return keyDetail{k.ID, k.PrincipalID, k.Name, k.Prefix, k.Scopes, k.Roles, k.Teams, k.ExpiresAt, before, after}
}

// keyState is the state of a key that is not revoked.
func keyState(k sallyport.Key, now time.Time) *stateDetail {
	if !k.Active(now) {
		return stated(sallyport.GrantExpired)
	}
	return stated(sallyport.GrantActive)
}

// CreateKey makes an API key of p's tenant and audits it before it is stored. Needs admin. The key can have only scopes and
// teams of p's own (ACCESS_DENIED); every key is in the default team. The secret is in the answer and nowhere else.
func (s *Service) CreateKey(ctx context.Context, p sallyport.Principal, req KeyRequest) (NewKey, error) {
	if err := p.Require(opCreateKey, sallyport.ScopeAdmin); err != nil {
		return NewKey{}, err
	}
	now := s.now()
	if err := checkKeyName(req.Name); err != nil {
		return NewKey{}, err
	}
	scopes, roles, err := s.mint(ctx, p, req)
	if err != nil {
		return NewKey{}, err
	}
	teams, err := mintTeams(p, req.Teams)
	if err != nil {
		return NewKey{}, err
	}
	expires, err := s.checkExpiry(opCreateKey, req.ExpiresAt, now)
	if err != nil {
		return NewKey{}, err
	}
	id, err := newID(opCreateKey)
	if err != nil {
		return NewKey{}, err
	}
	secret := newSecret()
	key := sallyport.Key{
		ID: sallyport.KeyID(id), TenantID: p.TenantID, PrincipalID: sallyport.PrincipalID("key:" + id), Name: req.Name,
		Prefix: secret[:prefixLength], Scopes: scopes, Roles: roles, Teams: teams, CreatedBy: p.ID, CreatedAt: now, ExpiresAt: expires,
	}
	if err := s.record(ctx, p, now, sallyport.ActionKeyCreate, id, keyDetailOf(key, nil, keyState(key, now))); err != nil {
		return NewKey{}, err
	}
	if err := s.cfg.Store.AddKey(ctx, p.TenantID, key, hashSecret(secret)); err != nil {
		s.cfg.Logger.ErrorContext(ctx, "a key was audited and then not stored", "key_id", id, "error", err)
		return NewKey{}, err
	}
	return NewKey{Key: key, Secret: secret}, nil
}

func checkKeyName(name string) error {
	if name == "" || len(name) > maxKeyName || !utf8.ValidString(name) || name != strings.TrimSpace(name) ||
		strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return sallyport.Errorf(opCreateKey, sallyport.CodeInvalidArgument,
			"a key needs a name of 1 to %d bytes of printable text without blanks around it", maxKeyName)
	}
	return nil
}

// mint returns the scopes and roles of a new key, when all of them are p's own. A key needs some scope.
func (s *Service) mint(ctx context.Context, p sallyport.Principal, req KeyRequest) ([]sallyport.Scope, []sallyport.RoleName, error) {
	if len(req.Scopes) == 0 && len(req.Roles) == 0 {
		return nil, nil, sallyport.Errorf(opCreateKey, sallyport.CodeInvalidArgument,
			"a key needs a role, or at least one scope of %s", joinScopes(sallyport.Scopes()))
	}
	scopes, err := carried(opCreateKey, p, req.Scopes, "a key")
	if err != nil {
		return nil, nil, err
	}
	roles, err := s.carriedRoles(ctx, opCreateKey, p, req.Roles, "a key")
	return scopes, roles, err
}

func joinScopes(scopes []sallyport.Scope) string {
	names := make([]string, len(scopes))
	for i, scope := range scopes {
		names[i] = string(scope)
	}
	return strings.Join(names, ", ")
}

// mintTeams returns the default team and the wanted ones, each once and sorted, when all of them are p's own.
func mintTeams(p sallyport.Principal, wanted []sallyport.TeamID) ([]sallyport.TeamID, error) {
	teams := []sallyport.TeamID{sallyport.DefaultTeam}
	for _, team := range wanted {
		if team != sallyport.DefaultTeam && !p.InTeam(team) {
			return nil, sallyport.Errorf(opCreateKey, sallyport.CodeAccessDenied,
				"a key can be only in the teams of its maker, and %.64q is not one of them", team)
		}
		teams = append(teams, team)
	}
	slices.Sort(teams)
	return slices.Compact(teams), nil
}

// Keys lists the tenant's keys, expired and revoked ones too. Needs admin.
func (s *Service) Keys(ctx context.Context, p sallyport.Principal) ([]sallyport.Key, error) {
	if err := p.Require(opKeys, sallyport.ScopeAdmin); err != nil {
		return nil, err
	}
	return s.cfg.Store.Keys(ctx, p.TenantID)
}

// RevokeKey ends a key of p's tenant, from its next use on, and audits that before it is stored. Needs admin. An unknown key
// and one that is revoked already are KEY_NOT_FOUND. LAST_ADMIN when no other administrator of the tenant lasts as long.
func (s *Service) RevokeKey(ctx context.Context, p sallyport.Principal, id sallyport.KeyID) error {
	if err := p.Require(opRevokeKey, sallyport.ScopeAdmin); err != nil {
		return err
	}
	now := s.now()
	roster, keep, err := s.guard(ctx, opRevokeKey, p.TenantID, now)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(roster.Keys, func(k sallyport.Key) bool { return k.ID == id })
	if at < 0 {
		return &sallyport.Error{Op: opRevokeKey, Code: sallyport.CodeKeyNotFound}
	}
	alreadyRevoked := sallyport.Errorf(opRevokeKey, sallyport.CodeKeyNotFound, "the key is revoked already")
	key := roster.Keys[at]
	if key.RevokedAt != nil {
		return alreadyRevoked
	}
	after, ended := roster, key
	ended.RevokedAt = &now
	after.Keys = replaced(roster.Keys, at, ended)
	if err := keep(after); err != nil {
		return err
	}
	if err := s.record(ctx, p, now, sallyport.ActionKeyRevoke, string(id), keyDetailOf(key, keyState(key, now), stated(sallyport.GrantRevoked))); err != nil {
		return err
	}
	revoked, err := s.cfg.Store.RevokeKey(ctx, p.TenantID, id, now, keep)
	if err != nil {
		s.cfg.Logger.ErrorContext(ctx, "a key's revocation was audited and then not stored", "key_id", string(id), "error", err)
		return err
	}
	if !revoked {
		return alreadyRevoked
	}
	return nil
}

// Authenticate turns a key's secret into its principal; UNAUTHENTICATED for anything but an active key of an open tenant and a principal that is not
// disabled. A secret without
// the shape or checksum of a key is refused without asking the store; a store that cannot answer is its own error, never a
// wrong key.
func (s *Service) Authenticate(ctx context.Context, secret string) (sallyport.Principal, error) {
	refused := &sallyport.Error{Op: opAuthenticate, Code: sallyport.CodeUnauthenticated}
	if !wellFormed(secret) {
		return sallyport.Principal{}, refused
	}
	key, err := s.cfg.Store.KeyByHash(ctx, hashSecret(secret))
	if sallyport.CodeOf(err) == sallyport.CodeKeyNotFound {
		return sallyport.Principal{}, refused
	}
	if err != nil {
		return sallyport.Principal{}, err
	}
	// The store looks the hash up; that it answered with this very key is checked here again.
	if subtle.ConstantTimeCompare([]byte(key.Prefix), []byte(secret[:prefixLength])) != 1 {
		return sallyport.Principal{}, refused
	}
	now := s.now()
	if !key.Active(now) || key.ID == "" || key.TenantID == "" || key.PrincipalID == "" {
		return sallyport.Principal{}, refused
	}
	p, err := s.admit(ctx, sallyport.Principal{
		ID: key.PrincipalID, TenantID: key.TenantID, Teams: key.Teams, Scopes: key.Scopes, KeyID: key.ID,
	}, key.Roles)
	if err != nil {
		return sallyport.Principal{}, err
	}
	s.touch(ctx, key, now)
	return p, nil
}

// touch records a use of key, at most once in touchInterval. It is best effort: a caller is not refused because the time of
// its visit could not be written.
func (s *Service) touch(ctx context.Context, key sallyport.Key, now time.Time) {
	if key.LastUsedAt != nil && now.Sub(*key.LastUsedAt) < touchInterval {
		return
	}
	s.mu.Lock()
	last, seen := s.touched[key.ID]
	due := !seen || now.Sub(last) >= touchInterval
	if due {
		s.touched[key.ID] = now // before the write: many callers at once, or a failing store, cost one write a minute
	}
	s.mu.Unlock()
	if !due {
		return
	}
	if err := s.cfg.Store.TouchKey(ctx, key.TenantID, key.ID, now); err != nil {
		s.cfg.Logger.WarnContext(ctx, "the use of a key was not recorded", "key_id", string(key.ID), "error", err)
	}
}
