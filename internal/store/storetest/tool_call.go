package storetest

import (
	"encoding/json"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/records"
)

func toolCallTests() []test {
	return []test{
		{"round trip, newest first", toolCallRoundTrip},
		{"filters", toolCallFilters},
		{"what does not fit is refused whole", toolCallRefuses},
		{"old ones go", toolCallsGo},
	}
}

func toolCall(tool string, n int) audit.ToolCall {
	return audit.ToolCall{
		TenantID: tenant, At: day(n), RequestID: "r", PrincipalID: owner, Tool: tool, Arguments: json.RawMessage(`{"slug":"ä","n":1.50}`),
		Code: sallyport.CodeGrantMissing, DurationMS: 7, ExecutionID: "e", TraceID: "t",
	}
}

func toolCallRoundTrip(t *trial, b Backend) {
	theirs := toolCall("recall", 1)
	theirs.TenantID = other
	want := []audit.ToolCall{toolCall("execute", 2), toolCall("recall", 1)}
	must(t, b.AddToolCalls(t.Context(), []audit.ToolCall{want[1], theirs, want[0]}))
	got, err := b.ToolCalls(t.Context(), tenant, audit.CallFilter{})
	must(t, err)
	for i := range got {
		if got[i].Sequence == 0 {
			t.Error("a call has no sequence")
		}
		want[i].Sequence = got[i].Sequence
	}
	same(t, "calls", got, want)
	got, err = b.ToolCalls(t.Context(), "nobody", audit.CallFilter{})
	must(t, err)
	same(t, "nobody's", got, []audit.ToolCall{})
}

func toolCallFilters(t *trial, b Backend) {
	for n := 1; n <= 6; n++ {
		c := toolCall("recall", n)
		if n%2 == 0 {
			c.Tool, c.PrincipalID, c.Code, c.ExecutionID = "execute", "grace", "", "other"
		}
		must(t, b.AddToolCalls(t.Context(), []audit.ToolCall{c}))
	}
	for name, c := range map[string]struct {
		filter audit.CallFilter
		want   []int
	}{
		"all":       {audit.CallFilter{}, []int{6, 5, 4, 3, 2, 1}},
		"tool":      {audit.CallFilter{Tool: "execute"}, []int{6, 4, 2}},
		"principal": {audit.CallFilter{PrincipalID: owner}, []int{5, 3, 1}},
		"code":      {audit.CallFilter{Code: sallyport.CodeGrantMissing}, []int{5, 3, 1}},
		"execution": {audit.CallFilter{ExecutionID: "other"}, []int{6, 4, 2}},
		"time":      {audit.CallFilter{Since: day(2), Until: day(4)}, []int{3, 2}},
		"page":      {audit.CallFilter{Limit: 2}, []int{6, 5}},
		"both":      {audit.CallFilter{Tool: "execute", PrincipalID: owner}, []int{}},
	} {
		got, err := b.ToolCalls(t.Context(), tenant, c.filter)
		must(t, err)
		days := []int{}
		for _, call := range got {
			days = append(days, int(call.At.Sub(day(0)).Hours()/24))
		}
		same(t, name, days, c.want)
	}
	first, err := b.ToolCalls(t.Context(), tenant, audit.CallFilter{Limit: 4})
	must(t, err)
	rest, err := b.ToolCalls(t.Context(), tenant, audit.CallFilter{Below: first[3].Sequence})
	must(t, err)
	same(t, "the next page", len(rest), 2)
}

func toolCallRefuses(t *trial, b Backend) {
	for name, spoil := range map[string]func(*audit.ToolCall){
		"no tenant": func(c *audit.ToolCall) { c.TenantID = "" },
		"no tool":   func(c *audit.ToolCall) { c.Tool = "" },
		"no JSON":   func(c *audit.ToolCall) { c.Arguments = json.RawMessage(`{`) },
	} {
		bad := toolCall("recall", 1)
		spoil(&bad)
		if err := b.AddToolCalls(t.Context(), []audit.ToolCall{toolCall("recall", 1), bad}); sallyport.CodeOf(err) != sallyport.CodeInternal {
			t.Errorf("%s: got %v, want INTERNAL", name, err)
		}
	}
	got, err := b.ToolCalls(t.Context(), tenant, audit.CallFilter{})
	must(t, err)
	same(t, "stored", len(got), 0)
}

func toolCallsGo(t *trial, b Backend) {
	calls := []audit.ToolCall{}
	for range 1500 {
		calls = append(calls, toolCall("recall", 1))
	}
	must(t, b.AddToolCalls(t.Context(), append(calls, toolCall("recall", 5))))
	removed := sweep(t, b, records.Bounds{ToolCalls: day(5), At: day(9)})
	same(t, "removed", removed, records.Counts{ToolCalls: 1500})
	got, err := b.ToolCalls(t.Context(), tenant, audit.CallFilter{})
	must(t, err)
	same(t, "left", len(got), 1)
}
