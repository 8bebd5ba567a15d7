package store_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	_ "modernc.org/sqlite"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/internal/canonical"
	"github.com/sallyport-dev/sallyport/internal/store"
)

// rawExec changes a database behind the store's back.
func rawExec(tb testing.TB, path string, statements ...string) {
	tb.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		tb.Fatal(err)
	}
	for _, statement := range statements {
		if _, err := db.ExecContext(tb.Context(), statement); err != nil {
			tb.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		tb.Fatal(err)
	}
}

// written makes a database with an entry in it and closes it.
func written(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "sallyport.db")
	s, err := store.Open(tb.Context(), store.Config{Path: path})
	if err != nil {
		tb.Fatal(err)
	}
	for range 200 {
		if _, err := s.AppendEntry(tb.Context(), "acme", sallyport.Entry{At: time.Now(), Action: sallyport.ActionKeyCreate, Entity: strings.Repeat("k", 100)}); err != nil {
			tb.Fatal(err)
		}
	}
	if err := s.Shutdown(); err != nil {
		tb.Fatal(err)
	}
	return path
}

// folder is every file of a folder with its content and mode.
func folder(tb testing.TB, path string) map[string]string {
	tb.Helper()
	entries, err := os.ReadDir(path)
	if err != nil {
		tb.Fatal(err)
	}
	files := map[string]string{}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(path, entry.Name()))
		if err != nil {
			tb.Fatal(err)
		}
		info, err := entry.Info()
		if err != nil {
			tb.Fatal(err)
		}
		files[entry.Name()] = info.Mode().String() + string(content)
	}
	return files
}

// A file that cannot be used is refused with the fault and the remedy, and left as it was.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	overwrite := func(at int64, with string) func(tb testing.TB, path string) {
		return func(tb testing.TB, path string) {
			tb.Helper()
			file, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				tb.Fatal(err)
			}
			if at < 0 {
				info, err := file.Stat()
				if err != nil {
					tb.Fatal(err)
				}
				at += info.Size()
			}
			if _, err := file.WriteAt([]byte(with), at); err != nil {
				tb.Fatal(err)
			}
			if err := file.Close(); err != nil {
				tb.Fatal(err)
			}
		}
	}
	for name, test := range map[string]struct {
		spoil func(tb testing.TB, path string)
		want  []string
	}{
		"read-only": {func(tb testing.TB, path string) {
			tb.Helper()
			if err := os.Chmod(path, 0o400); err != nil {
				tb.Fatal(err)
			}
		}, []string{"cannot be written", "make it and its folder writable"}},
		"newer version": {func(tb testing.TB, path string) {
			tb.Helper()
			rawExec(tb, path, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (900, 1)")
		}, []string{"newer version", "schema 900", "restore the backup"}},
		"no database":           {overwrite(0, "#!/bin/sh\necho hello, world\n"), []string{"damaged or is not a Sallyport database", "restore"}},
		"damaged first page":    {overwrite(100, strings.Repeat("\xa5", 1000)), []string{"damaged", "restore"}},
		"damaged in the middle": {overwrite(20*4096, strings.Repeat("\xa5", 40*4096)), []string{"damaged", "restore"}},
		"damaged at the end":    {overwrite(-4096, strings.Repeat("\xa5", 4096)), []string{"damaged", "restore"}},
		"cut off": {func(tb testing.TB, path string) {
			tb.Helper()
			if err := os.Truncate(path, 10*4096); err != nil {
				tb.Fatal(err)
			}
		}, []string{"damaged", "restore"}},
		"cut off in the header": {func(tb testing.TB, path string) {
			tb.Helper()
			if err := os.Truncate(path, 10); err != nil {
				tb.Fatal(err)
			}
		}, []string{"damaged", "restore"}},
		"database of another program": {func(tb testing.TB, path string) {
			tb.Helper()
			rawExec(tb, path, "PRAGMA application_id = 7")
		}, []string{"not a Sallyport database"}},
		"foreign tables": {func(tb testing.TB, path string) {
			tb.Helper()
			if err := os.Remove(path); err != nil {
				tb.Fatal(err)
			}
			rawExec(tb, path, "CREATE TABLE precious (id INTEGER)", "PRAGMA journal_mode = DELETE")
		}, []string{"not a Sallyport database"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := written(t)
			test.spoil(t, path)
			before := folder(t, filepath.Dir(path))
			s, err := store.Open(t.Context(), store.Config{Path: path})
			if err == nil {
				_ = s.Shutdown()
				t.Fatal("the database was opened")
			}
			public := sallyport.Public(err)
			if public.Code != sallyport.CodeStoreUnavailable {
				t.Errorf("got %v, want STORE_UNAVAILABLE", err)
			}
			for _, want := range test.want {
				if !strings.Contains(public.Message, want) {
					t.Errorf("the message %q does not say %q", public.Message, want)
				}
			}
			if strings.Contains(public.Message, filepath.Dir(path)) {
				t.Errorf("the message %q names a path of the host", public.Message)
			}
			if after := folder(t, filepath.Dir(path)); !maps.Equal(before, after) {
				t.Error("the folder was changed")
			}
		})
	}
}

func TestOpenRefusesPlaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Symlink("elsewhere", filepath.Join(dir, "link.db")); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		path string
		code sallyport.Code
	}{
		"no folder":  {filepath.Join(dir, "none", "sallyport.db"), sallyport.CodeStoreUnavailable},
		"a folder":   {dir, sallyport.CodeStoreUnavailable},
		"a link":     {filepath.Join(dir, "link.db"), sallyport.CodeStoreUnavailable},
		"no path":    {"", sallyport.CodeInternal},
		"a cut path": {filepath.Join(dir, "a\x00b"), sallyport.CodeStoreUnavailable},
	} {
		if s, err := store.Open(t.Context(), store.Config{Path: test.path}); sallyport.CodeOf(err) != test.code {
			t.Errorf("%s: got %v, %v, want %s", name, s, err, test.code)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.Open(ctx, store.Config{Path: filepath.Join(dir, "x.db")}); sallyport.CodeOf(err) != sallyport.CodeCanceled {
		t.Errorf("cancelled: got %v, want CANCELED", err)
	}
}

// Odd names of folders and files are names, not syntax.
func TestOpenOddPaths(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a b", "a?mode=memory", "a#b", "a%20b", "ä", "file:x", "a;b&_pragma=x"} {
		path := filepath.Join(t.TempDir(), name, name)
		if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		open(t, path)
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("%q: got %v, %v, want the database there", name, info, err)
		}
	}
}

// Nobody but the owner reads the database, even when its file was made wider before.
func TestFileMode(t *testing.T) {
	t.Parallel()
	path := written(t)
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	if _, err := s.AppendEntry(t.Context(), "acme", sallyport.Entry{Action: sallyport.ActionKeyCreate}); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s: got mode %v, want 0600", suffix, info.Mode().Perm())
		}
	}
}

// A start that was cut off before or within the migrations is taken up again.
func TestOpenHalfMade(t *testing.T) {
	t.Parallel()
	for name, statements := range map[string][]string{
		"an empty file":         nil,
		"marked":                {"PRAGMA application_id = 1397510228"},
		"without the migration": {"PRAGMA application_id = 1397510228", "PRAGMA journal_mode = WAL", "CREATE TABLE goose_db_version (id INTEGER PRIMARY KEY AUTOINCREMENT, version_id INTEGER NOT NULL, is_applied INTEGER NOT NULL, tstamp TIMESTAMP DEFAULT (datetime('now')))", "INSERT INTO goose_db_version (version_id, is_applied) VALUES (0, 1)"},
	} {
		path := filepath.Join(t.TempDir(), "sallyport.db")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		rawExec(t, path, statements...)
		s := open(t, path)
		if _, err := s.AppendEntry(t.Context(), "acme", sallyport.Entry{Action: sallyport.ActionKeyCreate}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRestartKeepsEverything(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sallyport.db")
	s, err := store.Open(t.Context(), store.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	want := furnish(t, s)
	if err := s.Shutdown(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + "-wal"); !os.IsNotExist(err) {
		t.Errorf("a write-ahead log is left after an orderly end: %v", err)
	}
	for range 3 {
		again, err := store.Open(t.Context(), store.Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, everything(t, again), cmp.Comparer(sameDigest)); diff != "" {
			t.Errorf("after a restart (-want +got):\n%s", diff)
		}
		if err := again.Shutdown(); err != nil {
			t.Fatal(err)
		}
	}
}

// Content that changed on disk is an error, and never served.
func TestDamagedBlob(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sallyport.db")
	s := open(t, path)
	furnish(t, s)
	for name, change := range map[string]string{
		"one byte":   "UPDATE blobs SET content = CAST('X' || substr(content, 2) AS BLOB)",
		"cut off":    "UPDATE blobs SET content = substr(content, 2)",
		"emptied":    "UPDATE blobs SET content = x''",
		"lengthened": "UPDATE blobs SET content = CAST(content || 'x' AS BLOB)",
	} {
		rawExec(t, path, change)
		_, revision := s.RevisionContent(t.Context(), "acme", "s", "r")
		_, component := s.ComponentContent(t.Context(), "acme", "r", "SKILL.md")
		_, content, artifact := s.ArtifactContent(t.Context(), "acme", "e", "a.txt")
		for _, err := range []error{revision, component, artifact} {
			if public := sallyport.Public(err); public == nil || public.Code != sallyport.CodeStoreUnavailable || !strings.Contains(public.Message, "damaged") {
				t.Errorf("%s: got %v, want STORE_UNAVAILABLE and damaged", name, err)
			}
		}
		if content != nil {
			t.Errorf("%s: damaged content was returned", name)
		}
	}
}

// What is changed in the database no longer has the hash that was stored.
func TestTamperedEntry(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"detail":  `UPDATE audit_entries SET detail = '{"n":2}' WHERE sequence = 2`,
		"actor":   `UPDATE audit_entries SET actor = 'mallory' WHERE sequence = 2`,
		"time":    `UPDATE audit_entries SET at = at + 1 WHERE sequence = 2`,
		"removed": `DELETE FROM audit_entries WHERE sequence = 2`,
	} {
		path := filepath.Join(t.TempDir(), "sallyport.db")
		s := open(t, path)
		for range 3 {
			if _, err := s.AppendEntry(t.Context(), "acme", sallyport.Entry{At: time.Now(), Action: sallyport.ActionKeyCreate, Detail: json.RawMessage(`{"n":1}`)}); err != nil {
				t.Fatal(err)
			}
		}
		rawExec(t, path, change)
		whole, previous := true, sallyport.Entry{}
		entries, err := s.Entries(t.Context(), "acme", audit.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			hash, err := canonical.EntryHash(e)
			whole = whole && err == nil && hash == e.Hash && e.PreviousHash == previous.Hash && e.Sequence == previous.Sequence+1
			previous = e
		}
		if whole {
			t.Errorf("%s: the chain still looks whole", name)
		}
	}
}
