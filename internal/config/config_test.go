package config_test

import (
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/config"
)

var update = flag.Bool("update", false, "rewrite golden files")

func found() []sallyport.Interpreter {
	return []sallyport.Interpreter{{Extension: "py", Runtime: "python", Program: "/usr/bin/python3"}}
}

func TestProfile(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		yaml               string
		scripts, principal bool
		interpreters       []sallyport.Interpreter
	}{
		"loopback":               {"", true, true, found()},
		"ipv6 loopback":          {"listen: '[::1]:80'\n", true, true, found()},
		"localhost":              {"listen: localhost:80\n", true, true, found()},
		"every interface":        {"listen: ':8787'\n", false, false, nil},
		"host name":              {"listen: example.org:80\n", false, false, nil},
		"production on loopback": {"profile: production\n", false, false, nil},
		"scripts off in dev":     {"scripts_enabled: false\n", false, true, found()},
		"production, opened": {
			"profile: production\nscripts_enabled: true\ninterpreters: {rb: /usr/bin/ruby3.1, sh: /bin/dash}\n", true, false,
			[]sallyport.Interpreter{
				{Extension: "rb", Runtime: "ruby", Program: "/usr/bin/ruby3.1"},
				{Extension: "sh", Runtime: "bash", Program: "/bin/dash"},
			},
		},
		"production, auto": {"profile: production\ninterpreters: auto\n", false, false, found()},
		"no interpreter":   {"interpreters: {}\n", true, true, []sallyport.Interpreter{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := load(t, test.yaml, nil)
			if err != nil {
				t.Fatal(err)
			}
			cfg := s.Server(config.Parts{Found: found()})
			if cfg.ScriptsEnabled != test.scripts {
				t.Errorf("scripts_enabled: got %v, want %v", cfg.ScriptsEnabled, test.scripts)
			}
			if cfg.LoopbackPrincipal != test.principal {
				t.Errorf("keyless principal: got %v, want %v", cfg.LoopbackPrincipal, test.principal)
			}
			if diff := cmp.Diff(test.interpreters, cfg.Interpreters); diff != "" {
				t.Errorf("interpreters (-want +got):\n%s", diff)
			}
		})
	}
}

// The zero value of Settings opens nothing.
func TestZeroSettingsRefuse(t *testing.T) {
	t.Parallel()
	cfg := config.Settings{}.Server(config.Parts{Found: found()})
	if cfg.ScriptsEnabled || cfg.LoopbackPrincipal || len(cfg.Interpreters) != 0 || cfg.RequiredLayers != nil {
		t.Errorf("got %+v, want nothing open and every layer required", cfg)
	}
}

func TestIsolation(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		yaml string
		want []sallyport.Layer
	}{
		"enforce demands all":  {"isolation: enforce\n", nil},
		"degrade demands none": {"isolation: degrade\n", []sallyport.Layer{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := load(t, test.yaml, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, s.Server(config.Parts{}).RequiredLayers); diff != "" {
				t.Errorf("required layers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLevel(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]slog.Level{
		"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
	} {
		if got := (config.Settings{LogLevel: word}).Level(); got != want {
			t.Errorf("%s: got %v, want %v", word, got, want)
		}
	}
}

func TestReferenceIsCurrent(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "docs", "config.md")
	if *update {
		if err := os.WriteFile(path, []byte(config.Reference()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(config.Reference(), string(got)); diff != "" {
		t.Errorf("docs/config.md is stale, run go test ./internal/config -update (-want +got):\n%s", diff)
	}
}

func TestProductionIsCurrent(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "docs", "production.md")
	if *update {
		if err := os.WriteFile(path, []byte(config.Production()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(config.Production(), string(got)); diff != "" {
		t.Errorf("docs/production.md is stale, run go test ./internal/config -update (-want +got):\n%s", diff)
	}
}
