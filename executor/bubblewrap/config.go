package bubblewrap

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/sallyport-dev/sallyport/internal/seccomp"
)

// Kind is the name of this executor.
const Kind = "bubblewrap"

// The defaults of [Config].
const (
	// DefaultFirstUID and DefaultUIDCount describe the range of uids for runs. It lies below 65536, so that it exists in
	// a container with the usual id mapping too, and between the ranges that Debian and systemd hand out themselves.
	DefaultFirstUID   = 60800
	DefaultUIDCount   = 384
	DefaultCacheBytes = 512 << 20
)

// The lists of system calls that scripts are denied; internal/seccomp/profiles.md has them.
const (
	ProfileDefault = seccomp.Default
	ProfileStrict  = seccomp.Strict
)

// The ways to build a sandbox.
const (
	// PlanUserNamespace starts bubblewrap under the run's uid, in a user namespace of its own.
	PlanUserNamespace = "user_namespace"
	// PlanRoot is for hosts where user namespaces are switched off: bubblewrap is started as root without one, and PID 1
	// takes on the run's uid and drops every privilege before it reads anything of the run. It needs root.
	PlanRoot = "root"
)

// Config describes the executor. The zero value is a working default.
type Config struct {
	// Program is the absolute path of bubblewrap; empty looks for bwrap in /usr/bin, /usr/local/bin and /bin.
	Program string
	// StateDir holds materialised revisions and the record of what this instance must clean up. Empty means
	// /var/lib/sallyport-sandbox for root, else a folder sallyport-sandbox in the user's cache folder. Several processes
	// may share one. It is made when absent and must not be writable by others.
	StateDir string
	// FirstUID and UIDCount are the range of uids for runs, used only when started as root. One uid serves one run at a
	// time on the whole host: processes with overlapping ranges share it through locks in /run/sallyport. A uid that has
	// an account is never used. Zero means the defaults.
	FirstUID, UIDCount int
	// Plan is how a sandbox is built, [PlanUserNamespace] or [PlanRoot]. Empty tries the first and takes the second, as root,
	// where the host does not allow the first.
	Plan string
	// Profile names the list of system calls that scripts are denied, [ProfileDefault] or [ProfileStrict]. Empty means the
	// default one.
	Profile string
	// CacheBytes bounds the materialised revisions; unused ones are evicted, oldest use first. Zero means 512 MiB.
	CacheBytes int64
	// Logger receives what an operator must know: leftovers, failed probes. Nil discards.
	Logger *slog.Logger
}

// State is the state folder that the configuration means.
func (c Config) State() (string, error) {
	if c.StateDir != "" {
		return c.StateDir, nil
	}
	if os.Geteuid() == 0 {
		return "/var/lib/sallyport-sandbox", nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "sallyport-sandbox"), nil
}

func (c Config) withDefaults() Config {
	if c.FirstUID == 0 && c.UIDCount == 0 {
		c.FirstUID, c.UIDCount = DefaultFirstUID, DefaultUIDCount
	}
	if c.Profile == "" {
		c.Profile = ProfileDefault
	}
	if c.CacheBytes == 0 {
		c.CacheBytes = DefaultCacheBytes
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// validateWithDefaults returns every problem of the configuration, joined.
func (c Config) validateWithDefaults() error {
	c = c.withDefaults()

	var errs []error
	if c.Program != "" && !filepath.IsAbs(c.Program) {
		errs = append(errs, fmt.Errorf("bubblewrap: Program %q is not an absolute path", c.Program))
	}
	if c.StateDir != "" && !filepath.IsAbs(c.StateDir) {
		errs = append(errs, fmt.Errorf("bubblewrap: StateDir %q is not an absolute path", c.StateDir))
	}
	// uid 0 is the host's administrator and 65534 is nobody: neither may run a script.
	if c.FirstUID < 1000 || c.UIDCount < 1 || c.FirstUID > 1<<31-2-c.UIDCount ||
		(c.FirstUID <= 65534 && c.FirstUID+c.UIDCount > 65534) {
		errs = append(errs, fmt.Errorf("bubblewrap: uids %d..%d are not a range of ordinary uids", c.FirstUID, c.FirstUID+c.UIDCount-1))
	}
	if c.Profile != ProfileDefault && c.Profile != ProfileStrict {
		errs = append(errs, fmt.Errorf("bubblewrap: there is no seccomp profile %q; use default or strict", c.Profile))
	}
	if c.Plan != "" && c.Plan != PlanUserNamespace && c.Plan != PlanRoot {
		errs = append(errs, fmt.Errorf("bubblewrap: there is no plan %q; use user_namespace or root, or leave it empty", c.Plan))
	}
	if c.CacheBytes < 0 {
		errs = append(errs, errors.New("bubblewrap: CacheBytes is negative"))
	}
	return errors.Join(errs...)
}

// Check is one line of a probe: what was tried inside a real sandbox, and what it means.
type Check struct {
	Name   string      `json:"name"`
	Result CheckResult `json:"result"`
	Detail string      `json:"detail"`
	Remedy string      `json:"remedy,omitempty"`
}

// CheckResult is the verdict of a [Check].
type CheckResult string

// The verdicts. Degraded means that the sandbox works without this layer, which the policy of an installation may demand;
// advice means that every layer holds, and that something on the host is worth mending all the same.
const (
	CheckPass     CheckResult = "pass"
	CheckFail     CheckResult = "fail"
	CheckDegraded CheckResult = "degraded"
	CheckAdvice   CheckResult = "advice"
)
