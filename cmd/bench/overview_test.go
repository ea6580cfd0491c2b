package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// overviewOf is a report of two sites: a figure of both, one of the second alone, and figures
// that have no place in the table.
func overviewOf() *report {
	r := &report{}
	rate := measure{"rate", "events/s", ratioAtLeast(0.85), []string{referenceName}}
	first := r.section("sqlite", "cpu", "tmpfs")
	first.row(rate)
	first.add("rate", gatewayName, 80)
	first.add("rate", referenceName, 100)
	first.row(measure{"memory", "MiB", atMost(25), []string{referenceName}})
	first.add("memory", gatewayName, 20)
	first.add("memory", referenceName, 10)
	r.section("mysql", "cpu", "tmpfs") // failed before its first cell
	second := r.section("hosted_sql", "disk", "ext4")
	second.row(measure{"rate", "events/s", ratioAtLeast(0.75), []string{referenceName}})
	second.add("rate", gatewayName, 80)
	second.add("rate", referenceName, 100)
	second.row(measure{"p50", "ms", ratioAtMost(5), []string{referenceName}})
	second.add("p50", gatewayName, 30)
	second.add("p50", referenceName, 10)
	second.row(measure{"p99", "ms", ratioAtMost(5), []string{referenceName}})
	second.add("p99", gatewayName, 30)
	return r
}

// TestOverview: a row of the table has the figures of all sites, each judged by its own goal.
func TestOverview(t *testing.T) {
	var got strings.Builder
	overviewOf().printOverview(&got, format{markdown: true})
	want := `
Ratios; those in parentheses miss their goal

| ratio | beside | goal | sqlite, cpu | mysql, cpu | hosted_sql, disk |
|---|---|---:|---:|---:|---:|
| rate | reference | >= 0.85 | (0.80) |  | 0.80 |
| p50 | reference | <= 5 |  |  | 3.00 |
`
	if got.String() != want {
		t.Errorf("the table is%s\nwant%s", &got, want)
	}
	got.Reset()
	(&report{}).printOverview(&got, format{})
	if got.Len() > 0 {
		t.Errorf("without figures the table is %q", &got)
	}
}

// TestPublish: the section of figures is replaced, and nothing else of the file.
func TestPublish(t *testing.T) {
	file := filepath.Join(t.TempDir(), "chapter.md")
	for _, c := range []struct{ name, text, before, after string }{
		{"in the middle", "# P\n\n## Ratios\n\nold\n\n### old\n\n## Next\n\ntext\n", "# P\n\n## Ratios\n", "\n## Next\n\ntext\n"},
		{"at the end", "# P\n\n## Ratios\n\nold\n", "# P\n\n## Ratios\n", " 3.00 |\n"},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := overviewOf().publish(file); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		}
		got, _ := os.ReadFile(file)
		if s := string(got); !strings.HasPrefix(s, c.before) || !strings.HasSuffix(s, c.after) || strings.Contains(s, "old") || strings.Count(s, "| (0.80) |") != 1 {
			t.Errorf("%s: the file is\n%s", c.name, s)
		}
	}
	for name, text := range map[string]string{"no section": "# P\n", "a heading of another level": "### Ratios\n"} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := overviewOf().publish(file); err == nil || !strings.Contains(err.Error(), `no section "## Ratios"`) {
			t.Errorf("%s: error = %v", name, err)
		}
		if got, _ := os.ReadFile(file); string(got) != text {
			t.Errorf("%s: the file was changed to %q", name, got)
		}
	}
}
