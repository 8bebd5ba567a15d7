//go:build linux && (amd64 || arm64)

package bubblewrap

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// A pool hands out each uid of its range once, and never anything else: not after it was exhausted, and not when somebody
// gives back what was not leased.
func TestUIDPool(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Fatal("uids are leased as root only; start this test as root")
	}
	const first, count = 61172, 3
	p, err := newUIDPool(first, count)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.close(); err != nil {
			t.Error(err)
		}
	}()
	leased := map[int]bool{}
	for range count {
		uid, err := p.lease()
		if err != nil {
			t.Fatal(err)
		}
		if uid < first || uid >= first+count || leased[uid] || !p.owns(uid) {
			t.Fatalf("leased %d, before it %v", uid, leased)
		}
		leased[uid] = true
	}
	for range 2 {
		uid, err := p.lease()
		if sallyport.CodeOf(err) != sallyport.CodeSlotsExhausted || uid != -1 {
			t.Fatalf("an exhausted pool: got %d, %v", uid, err)
		}
		for _, never := range []int{0, -1, uid, 1000, first - 1, first + count} {
			p.release(never)
			if p.owns(never) {
				t.Errorf("the pool owns %d", never)
			}
		}
	}
	p.release(first + 1)
	if uid, err := p.lease(); err != nil || uid != first+1 {
		t.Errorf("after a release: got %d, %v", uid, err)
	}

	other, err := newUIDPool(first, count)
	if err != nil {
		t.Fatal(err)
	}
	if uid, err := other.lease(); sallyport.CodeOf(err) != sallyport.CodeSlotsExhausted {
		t.Errorf("a second process got %d, %v", uid, err)
	}
}

// A process whose first thread ended says that it is a zombie, and goes on.
func TestLivingSeesAHeadlessProcess(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Fatal("uids are leased as root only; start this test as root")
	}
	const uid = 61176
	process := exec.CommandContext(t.Context(), "/usr/bin/python3", "-c",
		"import ctypes, threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\nctypes.CDLL(None).pthread_exit(None)")
	process.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = process.Process.Kill(), process.Wait() }()

	p := &uidPool{first: uid, count: 1}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if living, err := p.living(); err != nil || !living[uid] {
			t.Fatalf("got %v, %v", living, err)
		}
		status, err := os.ReadFile("/proc/" + strconv.Itoa(process.Process.Pid) + "/status")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(status), "Z (zombie)") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("its first thread did not end")
		}
	}
	if living, err := p.living(); err != nil || !living[uid] {
		t.Errorf("without its first thread: got %v, %v", living, err)
	}
}

func TestReadStatus(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status string
		uids   []int
		dead   bool
	}{
		"running":                   {"Name:\ta\nState:\tR (running)\nUid:\t1\t2\t3\t4\nThreads:\t1\n", []int{1, 2, 3, 4}, false},
		"a zombie":                  {"State:\tZ (zombie)\nUid:\t1\t1\t1\t1\nThreads:\t1\n", []int{1, 1, 1, 1}, true},
		"its first thread ended":    {"State:\tZ (zombie)\nUid:\t1\t1\t1\t1\nThreads:\t2\n", []int{1, 1, 1, 1}, false},
		"a name that looks like it": {"Name:\tx\\nState:\tZ\nState:\tS (sleeping)\nUid:\t1\t1\t1\t1\n", []int{1, 1, 1, 1}, false},
		"cut off":                   {"Uid:\t7", []int{7}, false},
	} {
		if uids, dead := readStatus(test.status); !slices.Equal(uids, test.uids) || dead != test.dead {
			t.Errorf("%s: got %v, %t", name, uids, dead)
		}
	}
}
