//go:build amd64 || arm64

package bubblewrap

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport"
)

// lockDir holds one lock per uid, for the whole host, whatever state folder a process uses.
const lockDir = "/run/sallyport"

// uidPool leases uids to runs. A uid serves one run at a time and is handed out again only after the last process that
// had it is gone: runs are told apart by it in the kernel's process counts, keyrings and files.
type uidPool struct {
	first, count int

	mu   sync.Mutex
	free []int
	// held are the locks of the uids that this process has claimed; they are kept until it ends.
	held map[int]*os.File
	next int // where to go on claiming
}

func newUIDPool(first, count int) (*uidPool, error) {
	for _, dir := range []string{lockDir, lockDir + "/uids"} {
		if err := makePrivateDir(dir, 0o755); err != nil {
			return nil, err
		}
	}
	return &uidPool{first: first, count: count, held: map[int]*os.File{}}, nil
}

// lease returns a uid that no living process of this host has.
func (p *uidPool) lease() (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		uid := p.free[n-1]
		p.free = p.free[:n-1]
		return uid, nil
	}
	living, err := p.living()
	if err != nil {
		return -1, err
	}
	for range p.count {
		uid := p.first + p.next
		p.next = (p.next + 1) % p.count
		if p.held[uid] != nil || living[uid] || hasAccount(uid) {
			continue
		}
		lock, err := lockFile(fmt.Sprintf("%s/uids/%d", lockDir, uid))
		if errors.Is(err, unix.EWOULDBLOCK) {
			continue // another process has it
		}
		if err != nil {
			return -1, err
		}
		p.held[uid] = lock
		return uid, nil
	}
	return -1, sallyport.Errorf("bubblewrap.uid", sallyport.CodeSlotsExhausted, "every uid for runs is in use on this host: wait for a run to end, or give the executor a larger range (FirstUID, UIDCount)")
}

// release gives a uid back. The caller has seen its last process end; otherwise it must keep the uid.
func (p *uidPool) release(uid int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[uid] != nil { // anything else was never leased
		p.free = append(p.free, uid)
	}
}

// owns reports whether uid is one that this process has claimed.
func (p *uidPool) owns(uid int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held[uid] != nil
}

func (p *uidPool) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, lock := range p.held {
		errs = append(errs, lock.Close())
	}
	clear(p.held)
	p.free = nil
	return errors.Join(errs...)
}

// lockFile opens path and locks it exclusively; EWOULDBLOCK when another open file has the lock.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func hasAccount(uid int) bool {
	_, err := user.LookupId(strconv.Itoa(uid))
	return err == nil
}

// living are the uids of the range that own a process now. A zombie can do nothing any more, and how long it stays is up
// to the init of the host.
func (p *uidPool) living() (map[int]bool, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	living := map[int]bool{}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		status, err := os.ReadFile("/proc/" + e.Name() + "/status")
		if err != nil {
			continue // it has ended
		}
		uids, dead := readStatus(string(status))
		for _, uid := range uids {
			if !dead && uid >= p.first && uid < p.first+p.count {
				living[uid] = true
			}
		}
	}
	return living, nil
}

// readStatus takes from /proc/PID/status all uids of a process, and whether it is over. A process whose first thread ended
// looks like a zombie while its other threads go on, which a script can bring about.
func readStatus(status string) (uids []int, dead bool) {
	zombie, threads := false, 0
	for line := range strings.Lines(status) { // the name is first, with its line ends escaped
		name, value, _ := strings.Cut(line, ":")
		words := strings.Fields(value)
		switch name {
		case "State":
			zombie = len(words) > 0 && (words[0] == "Z" || words[0] == "X")
		case "Threads":
			if len(words) > 0 {
				threads, _ = strconv.Atoi(words[0])
			}
		case "Uid": // real, effective, saved, of files
			for _, word := range words {
				if uid, err := strconv.Atoi(word); err == nil {
					uids = append(uids, uid)
				}
			}
		}
	}
	return uids, zombie && threads <= 1
}

// makePrivateDir makes a folder that only we can write to, or checks that an existing one is such. It follows no link: in
// a shared parent somebody else could have put one.
func makePrivateDir(dir string, mode os.FileMode) error {
	err := os.Mkdir(dir, mode)
	if err == nil {
		err = os.Chmod(dir, mode) // whatever the umask is
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(st.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s is not a folder that only this user can write to", dir)
	}
	return nil
}
