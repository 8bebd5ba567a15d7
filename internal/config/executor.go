package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport"
)

// The kinds of executor that settings mean something for.
const (
	executorContainer   = "container"
	executorRemote      = "remote"
	executorUnsafeLocal = "unsafelocal"
)

// ContainerSettings say which engine starts containers, and of which images.
type ContainerSettings struct {
	// Socket is an absolute path.
	Socket string
	// Images names the image of a runtime: python, bash, node or a runtime's own name.
	Images map[string]string
	// RequireDigest refuses images that are not named by digest or id; nil means no.
	RequireDigest *bool
}

// RemoteSettings say which runners serve and how they are spoken to.
type RemoteSettings struct {
	// Runners are base URLs.
	Runners []string
	// KeyFile holds the bearer key; CA the authorities to trust; Cert and Key the certificate to show, both or neither.
	KeyFile, CA, Cert, Key string
	// Layers and Features are what a runner provides that declares nothing.
	Layers   []sallyport.Layer
	Features []sallyport.Feature
}

// RunnerSettings describe this machine as a runner.
type RunnerSettings struct {
	// Listen is the TCP address, host:port; empty means DefaultRunnerListen.
	Listen string
	// KeyFile holds the bearer keys, one a line; Cert and Key are what it serves TLS with, ClientCA the authorities whose
	// certificates it asks for.
	KeyFile, Cert, Key, ClientCA string
	Slots                        int
	CacheBytes                   int64
	// Runtimes maps what a server calls a runtime to a program of this host.
	Runtimes map[string]string
}

// DefaultRunnerListen is where a runner listens when nothing else is said.
const DefaultRunnerListen = "127.0.0.1:8788"

// executorFaults finds settings that contradict the choice of executor.
func (s Settings) executorFaults(fault func(string)) {
	remote := s.Executor == executorRemote
	if remote && len(s.Remote.Runners) == 0 {
		fault("executor: remote needs runners; set remote.runners")
	}
	if !remote && len(s.Remote.Runners) > 0 {
		fault("remote.runners: is set and the executor is not remote; set executor: remote, or take the runners out")
	}
	if s.Executor == executorContainer && s.Container.Socket == "" {
		fault("executor: container needs an engine; set container.socket to its socket, such as /run/podman/podman.sock")
	}
	if s.Executor == executorUnsafeLocal && !s.Accepts(RiskUnsafeLocal) {
		fault("executor: unsafelocal runs scripts without any isolation, as the user who started the server; " +
			"accept that by name with accept: " + string(RiskUnsafeLocal) + ", or take the executor out")
	}
	if (s.Remote.Cert == "") != (s.Remote.Key == "") {
		fault("remote: remote.cert and remote.key go together")
	}
	if (s.Runner.Cert == "") != (s.Runner.Key == "") {
		fault("runner: runner.cert and runner.key go together")
	}
	if s.Runner.ClientCA != "" && s.Runner.Cert == "" {
		fault("runner.client_ca: needs runner.cert and runner.key")
	}
	s.runtimeFaults(fault)
}

// provides sorts words into layers and features.
func provides(r *RemoteSettings, values []string) error {
	var layers []sallyport.Layer
	var features []sallyport.Feature
	for _, value := range values {
		switch {
		case slices.Contains(sallyport.Layers(), sallyport.Layer(value)):
			layers = append(layers, sallyport.Layer(value))
		case slices.Contains(sallyport.Features(), sallyport.Feature(value)):
			features = append(features, sallyport.Feature(value))
		default:
			var words []string
			for _, layer := range sallyport.Layers() {
				words = append(words, string(layer))
			}
			for _, feature := range sallyport.Features() {
				words = append(words, string(feature))
			}
			return fmt.Errorf("want layers and features out of %s, got %s", strings.Join(words, ", "), quote(value))
		}
	}
	r.Layers, r.Features = layers, features
	return nil
}

// images accepts a map of runtimes to references of images; what a reference may be is the executor's to say.
func images(target *map[string]string, values map[string]string) error {
	for name, ref := range values {
		if !runtimeWord(name) {
			return errors.New("want a runtime's name such as python, got " + quote(name))
		}
		if ref == "" || strings.ContainsAny(ref, " \t\n") {
			return fmt.Errorf("%s: want an image such as python@sha256:..., got %s", name, quote(ref))
		}
	}
	*target = values
	return nil
}

// runtimes accepts a map of names to programs of this host.
func runtimes(target *map[string]string, values map[string]string) error {
	list := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !runtimeWord(name) {
			return errors.New("want a runtime's name such as python-3.12, got " + quote(name))
		}
		var path string
		if err := program(&path, values[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		list[name] = path
	}
	*target = list
	return nil
}

// runtimeWord reports whether s is lower-case letters, digits, dots, dashes and underscores behind a letter or digit.
func runtimeWord(s string) bool {
	for i := range len(s) {
		c := s[i]
		plain := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !plain && (i == 0 || c != '-' && c != '.' && c != '_') {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// RunnerRuntimes are what a server may ask this machine to run scripts with: each row of the allow-list by its program and by its
// runtime, and what runner.runtimes names.
func (s Settings) RunnerRuntimes(found []sallyport.Interpreter) map[string]sallyport.Interpreter {
	list := map[string]sallyport.Interpreter{}
	for _, row := range s.AllowList(found) {
		names := []string{row.Program, row.Runtime}
		if row.Root != "" || row.Image != "" {
			names = names[1:] // its program is not this host's
		}
		for _, name := range names {
			if _, taken := list[name]; !taken {
				list[name] = row
			}
		}
	}
	for name, described := range s.Runtimes {
		// One that no extension leads to here may still be asked for.
		if _, taken := list[name]; !taken {
			list[name] = described.interpreter("", name)
		}
	}
	for name, path := range s.Runner.Runtimes {
		list[name] = sallyport.Interpreter{Runtime: runtimeName("", path), Program: path}
	}
	return list
}
