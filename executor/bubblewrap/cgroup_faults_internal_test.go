//go:build linux && (amd64 || arm64)

package bubblewrap

import (
	"errors"
	"io/fs"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestTreeFaultsNameNoFolder(t *testing.T) {
	t.Parallel()
	var f treeFaults
	denied := func(path string) error {
		return errors.Join(&fs.PathError{Op: "open", Path: path, Err: unix.EACCES}, errors.New("closed"))
	}
	f.add(tree{controllers: []controller{controlCPU, controlCPUAcct}}, denied("/sys/fs/cgroup/cpu/container-7/tasks"))
	f.add(tree{controllers: []controller{controlMemory}}, denied("/sys/fs/cgroup/memory/container-7/tasks"))
	f.add(tree{v2: true}, errors.New("not delegated"))
	want := []string{"control groups (cpu+cpuacct, memory): permission denied", "control groups (v2): not delegated"}
	if got := f.sentences(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
