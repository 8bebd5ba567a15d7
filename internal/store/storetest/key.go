package storetest

import (
	"crypto/sha256"
	"time"

	"github.com/sallyport-dev/sallyport"
)

func keyTests() []test {
	return []test{
		{"round trip", keyRoundTrip},
		{"revoke once", revokeKeyOnce},
		{"touch", touchKey},
		{"what does not fit is refused", keyRefuses},
	}
}

func secretHash(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

func key(id string, at int) sallyport.Key {
	return sallyport.Key{
		ID: sallyport.KeyID(id), TenantID: tenant, PrincipalID: "robot", Name: "name of " + id, Prefix: "spk_" + id,
		Scopes: []sallyport.Scope{sallyport.ScopeMemoryWrite, sallyport.ScopeMemoryRead}, Teams: []sallyport.TeamID{teamOne},
		CreatedBy: owner, CreatedAt: day(at),
	}
}

func keyRoundTrip(t *trial, b Backend) {
	full, bare := key("full", 2), key("bare", 1)
	full.ExpiresAt, full.LastUsedAt, full.RevokedAt = pointer(day(3)), pointer(day(2)), pointer(day(4))
	bare.Scopes, bare.Teams = nil, []sallyport.TeamID{}
	for _, want := range []sallyport.Key{full, bare} {
		must(t, b.AddKey(t.Context(), tenant, want, secretHash(string(want.ID))))
		got, err := b.KeyByHash(t.Context(), secretHash(string(want.ID)))
		must(t, err)
		same(t, "key", got, want)
	}
	got, err := b.Keys(t.Context(), tenant)
	must(t, err)
	same(t, "newest first", got, []sallyport.Key{full, bare})
	for _, hash := range [][]byte{secretHash("none"), nil, {}, []byte("full"), secretHash("full")[:31]} {
		_, err = b.KeyByHash(t.Context(), hash)
		wantCode(t, err, sallyport.CodeKeyNotFound)
	}
}

func revokeKeyOnce(t *trial, b Backend) {
	want := key("1", 1)
	must(t, b.AddKey(t.Context(), tenant, want, secretHash("1")))
	must(t, b.AddKey(t.Context(), tenant, key("2", 1), secretHash("2")))
	for n, first := range []bool{true, false} {
		revoked, err := b.RevokeKey(t.Context(), tenant, "1", day(5+n), nil)
		must(t, err)
		same(t, "revoked", revoked, first)
	}
	want.RevokedAt = pointer(day(5))
	got, err := b.KeyByHash(t.Context(), secretHash("1"))
	must(t, err)
	same(t, "key", got, want)
	got, err = b.KeyByHash(t.Context(), secretHash("2"))
	must(t, err)
	same(t, "the other", got, key("2", 1))
	_, err = b.RevokeKey(t.Context(), tenant, "none", day(5), nil)
	wantCode(t, err, sallyport.CodeKeyNotFound)
}

func touchKey(t *trial, b Backend) {
	must(t, b.AddKey(t.Context(), tenant, key("1", 1), secretHash("1")))
	for _, step := range []struct{ at, want time.Time }{
		{day(2), day(2)},
		{day(2).Add(59 * time.Second), day(2)}, // within a minute: not written
		{day(2).Add(time.Minute), day(2).Add(time.Minute)},
		{day(1), day(2).Add(time.Minute)}, // never back
	} {
		must(t, b.TouchKey(t.Context(), tenant, "1", step.at))
		got, err := b.KeyByHash(t.Context(), secretHash("1"))
		must(t, err)
		same(t, "last used", got.LastUsedAt, &step.want)
	}
	wantCode(t, b.TouchKey(t.Context(), tenant, "none", day(2)), sallyport.CodeKeyNotFound)
}

func keyRefuses(t *trial, b Backend) {
	must(t, b.AddKey(t.Context(), tenant, key("1", 1), secretHash("1")))
	nobody := key("2", 1)
	nobody.PrincipalID = ""
	for name, err := range map[string]error{
		"an id in use":    b.AddKey(t.Context(), tenant, key("1", 1), secretHash("2")),
		"a secret in use": b.AddKey(t.Context(), tenant, key("2", 1), secretHash("1")),
		"no hash":         b.AddKey(t.Context(), tenant, key("2", 1), nil),
		"half a hash":     b.AddKey(t.Context(), tenant, key("2", 1), secretHash("2")[:16]),
		"no principal":    b.AddKey(t.Context(), tenant, nobody, secretHash("2")),
		"no id":           b.AddKey(t.Context(), tenant, key("", 1), secretHash("2")),
		"no tenant":       b.AddKey(t.Context(), "", key("2", 1), secretHash("2")),
	} {
		if sallyport.CodeOf(err) != sallyport.CodeInternal {
			t.Errorf("%s: got %v, want INTERNAL", name, err)
		}
	}
	keys, err := b.Keys(t.Context(), tenant)
	must(t, err)
	same(t, "keys", keys, []sallyport.Key{key("1", 1)})
}
