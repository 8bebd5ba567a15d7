//go:build amd64 || arm64

package bubblewrap

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// state is the folder of materialised revisions, and the record of this instance.
//
//	revisions/KEY.SIZE   one revision, complete and read-only
//	building/ID-N        revisions in the making, and what is being deleted
//	boot                 the boot in which all of this was written
//	instances/ID         locked by its living owner; lists the control groups that it made
//
// Control groups belong to the host and not to a folder. So the records of root are in /run/sallyport, where every later
// instance finds them, and only an ordinary user's are in the state folder.
type state struct {
	dir      string
	records  string // the folder of instances
	instance string
	lock     *os.File // records/ID
	building counter
	bound    int64 // bytes of all revisions together
}

// openState opens or makes the folder, forgets what an earlier boot left and registers this instance.
func openState(dir string, bound int64) (*state, error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, err
	}
	// 0711: a uid of a run may pass through, and list nothing.
	records := filepath.Join(dir, "instances")
	if os.Geteuid() == 0 {
		if err := makePrivateDir(lockDir, 0o755); err != nil {
			return nil, err
		}
		records = filepath.Join(lockDir, "instances")
	}
	for _, sub := range []string{dir, filepath.Join(dir, "revisions"), filepath.Join(dir, "building"), records} {
		if err := makePrivateDir(sub, 0o711); err != nil {
			return nil, err
		}
	}
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	s := &state{dir: dir, records: records, instance: hex.EncodeToString(id[:]), bound: bound}

	// Locked before it has its name, so that nobody can mistake it for a dead one.
	temporary := filepath.Join(records, "."+s.instance)
	lock, err := lockFile(temporary)
	if err != nil {
		return nil, err
	}
	s.lock = lock
	if err := os.Rename(temporary, s.instanceFile()); err != nil {
		return nil, errors.Join(err, lock.Close(), os.Remove(temporary))
	}
	if err := errors.Join(s.record("state "+dir), s.forgetEarlierBoot()); err != nil {
		return nil, errors.Join(err, s.close(true))
	}
	return s, nil
}

func (s *state) instanceFile() string { return filepath.Join(s.records, s.instance) }

// record notes a control group before it is made.
func (s *state) record(line string) error {
	_, err := s.lock.WriteString(line + "\n")
	return err
}

// forgetEarlierBoot drops every revision that was written before the machine last started: they were renamed into place
// without waiting for the disk, so after a power cut one could be whole in name only.
func (s *state) forgetEarlierBoot() error {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return err
	}
	path := filepath.Join(s.dir, "boot")
	if known, err := os.ReadFile(path); err == nil && string(known) == string(boot) {
		return nil
	}
	entries, err := os.ReadDir(filepath.Join(s.dir, "revisions"))
	if err != nil {
		return err
	}
	for _, e := range entries {
		// One that is in use was made in this boot, by a process that came here before us.
		if err := s.discard(e.Name()); err != nil && !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return err
	}
	err = root.WriteFile("boot", boot, 0o600)
	return errors.Join(err, root.Close())
}

// check reports whether the folder can take another revision: a disk that is full or read-only is found before a run is.
func (s *state) check() error {
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	name := filepath.Join("building", s.instance+"-check")
	err = root.WriteFile(name, make([]byte, 4096), 0o600)
	if removed := root.Remove(name); err == nil {
		err = removed
	}
	return err
}

// sweep removes what dead instances left: their control groups with every process in them, and half-made revisions. It
// returns the ids of the dead.
func (s *state) sweep(deadline time.Time) ([]string, error) {
	entries, err := os.ReadDir(s.records)
	if err != nil {
		return nil, err
	}
	var dead []string
	var errs []error
	alive := map[string]bool{s.instance: true}
	for _, e := range entries {
		path := filepath.Join(s.records, e.Name())
		if e.Name() == s.instance {
			continue
		}
		lock, err := lockFile(path)
		if errors.Is(err, unix.EWOULDBLOCK) {
			alive[strings.TrimPrefix(e.Name(), ".")] = true
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		err = s.sweepInstance(e.Name(), deadline)
		if err == nil {
			dead = append(dead, e.Name())
			err = os.Remove(path)
		}
		errs = append(errs, err, lock.Close())
	}
	return dead, errors.Join(append(errs, s.sweepBuilding(alive))...)
}

// sweepBuilding removes what instances that are not alive were making or deleting in this folder.
func (s *state) sweepBuilding(alive map[string]bool) error {
	entries, err := os.ReadDir(filepath.Join(s.dir, "building"))
	errs := []error{err}
	for _, e := range entries {
		id, _, _ := strings.Cut(e.Name(), "-")
		if !alive[id] && !s.registered(id) {
			errs = append(errs, os.RemoveAll(filepath.Join(s.dir, "building", e.Name())))
		}
	}
	return errors.Join(errs...)
}

// registered reports whether an instance has a record; one that began after the list was read is alive as well.
func (s *state) registered(id string) bool {
	_, err := os.Lstat(filepath.Join(s.records, id))
	return err == nil
}

func (s *state) sweepInstance(id string, deadline time.Time) error {
	data, err := os.ReadFile(filepath.Join(s.records, id))
	if err != nil {
		return err
	}
	var errs []error
	for line := range strings.Lines(string(data)) {
		dir := strings.TrimSpace(line)
		// Whatever the record says, only a control group with this instance's name is killed and removed.
		if filepath.Base(dir) != "sallyport-"+id || (!isCgroupDir(dir, true) && !isCgroupDir(dir, false)) {
			continue
		}
		errs = append(errs, sweepGroup(dir, deadline))
	}
	return errors.Join(errs...)
}

// close ends the registration.
func (s *state) close(clean bool) error {
	if !clean {
		// Something of this instance is still on the host. Its record stays, and the next start on this folder removes both.
		return s.lock.Close()
	}
	err := os.Remove(s.instanceFile())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, s.lock.Close())
}
