package sallyport_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
)

func TestCatalogueIsWhole(t *testing.T) {
	t.Parallel()
	seen := map[sallyport.Code]bool{}
	for _, info := range sallyport.Catalogue() {
		if seen[info.Code] {
			t.Errorf("%s has two rows", info.Code)
		}
		seen[info.Code] = true
		if !regexp.MustCompile(`^[A-Z]+(_[A-Z]+)*$`).MatchString(string(info.Code)) {
			t.Errorf("%s is not spelled as a code", info.Code)
		}
		if !slices.Contains(sallyport.Classes(), info.Class) {
			t.Errorf("%s has the unknown class %q", info.Code, info.Class)
		}
		if info.Message == "" || strings.Contains(info.Message, "%") {
			t.Errorf("%s: the message %q is empty or carries a format verb", info.Code, info.Message)
		}
		if got := sallyport.Lookup(info.Code); got != info {
			t.Errorf("Lookup(%s): got %+v", info.Code, got)
		}
	}
	// The codes that the documents which the product grew from spell out.
	for _, code := range []sallyport.Code{
		"ACCESS_DENIED", "SKILL_NOT_FOUND", "SKILL_ARCHIVED", "REVISION_NOT_FOUND", "SCRIPT_NOT_FOUND",
		"INVALID_COMPONENT_TYPE", "SANDBOX_UNAVAILABLE", "EXECUTION_TIMEOUT", "RESOURCE_EXHAUSTED", "SCRIPT_EXECUTION_ERROR",
	} {
		if !seen[code] {
			t.Errorf("%s has no row", code)
		}
	}
	if got := sallyport.Lookup("NO_SUCH_CODE"); got.Code != sallyport.CodeInternal {
		t.Errorf("an unknown code: got %q, want INTERNAL", got.Code)
	}
}

func TestPublic(t *testing.T) {
	t.Parallel()
	cause := errors.New("marker: dial tcp 10.0.0.1")
	for name, test := range map[string]struct {
		err     error
		code    sallyport.Code
		message string
	}{
		"own sentence":    {&sallyport.Error{Op: "x", Code: sallyport.CodeSlugTaken, Message: "taken by you", Err: cause}, sallyport.CodeSlugTaken, "taken by you"},
		"table sentence":  {&sallyport.Error{Op: "x", Code: sallyport.CodeSlugTaken, Err: cause}, sallyport.CodeSlugTaken, "the slug is taken"},
		"wrapped":         {fmt.Errorf("outer: %w", &sallyport.Error{Op: "x", Code: sallyport.CodeSlugTaken, Err: cause}), sallyport.CodeSlugTaken, "the slug is taken"},
		"not ours":        {cause, sallyport.CodeInternal, "internal error"},
		"internal speaks": {&sallyport.Error{Op: "x", Code: sallyport.CodeInternal, Message: "marker"}, sallyport.CodeInternal, "internal error"},
		"unknown code":    {&sallyport.Error{Op: "x", Code: "NOPE", Message: "marker"}, sallyport.CodeInternal, "internal error"},
		"canceled":        {context.Canceled, sallyport.CodeCanceled, "the caller cancelled the request"},
		"deadline":        {context.DeadlineExceeded, sallyport.CodeDeadlineExceeded, "the server did not finish the request in time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := sallyport.Public(test.err)
			if got.Code != test.code || got.Message != test.message {
				t.Errorf("got %q %q, want %q %q", got.Code, got.Message, test.code, test.message)
			}
			if wire, _ := json.Marshal(got); strings.Contains(string(wire), "marker") {
				t.Errorf("the cause shows: %s", wire)
			}
		})
	}
	if sallyport.Public(nil) != nil || sallyport.CodeOf(nil) != "" {
		t.Error("nil is an error")
	}
}

func TestCheckPath(t *testing.T) {
	t.Parallel()
	good := []string{"a", "scripts/run.py", "a b/é.md", "技能/x", ".hidden", "a..b", "xy:z", strings.Repeat("a", 255)}
	bad := []string{
		"", "/", "/etc/passwd", "..", ".", "a/../b", "./a", "a/", "a//b", `a\b`, `..\x`, `C:\x`, "C:x", "x:y", "c:/x", "a\x00b", "a\nb", "a\x7f",
		"a\u202eb", "a\u2028b", "\xff", strings.Repeat("a", 256), strings.Repeat("a/", 600) + "a", "a\u0085b",
	}
	for _, path := range good {
		if err := sallyport.CheckPath(path); err != nil {
			t.Errorf("%q: got %v, want nil", path, err)
		}
	}
	for _, path := range bad {
		if code := sallyport.CodeOf(sallyport.CheckPath(path)); code != sallyport.CodeUnsafePath {
			t.Errorf("%q: got %q, want UNSAFE_PATH", path, code)
		}
	}
}

func FuzzCheckPath(f *testing.F) {
	f.Add("a/b.py")
	f.Add(`..\x`)
	f.Fuzz(func(t *testing.T, path string) {
		if sallyport.CheckPath(path) != nil {
			return
		}
		for segment := range strings.SplitSeq(path, "/") {
			if segment == "" || segment == "." || segment == ".." || strings.ContainsAny(segment, "\\\x00\n\r") {
				t.Errorf("accepted %q", path)
			}
		}
	})
}

func TestValidSlug(t *testing.T) {
	t.Parallel()
	for slug, want := range map[string]bool{
		"a": true, "a-b2": true, "0": true, strings.Repeat("a", 64): true,
		"": false, "-a": false, "a-": false, "a--b": false, "A": false, "a_b": false, "a b": false, "а": false, "../x": false, strings.Repeat("a", 65): false,
	} {
		if got := sallyport.ValidSlug(slug); got != want {
			t.Errorf("%q: got %t, want %t", slug, got, want)
		}
	}
}

func TestDigest(t *testing.T) {
	t.Parallel()
	d := sallyport.DigestOf([]byte("abc"))
	if want := sallyport.Digest("sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"); d != want {
		t.Errorf("got %s, want %s", d, want)
	}
	if upper, err := sallyport.ParseDigest(strings.ToUpper(string(d))); err != nil || !upper.Equal(d) {
		t.Errorf("upper case: got %q (%v)", upper, err)
	}
	for _, s := range []string{"", "sha256:", d.Hex(), "sha256:" + d.Hex()[1:], "sha256:" + d.Hex() + "0", "sha256:g" + d.Hex()[1:], " " + string(d), "sha512:" + d.Hex()} {
		if _, err := sallyport.ParseDigest(s); sallyport.CodeOf(err) != sallyport.CodeInvalidArgument {
			t.Errorf("%q: got %v, want INVALID_ARGUMENT", s, err)
		}
		if sallyport.Digest(s).Equal(sallyport.Digest(s)) {
			t.Errorf("the malformed %q equals itself", s)
		}
	}
}

func TestGrantState(t *testing.T) {
	t.Parallel()
	now := time.Now()
	before, after := now.Add(-1), now.Add(1)
	for name, test := range map[string]struct {
		grant sallyport.Grant
		want  sallyport.GrantState
	}{
		"no end":              {sallyport.Grant{}, sallyport.GrantActive},
		"ends later":          {sallyport.Grant{ExpiresAt: &after}, sallyport.GrantActive},
		"ends exactly now":    {sallyport.Grant{ExpiresAt: &now}, sallyport.GrantExpired},
		"ended":               {sallyport.Grant{ExpiresAt: &before}, sallyport.GrantExpired},
		"revoked and expired": {sallyport.Grant{ExpiresAt: &before, RevokedAt: &before}, sallyport.GrantRevoked},
	} {
		if got := test.grant.State(now); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestLimitsNarrow(t *testing.T) {
	t.Parallel()
	got := sallyport.DefaultLimits().Narrow(sallyport.Limits{Timeout: time.Second, MemoryBytes: 1 << 40, Processes: 7})
	want := sallyport.DefaultLimits()
	want.Timeout, want.Processes = time.Second, 7
	if got != want || got.CPUTime != 0 {
		t.Errorf("got %+v, want %+v without a CPU budget", got, want)
	}
	got = got.Narrow(sallyport.Limits{CPUTime: 3 * time.Second}).Narrow(sallyport.Limits{}).Narrow(sallyport.Limits{CPUTime: 1500 * time.Millisecond})
	want.CPUTime = 1500 * time.Millisecond
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	wire, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var back sallyport.Limits
	if err := json.Unmarshal(wire, &back); err != nil || back != got {
		t.Errorf("round trip: got %+v (%v) from %s", back, err, wire)
	}
}

func TestPrincipal(t *testing.T) {
	t.Parallel()
	p := sallyport.Principal{ID: "p", TenantID: "t", Teams: []sallyport.TeamID{"x"}, Scopes: []sallyport.Scope{sallyport.ScopeMemoryRead}}
	for name, test := range map[string]struct {
		skill sallyport.Skill
		want  bool
	}{
		"own":              {sallyport.Skill{TenantID: "t", OwnerID: "p"}, true},
		"team":             {sallyport.Skill{TenantID: "t", TeamID: "x"}, true},
		"other's":          {sallyport.Skill{TenantID: "t", OwnerID: "q"}, false},
		"other team":       {sallyport.Skill{TenantID: "t", TeamID: "y", OwnerID: "p"}, false},
		"other tenant":     {sallyport.Skill{TenantID: "u", OwnerID: "p"}, false},
		"nobody's":         {sallyport.Skill{TenantID: "t"}, false},
		"tenantless skill": {sallyport.Skill{OwnerID: "p"}, false},
	} {
		if got := p.CanSee(test.skill); got != test.want {
			t.Errorf("%s: got %t, want %t", name, got, test.want)
		}
	}
	zero := sallyport.Principal{Scopes: sallyport.Scopes()}
	if zero.Has(sallyport.ScopeAdmin) || zero.CanSee(sallyport.Skill{}) {
		t.Error("a principal without a tenant may do something")
	}
	if err := p.Require("x", sallyport.ScopeAdmin); sallyport.CodeOf(err) != sallyport.CodeAccessDenied || !strings.Contains(sallyport.Public(err).Message, "admin") {
		t.Errorf("got %v", err)
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		in   string
		want []string
	}{
		"order as sent":    {`{"b":"1","a":"2"}`, []string{"--b", "1", "--a", "2"}},
		"true false null":  {`{"a":true,"b":false,"c":null}`, []string{"--a"}},
		"numbers exact":    {`{"n":1.10,"big":12345678901234567890,"e":1e3}`, []string{"--n", "1.10", "--big", "12345678901234567890", "--e", "1e3"}},
		"list repeats":     {`{"x":["a","b",true,null]}`, []string{"--x", "a", "--x", "b", "--x"}},
		"dash value":       {`{"x":"-rf","n":-1}`, []string{"--x=-rf", "--n=-1"}},
		"rest comes last":  {`{"_":["a","-b"],"x":"1"}`, []string{"--x", "1", "--", "a", "-b"}},
		"rest as one":      {`{"_":"a"}`, []string{"--", "a"}},
		"empty":            {`{}`, nil},
		"empty string":     {`{"x":""}`, []string{"--x", ""}},
		"object":           {`{"x":{}}`, []string{"error"}},
		"nested list":      {`{"x":[[1]]}`, []string{"error"}},
		"key with a blank": {`{"a b":"1"}`, []string{"error"}},
		"key with a dash":  {`{"-a":"1"}`, []string{"error"}},
		"key with equals":  {`{"a=b":"1"}`, []string{"error"}},
		"underscore key":   {`{"_a":"1"}`, []string{"error"}},
		"empty key":        {`{"":"1"}`, []string{"error"}},
		"NUL":              {`{"a":"\u0000"}`, []string{"error"}},
		"rest with true":   {`{"_":[true]}`, []string{"error"}},
		"not an object":    {`[1]`, []string{"error"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := sallyport.Flags(json.RawMessage(test.in))
			if err != nil {
				if code := sallyport.CodeOf(err); code != sallyport.CodeArgumentsMismatch {
					t.Errorf("code: got %q", code)
				}
				got = []string{"error"}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestSecretPrintsAsDots(t *testing.T) {
	t.Parallel()
	s := sallyport.Secret("hunter2")
	wire, _ := json.Marshal(map[string]sallyport.Secret{"x": s})
	if all := fmt.Sprintf("%v %s %+v %#v %q %s", s, s, s, s, s, wire); strings.Contains(all, "hunter2") {
		t.Errorf("shows: %s", all)
	}
}

func TestNotStarted(t *testing.T) {
	t.Parallel()
	inner := &sallyport.Error{Op: "x", Code: sallyport.CodeSandboxUnavailable}
	err := fmt.Errorf("outer: %w", sallyport.NotStarted(inner))
	if !sallyport.IsNotStarted(err) || sallyport.CodeOf(err) != sallyport.CodeSandboxUnavailable || sallyport.IsNotStarted(inner) {
		t.Errorf("got %t %q", sallyport.IsNotStarted(err), sallyport.CodeOf(err))
	}
}

func ExampleFlags() {
	flags, _ := sallyport.Flags(json.RawMessage(`{"verbose": true, "limit": 10, "_": ["in.csv"]}`))
	fmt.Println(flags)
	// Output: [--verbose --limit 10 -- in.csv]
}

// A refusal for a time says for how long, in its sentence and in milliseconds, and never nothing.
func TestRateLimited(t *testing.T) {
	t.Parallel()
	for after, want := range map[time.Duration]struct {
		ms    int64
		shown string
	}{
		0:                        {1, "100ms"},
		1500 * time.Microsecond:  {2, "100ms"},
		300 * time.Millisecond:   {300, "300ms"},
		20 * time.Second:         {20_000, "20s"},
		90001 * time.Millisecond: {90_001, "1m31s"},
	} {
		err := sallyport.RateLimited("op", "the tenant has used it", after, map[string]any{"quota": "x"})
		public := sallyport.Public(err)
		if public.Details["retry_after_ms"] != want.ms || public.Details["quota"] != "x" || public.Message != "the tenant has used it; try again in "+want.shown {
			t.Errorf("%s: got %+v", after, public)
		}
		if wait, ok := sallyport.RetryAfter(err); !ok || wait != time.Duration(want.ms)*time.Millisecond {
			t.Errorf("%s: RetryAfter is %s, %v", after, wait, ok)
		}
	}
	if _, ok := sallyport.RetryAfter(&sallyport.Error{Code: sallyport.CodeInternal, Details: map[string]any{"retry_after_ms": int64(1)}}); ok {
		t.Error("an internal error says when to come back")
	}
}
