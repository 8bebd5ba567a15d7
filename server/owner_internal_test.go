package server

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sallyport-dev/sallyport"
)

// Whoever can write to the folder can replace the database, the key of the trail or the socket that the command line trusts.
func TestOwnRefusesAFolderThatOthersWriteTo(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		mode     os.FileMode
		occupied bool
		want     os.FileMode // 0: refused
	}{
		"its owner's":                  {0o700, true, 0o700},
		"others may look":              {0o755, true, 0o755},
		"an empty one is made private": {0o777, false, 0o700},
		"others may write":             {0o757, true, 0},
		"the group may write":          {0o770, true, 0},
		"sticky, like /tmp":            {0o777 | os.ModeSticky, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if test.occupied {
				if err := os.WriteFile(filepath.Join(dir, "theirs"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(dir, test.mode); err != nil {
				t.Fatal(err)
			}
			owner, err := own(dir)
			if test.want == 0 {
				if sallyport.CodeOf(err) != sallyport.CodeStoreUnavailable {
					t.Errorf("got %v, want STORE_UNAVAILABLE", err)
				}
				if err == nil {
					_ = owner.close()
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := owner.close(); err != nil {
				t.Error(err)
			}
			info, err := os.Stat(dir)
			if err != nil || info.Mode().Perm() != test.want {
				t.Errorf("the folder has mode %v (%v), want %v", info.Mode(), err, test.want)
			}
		})
	}
}
