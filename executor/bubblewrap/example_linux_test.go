//go:build amd64 || arm64

package bubblewrap_test

import (
	"context"
	"fmt"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/bubblewrap"
)

// An application that approves runs by its own rules can use the executor alone.
func ExampleExecutor() {
	e, err := bubblewrap.New(bubblewrap.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = e.Close() }()
	source := []byte("import sys\nprint('hello,', sys.stdin.read())\n")
	result, err := e.Execute(context.Background(), sallyport.ExecRequest{
		ExecutionID: "exec-1", TenantID: "tenant", Slug: "greeter", ScriptPath: "scripts/hello.py",
		Interpreter: sallyport.Interpreter{Extension: "py", Runtime: "python", Program: "/usr/bin/python3"},
		Files: []sallyport.Component{{
			Path: "scripts/hello.py", Kind: sallyport.KindScript, Content: source, SHA256: sallyport.DigestOf(source).Hex(),
		}},
		Stdin: []byte("world"), Limits: sallyport.DefaultLimits(), Grace: sallyport.DefaultGrace,
	})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s", result.Stdout)
	// Output: hello, world
}
