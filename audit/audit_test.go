package audit_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
)

func TestAppend(t *testing.T) {
	t.Parallel()
	m := newMemory()
	now := time.Date(2026, 3, 4, 5, 6, 7, 123456789, time.FixedZone("x", 3600))
	service := audit.New(audit.Config{Store: m, Now: func() time.Time { return now }})
	for _, entry := range []sallyport.Entry{
		{TenantID: tenant, Action: sallyport.ActionKeyCreate, Entity: "k", Detail: json.RawMessage(`{"api_key":"spk_x","n":1}`)},
		{TenantID: tenant, Action: sallyport.ActionKeyRevoke, Entity: "k", At: now.Add(time.Hour), Hash: "sha256:made-up", Sequence: 9},
	} {
		if err := service.Append(t.Context(), entry); err != nil {
			t.Fatal(err)
		}
	}
	got := m.entries[tenant]
	want := []sallyport.Entry{
		{
			Sequence: 1, TenantID: tenant, At: now.UTC().Truncate(time.Microsecond), Action: sallyport.ActionKeyCreate,
			Entity: "k", Detail: json.RawMessage(`{"api_key":"***","n":1}`), Hash: got[0].Hash,
		},
		{
			Sequence: 2, TenantID: tenant, At: now.Add(time.Hour).UTC().Truncate(time.Microsecond), Action: sallyport.ActionKeyRevoke,
			Entity: "k", Detail: json.RawMessage(`{}`), PreviousHash: got[0].Hash, Hash: got[1].Hash,
		},
	}
	if diff := cmp.Diff(want, got, bytewise); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func TestAppendRefuses(t *testing.T) {
	t.Parallel()
	ok := sallyport.Entry{TenantID: tenant, Action: sallyport.ActionScriptRun, Entity: "s/x", Detail: json.RawMessage(`{}`)}
	for name, test := range map[string]struct {
		spoil func(*sallyport.Entry, *memory)
		code  sallyport.Code
	}{
		"no tenant":    {func(e *sallyport.Entry, _ *memory) { e.TenantID = "" }, sallyport.CodeInternal},
		"no action":    {func(e *sallyport.Entry, _ *memory) { e.Action = "" }, sallyport.CodeInternal},
		"no entity":    {func(e *sallyport.Entry, _ *memory) { e.Entity = "" }, sallyport.CodeInternal},
		"detail text":  {func(e *sallyport.Entry, _ *memory) { e.Detail = json.RawMessage(`password=x`) }, sallyport.CodeInternal},
		"detail array": {func(e *sallyport.Entry, _ *memory) { e.Detail = json.RawMessage(` [1]`) }, sallyport.CodeInternal},
		"store down":   {func(_ *sallyport.Entry, m *memory) { m.fault = errDisk }, sallyport.CodeAuditUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMemory()
			entry := ok
			test.spoil(&entry, m)
			err := audit.New(audit.Config{Store: m}).Append(t.Context(), entry)
			if code := sallyport.CodeOf(err); code != test.code {
				t.Fatalf("code: got %q (%v), want %q", code, err, test.code)
			}
			if strings.Contains(sallyport.Public(err).Message, "secret-path") || len(m.entries[entry.TenantID]) != 0 {
				t.Errorf("got message %q and %d entries", sallyport.Public(err).Message, len(m.entries[entry.TenantID]))
			}
		})
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		p      sallyport.Principal
		filter audit.Filter
		code   sallyport.Code
		limit  int
	}{
		"default limit": {p: auditor(), limit: 100},
		"largest limit": {p: auditor(), filter: audit.Filter{Limit: 1000}, limit: 1000},
		"too many":      {p: auditor(), filter: audit.Filter{Limit: 1001}, code: sallyport.CodeInvalidArgument},
		"negative":      {p: auditor(), filter: audit.Filter{Limit: -1}, code: sallyport.CodeInvalidArgument},
		"after":         {p: auditor(), filter: audit.Filter{After: -1}, code: sallyport.CodeInvalidArgument},
		"no scope":      {p: sallyport.Principal{ID: "a", TenantID: tenant}, code: sallyport.CodeAccessDenied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, service := filled(t, 2, audit.Config{})
			got, err := service.List(t.Context(), test.p, test.filter)
			if code := sallyport.CodeOf(err); code != test.code {
				t.Fatalf("code: got %q, want %q", code, test.code)
			}
			if m.filter.Limit != test.limit || (err == nil) != (len(got) == 2) {
				t.Errorf("got %d entries with the limit %d, want the limit %d", len(got), m.filter.Limit, test.limit)
			}
		})
	}
}
