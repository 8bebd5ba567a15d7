package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/config"
)

func writeFile(tb testing.TB, text string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "server.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

func load(tb testing.TB, yaml string, environ []string, flags ...config.Flag) (config.Settings, error) {
	tb.Helper()
	src := config.Sources{Env: config.ParseEnvironment(append([]string{"HOME=/home/ada"}, environ...)), Flags: flags}
	if yaml != "" {
		src.File = writeFile(tb, yaml)
	}
	return config.Load(src)
}

// A flag beats the environment, which beats the file, which beats the default.
func TestPrecedence(t *testing.T) {
	t.Parallel()
	file := "limits: {timeout: 7s}\n"
	env := []string{"SALLYPORT_LIMITS_TIMEOUT=8s"}
	flag := config.Flag{Key: "limits.timeout", Value: "9s", Name: "--set limits.timeout"}
	for name, test := range map[string]struct {
		yaml  string
		env   []string
		flags []config.Flag
		want  time.Duration
	}{
		"default":     {"", nil, nil, 0},
		"file":        {file, nil, nil, 7 * time.Second},
		"environment": {file, env, nil, 8 * time.Second},
		"flag":        {file, env, []config.Flag{flag}, 9 * time.Second},
		"empty variable counts as unset": {
			file,
			[]string{"SALLYPORT_LIMITS_TIMEOUT="},
			nil,
			7 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := load(t, test.yaml, test.env, test.flags...)
			if err != nil {
				t.Fatal(err)
			}
			if s.Limits.Timeout != test.want {
				t.Errorf("timeout: got %v, want %v", s.Limits.Timeout, test.want)
			}
		})
	}
}

func TestFileSetsEverything(t *testing.T) {
	t.Parallel()
	s, err := load(t, `
data: /srv/sallyport
state: /srv/state
listen: 0.0.0.0:9000
tls: {cert: /c.pem, key: /k.pem}
profile: production
accept: [insecure-listen, unproven-sandbox]
scripts_enabled: true
isolation: degrade
interpreters:
  py: /usr/bin/python3
  rb: /usr/bin/ruby3.1
executor: bubblewrap
required_executor: container
bubblewrap: /usr/bin/bwrap
sandbox_profile: strict
runner:
  listen: 10.0.0.1:8788
  key_file: /r.keys
  cert: /r.pem
  key: /r.key
  client_ca: /ca.pem
  slots: 3
  cache: 1MiB
  runtimes: {python-3.12: /usr/bin/python3.12}
limits:
  timeout: 10s
  max_timeout: 2m
  grace: 1s
  memory: 256MiB
  processes: 32
  cpu_millis: 500
  cpu_time: 90s
  scratch: 8MiB
  output: 1024
  artifacts: 1GiB
  artifact_files: 4
  arguments: 1KiB
  script: 2KiB
  body: 3KiB
  import: 4KiB
slots: {total: 4, per_tenant: 2}
queue: {length: 1, wait: 2s}
log: {level: debug, format: json}
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := config.Settings{
		DataDir: "/srv/sallyport", StateDir: "/srv/state", Listen: "0.0.0.0:9000",
		TLSCert: "/c.pem", TLSKey: "/k.pem", Profile: config.ProfileProduction,
		Accept:  []config.Risk{config.RiskNoTLS, config.RiskUnprovenSandbox},
		Scripts: new(true), Isolation: config.IsolationDegrade,
		Interpreters: map[string]string{"py": "/usr/bin/python3", "rb": "/usr/bin/ruby3.1"},
		Executor:     "bubblewrap", RequiredExecutor: "container",
		Bubblewrap: "/usr/bin/bwrap", SandboxProfile: config.SandboxProfileStrict,
		Runner: config.RunnerSettings{
			Listen: "10.0.0.1:8788", KeyFile: "/r.keys", Cert: "/r.pem", Key: "/r.key", ClientCA: "/ca.pem", Slots: 3, CacheBytes: 1 << 20,
			Runtimes: map[string]string{"python-3.12": "/usr/bin/python3.12"},
		},
		Limits: sallyport.Limits{
			Timeout: 10 * time.Second, MemoryBytes: 256 << 20, Processes: 32, CPUMillis: 500, ScratchBytes: 8 << 20,
			OutputBytes: 1024, ArtifactBytes: 1 << 30, ArtifactFiles: 4, CPUTime: 90 * time.Second,
		},
		MaxTimeout: 2 * time.Minute, Grace: time.Second,
		MaxArguments: 1 << 10, MaxScript: 2 << 10, MaxBody: 3 << 10, MaxImport: 4 << 10,
		SlotsTotal: 4, SlotsPerTenant: 2, QueueLength: 1, QueueWait: 2 * time.Second,
		LogLevel: "debug", LogFormat: "json",
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

func TestFileFaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ yaml, want string }{
		"unknown":             {"listen: 127.0.0.1:1\nlisten_on: x\n", `server.yaml:2: there is no setting "listen_on"`},
		"misspelled":          {"limits:\n  timeot: 3s\n", `server.yaml:2: there is no setting "limits.timeot"; did you mean limits.timeout?`},
		"unknown group":       {"a:\n  b: 1\n", `server.yaml:1: there is no setting "a"`},
		"wrong case":          {"Listen: x\n", `there is no setting "Listen"; did you mean listen?`},
		"twice":               {"scripts_enabled: true\nscripts_enabled: false\n", "2"},
		"twice, dotted":       {"limits: {timeout: 3s}\nlimits.timeout: 4s\n", "server.yaml:2: limits.timeout: is set on line 1 already"},
		"bad duration":        {"limits:\n  timeout: soon\n", `server.yaml:2: limits.timeout: want a duration such as 30s or 1m, got "soon"`},
		"bare number":         {"limits: {timeout: 30}\n", `want a duration`},
		"negative":            {"queue: {wait: -3s}\n", `want a duration`},
		"bad size":            {"limits: {memory: 1XB}\n", `limits.memory: want a size`},
		"zero size":           {"limits: {memory: 0}\n", `limits.memory: want a size`},
		"size too large":      {"limits: {memory: 99999999GiB}\n", `limits.memory: want a size`},
		"zero count":          {"slots: {total: 0}\n", `slots.total: want a whole number`},
		"yes is not true":     {"scripts_enabled: yes\n", `scripts_enabled: want true or false, got "yes"`},
		"no such profile":     {"sandbox_profile: lax\n", `sandbox_profile: want default or strict, got "lax"`},
		"bad word":            {"isolation: none\n", `isolation: want enforce or degrade, got "none"`},
		"bad executor":        {"executor: Bubble/wrap\n", `executor: want a name in lower-case letters`},
		"bad risk":            {"accept: [anything]\n", `accept: want no_tls or unproven_sandbox`},
		"relative program":    {"interpreters: {py: python3}\n", `interpreters: py: want an absolute path, got "python3"`},
		"bad extension":       {"interpreters: {.py: /usr/bin/python3}\n", `want an extension of lower-case letters`},
		"interpreters word":   {"interpreters: all\n", `want auto or a map`},
		"list for a word":     {"listen: [a, b]\n", `listen: want host:port`},
		"word for a group":    {"limits: 3\n", `there is no setting "limits"`},
		"alias":               {"tls: &a {cert: x, key: y}\nlog: *a\n", `anchors and aliases are not used here`},
		"list of maps":        {"accept: [{a: b}]\n", `want plain values in the list on line 1`},
		"two documents":       {"log: {level: info}\n---\nscripts_enabled: true\n", "server.yaml: want one document"},
		"not a map":           {"- a\n", `server.yaml:1: want settings such as`},
		"not yaml":            {"a: [1\n", `server.yaml: `},
		"tls without key":     {"tls: {cert: /c.pem}\n", "tls.cert and tls.key go together"},
		"dev beyond":          {"profile: dev\nlisten: 0.0.0.0:80\n", "dev serves loopback only"},
		"no port":             {"listen: localhost\n", "listen: want host:port"},
		"timeout over top":    {"limits: {timeout: 90s, max_timeout: 60s}\n", "limits.timeout: is over limits.max_timeout"},
		"tenant over total":   {"slots: {total: 2, per_tenant: 3}\n", "slots.per_tenant: is over slots.total"},
		"unsafe, one setting": {"executor: unsafelocal\n", "accept that by name with accept: unsafelocal"},
		"remote, no runners":  {"executor: remote\n", "set remote.runners"},
		"runners, not remote": {"remote: {runners: [https://a]}\n", "the executor is not remote"},
		"runner is no URL":    {"executor: remote\nremote: {runners: [a:1]}\n", `remote.runners: want a URL such as https://host:8788, got "a:1"`},
		"provides nonsense":   {"remote: {provides: [moat]}\n", `remote.provides: want layers and features out of user_namespace`},
		"remote cert alone":   {"executor: remote\nremote: {runners: [https://a], cert: /c}\n", "remote.cert and remote.key go together"},
		"runner cert alone":   {"runner: {cert: /c}\n", "runner.cert and runner.key go together"},
		"runner CA alone":     {"runner: {client_ca: /c}\n", "runner.client_ca: needs runner.cert"},
		"runtimes are a word": {"runner: {runtimes: all}\n", `runner.runtimes: want a map of name to program, got "all"`},
		"runtime's bad name":  {"runner: {runtimes: {../x: /usr/bin/x}}\n", `want a runtime's name such as python-3.12`},
		"runtime not a path":  {"runner: {runtimes: {x: y}}\n", `x: want an absolute path, got "y"`},
		"two faults at once":  {"listen: x\ntls: {key: k}\n", "want host:port, got \"x\"; tls:"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, test.yaml, nil)
			if code := sallyport.CodeOf(err); code != sallyport.CodeInvalidArgument {
				t.Fatalf("code: got %q (%v), want INVALID_ARGUMENT", code, err)
			}
			if got := sallyport.Public(err).Message; !strings.Contains(got, test.want) {
				t.Errorf("message: got %q, want it to contain %q", got, test.want)
			}
		})
	}
}

// With runners, the allow-list may name runtimes, and says them as they are.
func TestRemote(t *testing.T) {
	t.Parallel()
	s, err := load(t, `
executor: remote
interpreters: {py: python-3.12, sh: /bin/bash}
remote:
  runners: ["https://a:1", "https://b:1"]
  key_file: /k
  ca: /ca.pem
  cert: /c.pem
  key: /c.key
  provides: [argv, network_isolation]
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := config.RemoteSettings{
		Runners: []string{"https://a:1", "https://b:1"}, KeyFile: "/k", CA: "/ca.pem", Cert: "/c.pem", Key: "/c.key",
		Layers: []sallyport.Layer{sallyport.LayerNetworkIsolation}, Features: []sallyport.Feature{sallyport.FeatureArgv},
	}
	if diff := cmp.Diff(want, s.Remote); diff != "" {
		t.Errorf("remote (-want +got):\n%s", diff)
	}
	rows := []sallyport.Interpreter{
		{Extension: "py", Runtime: "python-3.12", Program: "python-3.12"}, {Extension: "sh", Runtime: "bash", Program: "/bin/bash"},
	}
	if diff := cmp.Diff(rows, s.AllowList(nil)); diff != "" {
		t.Errorf("allow-list (-want +got):\n%s", diff)
	}
}

// A runner knows its interpreters by program and by runtime, and what it was told a name means.
func TestRunnerRuntimes(t *testing.T) {
	t.Parallel()
	s, err := load(t, "runner: {runtimes: {python-3.12: /opt/bin/python3.12}}\ninterpreters: {py: /usr/bin/python3}\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	row := sallyport.Interpreter{Extension: "py", Runtime: "python", Program: "/usr/bin/python3"}
	want := map[string]sallyport.Interpreter{
		"/usr/bin/python3": row, "python": row, "python-3.12": {Runtime: "python", Program: "/opt/bin/python3.12"},
	}
	if diff := cmp.Diff(want, s.RunnerRuntimes(nil)); diff != "" {
		t.Errorf("runtimes (-want +got):\n%s", diff)
	}
}

// Scripts run without isolation only where two settings say so, and then no layer is asked for.
func TestUnsafeLocal(t *testing.T) {
	t.Parallel()
	s, err := load(t, "executor: unsafelocal\naccept: [unsafe-local]\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	if layers := s.Server(config.Parts{}).RequiredLayers; layers == nil || len(layers) != 0 {
		t.Errorf("required layers: got %v", layers)
	}
}

func TestFileThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"absent": filepath.Join(t.TempDir(), "no.yaml"), "folder": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Load(config.Sources{File: path, Env: config.ParseEnvironment([]string{"HOME=/h"})})
			if code := sallyport.CodeOf(err); code != sallyport.CodeInvalidArgument {
				t.Errorf("code: got %q (%v), want INVALID_ARGUMENT", code, err)
			}
		})
	}
}

func TestEmptyFileIsTheDefaults(t *testing.T) {
	t.Parallel()
	want, err := load(t, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, yaml := range map[string]string{"blank": "\n", "comment": "# nothing\n", "null": "null\n", "unset": "data:\ntls: {cert: , key: }\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := load(t, yaml, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	s, err := load(t, "", []string{
		"SALLYPORT_DATA=/srv/d", "SALLYPORT_ACCEPT=insecure-listen", "SALLYPORT_INTERPRETERS=py=/usr/bin/python3,sh=/bin/bash",
		"SALLYPORT_TLS_CERT=/c", "SALLYPORT_TLS_KEY=/k", "SALLYPORT_LIMIT_TIMEOUT=3s", "SALLYPORT_SERVICE_HOST=10.0.0.1",
		"SALLYPORT_PORT_8787_TCP=tcp://10.0.0.1:8787", "SALLYPORTER=x",
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.DataDir != "/srv/d" || !s.Accepts(config.RiskNoTLS) || !s.TLS() || s.Interpreters["sh"] != "/bin/bash" {
		t.Errorf("settings: got %+v", s)
	}
	if len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "SALLYPORT_LIMIT_TIMEOUT") {
		t.Errorf("warnings: got %q, want one about SALLYPORT_LIMIT_TIMEOUT", s.Warnings)
	}
	_, err = load(t, "", []string{"SALLYPORT_SCRIPTS_ENABLED=maybe"})
	if message := sallyport.Public(err); message == nil || !strings.Contains(message.Message, "SALLYPORT_SCRIPTS_ENABLED: want true or false") {
		t.Errorf("bad variable: got %v", err)
	}
}

func TestEnvironmentOfAClient(t *testing.T) {
	t.Parallel()
	env := config.ParseEnvironment([]string{
		"SALLYPORT_URL=https://x", "SALLYPORT_KEY=spk_1", "SALLYPORT_CONFIG=/s.yaml", "NO_COLOR=1", "XDG_RUNTIME_DIR=/run/user/1",
	})
	if env.URL != "https://x" || env.Key != "spk_1" || env.ConfigFile != "/s.yaml" || !env.NoColor || env.RuntimeDir != "/run/user/1" {
		t.Errorf("environment: got %+v", env)
	}
}

func TestDataFolderDefault(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		environ []string
		want    string // empty: refused
	}{
		"data home":          {[]string{"XDG_DATA_HOME=/d", "HOME=/h"}, "/d/sallyport"},
		"home":               {[]string{"HOME=/h"}, "/h/.local/share/sallyport"},
		"relative data home": {[]string{"XDG_DATA_HOME=d", "HOME=/h"}, "/h/.local/share/sallyport"},
		"neither":            {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := config.Load(config.Sources{Env: config.ParseEnvironment(test.environ)})
			if (err != nil) != (test.want == "") {
				t.Fatalf("error: got %v", err)
			}
			if s.DataDir != test.want {
				t.Errorf("data folder: got %q, want %q", s.DataDir, test.want)
			}
		})
	}
}

func TestFlagFaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		flag config.Flag
		want string
	}{
		"unknown": {config.Flag{Key: "limit.timeout", Value: "1s", Name: "--set"}, "--set: there is no setting"},
		"bad":     {config.Flag{Key: "scripts_enabled", Value: "on", Name: "--set scripts_enabled"}, "--set scripts_enabled: want true or false"},
		"pairs":   {config.Flag{Key: "interpreters", Value: "py=/a,py=/b", Name: "--set interpreters"}, "each name once"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, "", nil, test.flag)
			if public := sallyport.Public(err); public == nil || !strings.Contains(public.Message, test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// FuzzFile holds that no file panics and that every refusal is a clean one.
func FuzzFile(f *testing.F) {
	f.Add("listen: 127.0.0.1:1\n")
	f.Add("interpreters: {py: /usr/bin/python3}\naccept: [no_tls]\n")
	f.Add("? [a]\n: b\n")
	f.Fuzz(func(t *testing.T, yaml string) {
		_, err := load(t, yaml, nil)
		if err != nil && sallyport.CodeOf(err) != sallyport.CodeInvalidArgument {
			t.Errorf("%q: got %v, want INVALID_ARGUMENT", yaml, err)
		}
	})
}
