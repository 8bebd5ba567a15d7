package server_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/examples/executor"
	"github.com/sallyport-dev/sallyport/registry"
	"github.com/sallyport-dev/sallyport/run"
	"github.com/sallyport-dev/sallyport/server"
)

// notRoot is a gate of the application's own: it looks after every standard gate has said yes.
type notRoot struct{}

func (notRoot) Name() string { return "not_root" }

func (notRoot) Check(_ context.Context, c *sallyport.Candidate) *sallyport.Refusal {
	if strings.Contains(string(c.Args), "root") {
		return &sallyport.Refusal{Code: sallyport.CodeArgumentsMismatch, Message: "root is not greeted"}
	}
	return nil
}

// An application embeds the server with an executor and a gate of its own.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example-")
	must(err)
	defer func() { _ = os.RemoveAll(dir) }()

	srv, err := server.New(ctx, server.Config{
		DataDir: dir, Executor: executor.New(), ScriptsEnabled: true,
		Interpreters:   []sallyport.Interpreter{{Extension: "sh", Runtime: "bash", Program: "/bin/bash"}},
		RequiredLayers: []sallyport.Layer{}, // this executor claims none
		Gates:          []sallyport.Gate{notRoot{}},
	})
	must(err)
	defer func() { _ = srv.Close() }()

	operator, skill := server.Operator(), sallyport.SkillRef{Slug: "greet"}
	saved, err := srv.Registry().Save(ctx, operator, registry.SaveRequest{Ref: skill, Publish: true, Files: []registry.File{
		{Path: "SKILL.md", Content: []byte("---\nname: greet\ndescription: Greets. Use it in examples.\n---\n")},
		{Path: "scripts/greet.sh", Content: []byte("read -r args\necho \"hello, $args\"\n")},
	}})
	must(err)
	_, err = srv.Access().Issue(ctx, operator, access.IssueRequest{Ref: skill, ExpectedDigest: saved.Revision.Digest})
	must(err)

	for _, args := range []string{`{"name":"ada"}`, `{"name":"root"}`} {
		done, err := srv.Runs().Run(ctx, operator, run.Request{Ref: skill, ScriptPath: "scripts/greet.sh", Args: []byte(args)})
		if err != nil {
			fmt.Println(sallyport.Public(err).Code, sallyport.Public(err).Message)
			continue
		}
		fmt.Print(done.Status, " by ", done.Isolation.Executor, ": ", done.Stdout)
	}
	// Output:
	// success by process: hello, {"name":"ada"}
	// ARGUMENTS_MISMATCH root is not greeted
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
