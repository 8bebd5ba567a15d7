package bubblewrap

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Attack 35: a step of the wall clock moves no deadline. time.Now carries the monotonic clock for as long as nobody takes the
// wall clock out of it, and then every difference, timer and deadline is measured on that; so nobody here may. PID 1 waits
// without any clock.
func TestOnlyTheMonotonicClock(t *testing.T) {
	t.Parallel()
	wall := []string{
		"Unix", "UnixNano", "UnixMilli", "UnixMicro", "UTC", "Local", "In", "Truncate", "Date", "Clock", "AddDate", "YearDay", "Weekday", "ModTime",
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		looked++
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			selector, ok := call.Fun.(*ast.SelectorExpr)
			// The age of a cached revision decides which is dropped first, and nothing else.
			if ok && slices.Contains(wall, selector.Sel.Name) && !(selector.Sel.Name == "ModTime" && name == "revision_linux.go") {
				t.Errorf("%s: %s is of the wall clock", set.Position(call.Pos()), selector.Sel.Name)
			}
			return true
		})
	}
	sources, err := filepath.Glob("helper/*.c")
	if err != nil || len(sources) == 0 || looked < 30 {
		t.Fatalf("%d and %d files, %v", looked, len(sources), err)
	}
	clocks := regexp.MustCompile(`clock_gettime|gettimeofday|SYS\(time|timerfd|setitimer|alarm|nanosleep|SYS\(ppoll, [^,]+, [^,]+, [^0]`)
	for _, name := range sources {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if found := clocks.Find(source); found != nil {
			t.Errorf("%s looks at a clock: %s", name, found)
		}
	}
}
