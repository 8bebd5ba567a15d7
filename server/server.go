// Package server builds the whole system from one Config: store, services, gates, surfaces. It is the entry point for
// applications that embed Sallyport.
//
// It introduces the packages to each other and owns their life cycle; it leaves the choice of executor and everything an
// operator types to its caller. Its one invariant: the standard gates are always installed, in order.
package server

import (
	"context"
	"net/http"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/registry"
	"github.com/sallyport-dev/sallyport/run"
)

// Server is one running installation. It is safe for concurrent use.
type Server struct{}

// New opens the data folder, migrates the database, closes as lost what a crash left open and builds the services. It
// takes the data folder's lock: STORE_UNAVAILABLE when another process owns it.
func New(ctx context.Context, cfg Config) (*Server, error) {
	return nil, &sallyport.Error{Op: "server", Code: sallyport.CodeInternal}
}

// Handler serves the network: /v1, /mcp, /metrics, health. Callers need a key unless Config.LoopbackPrincipal.
func (s *Server) Handler() http.Handler { return http.NotFoundHandler() }

// LocalHandler serves the same to the data folder's own operator, who carries every scope of the default tenant. It must
// only ever be reached in process or through the folder's 0600 socket.
func (s *Server) LocalHandler() http.Handler { return http.NotFoundHandler() }

// Run does the background work (checkpoints) until ctx ends.
func (s *Server) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// Close waits for running executions to be recorded, writes a last checkpoint and releases the data folder.
func (s *Server) Close() error { return nil }

// Registry, Access, Audit and Runs are the services, for embedders.
func (s *Server) Registry() *registry.Service { return nil }

// Access keeps grants and keys.
func (s *Server) Access() *access.Service { return nil }

// Audit keeps the trail.
func (s *Server) Audit() *audit.Service { return nil }

// Runs carries out scripts.
func (s *Server) Runs() *run.Service { return nil }

// Operator is the principal of LocalHandler.
func Operator() sallyport.Principal {
	return sallyport.Principal{
		ID: "operator", TenantID: sallyport.DefaultTenant,
		Teams: []sallyport.TeamID{sallyport.DefaultTeam}, Scopes: sallyport.Scopes(),
	}
}
