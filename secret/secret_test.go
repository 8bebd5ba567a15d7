package secret_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/secret"
)

// memory is a secret.Store and the trail. What a test breaks fails.
type memory struct {
	mu      sync.Mutex
	secrets map[sallyport.TenantID]map[string]secret.Sealed
	entries []sallyport.Entry
	// before runs ahead of each change of the store, with the name of the method.
	before func(method string) error
	audit  error
}

func newMemory() *memory {
	return &memory{secrets: map[sallyport.TenantID]map[string]secret.Sealed{}, before: func(string) error { return nil }}
}

func (m *memory) Append(_ context.Context, entry sallyport.Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.audit != nil {
		return m.audit
	}
	m.entries = append(m.entries, entry)
	return nil
}

func (m *memory) PutSecret(_ context.Context, tenant sallyport.TenantID, s secret.Sealed, _ int) error {
	if err := m.before("put"); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.secrets[tenant] == nil {
		m.secrets[tenant] = map[string]secret.Sealed{}
	}
	m.secrets[tenant][s.Name] = s
	return nil
}

func (m *memory) Secret(_ context.Context, tenant sallyport.TenantID, name string) (secret.Sealed, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, found := m.secrets[tenant][name]
	if !found {
		return s, &sallyport.Error{Op: "x", Code: sallyport.CodeSecretNotFound}
	}
	return s, nil
}

func (m *memory) Secrets(_ context.Context, tenant sallyport.TenantID) ([]secret.Sealed, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []secret.Sealed
	for _, name := range slices.Sorted(maps.Keys(m.secrets[tenant])) {
		all = append(all, m.secrets[tenant][name])
	}
	return all, nil
}

func (m *memory) RemoveSecret(_ context.Context, tenant sallyport.TenantID, name string) error {
	if err := m.before("remove"); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.secrets[tenant], name)
	return nil
}

func (m *memory) RewrapSecret(_ context.Context, tenant sallyport.TenantID, name string, old []byte, keyID string, wrapped []byte) (bool, error) {
	if err := m.before("rewrap"); err != nil {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s, found := m.secrets[tenant][name]
	if !found || !bytes.Equal(s.WrappedKey, old) {
		return false, nil
	}
	s.KeyID, s.WrappedKey = keyID, wrapped
	m.secrets[tenant][name] = s
	return true, nil
}

func (m *memory) SecretTenants(context.Context) ([]sallyport.TenantID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var tenants []sallyport.TenantID
	for tenant, all := range m.secrets {
		if len(all) > 0 {
			tenants = append(tenants, tenant)
		}
	}
	slices.Sort(tenants)
	return tenants, nil
}

func (m *memory) keys(path string) *secret.KeyFile {
	return secret.NewKeyFile(path, func(ctx context.Context) (bool, error) {
		tenants, err := m.SecretTenants(ctx)
		return len(tenants) == 0, err
	})
}

func newService(t *testing.T) (*secret.Service, *memory, string) {
	t.Helper()
	m, path := newMemory(), filepath.Join(t.TempDir(), "secrets.key")
	return m.service(path), m, path
}

func (m *memory) service(path string) *secret.Service {
	return secret.New(secret.Config{Store: m, Trail: m, Keys: m.keys(path), Now: func() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 999, time.UTC) }})
}

func admin(tenant sallyport.TenantID) sallyport.Principal {
	return sallyport.Principal{ID: "ada", TenantID: tenant, Scopes: sallyport.Scopes()}
}

func operator() sallyport.Principal {
	p := admin("default")
	p.ID, p.Operator = "operator", true
	return p
}

func set(t *testing.T, s *secret.Service, tenant sallyport.TenantID, name string, value sallyport.Secret) {
	t.Helper()
	if _, err := s.Set(t.Context(), admin(tenant), name, value); err != nil {
		t.Fatal(err)
	}
}

func opened(t *testing.T, s *secret.Service, tenant sallyport.TenantID, name string) string {
	t.Helper()
	values, err := s.Open(t.Context(), tenant, []string{name})
	if err != nil {
		t.Fatal(err)
	}
	return string(values[name])
}

func wantCode(t *testing.T, what string, err error, code sallyport.Code) {
	t.Helper()
	if sallyport.CodeOf(err) != code {
		t.Errorf("%s: got %v, want %s", what, err, code)
	}
}

func TestSetOpenRemove(t *testing.T) {
	t.Parallel()
	s, m, path := newService(t)
	set(t, s, "default", "TOKEN", "hunter2")
	set(t, s, "default", "TOKEN", "hunter3\n\xff")
	set(t, s, "other", "TOKEN", "theirs")
	if got := opened(t, s, "default", "TOKEN"); got != "hunter3\n\xff" {
		t.Errorf("got %q", got)
	}
	if got := opened(t, s, "other", "TOKEN"); got != "theirs" {
		t.Errorf("got %q", got)
	}
	list, err := s.List(t.Context(), admin("default"))
	if err != nil || len(list) != 1 || list[0].Name != "TOKEN" || list[0].UpdatedBy != "ada" {
		t.Errorf("got %+v, %v", list, err)
	}
	missing, err := s.Missing(t.Context(), "default", []string{"B", "TOKEN", "A"})
	if err != nil || !slices.Equal(missing, []string{"B", "A"}) {
		t.Errorf("got %v, %v", missing, err)
	}
	_, err = s.Open(t.Context(), "default", []string{"B", "TOKEN", "A"})
	wantCode(t, "missing", err, sallyport.CodeSecretMissing)
	if message := sallyport.Public(err).Message; !strings.Contains(message, "B, A") {
		t.Errorf("got %q", message)
	}
	if err := s.Remove(t.Context(), admin("default"), "TOKEN"); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "removed", s.Remove(t.Context(), admin("default"), "TOKEN"), sallyport.CodeSecretNotFound)
	_, err = s.Open(t.Context(), "default", []string{"TOKEN"})
	wantCode(t, "removed", err, sallyport.CodeSecretMissing)

	everything, err := json.Marshal([]any{m.entries, m.secrets})
	if err != nil {
		t.Fatal(err)
	}
	if text := string(everything) + fmt.Sprintf("%+v", m.secrets); strings.Contains(text, "hunter") || strings.Contains(text, "theirs") {
		t.Error("a value is stored in the clear")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key file: %v, %v", info.Mode(), err)
	}
}

func TestOnlyAdminsTouchSecrets(t *testing.T) {
	t.Parallel()
	s, m, _ := newService(t)
	set(t, s, "default", "TOKEN", "x")
	before := len(m.entries)
	for _, scopes := range [][]sallyport.Scope{nil, {sallyport.ScopeMemoryRead, sallyport.ScopeMemoryWrite, sallyport.ScopeGrantsWrite, sallyport.ScopeAuditRead}} {
		p := sallyport.Principal{ID: "eve", TenantID: "default", Scopes: scopes}
		_, err := s.Set(t.Context(), p, "TOKEN", "y")
		wantCode(t, "set", err, sallyport.CodeAccessDenied)
		_, err = s.List(t.Context(), p)
		wantCode(t, "list", err, sallyport.CodeAccessDenied)
		wantCode(t, "remove", s.Remove(t.Context(), p, "TOKEN"), sallyport.CodeAccessDenied)
		_, err = s.RotateKey(t.Context(), p)
		wantCode(t, "rotate", err, sallyport.CodeAccessDenied)
	}
	for _, tenant := range []sallyport.TenantID{"default", "other"} {
		_, err := s.RotateKey(t.Context(), admin(tenant))
		wantCode(t, "rotate for everybody", err, sallyport.CodeAccessDenied)
	}
	if len(m.entries) != before || opened(t, s, "default", "TOKEN") != "x" {
		t.Error("a refusal changed something")
	}
}

// What is stored was audited first, by name and never by value, and is refused when it cannot be.
func TestSecretsAreAuditedFirst(t *testing.T) {
	t.Parallel()
	s, m, _ := newService(t)
	actions := func() (list []string) {
		for _, e := range m.entries {
			list = append(list, string(e.Action)+" "+e.Entity)
		}
		return list
	}
	m.before = func(method string) error {
		want := map[string]string{"put": "secret.set TOKEN", "remove": "secret.remove TOKEN", "rewrap": "secret.rotate secrets"}[method]
		if list := actions(); len(list) == 0 || list[len(list)-1] != want {
			t.Errorf("%s came before its entry: %v", method, list)
		}
		return nil
	}
	set(t, s, "default", "TOKEN", "hunter2")
	set(t, s, "default", "TOKEN", "hunter2")
	if _, err := s.RotateKey(t.Context(), operator()); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(t.Context(), admin("default"), "TOKEN"); err != nil {
		t.Fatal(err)
	}
	for i, wants := range []string{`"before":null,"after":{`, `"before":{`, `"count":1`, `"after":null`} {
		if detail := string(m.entries[i].Detail); !strings.Contains(detail, wants) || strings.Contains(detail, "hunter") {
			t.Errorf("entry %d: %s", i, detail)
		}
	}
	set(t, s, "default", "TOKEN", "hunter2")
	m.audit = errors.New("disk full")
	_, err := s.Set(t.Context(), admin("default"), "TOKEN", "other")
	wantCode(t, "set", err, sallyport.CodeAuditUnavailable)
	wantCode(t, "remove", s.Remove(t.Context(), admin("default"), "TOKEN"), sallyport.CodeAuditUnavailable)
	_, err = s.RotateKey(t.Context(), operator())
	wantCode(t, "rotate", err, sallyport.CodeAuditUnavailable)
	if got := opened(t, s, "default", "TOKEN"); got != "hunter2" {
		t.Errorf("changed to %q without an entry", got)
	}
}

func TestNamesAndValues(t *testing.T) {
	t.Parallel()
	s, m, _ := newService(t)
	for _, name := range []string{
		"", "a", "token", "1A", "_A", "A-B", "A B", "A=B", "Ä", "A\x00", strings.Repeat("A", 65), "PATH", "HOME", "LANG", "TMPDIR", "LD_PRELOAD", "LD_X",
		"SKILL_ROOT", "SKILL_X", "SALLYPORT_KEY", "PYTHONPATH", "PYTHONSTARTUP", "NODE_OPTIONS", "BASH_ENV", "ENV", "IFS", "GIT_SSH_COMMAND", "PERL5LIB",
		"RUBYOPT", "GCONV_PATH", "LC_ALL", "DYLD_INSERT_LIBRARIES", "BASH_FUNC_X", "GLIBC_TUNABLES", "HTTPS_PROXY", "SSLKEYLOGFILE",
		"BASH_LOADABLES_PATH", "BASH_XTRACEFD", "EXECIGNORE", "POSIXLY_CORRECT", "TMOUT", "MALLOC_CHECK_", "MALLOC_ARENA_MAX", "LUA_PATH", "TERMINFO",
	} {
		_, err := s.Set(t.Context(), admin("default"), name, "hunter2")
		wantCode(t, name, err, sallyport.CodeInvalidArgument)
	}
	for name, value := range map[string]sallyport.Secret{
		"empty": "", "NUL": "hunter2\x00", "large": sallyport.Secret(strings.Repeat("hunter2", sallyport.MaxSecretBytes)),
	} {
		_, err := s.Set(t.Context(), admin("default"), "TOKEN", value)
		wantCode(t, name, err, sallyport.CodeInvalidArgument)
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error tells the value", name)
		}
	}
	if len(m.entries) != 0 {
		t.Error("a refusal was audited as a change")
	}
	for n := range sallyport.MaxSecrets {
		set(t, s, "default", fmt.Sprint("S", n), "v")
	}
	_, err := s.Set(t.Context(), admin("default"), "ONE_MORE", "v")
	wantCode(t, "one too many", err, sallyport.CodeInvalidArgument)
	set(t, s, "default", "S0", sallyport.Secret(strings.Repeat("x", sallyport.MaxSecretBytes)))
}

// A sealed value opens for its own tenant and name only, and not when a byte of it changed.
func TestSealedValuesStayWhereTheyAre(t *testing.T) {
	t.Parallel()
	s, m, _ := newService(t)
	set(t, s, "default", "A", "of A")
	set(t, s, "default", "B", "of B")
	set(t, s, "other", "A", "of other")
	good := m.secrets["default"]["A"]
	for what, change := range map[string]func(secret.Sealed) secret.Sealed{
		"another name's box":      func(x secret.Sealed) secret.Sealed { x.Box = m.secrets["default"]["B"].Box; return x },
		"another name's whole":    func(x secret.Sealed) secret.Sealed { y := m.secrets["default"]["B"]; y.Name = "A"; return y },
		"another tenant's whole":  func(secret.Sealed) secret.Sealed { return m.secrets["other"]["A"] },
		"a changed box":           func(x secret.Sealed) secret.Sealed { x.Box = flipped(x.Box); return x },
		"a changed wrapped key":   func(x secret.Sealed) secret.Sealed { x.WrappedKey = flipped(x.WrappedKey); return x },
		"a cut box":               func(x secret.Sealed) secret.Sealed { x.Box = x.Box[:5]; return x },
		"an unknown key":          func(x secret.Sealed) secret.Sealed { x.KeyID = "file:0000"; return x },
		"a box with another name": func(x secret.Sealed) secret.Sealed { x.Name = "C"; return x },
	} {
		m.secrets["default"]["A"] = change(good)
		values, err := s.Open(t.Context(), "default", []string{"A"})
		if err == nil || len(values) != 0 {
			t.Errorf("%s: opened %q", what, values["A"])
		}
	}
	m.secrets["default"]["A"] = good
	if got := opened(t, s, "default", "A"); got != "of A" {
		t.Errorf("got %q", got)
	}
}

func flipped(b []byte) []byte {
	c := slices.Clone(b)
	c[len(c)-1] ^= 1
	return c
}

// The same value sealed twice has nothing in common.
func TestSealingIsRandom(t *testing.T) {
	t.Parallel()
	s, m, _ := newService(t)
	set(t, s, "default", "A", "the same")
	first := m.secrets["default"]["A"]
	set(t, s, "default", "A", "the same")
	if again := m.secrets["default"]["A"]; bytes.Equal(first.Box, again.Box) || bytes.Equal(first.WrappedKey, again.WrappedKey) {
		t.Error("sealed the same way")
	}
}
