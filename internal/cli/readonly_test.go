package cli_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sallyport-dev/sallyport"
)

// ordinary is a uid without an account, for what root would be allowed anyway.
const ordinary = 54321

// runAs runs the binary as an ordinary user and returns its exit code and the envelope it printed.
func runAs(t *testing.T, dir, line string) (int, sallyport.Envelope[json.RawMessage]) {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(binary, "sallyport"), strings.Fields(line)...)
	command.Env = []string{
		"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "SALLYPORT_DATA=" + filepath.Join(dir, "data"), "SALLYPORT_ISOLATION=degrade",
	}
	command.Dir = dir
	if os.Geteuid() == 0 {
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinary, Gid: ordinary}}
	}
	out, err := command.Output()
	exit, failed := errors.AsType[*exec.ExitError](err)
	if err != nil && !failed {
		t.Fatalf("%s: %v", line, err)
	}
	var envelope sallyport.Envelope[json.RawMessage]
	if err := json.Unmarshal(out, &envelope); err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	if failed {
		return exit.ExitCode(), envelope
	}
	return 0, envelope
}

// A data folder that cannot be written is refused with a sentence, is left as it is, and serves again when it can be.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		file string // inside the data folder; empty is the folder itself
		mode os.FileMode
	}{
		"database":   {"sallyport.db", 0o400},
		"folder":     {"", 0o500},
		"unreadable": {"sallyport.db", 0},
		"closed":     {"", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := home(t)
			writeSkill(t, filepath.Join(dir, "greeter"))
			own(t, dir)
			if exit, envelope := runAs(t, dir, "import greeter --publish --json"); exit != 0 {
				t.Fatalf("import: exit %d, %+v", exit, envelope.Error)
			}
			path := filepath.Join(dir, "data", test.file)
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, test.mode); err != nil {
				t.Fatal(err)
			}
			for _, line := range []string{"skill list --json", "import greeter --json", "serve --listen 127.0.0.1:0 --json"} {
				exit, envelope := runAs(t, dir, line)
				if exit != 17 || envelope.Error == nil || envelope.Error.Code != sallyport.CodeStoreUnavailable || envelope.Data != nil {
					t.Errorf("%s: got exit %d and %+v, want 17 and STORE_UNAVAILABLE", line, exit, envelope.Error)
				}
			}
			if err := os.Chmod(path, info.Mode().Perm()); err != nil {
				t.Fatal(err)
			}
			if exit, envelope := runAs(t, dir, "skill show greeter --json"); exit != 0 {
				t.Errorf("afterwards: exit %d, %+v", exit, envelope.Error)
			}
		})
	}
}

// home is a folder that the ordinary user can reach: a test's own is below one that only root can enter.
func home(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sallyport-home-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// own gives a tree to the ordinary user.
func own(t *testing.T, dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	err := filepath.Walk(dir, func(path string, _ os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, ordinary, ordinary)
	})
	if err != nil {
		t.Fatal(err)
	}
}
