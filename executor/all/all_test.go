package all_test

import (
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/all"
	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
)

// A kind that is not on the list cannot be configured.
func TestEveryFolderIsListed(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	var folders, names []string
	for _, e := range entries {
		if e.IsDir() && e.Name() != "all" && e.Name() != "executortest" {
			folders = append(folders, e.Name())
		}
	}
	for _, k := range all.Kinds() {
		names = append(names, k.Name)
	}
	slices.Sort(names)
	if diff := cmp.Diff(folders, names); diff != "" {
		t.Errorf("folders and list differ (-folders +list):\n%s", diff)
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	cfg := all.Config{Bubblewrap: bubblewrap.Config{Program: "/nonexistent/bwrap", StateDir: t.TempDir() + "/state"}}
	for _, name := range []string{"", "bubblewrap"} {
		e, err := all.New(name, cfg)
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		if e.Kind() != "bubblewrap" {
			t.Errorf("%q: got the kind %s", name, e.Kind())
		}
	}
	if e, err := all.New("bwrap", cfg); sallyport.CodeOf(err) != sallyport.CodeInvalidArgument || e != nil {
		t.Errorf("an unknown kind: got %v, %v", e, err)
	}
}

// A constructor that fails gives no executor, not even a nil one inside an interface.
func TestNewFails(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bubblewrap", "container", "remote", "unsafelocal"} {
		// The zero values of the others refuse by themselves: no engine, no runner, no acceptance.
		e, err := all.New(name, all.Config{Bubblewrap: bubblewrap.Config{StateDir: "relative"}})
		if sallyport.CodeOf(err) != sallyport.CodeInvalidArgument || e != nil {
			t.Errorf("%s: got %v, %v", name, e, err)
		}
	}
}
