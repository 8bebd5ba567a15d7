package run

import (
	"context"

	"github.com/sallyport-dev/sallyport"
)

// Service runs scripts. It is safe for concurrent use.
type Service struct{}

var errUnwritten = &sallyport.Error{Op: "run", Code: sallyport.CodeInternal}

// Run carries out one request. It returns an error when the run was refused or broke before a script's outcome was
// known; whatever the script did is an Execution and a nil error. Needs memory:write.
func (s *Service) Run(ctx context.Context, p sallyport.Principal, req Request) (sallyport.Execution, error) {
	return sallyport.Execution{}, errUnwritten
}

// Explain walks the same gates without running. Needs memory:write.
func (s *Service) Explain(ctx context.Context, p sallyport.Principal, req Request) (Explanation, error) {
	return Explanation{}, errUnwritten
}

// Get returns one execution with its streams. Needs memory:read.
func (s *Service) Get(ctx context.Context, p sallyport.Principal, id sallyport.ExecutionID) (sallyport.Execution, error) {
	return sallyport.Execution{}, errUnwritten
}

// List returns a page of executions, newest first. Needs memory:read.
func (s *Service) List(ctx context.Context, p sallyport.Principal, req ListRequest) (ListResult, error) {
	return ListResult{}, errUnwritten
}

// Artifact returns one artifact of an execution with its bytes. Needs memory:read.
func (s *Service) Artifact(ctx context.Context, p sallyport.Principal, id sallyport.ExecutionID, path string) (sallyport.Artifact, []byte, error) {
	return sallyport.Artifact{}, nil, errUnwritten
}

// Cancel stops a running execution of the caller. Needs memory:write.
func (s *Service) Cancel(ctx context.Context, p sallyport.Principal, id sallyport.ExecutionID) error {
	return errUnwritten
}

// Capabilities reports what the executor can enforce now.
func (s *Service) Capabilities(ctx context.Context) sallyport.Capabilities {
	return sallyport.Capabilities{}
}
