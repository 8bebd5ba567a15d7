package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/config"
)

// Each risk stops the start with the setting and the remedy in its sentence, until it and no other is accepted.
func TestRisks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key := func(name string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	open, group, own := key("open", 0o644), key("group", 0o640), key("own", 0o600)
	const production, beyond, tls = "profile: production\n", "listen: 0.0.0.0:80\n", "tls: {cert: c, key: k}\n"
	proven, unproven := config.Seen{SandboxKnown: true, SandboxProven: true}, config.Seen{SandboxKnown: true}
	for name, test := range map[string]struct {
		yaml string
		seen config.Seen
		risk config.Risk // empty: it starts
		says string
	}{
		"loopback":                   {"", unproven, "", ""},
		"production on loopback":     {production, proven, "", ""},
		"in the clear":               {beyond, proven, config.RiskNoTLS, "set tls.cert and tls.key"},
		"a public name in the clear": {"public_url: http://skills.example.com\n", proven, config.RiskNoTLS, "set tls.cert and tls.key"},
		"a public name":              {"public_url: https://skills.example.com\n", proven, "", ""},
		"a local name":               {"public_url: http://127.0.0.1:8787\n", unproven, "", ""},
		"tls":                        {beyond + tls, proven, "", ""},
		"unproven":                   {beyond + tls + "scripts_enabled: true\n", unproven, config.RiskUnprovenSandbox, "see sallyport doctor"},
		"unproven on loopback":       {production + "scripts_enabled: true\n", unproven, config.RiskUnprovenSandbox, "see sallyport doctor"},
		"unproven, scripts off":      {beyond + tls, unproven, "", ""},
		"not looked at yet":          {beyond + tls + "scripts_enabled: true\n", config.Seen{}, "", ""},
		"degrade":                    {production + "isolation: degrade\nscripts_enabled: true\n", proven, config.RiskIsolationDegrade, "set isolation: enforce"},
		"degrade, scripts off":       {production + "isolation: degrade\n", proven, "", ""},
		"degrade in dev":             {"isolation: degrade\n", unproven, "", ""},
		"dev behind a proxy":         {"profile: dev\npublic_url: https://skills.example.com\n", proven, config.RiskKeylessLoopback, "take profile: dev out"},
		"a key for everybody":        {beyond + "tls: {cert: c, key: " + open + "}\n", proven, config.RiskWorldReadableKey, "chmod o-rwx"},
		"a key for a group":          {beyond + "tls: {cert: c, key: " + group + "}\n", proven, "", ""},
		"a key of secrets":           {production + "secrets: {key_file: " + open + "}\n", proven, config.RiskWorldReadableKey, "secrets.key_file has mode 0644"},
		"an own key of secrets":      {production + "secrets: {key_file: " + own + "}\n", proven, "", ""},
		"private imports":            {production + "url_import: true\nurl_import_private: true\n", proven, config.RiskURLImportPrivate, "set url_import_private: false"},
		"private and off":            {production + "url_import_private: true\n", proven, "", ""},
		"secrets shown":              {production + "secrets: {mask_outputs: false}\n", proven, config.RiskSecretsShown, "set secrets.mask_outputs: true"},
		"secrets shown in dev":       {"secrets: {mask_outputs: false}\n", proven, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := load(t, test.yaml, nil)
			if err != nil {
				t.Fatal(err)
			}
			err = s.CheckRisks(test.seen)
			if test.risk == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), "--accept "+string(test.risk)) {
				t.Fatalf("got %v, want %s with %q", err, test.risk, test.says)
			}
			for _, check := range s.Checklist(test.seen) {
				if (check.Result == config.RiskRefused) != (check.Risk == test.risk) {
					t.Errorf("%s is %s", check.Risk, check.Result)
				}
				accepted, err := load(t, test.yaml+"accept: ["+string(check.Risk)+"]\n", nil)
				if err != nil {
					t.Fatal(err)
				}
				if err := accepted.CheckRisks(test.seen); (err == nil) != (check.Risk == test.risk) {
					t.Errorf("with %s accepted: %v", check.Risk, err)
				}
			}
		})
	}
}

// Every risk of the table has a case above, and a setting that exists.
func TestRisksAreReal(t *testing.T) {
	t.Parallel()
	reference := config.Reference()
	s, err := load(t, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, check := range s.Checklist(config.Seen{}) {
		for setting := range strings.SplitSeq(check.Setting, ", ") {
			if !strings.Contains(reference, "| `"+setting+"` |") {
				t.Errorf("%s names the setting %q, which there is not", check.Risk, setting)
			}
		}
		if !strings.Contains(config.Production(), "`"+string(check.Risk)+"`") {
			t.Errorf("%s is not in the document", check.Risk)
		}
	}
}

// All risks are told at once, and the spelling of before is understood.
func TestRisksTogether(t *testing.T) {
	t.Parallel()
	s, err := load(t, "listen: 0.0.0.0:80\nscripts_enabled: true\nisolation: degrade\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	text := s.CheckRisks(config.Seen{SandboxKnown: true}).Error()
	for _, risk := range []config.Risk{config.RiskNoTLS, config.RiskUnprovenSandbox, config.RiskIsolationDegrade} {
		if !strings.Contains(text, "--accept "+string(risk)) {
			t.Errorf("%s is missing: %s", risk, text)
		}
	}
	s, err = load(t, "accept: [insecure-listen, unproven-sandbox, unsafe-local, isolation_degrade]\n", nil)
	if err != nil || !s.Accepts(config.RiskNoTLS) || !s.Accepts(config.RiskUnprovenSandbox) || !s.Accepts(config.RiskUnsafeLocal) || !s.Accepts(config.RiskIsolationDegrade) {
		t.Errorf("got %v, %v", s.Accept, err)
	}
	if _, err := load(t, "accept: ['']\n", nil); err == nil {
		t.Error("an empty name accepts something")
	}
}
