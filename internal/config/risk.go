package config

import (
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
)

// Risk is something an operator must accept by name before a server starts with it.
type Risk string

// The risks. The table risks() says what each is.
const (
	RiskNoTLS            Risk = "no_tls"
	RiskUnprovenSandbox  Risk = "unproven_sandbox"
	RiskUnsafeLocal      Risk = "unsafelocal"
	RiskKeylessLoopback  Risk = "keyless_loopback"
	RiskWorldReadableKey Risk = "world_readable_key"
	RiskURLImportPrivate Risk = "url_import_private"
	RiskIsolationDegrade Risk = "isolation_degrade"
	RiskSecretsShown     Risk = "secrets_shown"
)

// A hazard is one row of the table: all there is to know about one risk.
type hazard struct {
	risk Risk
	// formerly is how the risk was spelled before; it is still understood.
	formerly Risk
	setting  string
	// what happens, and the remedy, as sentences without a capital and a full stop.
	what, remedy string
	// everywhere says that the profile dev refuses it too.
	everywhere bool
	// found returns where the settings take the risk, empty when they do not.
	found func(s Settings, seen Seen) string
}

// Seen is what a look at the machine tells besides the settings.
type Seen struct {
	// SandboxKnown says that SandboxProven is known: whether the executor enforces every layer now.
	SandboxKnown, SandboxProven bool
}

// hazards is the one list, in the order of the checklist.
func hazards() []hazard {
	return []hazard{
		{
			risk: RiskNoTLS, formerly: "insecure-listen", setting: "tls.cert, tls.key",
			what:   "keys, skills and results travel in the clear",
			remedy: "set tls.cert and tls.key, or listen on 127.0.0.1 behind a proxy that speaks TLS",
			found: func(s Settings, _ Seen) string {
				switch {
				case !s.Loopback() && !s.TLS():
					return s.Listen + " is reachable from other machines"
				case strings.HasPrefix(s.PublicURL, "http://") && s.public():
					return "public_url is " + s.PublicURL
				}
				return ""
			},
		},
		{
			risk: RiskUnprovenSandbox, formerly: "unproven-sandbox", setting: "executor",
			what:   "scripts run, and the sandbox cannot enforce every layer here",
			remedy: "see sallyport doctor and mend what it names, or set scripts_enabled: false",
			found: func(s Settings, seen Seen) string {
				if *s.scripts() && seen.SandboxKnown && !seen.SandboxProven {
					return "a layer is missing, or the sandbox is away"
				}
				return ""
			},
		},
		{
			risk: RiskUnsafeLocal, formerly: "unsafe-local", setting: "executor", everywhere: true,
			what:   "scripts run without any isolation, as the user who started the server",
			remedy: "take executor: unsafelocal out",
			found: func(s Settings, _ Seen) string {
				if s.Executor == executorUnsafeLocal {
					return "executor is unsafelocal"
				}
				return ""
			},
		},
		{
			risk: RiskIsolationDegrade, setting: "isolation",
			what:   "scripts run with whatever layers the host gives",
			remedy: "set isolation: enforce",
			found: func(s Settings, _ Seen) string {
				if s.Isolation == IsolationDegrade && *s.scripts() {
					return "isolation is degrade"
				}
				return ""
			},
		},
		{
			risk: RiskKeylessLoopback, setting: "profile", everywhere: true,
			what:   "a proxy in front makes every caller look like one of this machine, and those need no key",
			remedy: "take profile: dev out",
			found: func(s Settings, _ Seen) string {
				if s.Profile == ProfileDev && s.public() {
					return "the profile is dev and public_url is " + s.PublicURL
				}
				return ""
			},
		},
		{
			risk: RiskWorldReadableKey, setting: "tls.key, secrets.key_file, remote.key, remote.key_file",
			what:   "every user of this machine can read a private key",
			remedy: "chmod o-rwx the file",
			found:  func(s Settings, _ Seen) string { return readableKey(s) },
		},
		{
			risk: RiskURLImportPrivate, setting: "url_import_private",
			what:   "whoever may import reaches loopback and private networks through the server",
			remedy: "set url_import_private: false",
			found: func(s Settings, _ Seen) string {
				if s.URLImportPrivate != nil && *s.URLImportPrivate && s.URLImport != nil && *s.URLImport {
					return "url_import_private is true"
				}
				return ""
			},
		},
		{
			risk: RiskSecretsShown, setting: "secrets.mask_outputs",
			what:   "the values of secrets stay in outputs and their records where a script prints them",
			remedy: "set secrets.mask_outputs: true",
			found: func(s Settings, _ Seen) string {
				if s.MaskOutputs != nil && !*s.MaskOutputs {
					return "secrets.mask_outputs is false"
				}
				return ""
			},
		},
	}
}

// public reports whether public_url names anything but this machine.
func (s Settings) public() bool {
	parsed, err := url.Parse(s.PublicURL)
	if s.PublicURL == "" || err != nil {
		return false
	}
	ip := net.ParseIP(parsed.Hostname())
	return parsed.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}

// readableKey names the first file of a private key that others can read. One that is not there is reported by whoever needs it.
func readableKey(s Settings) string {
	for setting, path := range map[string]string{
		"tls.key": s.TLSKey, "secrets.key_file": s.SecretKeyFile, "remote.key": s.Remote.Key, "remote.key_file": s.Remote.KeyFile,
	} {
		if path == "" {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.Mode().Perm()&fs.FileMode(0o007) != 0 {
			return fmt.Sprintf("the file of %s has mode %04o", setting, info.Mode().Perm())
		}
	}
	return ""
}

// RiskCheck is one line of the checklist for these settings. Result is clear, refused, accepted, or unknown before the machine was
// looked at.
type RiskCheck struct {
	Risk    Risk   `json:"risk"`
	Setting string `json:"setting"`
	Result  string `json:"result"`
	// Found is where the settings take the risk; What happens then, and the Remedy.
	Found  string `json:"found,omitempty"`
	What   string `json:"what"`
	Remedy string `json:"remedy"`
}

// The results of a RiskCheck.
const (
	RiskClear    = "clear"
	RiskRefused  = "refused"
	RiskAccepted = "accepted"
	RiskUnknown  = "unknown"
)

// Checklist holds the settings against every risk. It expects resolved settings.
func (s Settings) Checklist(seen Seen) []RiskCheck {
	var checks []RiskCheck
	for _, h := range hazards() {
		check := RiskCheck{Risk: h.risk, Setting: h.setting, Result: RiskClear, What: h.what, Remedy: h.remedy}
		if s.Profile == ProfileProduction || h.everywhere {
			check.Found = h.found(s, seen)
		}
		switch {
		case check.Found != "" && s.Accepts(h.risk):
			check.Result = RiskAccepted
		case check.Found != "":
			check.Result = RiskRefused
		case h.risk == RiskUnprovenSandbox && !seen.SandboxKnown && *s.scripts():
			check.Result = RiskUnknown
		}
		checks = append(checks, check)
	}
	return checks
}

// CheckRisks refuses to serve while the settings take a risk that the operator did not accept by name: all of them in one
// INVALID_ARGUMENT. It expects resolved settings.
func (s Settings) CheckRisks(seen Seen) error {
	var faults []string
	for _, check := range s.Checklist(seen) {
		if check.Result == RiskRefused {
			faults = append(faults, fmt.Sprintf("%s: %s: %s, or accept it by name with --accept %s", check.Found, check.What, check.Remedy, check.Risk))
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return invalid("%s", strings.Join(faults, "; "))
}

// acceptRisks reads names of risks; one that is unknown is refused.
func acceptRisks(target *[]Risk, values []string) error {
	var accepted []Risk
	var names []Risk
	for _, h := range hazards() {
		names = append(names, h.risk)
	}
	for _, value := range values {
		at := slices.IndexFunc(hazards(), func(h hazard) bool { return value == string(h.risk) || value == string(h.formerly) && value != "" })
		if at < 0 {
			var risk Risk
			return oneOf(&risk, value, names...)
		}
		accepted = append(accepted, hazards()[at].risk)
	}
	*target = accepted
	return nil
}

// riskDoc is what the reference says about accept.
func riskDoc() string {
	var names []string
	for _, h := range hazards() {
		names = append(names, string(h.risk))
	}
	return "Risks accepted by name: " + strings.Join(names, ", ") + ". The profile production does not start with one that is not (production.md)."
}

// Production writes docs/production.md: the checklist of the profile production.
func Production() string {
	var b strings.Builder
	b.WriteString(`# Production

Generated from the table in ` + "`internal/config/risk.go`" + `; a test keeps it current.

A server that listens beyond loopback, or whose ` + "`public_url`" + ` names more than this machine, has the profile ` + "`production`" + `: scripts are off and no
interpreter is allowed until the operator says otherwise, every caller needs a key, and the server does not start with a combination below until it is
mended or accepted by name. One name accepts one risk and nothing else, and an unknown name is refused.

` + "```" + `
$ sallyport serve --check               # prints the checklist for these settings, and serves nothing
` + "```" + `

` + "```yaml" + `
# server.yaml
profile: production
accept: [no_tls]        # a proxy on another machine of this private network speaks TLS
` + "```" + `

| risk | setting | what happens | instead |
|---|---|---|---|
`)
	for _, h := range hazards() {
		name := "`" + string(h.risk) + "`"
		if h.everywhere {
			name += " (profile dev too)"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, quoteSettings(h.setting), h.what, h.remedy)
	}
	b.WriteString(`
## Besides

| | |
|---|---|
| the data folder | mode 0700, of the user that runs the server; another process cannot open it |
| copies | ` + "`sallyport backup`" + ` while the server runs; keep ` + "`secrets.key`" + ` apart from copies of the database ([secrets](secrets.md)) |
| the trail | send ` + "`checkpoints.jsonl`" + ` to another machine: only a copy outside proves its end; decide how long entries are kept ([audit](audit.md)) |
| the sandbox | ` + "`sallyport doctor`" + ` on the machine itself, as the user that runs the server |
| keys | one for each agent, with the scopes it needs, that ends ([identity](identity.md)) |
| failed logins | counted by remote address and slowed down with 429 and Retry-After, before anything is looked up |
| quotas | ` + "`quotas.*`" + ` for tenants and principals ([quotas](quotas.md)) |
`)
	return b.String()
}

func quoteSettings(list string) string {
	settings := strings.Split(list, ", ")
	for i, setting := range settings {
		settings[i] = "`" + setting + "`"
	}
	return strings.Join(settings, ", ")
}
