package infra_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/eventgateway/gateway/infra/test/servers"
)

// read returns a file of this folder, or of the module if the name begins with ../.
func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// parse decodes a YAML file.
func parse(t *testing.T, name string, into any) {
	t.Helper()
	if err := yaml.Unmarshal(read(t, name), into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

const rulesFile = "monitoring/prometheus/rules.yaml"

type rule struct {
	Alert, Expr string
	Labels      struct{ Severity string }
	Annotations struct{ Summary, Description string }
}

func rules(t *testing.T) []rule {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	parse(t, rulesFile, &file)
	if len(file.Groups) != 1 || len(file.Groups[0].Rules) == 0 {
		t.Fatalf("%s: %d groups", rulesFile, len(file.Groups))
	}
	return file.Groups[0].Rules
}

// TestRules: each alert queries existing metrics, says how to react, and has a test.
func TestRules(t *testing.T) {
	all, tests := exposed(t), string(read(t, "monitoring/prometheus/rules_test.yaml"))
	for _, r := range rules(t) {
		t.Run(r.Alert, func(t *testing.T) {
			all.check(t, r.Expr)
			if r.Labels.Severity != "warning" && r.Labels.Severity != "critical" {
				t.Errorf("severity %q, want warning or critical", r.Labels.Severity)
			}
			if r.Annotations.Summary == "" || r.Annotations.Description == "" {
				t.Error("summary or description is missing")
			}
			if !strings.Contains(tests, `{alertname="`+r.Alert+`"`) {
				t.Error("rules_test.yaml does not make it fire")
			}
			checkTemplates(t, r)
		})
	}
}

var hole = regexp.MustCompile(`\{\{ ?(\S+)[^}]*\}\}`)

// checkTemplates: a text uses only labels that its query keeps.
func checkTemplates(t *testing.T, r rule) {
	t.Helper()
	for _, h := range hole.FindAllStringSubmatch(r.Annotations.Summary+r.Annotations.Description, -1) {
		name, isLabel := strings.CutPrefix(h[1], "$labels.")
		kept := name == "instance" && !strings.Contains(r.Expr, " by (")
		for _, g := range grouping.FindAllStringSubmatch(r.Expr, -1) {
			kept = kept || regexp.MustCompile(`\b`+name+`\b`).MatchString(g[1])
		}
		if isLabel && !kept {
			t.Errorf("the text has %s, which the query does not keep", h[0])
		}
	}
}

// TestRulesFire: promtool accepts the files for Prometheus, and the tests in rules_test.yaml
// pass.
func TestRulesFire(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		err = fmt.Errorf("promtool: %w", servers.ErrMissing)
	}
	servers.Check(t, err)
	for _, args := range [][]string{
		{"check", "config", "--syntax-only", "prometheus.yaml"}, {"check", "rules", "rules.yaml"}, {"test", "rules", "rules_test.yaml"},
	} {
		cmd := exec.CommandContext(t.Context(), promtool, args...)
		cmd.Dir = filepath.Dir(rulesFile)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

type panel struct {
	ID          int
	Type, Title string
	GridPos     struct{ H, W, X, Y int }
	Targets     []struct{ Expr string }
}

// TestDashboard: the panels query existing metrics, and no panel overlaps another.
func TestDashboard(t *testing.T) {
	var d struct {
		UID        string
		Panels     []panel
		Templating struct {
			List []struct {
				Name  string
				Query any
			}
		}
	}
	data := read(t, "monitoring/grafana/gateway.json")
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	all := exposed(t)
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all.check(t, target.Expr)
		}
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %q asks for nothing", p.Title)
		}
	}
	checkLayout(t, d.Panels)
	known := map[string]bool{"__rate_interval": true, "__all": true}
	for _, v := range d.Templating.List {
		known[v.Name] = true
		if q, ok := v.Query.(map[string]any); ok {
			all.check(t, q["query"].(string))
		}
	}
	for _, used := range regexp.MustCompile(`\$\{?(\w+)`).FindAllSubmatch(data, -1) {
		if !known[string(used[1])] {
			t.Errorf("there is no variable %s", used[0])
		}
	}
}

func checkLayout(t *testing.T, panels []panel) {
	t.Helper()
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, p := range panels {
		if ids[p.ID] {
			t.Errorf("panel %q has the id %d of another", p.Title, p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("panel %q lies on %q or beyond the edge", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}

// TestDashboardShowsAll: every metric of the gateway is on the dashboard.
func TestDashboardShowsAll(t *testing.T) {
	dashboard := string(read(t, "monitoring/grafana/gateway.json"))
	for name := range exposed(t) {
		family := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
		if strings.HasPrefix(name, "gateway_") && !strings.Contains(dashboard, family) {
			t.Errorf("%s is on no panel", family)
		}
	}
}
