package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport"
)

const envPrefix = "SALLYPORT_"

// The variables that are no setting of a server but say where a command turns to.
const (
	envURL    = envPrefix + "URL"
	envKey    = envPrefix + "KEY"
	envConfig = envPrefix + "CONFIG"
)

// Environment is all that the process takes from its environment. Make it with [ReadEnvironment] or [ParseEnvironment].
type Environment struct {
	// URL and Key name a server to talk to instead of a data folder.
	URL string
	Key sallyport.Secret
	// ConfigFile is the server.yaml to read when no flag names one.
	ConfigFile string
	// NoColor asks for plain output.
	NoColor bool
	// RuntimeDir is the user's own volatile folder; empty when the session has none.
	RuntimeDir string

	// OTel are the variables of OpenTelemetry, OTEL_ and all, which the server reads.
	OTel map[string]string

	dataHome string            // empty when there is neither a data home nor a home
	values   map[string]string // by variable
	unknown  []string
}

// ReadEnvironment reads the environment of this process.
func ReadEnvironment() Environment { return ParseEnvironment(os.Environ()) }

// ParseEnvironment reads name=value pairs. A variable that is set to nothing counts as unset.
func ParseEnvironment(pairs []string) Environment {
	env := Environment{values: map[string]string{}}
	home, dataHome, term := "", "", ""
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		if value == "" {
			continue
		}
		switch name {
		case envURL:
			env.URL = value
		case envKey:
			env.Key = sallyport.Secret(value)
		case envConfig:
			env.ConfigFile = value
		case "HOME":
			home = value
		case "XDG_DATA_HOME":
			dataHome = value
		case "XDG_RUNTIME_DIR":
			env.RuntimeDir = value
		case "NO_COLOR":
			env.NoColor = true
		case "TERM":
			term = value
		default:
			if strings.HasPrefix(name, "OTEL_") {
				if env.OTel == nil {
					env.OTel = map[string]string{}
				}
				env.OTel[name] = value
			}
			keep(&env, name, value)
		}
	}
	env.NoColor = env.NoColor || term == "dumb"
	// A relative data home is invalid by its specification and ignored.
	switch {
	case filepath.IsAbs(dataHome):
		env.dataHome = dataHome
	case filepath.IsAbs(home):
		env.dataHome = filepath.Join(home, ".local", "share")
	}
	slices.Sort(env.unknown)
	return env
}

// keep sorts a variable of ours into settings and unknown ones; any other is not looked at.
func keep(e *Environment, name, value string) {
	if !strings.HasPrefix(name, envPrefix) {
		return
	}
	for _, row := range table() {
		if row.env() == name {
			e.values[name] = value
			return
		}
	}
	// A cluster puts these beside every process when a service is called sallyport.
	if !strings.HasPrefix(name, envPrefix+"SERVICE_") && !strings.HasPrefix(name, envPrefix+"PORT") {
		e.unknown = append(e.unknown, name)
	}
}

// apply sets what the environment says.
func (e Environment) apply(s *Settings) error {
	for _, row := range table() {
		value, set := e.values[row.env()]
		if !set {
			continue
		}
		if err := row.setText(s, value); err != nil {
			return invalid("%s: %v", row.env(), err)
		}
	}
	for _, name := range e.unknown {
		s.Warnings = append(s.Warnings, "the environment variable "+name+" is no setting and was ignored")
	}
	return nil
}
