package sallyport

import "time"

// Key is an API key as an administrator sees it; the secret itself is shown once and never stored.
type Key struct {
	ID          KeyID       `json:"id"`
	TenantID    TenantID    `json:"-"`
	PrincipalID PrincipalID `json:"principal_id"`
	Name        string      `json:"name"`
	// Prefix is the first characters of the key, to recognise it by.
	Prefix string  `json:"prefix"`
	Scopes []Scope `json:"scopes"`
	// Roles give further scopes: those that each role has when the key is used.
	Roles      []RoleName  `json:"roles,omitempty"`
	Teams      []TeamID    `json:"teams"`
	CreatedBy  PrincipalID `json:"created_by"`
	CreatedAt  time.Time   `json:"created_at"`
	ExpiresAt  *time.Time  `json:"expires_at,omitempty"`
	LastUsedAt *time.Time  `json:"last_used_at,omitempty"` // at most a minute old
	RevokedAt  *time.Time  `json:"revoked_at,omitempty"`
}

// Active reports whether the key authenticates at the instant now.
func (k Key) Active(now time.Time) bool {
	return k.RevokedAt == nil && (k.ExpiresAt == nil || k.ExpiresAt.After(now))
}
