package audit_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
)

// The ways to tamper with a trail of six entries that has a stored checkpoint over the first four, and what a live check and
// one of an exported file find, without and with a checkpoint from outside over all six.
func TestVerify(t *testing.T) {
	t.Parallel()
	entries := func(f func([]sallyport.Entry) []sallyport.Entry) func(*memory) {
		return func(m *memory) { m.entries[tenant] = f(m.entries[tenant]) }
	}
	type finding struct {
		result   string
		sequence int64
		tail     string
	}
	for name, test := range map[string]struct {
		tamper func(*memory)
		// live has the stored checkpoint, offline nothing, outside a checkpoint over all six entries.
		live, offline, outside finding
		// exported is what a file with the checkpoint from outside shows where it is not the same as live: the stored
		// checkpoint is not in the file.
		exported *finding
	}{
		"untouched": {
			func(*memory) {},
			finding{"valid", 0, "not_provable"},
			finding{"valid", 0, "not_provable"},
			finding{"valid", 0, "proven"},
			nil,
		},
		"detail edited": {
			entries(func(e []sallyport.Entry) []sallyport.Entry { e[2].Detail = json.RawMessage(`{"n":7}`); return e }),
			finding{"broken", 3, "not_provable"},
			finding{"broken", 3, "not_provable"},
			finding{"broken", 3, "not_provable"},
			nil,
		},
		"actor removed": {
			entries(func(e []sallyport.Entry) []sallyport.Entry { e[0].Actor = ""; return e }),
			finding{"broken", 1, "not_provable"},
			finding{"broken", 1, "not_provable"},
			finding{"broken", 1, "not_provable"},
			nil,
		},
		"hash removed": {
			entries(func(e []sallyport.Entry) []sallyport.Entry { e[1].Hash = ""; return e }),
			finding{"broken", 2, "not_provable"},
			finding{"broken", 2, "not_provable"},
			finding{"broken", 2, "not_provable"},
			nil,
		},
		"detail no longer JSON": {
			entries(func(e []sallyport.Entry) []sallyport.Entry { e[4].Detail = json.RawMessage(`{"n":1,"n":2}`); return e }),
			finding{"broken", 5, "not_provable"},
			finding{"broken", 5, "not_provable"},
			finding{"broken", 5, "not_provable"},
			nil,
		},
		"one deleted": {
			entries(func(e []sallyport.Entry) []sallyport.Entry { return slices.Delete(e, 2, 3) }),
			finding{"gap", 3, "not_provable"},
			finding{"gap", 3, "not_provable"},
			finding{"gap", 3, "not_provable"},
			nil,
		},
		"first deleted": {
			entries(func(e []sallyport.Entry) []sallyport.Entry { return e[1:] }),
			finding{"gap", 1, "not_provable"},
			finding{"gap", 1, "not_provable"},
			finding{"gap", 1, "not_provable"},
			nil,
		},
		"two swapped": {
			entries(func(e []sallyport.Entry) []sallyport.Entry { e[2], e[3] = e[3], e[2]; return e }),
			finding{"gap", 3, "not_provable"},
			finding{"gap", 3, "not_provable"},
			finding{"gap", 3, "not_provable"},
			nil,
		},
		"one doubled": {
			entries(func(e []sallyport.Entry) []sallyport.Entry { return slices.Insert(e, 2, e[1]) }),
			finding{"broken", 3, "not_provable"},
			finding{"broken", 3, "not_provable"},
			finding{"broken", 3, "not_provable"},
			nil,
		},
		"one rewritten with its hash": {
			entries(func(e []sallyport.Entry) []sallyport.Entry {
				e[4].Entity = "csv/other.py"
				last := e[5]
				e = chained(e, 4)
				e[5] = last
				return e
			}),
			finding{"broken", 6, "not_provable"},
			finding{"broken", 6, "not_provable"},
			finding{"broken", 6, "not_provable"},
			nil,
		},
		"tail cut behind the stored checkpoint": {
			entries(func(e []sallyport.Entry) []sallyport.Entry { return e[:5] }),
			finding{"valid", 0, "not_provable"},
			finding{"valid", 0, "not_provable"},
			finding{"tail_missing", 6, "not_provable"},
			nil,
		},
		"tail cut before the stored checkpoint": {
			entries(func(e []sallyport.Entry) []sallyport.Entry { return e[:3] }),
			finding{"tail_missing", 4, "not_provable"},
			finding{"valid", 0, "not_provable"},
			finding{"tail_missing", 4, "not_provable"},
			nil,
		},
		"everything deleted": {
			entries(func([]sallyport.Entry) []sallyport.Entry { return nil }),
			finding{"tail_missing", 1, "not_provable"},
			finding{"valid", 0, "not_provable"},
			finding{"tail_missing", 1, "not_provable"},
			nil,
		},
		"whole chain replaced": {
			entries(func(e []sallyport.Entry) []sallyport.Entry { e[0].Actor = "somebody else"; return chained(e, 0) }),
			finding{"broken", 4, "not_provable"},
			finding{"valid", 0, "not_provable"},
			finding{"broken", 4, "not_provable"},
			&finding{"broken", 6, "not_provable"},
		},
		"chain replaced behind the stored checkpoint": {
			entries(func(e []sallyport.Entry) []sallyport.Entry { e[4].Actor = "somebody else"; return chained(e, 4) }),
			finding{"valid", 0, "not_provable"},
			finding{"valid", 0, "not_provable"},
			finding{"broken", 6, "not_provable"},
			nil,
		},
		"chain and checkpoint replaced": {
			func(m *memory) {
				m.entries[tenant][0].Actor = "somebody else"
				chained(m.entries[tenant], 0)
				forged := m.checkpoints[tenant][0]
				forged.Head = m.entries[tenant][3].Hash
				m.checkpoints[tenant][0] = forged
			},
			finding{"broken", 4, "not_provable"},
			finding{"valid", 0, "not_provable"},
			finding{"broken", 6, "not_provable"},
			nil,
		},
		"chain replaced, checkpoint by another key": {
			func(m *memory) {
				m.entries[tenant][0].Actor = "somebody else"
				chained(m.entries[tenant], 0)
				m.checkpoints[tenant][0], _ = audit.Sign(newKey(9), tenant, 4, m.entries[tenant][3].Hash, m.entries[tenant][3].At)
			},
			finding{"valid", 0, "not_provable"},
			finding{"valid", 0, "not_provable"},
			finding{"broken", 6, "not_provable"},
			nil,
		},
		"entry moved to another tenant": {
			entries(func(e []sallyport.Entry) []sallyport.Entry {
				e[3].TenantID = "rival"
				return chained(e, 3)
			}),
			finding{"broken", 4, "not_provable"},
			finding{"broken", 4, "not_provable"},
			finding{"broken", 4, "not_provable"},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key := newKey(1)
			m, service := filled(t, 6, audit.Config{Key: key})
			m.checkpoints[tenant] = []audit.Checkpoint{signed(t, m, key, 4)}
			outside := []audit.Checkpoint{signed(t, m, key, 6)}
			test.tamper(m)

			check := func(what string, want finding, got audit.Verdict, err error) {
				t.Helper()
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				if have := (finding{got.Result, got.Sequence, got.Tail}); have != want {
					t.Errorf("%s: got %+v (%s), want %+v", what, have, got.Message, want)
				}
			}
			got, err := service.Verify(t.Context(), auditor(), nil)
			check("live", test.live, got, err)
			got, err = service.Verify(t.Context(), auditor(), outside)
			check("live with a checkpoint from outside", test.outside, got, err)

			export := func(evidence audit.Evidence) (audit.Verdict, error) {
				var file bytes.Buffer
				for _, entry := range m.entries[tenant] {
					if !json.Valid(entry.Detail) {
						t.Fatalf("not JSON: %s", entry.Detail)
					}
					if err := json.NewEncoder(&file).Encode(entry); err != nil {
						t.Fatal(err)
					}
				}
				return audit.VerifyExport(&file, evidence)
			}
			got, err = export(audit.Evidence{})
			check("export", test.offline, got, err)
			got, err = export(audit.Evidence{Checkpoints: outside})
			want := test.outside
			if test.exported != nil {
				want = *test.exported
			}
			check("export with a checkpoint from outside", want, got, err)
		})
	}
}

// Whoever cuts the trail and takes the signing key away gets a new key made: what the old one signed must not vanish in silence.
func TestVerifyTellsOfAnotherKey(t *testing.T) {
	t.Parallel()
	m, service := filled(t, 5, audit.Config{Key: newKey(2)})
	m.checkpoints[tenant] = []audit.Checkpoint{signed(t, m, newKey(1), 3), signed(t, m, newKey(1), 5), signed(t, m, newKey(2), 4)}
	m.entries[tenant] = m.entries[tenant][:4]
	got, err := service.Verify(t.Context(), auditor(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.CheckpointCount != 4 || !strings.Contains(got.Message, "2 stored checkpoints are by another key") {
		t.Errorf("got %+v", got)
	}
}

func TestVerifyTail(t *testing.T) {
	t.Parallel()
	key := newKey(1)
	m, service := filled(t, 5, audit.Config{Key: key})
	got, err := service.Verify(t.Context(), auditor(), []audit.Checkpoint{signed(t, m, key, 3), signed(t, m, key, 2)})
	if err != nil {
		t.Fatal(err)
	}
	want := audit.Verdict{
		Result: audit.ResultValid, Checked: 5, Tail: audit.TailPartlyProven, CheckpointCount: 3,
		Message: "all 5 entries are whole and in order; checkpoints kept outside prove the first 3",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verdict (-want +got):\n%s", diff)
	}
}

func TestVerifyRefusesEvidenceThatProvesNothing(t *testing.T) {
	t.Parallel()
	key := newKey(1)
	m, service := filled(t, 3, audit.Config{Key: key})
	good := signed(t, m, key, 3)
	for name, spoil := range map[string]func(*audit.Checkpoint){
		"head changed":      func(c *audit.Checkpoint) { c.Head = m.entries[tenant][1].Hash },
		"count changed":     func(c *audit.Checkpoint) { c.Count = 2 },
		"time changed":      func(c *audit.Checkpoint) { c.At = c.At.AddDate(0, 0, 1) },
		"no signature":      func(c *audit.Checkpoint) { c.Signature = "" },
		"signature not b64": func(c *audit.Checkpoint) { c.Signature = "?" },
		"no key":            func(c *audit.Checkpoint) { c.PublicKey = "" },
		"short key":         func(c *audit.Checkpoint) { c.PublicKey = base64.StdEncoding.EncodeToString([]byte("short")) },
		"another key":       func(c *audit.Checkpoint) { *c = signed(t, m, newKey(2), 3) },
		"count zero":        func(c *audit.Checkpoint) { *c, _ = audit.Sign(key, tenant, 0, "", good.At) },
	} {
		bad := good
		spoil(&bad)
		_, err := service.Verify(t.Context(), auditor(), []audit.Checkpoint{good, bad})
		if code := sallyport.CodeOf(err); code != sallyport.CodeInvalidArgument {
			t.Errorf("%s, live: got code %q, want INVALID_ARGUMENT", name, code)
		}
		var file bytes.Buffer
		if err := service.Export(t.Context(), auditor(), &file); err != nil {
			t.Fatal(err)
		}
		_, err = audit.VerifyExport(&file, audit.Evidence{Checkpoints: []audit.Checkpoint{good, bad}})
		if code := sallyport.CodeOf(err); code != sallyport.CodeInvalidArgument {
			t.Errorf("%s, export: got code %q, want INVALID_ARGUMENT", name, code)
		}
	}
	other := good
	other.TenantID, other.Count = "rival", 99
	got, err := service.Verify(t.Context(), auditor(), []audit.Checkpoint{other, good})
	if err != nil || got.Tail != audit.TailProven {
		t.Errorf("a checkpoint of another tenant: got %+v, %v", got, err)
	}
	_, err = service.Verify(t.Context(), sallyport.Principal{ID: "a", TenantID: tenant}, nil)
	if code := sallyport.CodeOf(err); code != sallyport.CodeAccessDenied {
		t.Errorf("no scope: got code %q, want ACCESS_DENIED", code)
	}
	m.fault = errDisk
	if got, err := service.Verify(t.Context(), auditor(), nil); err == nil {
		t.Errorf("a store that fails gave the verdict %+v", got)
	}
}

func TestVerifyExportOfAFileThatIsNoTrail(t *testing.T) {
	t.Parallel()
	_, service := filled(t, 2, audit.Config{})
	var file bytes.Buffer
	if err := service.Export(t.Context(), auditor(), &file); err != nil {
		t.Fatal(err)
	}
	good := file.String()
	first, second, _ := strings.Cut(good, "\n")
	for name, test := range map[string]struct {
		in       string
		result   string
		sequence int64
	}{
		"whole":              {good, "valid", 0},
		"no last line end":   {strings.TrimSuffix(good, "\n"), "valid", 0},
		"empty":              {"", "valid", 0},
		"blank line":         {first + "\n\n" + second, "broken", 2},
		"text":               {"hello\n" + good, "broken", 1},
		"cut in a line":      {good[:len(good)-20], "broken", 2},
		"field added":        {strings.Replace(good, `{"sequence":2,`, `{"sequence":2,"note":"x",`, 1), "broken", 2},
		"field doubled":      {strings.Replace(good, `{"sequence":2,`, `{"sequence":2,"actor":"x",`, 1), "broken", 2},
		"field in caps":      {strings.Replace(good, `"actor"`, `"Actor"`, 1), "broken", 1},
		"a line without end": {first + "\n" + strings.Repeat("x", 5<<20), "broken", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := audit.VerifyExport(strings.NewReader(test.in), audit.Evidence{})
			if err != nil || got.Result != test.result || got.Sequence != test.sequence {
				t.Errorf("got %+v, %v; want %s at %d", got, err, test.result, test.sequence)
			}
		})
	}
}

func TestExportNeedsItsScope(t *testing.T) {
	t.Parallel()
	_, service := filled(t, 2, audit.Config{})
	var file bytes.Buffer
	err := service.Export(t.Context(), sallyport.Principal{ID: "a", TenantID: tenant}, &file)
	if code := sallyport.CodeOf(err); code != sallyport.CodeAccessDenied || file.Len() != 0 {
		t.Errorf("got code %q and %d bytes", code, file.Len())
	}
}
