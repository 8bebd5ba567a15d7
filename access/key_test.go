package access_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
)

func minted(tb testing.TB, service *access.Service, req access.KeyRequest) access.NewKey {
	tb.Helper()
	key, err := service.CreateKey(tb.Context(), admin(), req)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func TestCreateKey(t *testing.T) {
	t.Parallel()
	w, service := newWorld()
	expires := w.now.Add(time.Hour)
	got := minted(t, service, access.KeyRequest{
		Name: "ci", ExpiresAt: &expires, Teams: []sallyport.TeamID{"blue", "default"},
		Scopes: []sallyport.Scope{sallyport.ScopeMemoryWrite, sallyport.ScopeMemoryRead, sallyport.ScopeMemoryRead},
	})
	now, end := w.now.Truncate(time.Microsecond), expires.Truncate(time.Microsecond)
	want := sallyport.Key{
		ID: got.Key.ID, TenantID: tenant, PrincipalID: "key:" + sallyport.PrincipalID(got.Key.ID), Name: "ci",
		Prefix: got.Secret[:10], Scopes: []sallyport.Scope{sallyport.ScopeMemoryRead, sallyport.ScopeMemoryWrite},
		Teams: []sallyport.TeamID{"blue", "default"}, CreatedBy: "root", CreatedAt: now, ExpiresAt: &end,
	}
	if diff := cmp.Diff(want, got.Key); diff != "" || got.Key.ID == "" {
		t.Errorf("key (-want +got):\n%s", diff)
	}
	if len(got.Secret) != 40 || !strings.HasPrefix(got.Secret, "spk_") {
		t.Errorf("secret: got %q", got.Secret)
	}
	if diff := cmp.Diff([]string{"append", "add key"}, w.steps); diff != "" {
		t.Errorf("order of writes (-want +got):\n%s", diff)
	}
	entry, _ := json.Marshal(w.entries[0])
	if w.entries[0].Action != sallyport.ActionKeyCreate || w.entries[0].Entity != string(got.Key.ID) {
		t.Errorf("entry: got %s", entry)
	}
	stored, _ := json.Marshal(w.keys)
	if strings.Contains(string(entry), got.Secret[10:]) || strings.Contains(string(stored), got.Secret[10:]) {
		t.Error("the secret is kept somewhere")
	}
}

func TestCreateKeyRefuses(t *testing.T) {
	t.Parallel()
	read := []sallyport.Scope{sallyport.ScopeMemoryRead}
	for name, test := range map[string]struct {
		p    sallyport.Principal
		req  access.KeyRequest
		code sallyport.Code
	}{
		"not an admin":   {without(admin(), sallyport.ScopeAdmin), access.KeyRequest{Name: "k", Scopes: read}, sallyport.CodeAccessDenied},
		"no name":        {admin(), access.KeyRequest{Scopes: read}, sallyport.CodeInvalidArgument},
		"long name":      {admin(), access.KeyRequest{Name: strings.Repeat("x", 101), Scopes: read}, sallyport.CodeInvalidArgument},
		"name with line": {admin(), access.KeyRequest{Name: "a\nb", Scopes: read}, sallyport.CodeInvalidArgument},
		"blank name":     {admin(), access.KeyRequest{Name: " ", Scopes: read}, sallyport.CodeInvalidArgument},
		"broken name":    {admin(), access.KeyRequest{Name: "a\xff", Scopes: read}, sallyport.CodeInvalidArgument},
		"no scopes":      {admin(), access.KeyRequest{Name: "k"}, sallyport.CodeInvalidArgument},
		"unknown scope":  {admin(), access.KeyRequest{Name: "k", Scopes: []sallyport.Scope{"memory:*"}}, sallyport.CodeInvalidArgument},
		"a scope it lacks": {
			without(admin(), sallyport.ScopeGrantsWrite),
			access.KeyRequest{Name: "k", Scopes: []sallyport.Scope{sallyport.ScopeMemoryRead, sallyport.ScopeGrantsWrite}},
			sallyport.CodeAccessDenied,
		},
		"a team it lacks": {admin(), access.KeyRequest{Name: "k", Scopes: read, Teams: []sallyport.TeamID{"red"}}, sallyport.CodeAccessDenied},
		"an empty team":   {admin(), access.KeyRequest{Name: "k", Scopes: read, Teams: []sallyport.TeamID{""}}, sallyport.CodeAccessDenied},
		"expired":         {admin(), access.KeyRequest{Name: "k", Scopes: read, ExpiresAt: &time.Time{}}, sallyport.CodeInvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, service := newWorld()
			got, err := service.CreateKey(t.Context(), test.p, test.req)
			refusedWith(t, err, test.code)
			if got.Secret != "" || len(w.steps) != 0 {
				t.Errorf("a refusal made a key or wrote %q", w.steps)
			}
		})
	}
}

func TestKeysAreAuditedFirst(t *testing.T) {
	t.Parallel()
	w, service := newWorld()
	req := access.KeyRequest{Name: "k", Scopes: []sallyport.Scope{sallyport.ScopeAuditRead}}
	key := minted(t, service, req)

	w.faults["append"] = errDisk
	_, err := service.CreateKey(t.Context(), admin(), req)
	refusedWith(t, err, sallyport.CodeAuditUnavailable)
	refusedWith(t, service.RevokeKey(t.Context(), admin(), key.Key.ID), sallyport.CodeAuditUnavailable)
	if len(w.keys) != 1 || w.keys[0].RevokedAt != nil {
		t.Errorf("keys changed without an entry: %+v", w.keys)
	}

	delete(w.faults, "append")
	w.faults["add key"] = &sallyport.Error{Op: "fake", Code: sallyport.CodeStoreUnavailable}
	got, err := service.CreateKey(t.Context(), admin(), req)
	refusedWith(t, err, sallyport.CodeStoreUnavailable)
	if got.Secret != "" || len(w.keys) != 1 || len(w.entries) != 2 {
		t.Errorf("got a secret, %d keys and %d entries", len(w.keys), len(w.entries))
	}
}

func TestAuthenticate(t *testing.T) {
	t.Parallel()
	w, service := newWorld()
	key := minted(t, service, access.KeyRequest{Name: "k", Scopes: []sallyport.Scope{sallyport.ScopeMemoryRead}})
	got, err := service.Authenticate(t.Context(), key.Secret)
	if err != nil {
		t.Fatal(err)
	}
	want := sallyport.Principal{
		ID: key.Key.PrincipalID, TenantID: tenant, Teams: []sallyport.TeamID{"default"},
		Scopes: []sallyport.Scope{sallyport.ScopeMemoryRead}, KeyID: key.Key.ID,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("principal (-want +got):\n%s", diff)
	}
	if w.touches != 1 {
		t.Errorf("touches: got %d, want 1", w.touches)
	}
}

// A secret that cannot be a key is refused before the store hears of it.
func TestAuthenticateChecksTheShapeFirst(t *testing.T) {
	t.Parallel()
	w, service := newWorld()
	secret := minted(t, service, access.KeyRequest{Name: "k", Scopes: []sallyport.Scope{sallyport.ScopeMemoryRead}}).Secret
	other := byte('x')
	if secret[20] == 'x' {
		other = 'y'
	}
	for name, bad := range map[string]string{
		"empty": "", "prefix only": "spk_", "cut": secret[:39], "longer": secret + "0", "blank before": " " + secret[:39],
		"one letter changed":   secret[:20] + string(other) + secret[21:],
		"another prefix":       "spq_" + secret[4:],
		"upper case prefix":    "SPK_" + secret[4:],
		"not a digit":          secret[:20] + "-" + secret[21:],
		"a letter beyond":      secret[:20] + "é" + secret[22:],
		"checksum of zeros":    secret[:34] + "000000",
		"two letters swapped":  secret[:10] + "ab" + secret[12:],
		"NUL":                  secret[:39] + "\x00",
		"a different checksum": secret[:39] + map[bool]string{true: "1", false: "0"}[secret[39] == '0'],
	} {
		_, err := service.Authenticate(t.Context(), bad)
		if code := sallyport.CodeOf(err); code != sallyport.CodeUnauthenticated {
			t.Errorf("%s: got code %q, want UNAUTHENTICATED", name, code)
		}
	}
	if w.lookups != 0 {
		t.Errorf("the store was asked %d times", w.lookups)
	}
}

func TestAuthenticateRefusesInactiveKeys(t *testing.T) {
	t.Parallel()
	req := access.KeyRequest{Name: "k", Scopes: []sallyport.Scope{sallyport.ScopeMemoryRead}}
	for name, test := range map[string]struct {
		spoil func(*testing.T, *world, *access.Service, access.NewKey)
		code  sallyport.Code
	}{
		"expired now": {func(_ *testing.T, w *world, _ *access.Service, k access.NewKey) {
			w.keys[0].ExpiresAt, w.now = &w.now, *k.Key.ExpiresAt
		}, sallyport.CodeUnauthenticated},
		"revoked": {func(t *testing.T, _ *world, s *access.Service, k access.NewKey) {
			t.Helper()
			if err := s.RevokeKey(t.Context(), admin(), k.Key.ID); err != nil {
				t.Fatal(err)
			}
		}, sallyport.CodeUnauthenticated},
		"unknown": {func(_ *testing.T, w *world, _ *access.Service, _ access.NewKey) {
			clear(w.hashes)
		}, sallyport.CodeUnauthenticated},
		"another key's row": {func(_ *testing.T, w *world, _ *access.Service, _ access.NewKey) {
			w.keys[0].Prefix = "spk_000000"
		}, sallyport.CodeUnauthenticated},
		"row without tenant": {func(_ *testing.T, w *world, _ *access.Service, _ access.NewKey) {
			w.keys[0].TenantID = ""
		}, sallyport.CodeUnauthenticated},
		"store down": {func(_ *testing.T, w *world, _ *access.Service, _ access.NewKey) {
			w.faults["key by hash"] = &sallyport.Error{Op: "fake", Code: sallyport.CodeStoreUnavailable}
		}, sallyport.CodeStoreUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, service := newWorld()
			request := req
			end := w.now.Add(time.Hour)
			request.ExpiresAt = &end
			key := minted(t, service, request)
			test.spoil(t, w, service, key)
			p, err := service.Authenticate(t.Context(), key.Secret)
			refusedWith(t, err, test.code)
			if diff := cmp.Diff(sallyport.Principal{}, p); diff != "" {
				t.Errorf("a refusal returned a principal: %s", diff)
			}
		})
	}
}

func TestLastUseIsRecordedOnceAMinute(t *testing.T) {
	t.Parallel()
	w, service := newWorld()
	secret := minted(t, service, access.KeyRequest{Name: "k", Scopes: []sallyport.Scope{sallyport.ScopeMemoryRead}}).Secret
	use := func(times int) {
		var group sync.WaitGroup
		for range times {
			group.Go(func() {
				if _, err := service.Authenticate(t.Context(), secret); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
	}
	for _, step := range []struct {
		later time.Duration
		fault error
		want  int
	}{
		{0, nil, 1},
		{59 * time.Second, nil, 1},
		{time.Second, nil, 2},
		{time.Minute, errDisk, 3},
		{time.Second, nil, 3},
		{time.Minute, nil, 4},
	} {
		w.now = w.now.Add(step.later)
		w.faults["touch"] = step.fault
		use(8)
		if w.touches != step.want {
			t.Fatalf("after %v: got %d writes, want %d", step.later, w.touches, step.want)
		}
	}
}

func TestRevokeKey(t *testing.T) {
	t.Parallel()
	w, service := newWorld()
	key := minted(t, service, access.KeyRequest{Name: "k", Scopes: []sallyport.Scope{sallyport.ScopeAuditRead}})
	refusedWith(t, service.RevokeKey(t.Context(), without(admin(), sallyport.ScopeAdmin), key.Key.ID), sallyport.CodeAccessDenied)
	refusedWith(t, service.RevokeKey(t.Context(), admin(), "nope"), sallyport.CodeKeyNotFound)
	rival := admin()
	rival.TenantID = "rival"
	refusedWith(t, service.RevokeKey(t.Context(), rival, key.Key.ID), sallyport.CodeKeyNotFound)

	if err := service.RevokeKey(t.Context(), admin(), key.Key.ID); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"append", "add key", "append", "revoke key"}, w.steps); diff != "" {
		t.Errorf("order of writes (-want +got):\n%s", diff)
	}
	refusedWith(t, service.RevokeKey(t.Context(), admin(), key.Key.ID), sallyport.CodeKeyNotFound)

	_, err := service.Keys(t.Context(), without(admin(), sallyport.ScopeAdmin))
	refusedWith(t, err, sallyport.CodeAccessDenied)
	keys, err := service.Keys(t.Context(), admin())
	if err != nil || len(keys) != 1 || keys[0].RevokedAt == nil {
		t.Errorf("a revoked key must stay listed: got %+v, %v", keys, err)
	}
}

func FuzzAuthenticate(f *testing.F) {
	w, service := newWorld()
	secret := minted(f, service, access.KeyRequest{Name: "k", Scopes: []sallyport.Scope{sallyport.ScopeMemoryRead}}).Secret
	f.Add(secret)
	f.Add(secret[:39])
	f.Add("spk_" + strings.Repeat("0", 36))
	f.Add("Bearer " + secret)
	f.Fuzz(func(t *testing.T, in string) {
		w.lookups = 0
		p, err := service.Authenticate(t.Context(), in)
		switch {
		case in == secret && (err != nil || p.ID == ""):
			t.Fatalf("the key itself is refused: %v", err)
		case in == secret:
		case sallyport.CodeOf(err) != sallyport.CodeUnauthenticated || p.Has(sallyport.ScopeMemoryRead):
			t.Fatalf("%q: got %v", in, err)
		case w.lookups != 0 && len(in) != len(secret):
			t.Fatalf("%q reached the store", in)
		}
	})
}
