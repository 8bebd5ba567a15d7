package secret_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
)

// A key file that is gone, open to others or damaged stops everything that needs it, and is never replaced.
func TestKeyFileFaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		harm func(path string) error
		says string
	}{
		"gone":                 {func(path string) error { return os.Remove(path) }, "restore it from a backup"},
		"open to others":       {func(path string) error { return os.Chmod(path, 0o644) }, "chmod 0600"},
		"open to the group":    {func(path string) error { return os.Chmod(path, 0o640) }, "chmod 0600"},
		"empty":                {func(path string) error { return os.WriteFile(path, nil, 0o600) }, "holds no key"},
		"comments only":        {func(path string) error { return os.WriteFile(path, []byte("# nothing\n"), 0o600) }, "holds no key"},
		"half a key":           {func(path string) error { return os.Truncate(path, 180) }, "restore it from a backup"},
		"another kind of file": {func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }, "no ordinary file"},
		"another key": {func(path string) error {
			return os.WriteFile(path, []byte("sallyport-secret-key-v1 AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"), 0o600)
		}, "does not hold the key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, m, path := newService(t)
			set(t, s, "default", "TOKEN", "hunter2")
			check(t, test.harm(path))
			s = m.service(path)
			_, err := s.Open(t.Context(), "default", []string{"TOKEN"})
			wantCode(t, "open", err, sallyport.CodeStoreUnavailable)
			if message := sallyport.Public(err).Message; !strings.Contains(message, test.says) || strings.Contains(message, filepath.Dir(path)) {
				t.Errorf("got %q, want %q and no path", message, test.says)
			}
			if name == "another key" {
				return // with which something new can be encrypted
			}
			_, err = s.Set(t.Context(), admin("default"), "OTHER", "x")
			wantCode(t, "set", err, sallyport.CodeStoreUnavailable)
		})
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A key file that is a link, as a platform mounts one, works.
func TestKeyFileCanBeALink(t *testing.T) {
	t.Parallel()
	s, m, path := newService(t)
	set(t, s, "default", "TOKEN", "hunter2")
	link := filepath.Join(t.TempDir(), "link")
	check(t, os.Symlink(path, link))
	s = m.service(link)
	if _, err := s.RotateKey(t.Context(), operator()); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info.Mode(), err)
	}
	if got := opened(t, m.service(path), "default", "TOKEN"); got != "hunter2" {
		t.Errorf("got %q", got)
	}
}

func keysIn(t *testing.T, path string) int {
	t.Helper()
	data, err := os.ReadFile(path)
	check(t, err)
	return strings.Count(string(data), "sallyport-secret-key-v1 ")
}

func TestRotateKey(t *testing.T) {
	t.Parallel()
	s, m, path := newService(t)
	set(t, s, "default", "A", "of A")
	set(t, s, "default", "B", "of B")
	set(t, s, "other", "A", "of other")
	before := m.secrets["default"]["A"]
	done, err := s.RotateKey(t.Context(), operator())
	if err != nil || done.Rewrapped != 3 || !done.Retired || done.KeyID == before.KeyID {
		t.Fatalf("got %+v, %v", done, err)
	}
	after := m.secrets["default"]["A"]
	if after.KeyID != done.KeyID || string(after.Box) != string(before.Box) || keysIn(t, path) != 1 {
		t.Errorf("key %s of %s, %d keys in the file", after.KeyID, done.KeyID, keysIn(t, path))
	}
	for tenant, names := range map[sallyport.TenantID]map[string]string{"default": {"A": "of A", "B": "of B"}, "other": {"A": "of other"}} {
		for name, want := range names {
			if got := opened(t, m.service(path), tenant, name); got != want {
				t.Errorf("%s of %s: %q", name, tenant, got)
			}
		}
	}
	// What was copied before the rotation opens with nothing that is left.
	m.secrets["default"]["A"] = before
	if _, err := s.Open(t.Context(), "default", []string{"A"}); sallyport.CodeOf(err) != sallyport.CodeStoreUnavailable {
		t.Errorf("the old key still opens: %v", err)
	}
}

// A rotation that ends at any point leaves every secret readable, and the next one finishes the work.
func TestRotationCanBeInterrupted(t *testing.T) {
	t.Parallel()
	for stop := range 4 {
		s, m, path := newService(t)
		for _, name := range []string{"A", "B", "C"} {
			set(t, s, "default", name, sallyport.Secret("of "+name))
		}
		left := stop
		m.before = func(string) error {
			if left--; left < 0 {
				return errors.New("the process was killed")
			}
			return nil
		}
		_, err := s.RotateKey(t.Context(), operator())
		if (err != nil) != (stop < 3) {
			t.Fatalf("stopped at %d: %v", stop, err)
		}
		m.before = func(string) error { return nil }
		again := m.service(path)
		for _, name := range []string{"A", "B", "C"} {
			if got := opened(t, again, "default", name); got != "of "+name {
				t.Errorf("stopped at %d: %s is %q", stop, name, got)
			}
		}
		done, err := again.RotateKey(t.Context(), operator())
		if err != nil || done.Rewrapped != 3 || keysIn(t, path) != 1 {
			t.Errorf("stopped at %d, again: %+v, %v, %d keys", stop, done, err, keysIn(t, path))
		}
		if got := opened(t, again, "default", "C"); got != "of C" {
			t.Errorf("stopped at %d: C is %q", stop, got)
		}
	}
}
