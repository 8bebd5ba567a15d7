// Package config turns flags, the environment and server.yaml into the settings of one process, and those into a
// server.Config.
//
// It owns the one table of settings (table.go), which is also where docs/config.md comes from, and it is the only
// package that reads the environment. It leaves opening, listening and running to its caller. Its one
// invariant: what it does not know or cannot parse is an error that names the place; nothing is ignored in silence.
package config

import (
	"cmp"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/server"
)

// Profile is a set of defaults.
type Profile string

// The profiles. The empty one is chosen by the listening addresses: see [Settings.Resolve].
const (
	// ProfileDev has scripts on, the interpreters found on the host, and a keyless principal for loopback callers.
	ProfileDev Profile = "dev"
	// ProfileProduction has scripts off and no interpreter until the operator says otherwise, and needs keys.
	ProfileProduction Profile = "production"
)

// SandboxProfile is a list of denied system calls, see internal/seccomp/profiles.md.
type SandboxProfile string

// The lists.
const (
	SandboxProfileDefault SandboxProfile = "default"
	SandboxProfileStrict  SandboxProfile = "strict"
)

// Isolation is how much of the sandbox a run needs.
type Isolation string

// The two policies.
const (
	// IsolationEnforce runs nothing unless every layer that the executor knows is active.
	IsolationEnforce Isolation = "enforce"
	// IsolationDegrade runs with the layers that the host gives; every result lists the missing ones.
	IsolationDegrade Isolation = "degrade"
)

// Settings are the settings of one process. Make them with [Load]; the zero value refuses every run.
type Settings struct {
	// DataDir holds everything that is kept; empty until Load, which falls back to the user's data home.
	DataDir string
	// StateDir holds what the sandbox must be able to read; empty lets the executor choose.
	StateDir string
	// Listen is the TCP address to serve on, host:port.
	Listen string
	// TLSCert and TLSKey are PEM files; both or neither.
	TLSCert, TLSKey string
	Profile         Profile
	Accept          []Risk
	// Scripts is the installation's switch; nil means what the profile says.
	Scripts   *bool
	Isolation Isolation
	// Interpreters maps extensions to programs; nil means what the profile says. The entry "auto" stands for all that
	// are found on the host.
	Interpreters map[string]string
	// Runtimes are what names in Interpreters and in scripts stand for.
	Runtimes map[string]RuntimeSettings
	// Executor names the kind of executor; empty means the default. RequiredExecutor, when set, is the only kind that may
	// serve.
	Executor, RequiredExecutor string
	// Bubblewrap is the path of the bwrap program; empty searches for it.
	Bubblewrap string
	// SandboxProfile names the list of system calls that scripts are denied; empty means the default one.
	SandboxProfile SandboxProfile
	// Container is for the executor container.
	Container ContainerSettings
	// Remote is for the executor remote, Runner for this machine as a runner.
	Remote RemoteSettings
	Runner RunnerSettings

	Limits                                      sallyport.Limits
	MaxTimeout, Grace                           time.Duration
	MaxArguments, MaxScript, MaxBody, MaxImport int64
	SlotsTotal, SlotsPerTenant, QueueLength     int
	QueueWait                                   time.Duration
	// Quotas bound use over time. Quotas.Failures is 0 for what the profile says and below for no bound.
	Quotas server.Quotas
	// OIDC lists authorization servers; PublicURL is this server's own name for them.
	OIDC      []server.Issuer
	PublicURL string
	// Grants is who grants, reviewer or publisher; empty is reviewer. GrantNotice of zero is the default.
	Grants      string
	GrantNotice time.Duration
	// PublishRequiresClean is nil for no. FindingExclusions are path patterns.
	PublishRequiresClean *bool
	// Confirm and ConfirmSelf are nil for no, ConfirmInClient is nil for yes.
	Confirm, ConfirmSelf, ConfirmInClient *bool
	FindingExclusions                     []string
	// URLImport and URLImportPrivate are nil for no.
	URLImport, URLImportPrivate *bool
	// AuditRetentionDays is 0 for keeping the trail for ever. AuditArchive is empty for none.
	AuditRetentionDays int
	AuditArchive       string
	// SecretKeyFile is empty for the one in the data folder. MaskOutputs is nil for yes.
	SecretKeyFile string
	MaskOutputs   *bool
	// Retention says how long records are kept.
	Retention RetentionSettings
	LogLevel  string // debug, info, warn or error
	LogFormat string // text or json
	// OTel are the OTEL_ variables of the environment.
	OTel map[string]string
	// Warnings are sentences for the log about what looks like a mistake but may be none.
	Warnings []string
}

// Accepts reports whether the operator accepted risk by name.
func (s Settings) Accepts(risk Risk) bool { return slices.Contains(s.Accept, risk) }

// Loopback reports whether Listen reaches this machine only. A host name other than localhost is not resolved and
// counts as beyond.
func (s Settings) Loopback() bool {
	host, _, err := net.SplitHostPort(s.Listen)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// TLS reports whether the server speaks TLS.
func (s Settings) TLS() bool { return s.TLSCert != "" && s.TLSKey != "" }

// SocketPath is the operator's socket inside the data folder.
func (s Settings) SocketPath() string { return filepath.Join(s.DataDir, "sallyport.sock") }

// Resolve fills the profile that no source named: dev on loopback, production beyond. It refuses contradictions, all
// of them in one INVALID_ARGUMENT error.
func (s Settings) Resolve() (Settings, error) {
	var faults []string
	fault := func(text string) { faults = append(faults, text) }
	if _, _, err := net.SplitHostPort(s.Listen); err != nil {
		fault("listen: want host:port, got " + quote(s.Listen))
	}
	if (s.TLSCert == "") != (s.TLSKey == "") {
		fault("tls: tls.cert and tls.key go together")
	}
	if s.Profile == "" {
		s.Profile = ProfileProduction
		if s.Loopback() && !s.public() {
			s.Profile = ProfileDev
		}
	}
	if s.Profile == ProfileDev && !s.Loopback() {
		fault("profile: dev serves loopback only; listen on 127.0.0.1 or use the profile production")
	}
	s.executorFaults(fault)
	if s.MaxTimeout != 0 && s.Limits.Timeout > s.MaxTimeout {
		fault("limits.timeout: is over limits.max_timeout")
	}
	if s.SlotsTotal != 0 && s.SlotsPerTenant > s.SlotsTotal {
		fault("slots.per_tenant: is over slots.total")
	}
	if len(faults) > 0 {
		return s, invalid("%s", strings.Join(faults, "; "))
	}
	return s, nil
}

func (s Settings) scripts() *bool {
	if s.Scripts != nil {
		return s.Scripts
	}
	on := s.Profile == ProfileDev
	return &on
}

func invalid(format string, args ...any) error {
	return sallyport.Errorf("config", sallyport.CodeInvalidArgument, format, args...)
}

// LongestRun is how long one call to run a script can take: the longest timeout, the grace and the wait for a slot.
func (s Settings) LongestRun() time.Duration {
	return cmp.Or(s.MaxTimeout, sallyport.MaxTimeout) + cmp.Or(s.Grace, sallyport.DefaultGrace) +
		cmp.Or(s.QueueWait, sallyport.DefaultQueueWait)
}
