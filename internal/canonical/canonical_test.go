package canonical_test

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/canonical"
)

func TestJSON(t *testing.T) {
	t.Parallel()
	// The example of RFC 8785, section 3.2.2, among others.
	rfc := json.RawMessage(`{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],` +
		`"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}`)
	for name, test := range map[string]struct {
		value any
		want  string
	}{
		"the RFC's example": {rfc, `{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`},
		"HTML is left":      {map[string]string{"b": "<&>", "a": "\u2028"}, "{\"a\":\"\u2028\",\"b\":\"<&>\"}"},
		"UTF-16 order":      {map[string]int{"\U0001F600": 1, "\ufb33": 2}, "{\"\U0001F600\":1,\"\ufb33\":2}"},
		"scalar":            {json.RawMessage(` 1.0 `), "1"},
		"null":              {nil, "null"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := canonical.JSON(test.value)
			if err != nil || string(got) != test.want {
				t.Errorf("got %s, %v; want %s", got, err, test.want)
			}
		})
	}
	for name, value := range map[string]any{
		"duplicate key": json.RawMessage(`{"a":1,"\u0061":2}`),
		"not UTF-8":     json.RawMessage("\"\xff\""),
		"out of range":  json.RawMessage(`1e400`),
		"not JSON":      json.RawMessage(`{`),
		"NaN":           math.NaN(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := canonical.JSON(value); got != nil || sallyport.CodeOf(err) != sallyport.CodeInternal {
				t.Errorf("got %s, %v; want INTERNAL", got, err)
			}
		})
	}
}

func entry() sallyport.Entry {
	return sallyport.Entry{
		Sequence: 1, TenantID: "default", At: time.Date(2026, 1, 2, 3, 4, 5, 600_000_000, time.UTC), Actor: "op",
		Action: sallyport.ActionScriptRun, Entity: "csv/scripts/a.py", ExecutionID: "ex1",
		Detail: json.RawMessage(`{ "b": 1, "a": "é" }`),
	}
}

func hash(tb testing.TB, e sallyport.Entry) sallyport.Digest {
	tb.Helper()
	d, err := canonical.EntryHash(e)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

func TestEntryHashVectors(t *testing.T) {
	t.Parallel()
	first := hash(t, entry())
	if want := sallyport.Digest("sha256:56d7f975505c521583a6693aa81dafdbcd9da33a654f088cce2d87ab80af10ef"); first != want {
		t.Errorf("got %s, want %s", first, want)
	}
	second := hash(t, sallyport.Entry{
		Sequence: 2, TenantID: "default", At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Action: sallyport.ActionKeyCreate,
		Entity: "k", Detail: json.RawMessage(`{}`), PreviousHash: first,
	})
	if want := sallyport.Digest("sha256:bd02cfedb4e15591e7b0dc3d3bbf37c723fd03188acf2d459befdfcee22c9c0e"); second != want {
		t.Errorf("got %s, want %s", second, want)
	}
}

func TestEntryHashCountsEveryField(t *testing.T) {
	t.Parallel()
	changes := map[string]func(e *sallyport.Entry){
		"Sequence":     func(e *sallyport.Entry) { e.Sequence++ },
		"TenantID":     func(e *sallyport.Entry) { e.TenantID = "other" },
		"At":           func(e *sallyport.Entry) { e.At = e.At.Add(time.Microsecond) },
		"Actor":        func(e *sallyport.Entry) { e.Actor = "" },
		"Action":       func(e *sallyport.Entry) { e.Action = sallyport.ActionScriptDenied },
		"Entity":       func(e *sallyport.Entry) { e.Entity += "x" },
		"ExecutionID":  func(e *sallyport.Entry) { e.ExecutionID = "ex2" },
		"Detail":       func(e *sallyport.Entry) { e.Detail = json.RawMessage(`{"a":"é","b":2}`) },
		"PreviousHash": func(e *sallyport.Entry) { e.PreviousHash = sallyport.DigestOf(nil) },
	}
	excluded := map[string]string{"Hash": "it is what is computed"}
	seen := map[sallyport.Digest]string{hash(t, entry()): "the base"}
	for name, change := range changes {
		e := entry()
		change(&e)
		got := hash(t, e)
		if other, taken := seen[got]; taken {
			t.Errorf("%s does not count: same hash as %s", name, other)
		}
		seen[got] = name
	}
	for field := range reflect.TypeFor[sallyport.Entry]().Fields() {
		_, changed := changes[field.Name]
		_, out := excluded[field.Name]
		if changed == out {
			t.Errorf("%s must be either hashed (with a change above) or excluded with a reason", field.Name)
		}
	}
	same := entry()
	same.Hash = "anything"
	same.At = same.At.In(time.FixedZone("east", 7200))
	same.Detail = json.RawMessage(`{"a":"\u00e9","b":1.0}`)
	if hash(t, same) != hash(t, entry()) {
		t.Error("the hash member, the time zone or the spelling of the detail counts, and should not")
	}
}

func TestEntryHashRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(e *sallyport.Entry)
		want   string
	}{
		"a nanosecond":     {func(e *sallyport.Entry) { e.At = e.At.Add(1) }, "microseconds"},
		"entity not UTF-8": {func(e *sallyport.Entry) { e.Entity = "\xff" }, "UTF-8"},
		"detail not JSON":  {func(e *sallyport.Entry) { e.Detail = json.RawMessage(`{`) }, "not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := entry()
			test.change(&e)
			if got, err := canonical.EntryHash(e); got != "" || err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %q, %v; want an error with %q", got, err, test.want)
			}
		})
	}
}
