package infra_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

const metricsChapter = "../cmd/gateway/manual/metrics-and-logs.md"

// documented matches the metrics in the rows of the table of the chapter, with their labels.
var documented = regexp.MustCompile("`([a-z_]+)(?:\\{([a-z,]+)\\})?`")

// TestMetricsAreInTheManual: the chapter on metrics names each metric of the gateway with all of
// its labels, and no other metric.
func TestMetricsAreInTheManual(t *testing.T) {
	_, text, _ := strings.Cut(string(read(t, metricsChapter)), "| Metric |")
	table, _, _ := strings.Cut(text, "\n\n")
	all, named := exposed(t), map[string]bool{}
	for line := range strings.Lines(table) {
		columns := strings.Split(strings.Trim(line, "|\n"), "|")
		for _, m := range documented.FindAllStringSubmatch(columns[len(columns)-1], -1) {
			name := all.family("gateway_" + m[1])
			if name == "" {
				if m[2] != "" || strings.HasSuffix(m[1], "_total") {
					t.Errorf("%s: there is no metric %s", metricsChapter, m[1])
				}
				continue // the value of a label, or another name
			}
			named[name] = true
			for label := range all[name] {
				if !slices.Contains([]string{"job", "instance", "le", "version", "revision", "goversion"}, label) && !slices.Contains(strings.Split(m[2], ","), label) {
					t.Errorf("%s: %s has the label %s, and the table does not say so", metricsChapter, name, label)
				}
			}
			for label := range strings.SplitSeq(m[2], ",") {
				if _, ok := all[name][label]; label != "" && !ok {
					t.Errorf("%s: %s has no label %s", metricsChapter, name, label)
				}
			}
		}
	}
	for name := range all {
		base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
		if strings.HasPrefix(name, "gateway_") && !named[name] && !named[base+"_count"] {
			t.Errorf("%s does not name the metric %s", metricsChapter, name)
		}
	}
}

// family returns the series of a metric that has all labels: for a histogram its count.
func (s series) family(name string) string {
	for _, candidate := range []string{name, name + "_count"} {
		if s[candidate] != nil {
			return candidate
		}
	}
	return ""
}

// TestErrorClassesAreInTheManual: the chapter on metrics lists the classes of delivery_errors_total.
func TestErrorClassesAreInTheManual(t *testing.T) {
	text := regexp.MustCompile(` \([^)]*\)`).ReplaceAllString(string(read(t, metricsChapter)), "")
	list := regexp.MustCompile("`delivery_errors_total\\{handler,class\\}`: ([a-z, ]+)").FindStringSubmatch(text)
	if list == nil {
		t.Fatalf("%s has no list of the classes", metricsChapter)
	}
	got, want := strings.Split(list[1], ", "), exposed(t)["gateway_delivery_errors_total"]["class"]
	slices.Sort(got)
	slices.Sort(want)
	if want = slices.Compact(want); !slices.Equal(got, want) {
		t.Errorf("%s lists the classes %q, want %q", metricsChapter, got, want)
	}
}
