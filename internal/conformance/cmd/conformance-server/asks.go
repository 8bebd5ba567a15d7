package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/registry"
	"github.com/sallyport-dev/sallyport/server"
)

// waiter is an executor that runs nothing: it takes as long as the arguments say, for clients that are tried with slow runs.
type waiter struct{}

func (waiter) Kind() string { return "waiter" }

func (waiter) Capabilities(context.Context) sallyport.Capabilities {
	return sallyport.Capabilities{Available: true, Features: []sallyport.Feature{sallyport.FeatureRevision}}
}

func (waiter) Execute(ctx context.Context, req sallyport.ExecRequest) (sallyport.Result, error) {
	var args struct {
		Seconds float64 `json:"seconds"`
	}
	if err := json.Unmarshal(req.Stdin, &args); err != nil {
		return sallyport.Result{}, sallyport.NotStarted(err)
	}
	select {
	case <-time.After(time.Duration(args.Seconds * float64(time.Second))):
		return sallyport.Result{ExitCode: new(int), Stdout: []byte("done\n"), StdoutBytes: 5}, nil
	case <-ctx.Done():
		return sallyport.Result{}, ctx.Err()
	}
}

// newAsking returns a server whose runs want a person's yes, with one skill whose script waits.
func newAsking(ctx context.Context, data string) (*server.Server, error) {
	s, err := server.New(ctx, server.Config{
		DataDir: data, ScriptsEnabled: true, LoopbackPrincipal: true, Version: "conformance", Executor: waiter{},
		RequiredLayers: []sallyport.Layer{}, Confirm: true, ConfirmInClient: true,
		Interpreters: []sallyport.Interpreter{{Extension: "sh", Runtime: "bash", Program: "/bin/bash"}},
	})
	if err != nil {
		return nil, err
	}
	saved, err := s.Registry().Save(ctx, server.Operator(), registry.SaveRequest{Publish: true, Files: []registry.File{
		{Path: "SKILL.md", Content: []byte("---\nname: wait\ndescription: Waits. Use it in tests.\n---\n")},
		{Path: "scripts/wait.sh", Content: []byte("sleep 1\n")},
	}})
	if err != nil {
		return s, err
	}
	_, err = s.Access().Issue(ctx, server.Operator(), access.IssueRequest{Ref: sallyport.SkillRef{Slug: "wait"}, ExpectedDigest: saved.Revision.Digest})
	return s, err
}
