package sallyporttest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/sallyporttest"
)

// officeHours is an application's own gate.
type officeHours struct{ hour int }

func (officeHours) Name() string { return "office_hours" }

func (g officeHours) Check(_ context.Context, candidate *sallyport.Candidate) *sallyport.Refusal {
	if g.hour >= 9 && g.hour < 17 || !strings.HasPrefix(candidate.Skill.Slug, "payroll") {
		return nil
	}
	return &sallyport.Refusal{Code: sallyport.CodeAccessDenied, Gate: g.Name(), Message: "payroll runs from 9 to 17"}
}

// An own gate is tested against a candidate that every standard gate lets pass.
func ExampleCase_Candidate() {
	tb := &testing.T{} // the test's own t
	candidate := sallyporttest.Case{Slug: "payroll-report"}.Candidate(tb)
	for _, hour := range []int{12, 22} {
		if refusal := (officeHours{hour}).Check(context.Background(), candidate); refusal != nil {
			fmt.Println(hour, refusal.Code, refusal.Message)
			continue
		}
		fmt.Println(hour, "may run")
	}
	// Output:
	// 12 may run
	// 22 ACCESS_DENIED payroll runs from 9 to 17
}

// A fake executor answers as a test needs it, without any sandbox.
func ExampleExecutor() {
	tb := &testing.T{} // the test's own t
	executor := &sallyporttest.Executor{
		TB: tb,
		ExecuteFunc: func(_ context.Context, req sallyport.ExecRequest) (sallyport.Result, error) {
			return sallyporttest.Exited(0, "ran "+req.ScriptPath), nil
		},
	}
	result, err := executor.Execute(context.Background(), sallyporttest.Case{}.ExecRequest(tb))
	fmt.Println(string(result.Stdout), err)
	// Output: ran scripts/hello.py <nil>
}
