package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/eventgateway/gateway/cmd/bench/internal/machine"
	"github.com/eventgateway/gateway/cmd/bench/internal/stats"
)

// disturbing is the share of all CPUs that other processes may use. Above it, rates say
// more about those processes than about the systems: disturbed runs came out at 0.3 to 0.7
// of quiet ones.
const disturbing = 0.1

// format is how a report is written.
type format struct {
	markdown bool
	raw      bool // each run's figures, after the table
}

// print writes the report. Sections without rows, whose site failed before its first cell, are
// left out.
func (r *report) print(w io.Writer, f format) {
	bullet := ""
	if f.markdown {
		bullet = "- "
	}
	for _, line := range r.surroundings() {
		fmt.Fprintln(w, bullet+line)
	}
	r.printOverview(w, f)
	for _, s := range r.sections {
		if len(s.rows) > 0 {
			s.print(w, f)
		}
	}
}

// surroundings returns the lines above the tables: all that a reader needs to judge whether the
// figures say anything.
func (r *report) surroundings() []string {
	lines := []string{"machine: " + machine.Processor() + ", " + machine.System()}
	if len(r.others) > 0 {
		lines = append(lines, fmt.Sprintf("CPU used by processes not under test: median %.1f%%, worst run %.1f%%; steal: worst run %.1f%%",
			100*stats.Median(r.others), 100*highest(r.others), 100*highest(r.steal)))
		if stats.Median(r.others) > disturbing {
			lines = append(lines, "DISTURBED: others used the processors too; CPU an event still compares, rates and latencies hardly")
		}
	}
	for _, what := range r.leftOut {
		lines = append(lines, "left out: "+what)
	}
	return append(lines, fmt.Sprintf("checks over %d runs, %d events: %s", r.faults.Runs, r.faults.Posted, r.faults))
}

// highest returns the largest value, 0 without values.
func highest(values []float64) (high float64) {
	for _, v := range values {
		high = max(high, v)
	}
	return high
}

// columns are the headings. The ratio is the gateway's figure over that of the system named in
// "beside".
var columns = []string{"measure", "unit", "gateway", "beside", "its figure", "ratio", "aim", "met"}

// numeric are the columns that are aligned to the right.
var numeric = []int{2, 4, 5}

// print writes the table of a section, under a line that names its medium with the syncs before
// and after.
func (s *section) print(w io.Writer, f format) {
	rows := [][]string{columns}
	for _, m := range s.rows {
		rows = append(rows, s.cells(m))
	}
	mark := ""
	if f.markdown {
		mark = "#### "
	}
	fmt.Fprintf(w, "\n%s%s on %s (%s; fdatasync/s of 8 KiB before and after: %s)\n\n", mark, s.driver, s.medium, s.place, list(s.syncs))
	printRows(w, f, rows, numeric)
	if f.raw {
		s.printRaw(w, f)
	}
}

// list writes values with commas between them.
func list(values []float64) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = number(v)
	}
	return strings.Join(texts, ", ")
}

// printRaw prints the figure of each run, in the order they ran.
func (s *section) printRaw(w io.Writer, f format) {
	bullet := ""
	if f.markdown {
		bullet = "- "
	}
	fmt.Fprintln(w)
	var done []string
	for _, m := range s.rows {
		// A figure with several denominators has several rows, and its runs are printed once.
		if slices.Contains(done, m.label) {
			continue
		}
		done = append(done, m.label)
		for _, system := range slices.Sorted(maps.Keys(s.values[m.label])) {
			fmt.Fprintf(w, "%s%s, %s: %s %s\n", bullet, m.label, system, list(s.values[m.label][system]), m.unit)
		}
	}
}

// number prints three digits or so.
func number(x float64) string {
	switch {
	case math.IsNaN(x):
		return ""
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// printRows writes a table. The first row has the headings; the columns of numeric are aligned
// to the right.
func printRows(w io.Writer, f format, rows [][]string, numeric []int) {
	if f.markdown {
		printMarkdown(w, rows, numeric)
	} else {
		printAligned(w, rows, numeric)
	}
}

// printAligned pads the columns.
func printAligned(w io.Writer, rows [][]string, numeric []int) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			if slices.Contains(numeric, i) {
				line += fmt.Sprintf("%*s  ", widths[i], cell)
			} else {
				line += fmt.Sprintf("%-*s  ", widths[i], cell)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}

// printMarkdown writes a table for a document.
func printMarkdown(w io.Writer, rows [][]string, numeric []int) {
	for i, row := range rows {
		fmt.Fprintln(w, "| "+strings.Join(row, " | ")+" |")
		if i == 0 {
			line := "|"
			for column := range row {
				if slices.Contains(numeric, column) {
					line += "---:|"
				} else {
					line += "---|"
				}
			}
			fmt.Fprintln(w, line)
		}
	}
}
