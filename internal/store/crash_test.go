package store_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/canonical"
	"github.com/sallyport-dev/sallyport/internal/store"
	"github.com/sallyport-dev/sallyport/registry"
)

// The test binary plays the children, chosen by this variable.
const childVariable = "SALLYPORT_STORE_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childVariable) {
	case "":
		goleak.VerifyTestMain(m)
	case "writer":
		fmt.Fprintln(os.Stderr, childWriter(os.Args[1], os.Args[2]))
		os.Exit(1)
	case "full disk":
		os.Exit(childFullDisk(os.Args[1]))
	default:
		os.Exit(3)
	}
}

func child(tb testing.TB, role string, args ...string) *exec.Cmd {
	tb.Helper()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.CommandContext(tb.Context(), self, args...)
	cmd.Env = append(os.Environ(), childVariable+"="+role)
	cmd.Stderr = os.Stderr
	return cmd
}

// childWriter writes until it is killed and says on standard output what was acknowledged.
func childWriter(path, round string) error {
	s, err := store.Open(context.Background(), store.Config{Path: path})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	say := func(words ...any) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = fmt.Fprintln(os.Stdout, words...)
	}
	failed := make(chan error)
	for w := range 4 {
		go func() { failed <- writeWithoutEnd(s, fmt.Sprintf("%s-%d", round, w), say) }()
	}
	return <-failed
}

func writeWithoutEnd(s *store.Store, name string, say func(words ...any)) error {
	ctx := context.Background()
	for n := 0; ; n++ {
		id := fmt.Sprintf("s%s-%d", name, n)
		entry, err := s.AppendEntry(ctx, "acme", sallyport.Entry{At: time.Now(), Action: sallyport.ActionKeyCreate, Entity: id})
		if err != nil {
			return err
		}
		say("entry", entry.Sequence, entry.Hash)

		e := sallyport.Execution{ID: sallyport.ExecutionID(id), Status: sallyport.StatusQueued, CreatedAt: time.Now()}
		if err := s.Open(ctx, "acme", e, sallyport.Entry{At: time.Now(), Action: sallyport.ActionScriptRun}); err != nil {
			return err
		}
		say("opened", id)
		e.Status, e.Stdout = sallyport.StatusSuccess, strings.Repeat(id, 500)
		if err := s.Close(ctx, "acme", e, nil, sallyport.Entry{At: time.Now(), Action: sallyport.ActionScriptFinished}); err != nil {
			return err
		}
		say("closed", id)

		content := strings.Repeat(id, 2000)
		one := sallyport.Component{
			ID: "c", Path: "SKILL.md", Kind: sallyport.KindDocument, Size: int64(len(content)), SHA256: sallyport.DigestOf([]byte(content)).Hex(), Content: []byte(content),
		}
		digest, err := canonical.RevisionDigest([]sallyport.Component{one})
		if err != nil {
			return err
		}
		if _, _, err := s.SaveRevision(ctx, "acme", registry.RevisionSave{
			Create: true, Instructions: content,
			Skill:    sallyport.Skill{ID: sallyport.SkillID(id), TeamID: "default", Slug: id},
			Revision: sallyport.Revision{ID: sallyport.RevisionID(id), Digest: digest, Components: []sallyport.Component{one}},
		}); err != nil {
			return err
		}
		say("saved", id, digest)
	}
}

// A server that is killed in the middle of writing loses nothing that it acknowledged, again and again.
func TestKill(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sallyport.db")
	var acknowledged []string
	// On a slow machine a round acknowledges few writes: then there are more rounds.
	for round := 0; round < 12 || len(acknowledged) < 100 && round < 60; round++ {
		acknowledged = append(acknowledged, killed(t, path, round)...)
	}
	if len(acknowledged) < 100 {
		t.Fatalf("only %d writes were acknowledged: the test proves nothing", len(acknowledged))
	}
	s := open(t, path)
	verifyAcknowledged(t, s, acknowledged)
	if _, err := s.AppendEntry(t.Context(), "acme", sallyport.Entry{Action: sallyport.ActionKeyCreate}); err != nil {
		t.Errorf("a write after all: %v", err)
	}
}

// killed runs a writer, kills it at some moment after its first acknowledgement, and returns what it acknowledged.
func killed(t *testing.T, path string, round int) []string {
	t.Helper()
	cmd := child(t, "writer", path, strconv.Itoa(round))
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var lines []string
	reader := bufio.NewReader(output)
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			break // a line that was cut off acknowledged nothing
		}
		if len(lines) == 0 {
			time.AfterFunc(time.Duration(5+rand.IntN(80))*time.Millisecond, func() { _ = cmd.Process.Kill() })
		}
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	err = cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the writer was not killed but ended by itself: %v", err)
	}
	return lines
}

func verifyAcknowledged(t *testing.T, s *store.Store, acknowledged []string) {
	t.Helper()
	var entries []sallyport.Entry
	runs, endings := map[sallyport.ExecutionID]int{}, map[sallyport.ExecutionID]int{}
	if err := s.EachEntry(t.Context(), "acme", func(e sallyport.Entry) error {
		previous := sallyport.Entry{}
		if len(entries) > 0 {
			previous = entries[len(entries)-1]
		}
		hash, err := canonical.EntryHash(e)
		if err != nil || hash != e.Hash || e.PreviousHash != previous.Hash || e.Sequence != previous.Sequence+1 {
			return fmt.Errorf("the chain breaks at entry %d: %w", e.Sequence, err)
		}
		entries = append(entries, e)
		switch e.Action { //nolint:exhaustive // only these two are counted
		case sallyport.ActionScriptRun:
			runs[e.ExecutionID]++
		case sallyport.ActionScriptFinished:
			endings[e.ExecutionID]++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, line := range acknowledged {
		words := strings.Fields(line)
		switch words[0] {
		case "entry":
			var sequence int
			if _, err := fmt.Sscan(words[1], &sequence); err != nil || sequence > len(entries) || string(entries[sequence-1].Hash) != words[2] {
				t.Errorf("%s: lost", line)
			}
		case "opened", "closed":
			id := sallyport.ExecutionID(words[1])
			e, err := s.Execution(t.Context(), "acme", id)
			closed := err == nil && e.Status == sallyport.StatusSuccess && e.Stdout == strings.Repeat(words[1], 500)
			if err != nil || words[0] == "closed" && !closed {
				t.Errorf("%s: got %v, %v", line, e.Status, err)
			}
			// A record and its entries live and die together.
			if runs[id] != 1 || closed != (endings[id] == 1) {
				t.Errorf("%s: %d opening and %d closing entries", line, runs[id], endings[id])
			}
		case "saved":
			revision, err := s.RevisionContent(t.Context(), "acme", sallyport.SkillID(words[1]), sallyport.RevisionID(words[1]))
			if err != nil {
				t.Errorf("%s: %v", line, err)
				continue
			}
			if digest, err := canonical.RevisionDigest(revision.Components); err != nil || string(digest) != words[2] {
				t.Errorf("%s: got %s, %v", line, digest, err)
			}
		default:
			t.Errorf("unknown line %q", line)
		}
	}
}

// On a disk without room a write gives an error and writes nothing; with room again, writes work again.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sallyport.db")
	output, err := child(t, "full disk", path).Output()
	if err != nil {
		t.Fatalf("the child: %v", err)
	}
	var acknowledged int64
	if _, err := fmt.Sscan(string(output), &acknowledged); err != nil {
		t.Fatalf("the child said %q: %v", output, err)
	}
	s := open(t, path)
	if count, _, err := s.Head(t.Context(), "acme"); err != nil || count != acknowledged {
		t.Errorf("got %d entries, %v; want the %d that were acknowledged", count, err, acknowledged)
	}
	verifyAcknowledged(t, s, nil)
}

func childFullDisk(path string) int {
	acknowledged, err := fillDisk(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_, _ = fmt.Fprintln(os.Stdout, acknowledged)
	return 0
}

// fillDisk limits how large a file of this process may grow, which a database cannot tell from a disk without room. It
// writes until writes failed three times, and once more without the limit.
func fillDisk(path string) (acknowledged int64, err error) {
	ctx := context.Background()
	s, err := store.Open(ctx, store.Config{Path: path})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Shutdown()) }()
	signal.Ignore(syscall.SIGXFSZ)
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		return 0, err
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 400_000, Max: before.Max}); err != nil {
		return 0, err
	}
	entry := sallyport.Entry{Action: sallyport.ActionKeyCreate, Entity: strings.Repeat("x", 10_000)}
	for failed := 0; failed < 3; {
		_, err := s.AppendEntry(ctx, "acme", entry)
		if err == nil {
			if acknowledged++; acknowledged > 10_000 {
				return 0, errors.New("the limit limits nothing")
			}
			continue
		}
		failed++
		if public := sallyport.Public(err); public.Code != sallyport.CodeAuditUnavailable || !strings.Contains(public.Message, "disk") {
			return 0, fmt.Errorf("without room: got %w, want AUDIT_UNAVAILABLE and the disk", err)
		}
		if count, _, err := s.Head(ctx, "acme"); err != nil || count != acknowledged {
			return 0, fmt.Errorf("without room: reading gives %d entries, %w; want %d", count, err, acknowledged)
		}
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		return 0, err
	}
	if _, err := s.AppendEntry(ctx, "acme", entry); err != nil {
		return 0, fmt.Errorf("with room again: %w", err)
	}
	return acknowledged + 1, nil
}
