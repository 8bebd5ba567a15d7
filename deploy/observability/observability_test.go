package observability_test

import (
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// served reads the generated reference: every metric with its kind and labels.
func served(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	metrics := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(sallyport_[a-z_]+)` \\| (\\w+) \\| ([^|]*) \\|").FindAllStringSubmatch(string(text), -1) {
		var names []string
		for _, name := range regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(row[3], -1) {
			names = append(names, name[1])
		}
		if row[2] == "histogram" {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				metrics[row[1]+suffix] = append(slices.Clone(names), "le")
			}
			continue
		}
		metrics[row[1]] = names
	}
	if len(metrics) < 10 {
		t.Fatalf("the reference has %d metrics", len(metrics))
	}
	// What the runtime, the process and a scrape have beside ours.
	for _, name := range []string{"up", "process_resident_memory_bytes", "process_open_fds", "go_goroutines"} {
		metrics[name] = nil
	}
	return metrics
}

// check parses an expression and looks up every metric and label in it, and returns the metrics.
func check(t *testing.T, where, expression string, metrics map[string][]string) []string {
	t.Helper()
	// Grafana's own variables stand for these.
	expression = strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*").Replace(expression)
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
	if err != nil {
		t.Errorf("%s: %v in %s", where, err, expression)
		return nil
	}
	var used, known []string
	known = []string{"instance", "job"}
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		has, found := metrics[selector.Name]
		if !found {
			t.Errorf("%s: the server does not serve %s", where, selector.Name)
		}
		used, known = append(used, selector.Name), append(known, has...)
		for _, matcher := range selector.LabelMatchers {
			if matcher.Name != labels.MetricName && !slices.Contains(append([]string{"instance", "job"}, has...), matcher.Name) {
				t.Errorf("%s: %s has no label %s", where, selector.Name, matcher.Name)
			}
		}
		return nil
	})
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if by, ok := node.(*parser.AggregateExpr); ok {
			for _, name := range by.Grouping {
				if !slices.Contains(known, name) {
					t.Errorf("%s: sums by %s, which nothing in it has", where, name)
				}
			}
		}
		return nil
	})
	if len(used) == 0 {
		t.Errorf("%s: %s reads no metric", where, expression)
	}
	return used
}

func TestRules(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(content, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Error(err)
	}
	if groups == nil || len(groups.Groups) == 0 {
		t.Fatal("no rules")
	}
	metrics, names := served(t), []string{}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			check(t, rule.Alert, rule.Expr, metrics)
			names = append(names, rule.Alert)
			if !slices.Contains([]string{"critical", "warning", "info"}, rule.Labels["severity"]) || rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
				t.Errorf("%s lacks a severity, a summary or a description", rule.Alert)
			}
		}
	}
	manual, err := os.ReadFile("../../docs/telemetry.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.Contains(string(manual), "`"+name+"`") {
			t.Errorf("docs/telemetry.md does not say what to do about %s", name)
		}
	}
}

func TestDashboard(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		UID, Title    string
		SchemaVersion int
		Panels        []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr, RefID string }
		}
		Templating struct {
			List []struct{ Name, Definition string }
		}
	}
	if err := json.Unmarshal(content, &dashboard); err != nil {
		t.Fatal(err)
	}
	if dashboard.UID == "" || dashboard.SchemaVersion == 0 || len(dashboard.Panels) == 0 {
		t.Fatalf("no dashboard: %+v", dashboard)
	}
	metrics, shown, ids := served(t), map[string]bool{}, map[int]bool{}
	for _, panel := range dashboard.Panels {
		if ids[panel.ID] || panel.Title == "" || len(panel.Targets) == 0 || panel.GridPos.X+panel.GridPos.W > 24 {
			t.Errorf("the panel %d %q is not one", panel.ID, panel.Title)
		}
		ids[panel.ID] = true
		for _, target := range panel.Targets {
			for _, name := range check(t, panel.Title, target.Expr, metrics) {
				shown[name] = true
			}
		}
	}
	for _, variable := range dashboard.Templating.List {
		if _, query, found := strings.Cut(variable.Definition, "label_values("); found {
			metric, _, _ := strings.Cut(query, ",")
			if _, served := metrics[metric]; !served {
				t.Errorf("the variable %s asks for %s", variable.Name, metric)
			}
		}
	}
	// What is served and shown to nobody is missing from the dashboard.
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		if strings.HasPrefix(name, "sallyport_") && !strings.HasSuffix(name, "_sum") && !strings.HasSuffix(name, "_count") && !shown[name] {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}
