package server

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/records"
	"github.com/sallyport-dev/sallyport/registry"
	"github.com/sallyport-dev/sallyport/secret"
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
	// Packages lists what scripts can import in a row of Interpreters, for explain; nil for a deployment that does not know.
	Packages func(ctx context.Context, interpreter sallyport.Interpreter) ([]sallyport.Package, error)
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
	// Quotas bound use over time; the zero value bounds nothing.
	Quotas Quotas
	// Retention says how long records are kept; nil means records.DefaultPolicy.
	Retention *records.Policy
	// GrantsByPublisher grants what a principal publishes who carries memory:write and grants:write both, except in tenants that keep
	// the two duties apart.
	GrantsByPublisher bool
	// GrantNotice is how long before its end a grant is announced; zero means seven days.
	GrantNotice time.Duration
	// PublishRequiresClean refuses to publish revisions with findings, unless a reviewer overrides it with a reason.
	PublishRequiresClean bool
	// Confirm wants a person's yes for every run. ConfirmSelf lets the principal that asked for a run confirm it, and ConfirmInClient
	// takes the word of an MCP client for what its user said. They hold too where a tenant or a script wants a yes.
	Confirm, ConfirmSelf, ConfirmInClient bool
	// FindingExclusions are path patterns whose findings are set aside and counted: paths, patterns such as tests/*.py, or
	// folders with a slash at the end.
	FindingExclusions []string
	// URLImport lets principals with memory:write import from https URLs of the public internet; URLImportPrivate from loopback and
	// private networks, too.
	URLImport, URLImportPrivate bool
	// AuditRetention is how long entries of the audit trail are kept; zero keeps them for ever. AuditArchive is a folder that they
	// are written to before they go; empty means none.
	AuditRetention time.Duration
	AuditArchive   string
	// SecretKeys encrypts the secrets of tenants: a key management service. Nil means the key file.
	SecretKeys secret.KeyProvider
	// SecretKeyFile holds the key that encrypts secrets when SecretKeys is nil; empty means secrets.key in the data folder. It is
	// made when it is absent and the first secret is set.
	SecretKeyFile string
	// ShowSecrets leaves the values of secrets where scripts print them. False hides them in every result.
	ShowSecrets bool
	// LoopbackPrincipal is who a keyless caller on loopback is: memory:read and memory:write of the default
	// tenant. False demands a key from everybody.
	LoopbackPrincipal bool
	// OIDC lists the authorization servers whose access tokens are accepted beside API keys. Empty accepts none.
	OIDC []Issuer
	// PublicURL is the name by which clients reach this server, scheme://host[:port]; what tokens are for. Required with OIDC.
	PublicURL string
	// Gates run after the standard gates; the standard ones cannot be removed or reordered.
	Gates []sallyport.Gate
	// Logger receives the server's log; nil discards.
	Logger *slog.Logger
	// Now is the clock for stored times; nil means time.Now.
	Now func() time.Time
	// Tracer makes spans; nil makes none.
	Tracer trace.TracerProvider
	// OTel are the OTEL_ variables of the environment: spans and metrics are exported by OTLP when they ask for it, see
	// docs/telemetry.md. Nil exports nothing. A Tracer that is set makes the spans instead.
	OTel map[string]string
	// Version is what the server calls itself.
	Version string
}

// DefaultGrantNotice is how long before its end a grant is announced.
const DefaultGrantNotice = 7 * 24 * time.Hour

func (c Config) withDefaults() Config {
	if c.MaxTimeout == 0 {
		c.MaxTimeout = sallyport.MaxTimeout
	}
	if c.MaxArgumentBytes == 0 {
		c.MaxArgumentBytes = sallyport.DefaultArgumentBytes
	}
	if c.MaxScriptBytes == 0 {
		c.MaxScriptBytes = sallyport.DefaultScriptBytes
	}
	if c.GrantNotice == 0 {
		c.GrantNotice = DefaultGrantNotice
	}
	if c.Logger == nil {
		c.Logger = discard()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func (c Config) retention() records.Policy {
	if c.Retention == nil {
		return records.DefaultPolicy()
	}
	return *c.Retention
}

// validate returns every contradiction, joined into one INVALID_ARGUMENT.
func (c Config) validate() error {
	var problems []string
	require := func(ok bool, problem string) {
		if !ok {
			problems = append(problems, problem)
		}
	}
	require(c.DataDir != "", "DataDir is required")
	for name, value := range map[string]int64{
		"MaxTimeout": int64(c.MaxTimeout), "Grace": int64(c.Grace), "MaxArgumentBytes": c.MaxArgumentBytes,
		"MaxScriptBytes": c.MaxScriptBytes, "MaxBodyBytes": c.MaxBodyBytes, "MaxImportBytes": c.MaxImportBytes,
		"SlotsTotal": int64(c.SlotsTotal), "SlotsPerTenant": int64(c.SlotsPerTenant),
		"GrantNotice": int64(c.GrantNotice), "QueueLength": int64(c.QueueLength), "AuditRetention": int64(c.AuditRetention), "QueueWait": int64(c.QueueWait),
		"Limits.Timeout": int64(c.Limits.Timeout), "Limits.MemoryBytes": c.Limits.MemoryBytes,
		"Limits.Processes": c.Limits.Processes, "Limits.CPUMillis": c.Limits.CPUMillis,
		"Limits.ScratchBytes": c.Limits.ScratchBytes, "Limits.OutputBytes": c.Limits.OutputBytes,
		"Limits.ArtifactBytes": c.Limits.ArtifactBytes, "Limits.ArtifactFiles": c.Limits.ArtifactFiles,
		"Limits.CPUTime": int64(c.Limits.CPUTime),
	} {
		require(value >= 0, name+" is negative")
	}
	for name, value := range c.Quotas.fields() {
		require(value >= 0, name+" is negative")
	}
	require(c.Grace == 0 || c.Grace >= sallyport.MinGrace, "Grace is under 100 ms, in which a run cannot be ended and read")
	require(c.MaxTimeout == 0 || c.MaxTimeout >= sallyport.MinTimeout, "MaxTimeout is under one second")
	require(c.Limits.Timeout == 0 || c.Limits.Timeout >= sallyport.MinTimeout, "Limits.Timeout is under one second")
	require(c.Limits.MemoryBytes == 0 || c.Limits.MemoryBytes >= sallyport.MinMemoryBytes, "Limits.MemoryBytes is under 16 MiB, which an interpreter needs to begin")
	require(c.Limits.CPUTime == 0 || c.Limits.CPUTime >= sallyport.MinCPUTime, "Limits.CPUTime is under 100 milliseconds, which a sandbox and an interpreter need to begin")
	require(c.Limits.CPUTime%time.Millisecond == 0, "Limits.CPUTime is not in whole milliseconds")
	require(c.SlotsTotal == 0 || c.SlotsPerTenant <= c.SlotsTotal, "SlotsPerTenant is over SlotsTotal")
	for _, row := range c.Interpreters {
		require(row.Extension != "" && row.Program != "" && row.Runtime != "", "an interpreter lacks its extension, runtime or program")
	}
	require(registry.CheckExclusions(c.FindingExclusions) == nil, "FindingExclusions has a pattern that is none")
	require(!slices.Contains(c.Gates, nil), "a gate is nil")
	problems = append(problems, c.validateIdentity()...)
	if len(problems) == 0 {
		return nil
	}
	slices.Sort(problems)
	return sallyport.Errorf("server.config", sallyport.CodeInvalidArgument, "the configuration is not usable: %s", strings.Join(problems, "; "))
}
