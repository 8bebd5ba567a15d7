package audit_test

import (
	"bytes"
	"crypto/ed25519"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/internal/store"
)

// era is a real trail whose clock a test moves.
type era struct {
	t       *testing.T
	file    string
	archive string
	lines   *log
	store   *store.Store
	service *audit.Service

	mu  sync.Mutex
	now time.Time
}

func newEra(t *testing.T) *era {
	t.Helper()
	e := &era{
		t: t, file: filepath.Join(t.TempDir(), "sallyport.db"), archive: t.TempDir(), lines: &log{},
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	e.open()
	t.Cleanup(func() { _ = e.store.Shutdown() })
	return e
}

func (e *era) open() {
	e.t.Helper()
	s, err := store.Open(e.t.Context(), store.Config{Path: e.file})
	if err != nil {
		e.t.Fatal(err)
	}
	e.store = s
	e.service = audit.New(audit.Config{Store: s, Key: newKey(1), CheckpointLog: e.lines, Archive: e.archive, Now: func() time.Time {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.now
	}})
}

// day appends n entries and a checkpoint, and lets a day pass.
func (e *era) day(n int) {
	e.t.Helper()
	for range n {
		entry := sallyport.Entry{TenantID: tenant, Actor: "p", Action: sallyport.ActionScriptDenied, Entity: "csv/scripts/x.py"}
		if err := e.service.Append(e.t.Context(), entry); err != nil {
			e.t.Fatal(err)
		}
	}
	e.mark()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.now = e.now.AddDate(0, 0, 1)
}

func (e *era) mark() {
	e.t.Helper()
	count, head, err := e.store.Head(e.t.Context(), tenant)
	if err != nil {
		e.t.Fatal(err)
	}
	checkpoint, err := audit.Sign(newKey(1), tenant, count, head, e.now)
	if err == nil {
		err = e.store.AddCheckpoint(e.t.Context(), tenant, checkpoint)
	}
	if err != nil {
		e.t.Fatal(err)
	}
}

// prune removes what is older than so many days.
func (e *era) prune(days int) []audit.Pruning {
	e.t.Helper()
	done, err := e.service.Prune(e.t.Context(), e.now.AddDate(0, 0, -days))
	if err != nil {
		e.t.Fatal(err)
	}
	return done
}

func (e *era) verify(outside ...audit.Checkpoint) audit.Verdict {
	e.t.Helper()
	verdict, err := e.service.Verify(e.t.Context(), auditor(), outside)
	if err != nil {
		e.t.Fatal(err)
	}
	return verdict
}

func (e *era) export() []byte {
	e.t.Helper()
	var out bytes.Buffer
	if err := e.service.Export(e.t.Context(), auditor(), &out); err != nil {
		e.t.Fatal(err)
	}
	return out.Bytes()
}

func (e *era) exported(data []byte, evidence audit.Evidence) audit.Verdict {
	e.t.Helper()
	verdict, err := audit.VerifyExport(bytes.NewReader(data), evidence)
	if err != nil {
		e.t.Fatal(err)
	}
	return verdict
}

func (e *era) outside() []audit.Checkpoint {
	e.t.Helper()
	list, err := audit.ReadCheckpoints(bytes.NewReader(e.lines.buf.Bytes()))
	if err != nil {
		e.t.Fatal(err)
	}
	return list
}

// Old entries go up to a signed checkpoint, and the trail stays provable: live, exported, and joined with what was kept.
func TestPrune(t *testing.T) {
	t.Parallel()
	e := newEra(t)
	e.day(3)
	e.day(2)
	e.day(4)
	whole := e.export()
	if done := e.prune(30); len(done) != 0 {
		t.Errorf("young entries went: %+v", done)
	}
	done := e.prune(2) // the first day is older, the second is not
	if len(done) != 1 || done[0] != (audit.Pruning{TenantID: tenant, Through: 3, Removed: 3}) {
		t.Fatalf("got %+v", done)
	}
	verdict := e.verify()
	if verdict.Result != audit.ResultValid || verdict.PrunedThrough != 3 || verdict.Checked != 7 || !strings.Contains(verdict.Message, "pruned through 3, proven by checkpoint") {
		t.Errorf("got %+v", verdict)
	}
	entries, err := e.service.List(t.Context(), auditor(), audit.Filter{Action: sallyport.ActionAuditPrune})
	if err != nil || len(entries) != 1 || !strings.Contains(string(entries[0].Detail), `"through":3`) || entries[0].Sequence != 10 {
		t.Errorf("the trail says %+v, %v", entries, err)
	}
	// An export says itself what is missing at its beginning.
	left := e.export()
	for name, evidence := range map[string]audit.Evidence{
		"alone": {}, "with the key": {PublicKey: publicKey(1)}, "with checkpoints": {Checkpoints: e.outside()},
	} {
		got := e.exported(left, evidence)
		if got.Result != audit.ResultValid || got.PrunedThrough != 3 || strings.Contains(got.Message, "names: name the key") != (name == "alone") {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	// What was kept in the archive is whole too, and joined with the export it is the whole trail.
	kept, err := os.ReadFile(filepath.Join(e.archive, "audit-acme-1-3.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if got := e.exported(kept, audit.Evidence{}); got.Result != audit.ResultValid || got.Checked != 3 {
		t.Errorf("the archive: %+v", got)
	}
	if got := e.exported(append(bytes.Clone(kept), left...), audit.Evidence{PublicKey: publicKey(1)}); got.Result != audit.ResultValid || got.Checked != 10 || got.PrunedThrough != 0 {
		t.Errorf("joined: %+v", got)
	}
	if !bytes.HasPrefix(whole, kept) {
		t.Error("the archive is not what the export was")
	}
	// Once more, and after a restart.
	e.day(1)
	if done := e.prune(2); len(done) != 1 || done[0].Through != 5 || done[0].Removed != 2 {
		t.Errorf("got %+v", done)
	}
	if err := e.store.Shutdown(); err != nil {
		t.Fatal(err)
	}
	e.open()
	if got := e.verify(e.outside()...); got.Result != audit.ResultValid || got.PrunedThrough != 5 {
		t.Errorf("got %+v", got)
	}
	if got := e.exported(e.export(), audit.Evidence{Checkpoints: e.outside()}); got.Result != audit.ResultValid || got.PrunedThrough != 5 {
		t.Errorf("exported again: %+v", got)
	}
}

// Whoever removes or changes entries around a removal is found out, and so is a removal that nobody signed.
func TestTamperedPrune(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		statement string
		result    string
		sequence  int64
	}{
		"untouched":                {`SELECT 1`, audit.ResultValid, 0},
		"one more removed":         {`DELETE FROM audit_entries WHERE sequence = 4`, audit.ResultGap, 4},
		"the rest moved up":        {`DELETE FROM audit_entries WHERE sequence = 4; UPDATE audit_entries SET sequence = sequence - 1`, audit.ResultBroken, 4},
		"the statement removed":    {`DELETE FROM audit_checkpoints WHERE pruned = 1`, audit.ResultGap, 1},
		"no statement any more":    {`UPDATE audit_checkpoints SET pruned = 0`, audit.ResultGap, 1},
		"a statement moved on":     {`DELETE FROM audit_entries WHERE sequence = 4; UPDATE audit_checkpoints SET entries = 4 WHERE pruned = 1`, audit.ResultGap, 1},
		"a checkpoint made one":    {`DELETE FROM audit_entries WHERE sequence <= 5; UPDATE audit_checkpoints SET pruned = 1 WHERE entries = 5`, audit.ResultGap, 4},
		"another head":             {`UPDATE audit_checkpoints SET head = (SELECT hash FROM audit_entries WHERE sequence = 5) WHERE pruned = 1`, audit.ResultGap, 1},
		"everything gone":          {`DELETE FROM audit_entries`, audit.ResultTailMissing, 1},
		"the record of it cut off": {`DELETE FROM audit_entries WHERE sequence > 9`, audit.ResultTailMissing, 10},
		"an entry edited":          {`UPDATE audit_entries SET actor = 'q' WHERE sequence = 6`, audit.ResultBroken, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEra(t)
			e.day(3)
			e.day(2)
			e.day(4)
			if done := e.prune(2); len(done) != 1 {
				t.Fatalf("got %+v", done)
			}
			e.mark() // over the record of the removal
			if err := e.store.Shutdown(); err != nil {
				t.Fatal(err)
			}
			tamper(t, e.file, test.statement)
			e.open()
			if got := e.verify(); got.Result != test.result || got.Sequence != test.sequence {
				t.Errorf("got %+v, want %s at %d", got, test.result, test.sequence)
			}
		})
	}
}

// An export whose first line was changed, or left out, is not whole.
func TestTamperedPruneInAnExport(t *testing.T) {
	t.Parallel()
	e := newEra(t)
	e.day(3)
	e.day(2)
	e.day(4)
	e.prune(2)
	lines := bytes.SplitAfter(e.export(), []byte("\n"))
	join := func(lines ...[]byte) []byte { return bytes.Join(lines, nil) }
	for name, test := range map[string]struct {
		data   []byte
		key    byte
		result string
	}{
		"as it is":              {join(lines...), 1, audit.ResultValid},
		"another key":           {join(lines...), 2, audit.ResultBroken},
		"without the statement": {join(lines[1:]...), 1, audit.ResultGap},
		"without an entry":      {join(append([][]byte{lines[0]}, lines[2:]...)...), 1, audit.ResultGap},
		"a changed count":       {bytes.Replace(join(lines...), []byte(`"count":3`), []byte(`"count":4`), 1), 1, audit.ResultBroken},
		"not pruned":            {bytes.Replace(join(lines...), []byte(`,"pruned":true`), nil, 1), 1, audit.ResultBroken},
		"further down":          {join(lines[1], lines[0]), 1, audit.ResultGap},
		"twice":                 {join(append([][]byte{lines[0]}, lines...)...), 1, audit.ResultValid},
	} {
		if got := e.exported(test.data, audit.Evidence{PublicKey: publicKey(test.key)}); got.Result != test.result {
			t.Errorf("%s: got %+v, want %s", name, got, test.result)
		}
	}
}

// A trail that is not whole is left as it is, and so is one whose old entries cannot be kept.
func TestPruneRefuses(t *testing.T) {
	t.Parallel()
	e := newEra(t)
	e.day(3)
	e.day(2)
	e.archive = filepath.Join(t.TempDir(), "not there")
	if err := e.store.Shutdown(); err != nil {
		t.Fatal(err)
	}
	e.open()
	if done, err := e.service.Prune(t.Context(), e.now); err == nil || len(done) != 0 {
		t.Errorf("without a folder: %+v, %v", done, err)
	}
	e.archive = t.TempDir()
	if err := e.store.Shutdown(); err != nil {
		t.Fatal(err)
	}
	tamper(t, e.file, `UPDATE audit_entries SET actor = 'mallory' WHERE sequence = 2`)
	e.open()
	if done, err := e.service.Prune(t.Context(), e.now); err == nil || len(done) != 0 || !strings.Contains(err.Error(), "run audit verify") {
		t.Errorf("a broken trail: %+v, %v", done, err)
	}
	if files, err := os.ReadDir(e.archive); err != nil || len(files) != 0 {
		t.Errorf("a broken trail was kept as if it were whole: %v, %v", files, err)
	}
	if got := e.verify(); got.Result != audit.ResultBroken || got.Sequence != 2 {
		t.Errorf("the evidence is gone: %+v", got)
	}
}

// Verify is right while entries are removed.
func TestVerifyDuringPrune(t *testing.T) {
	t.Parallel()
	e := newEra(t)
	for range 12 {
		e.day(60)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for days := 11; days > 0; days-- {
			if _, err := e.service.Prune(t.Context(), e.now.AddDate(0, 0, -days)); err != nil {
				t.Error(err)
			}
		}
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		// Removals that follow each other without a pause can be told to the caller, and never as a fault of the trail.
		got, err := e.service.Verify(t.Context(), auditor(), nil)
		if sallyport.CodeOf(err) == sallyport.CodeStoreUnavailable {
			continue
		}
		if err != nil || got.Result != audit.ResultValid {
			t.Errorf("got %+v, %v", got, err)
		}
	}
	if got := e.verify(); got.PrunedThrough == 0 {
		t.Errorf("nothing was removed: %+v", got)
	}
}

func publicKey(seed byte) ed25519.PublicKey { return ed25519.PublicKey(newKey(seed)[32:]) }
