package server

import (
	"log/slog"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// Config is the single description of a deployment. The zero value refuses every run: scripts are off, the
// interpreter list is empty and there is no executor.
type Config struct {
	// DataDir holds the database, keys and the owner's lock and socket; made 0700 when absent. Required.
	DataDir string
	// Executor carries out scripts; nil refuses every run with SANDBOX_UNAVAILABLE.
	Executor sallyport.Executor
	// ScriptsEnabled is the installation's feature switch. False refuses every run.
	ScriptsEnabled bool
	// Interpreters is the allow-list, checked by extension. Empty refuses every run.
	Interpreters []sallyport.Interpreter
	// RequiredLayers are the isolation layers without which nothing runs. Nil means every layer the executor
	// knows (its Layers and Missing together); an empty list that is not nil demands none (isolation: degrade).
	RequiredLayers []sallyport.Layer
	// Limits narrow the defaults; zero fields mean the defaults of the root package.
	Limits sallyport.Limits
	// MaxTimeout is the top a caller may ask for; zero means sallyport.MaxTimeout.
	MaxTimeout time.Duration
	// Grace after the timeout, until the caller stops waiting; zero means sallyport.DefaultGrace.
	Grace time.Duration
	// MaxArgumentBytes bounds arguments; zero means sallyport.DefaultArgumentBytes.
	MaxArgumentBytes int64
	// MaxScriptBytes bounds one script; zero means sallyport.DefaultScriptBytes.
	MaxScriptBytes int64
	// MaxBodyBytes bounds a request body; zero means sallyport.DefaultBodyBytes.
	MaxBodyBytes int64
	// MaxImportBytes bounds an uploaded tree; zero means 1 GiB.
	MaxImportBytes int64
	// SlotsTotal and SlotsPerTenant bound concurrent runs; zero means auto: max(8, 4 x CPUs) and
	// max(2, half of the total).
	SlotsTotal, SlotsPerTenant int
	// QueueLength and QueueWait bound waiting for a slot; zero means the defaults of the root package.
	QueueLength int
	QueueWait   time.Duration
	// LoopbackPrincipal is who a keyless caller on loopback is: memory:read and memory:write of the default
	// tenant. False demands a key from everybody.
	LoopbackPrincipal bool
	// Gates run after the standard gates; the standard ones cannot be removed or reordered.
	Gates []sallyport.Gate
	// Logger receives the server's log; nil discards.
	Logger *slog.Logger
	// Now is the clock for stored times; nil means time.Now.
	Now func() time.Time
	// Version is what the server calls itself.
	Version string
}
