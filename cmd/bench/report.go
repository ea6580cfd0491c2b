package main

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/eventgateway/gateway/cmd/bench/internal/machine"
	"github.com/eventgateway/gateway/cmd/bench/internal/stats"
)

// aim is what the gateway's figure should be: a bound of its ratio to the
// reference's, or of the figure itself.
type aim struct {
	bound   float64 // 0 for no aim
	atLeast bool
	ratio   bool
}

var none aim

func ratioAtLeast(x float64) aim { return aim{x, true, true} }
func ratioAtMost(x float64) aim  { return aim{x, false, true} }
func atLeast(x float64) aim      { return aim{x, true, false} }
func atMost(x float64) aim       { return aim{x, false, false} }

func (a aim) String() string {
	if a == none {
		return ""
	}
	text := fmt.Sprintf("<= %g", a.bound)
	if a.atLeast {
		text = fmt.Sprintf(">= %g", a.bound)
	}
	if a.ratio {
		text += "x"
	}
	return text
}

// verdict is yes or no, and empty without an aim or without the figures.
func (a aim) verdict(value, ratio float64) string {
	if a.ratio {
		value = ratio
	}
	switch {
	case a == none || math.IsNaN(value):
		return ""
	case a.atLeast == (value >= a.bound), value == a.bound:
		return "yes"
	}
	return "no"
}

// measure is a row of the report.
type measure struct {
	label string
	unit  string
	aim   aim
}

// faults counts what no run without a crash may show.
type faults struct {
	Runs, Posted int
	Refused      int // answered otherwise than 2xx
	Broken       int // not answered
	Lost         int // accepted and not delivered, or not stored when nothing is delivered
	Duplicated   int
	Strange      int // deliveries of something else
	Unsigned     int // sampled deliveries without a valid signature
	Err          error
}

func (f *faults) add(g faults) {
	f.Runs += g.Runs
	f.Posted += g.Posted
	f.Refused += g.Refused
	f.Broken += g.Broken
	f.Lost += g.Lost
	f.Duplicated += g.Duplicated
	f.Strange += g.Strange
	f.Unsigned += g.Unsigned
	if f.Err == nil {
		f.Err = g.Err
	}
}

func (f faults) any() bool { return f.fatal() || f.Duplicated > 0 }

// fatal leaves out duplicates: delivery is at least once by contract, however
// much a run without crashes should show none.
func (f faults) fatal() bool {
	return f.Refused+f.Broken+f.Lost+f.Strange+f.Unsigned > 0 || f.Err != nil
}

func (f faults) String() string {
	text := fmt.Sprintf("lost %d, duplicated %d, refused %d, unanswered %d, strange %d, unsigned %d",
		f.Lost, f.Duplicated, f.Refused, f.Broken, f.Strange, f.Unsigned)
	if f.Err != nil {
		text += ": " + strings.ReplaceAll(f.Err.Error(), "\n", "; ")
	}
	return text
}

// report collects values and prints their medians.
type report struct {
	rows   []measure
	values map[string]map[string][]float64 // by label and system
	faults faults

	medium string
	syncs  []float64
	others []float64 // share of all CPUs, one a run
	steal  []float64
}

func newReport() *report { return &report{values: map[string]map[string][]float64{}} }

func (r *report) add(m measure, system string, value float64) {
	if r.values[m.label] == nil {
		r.values[m.label] = map[string][]float64{}
		r.rows = append(r.rows, m)
	}
	r.values[m.label][system] = append(r.values[m.label][system], value)
}

func (r *report) disturbed(others, steal float64) {
	r.others = append(r.others, others)
	r.steal = append(r.steal, steal)
}

// disturbing is the share of all CPUs that others may use before rates say more
// about them than about the systems: disturbed runs came out at 0.3 to 0.7 of
// quiet ones.
const disturbing = 0.1

var columns = []string{"measure", "unit", "gateway", "reference", "ratio", "aim", "met"}

func (r *report) print(w io.Writer, markdown bool) {
	rows := [][]string{columns}
	for _, m := range r.rows {
		rows = append(rows, r.cells(m))
	}
	bullet := ""
	if markdown {
		bullet = "- "
	}
	for _, line := range r.surroundings() {
		fmt.Fprintln(w, bullet+line)
	}
	fmt.Fprintln(w)
	if markdown {
		printMarkdown(w, rows)
	} else {
		printAligned(w, rows)
	}
}

func (r *report) surroundings() []string {
	syncs := make([]string, len(r.syncs))
	for i, rate := range r.syncs {
		syncs[i] = fmt.Sprintf("%.0f", rate)
	}
	lines := []string{
		"machine: " + machine.Processor() + ", " + machine.System(),
		"medium: " + r.medium + ", fdatasync/s of 8 KiB before and after: " + strings.Join(syncs, ", "),
	}
	if len(r.others) > 0 {
		lines = append(lines, fmt.Sprintf("CPU used by processes not under test: median %.1f%%, worst run %.1f%%; steal: worst run %.1f%%",
			100*stats.Median(r.others), 100*highest(r.others), 100*highest(r.steal)))
		if stats.Median(r.others) > disturbing {
			lines = append(lines, "DISTURBED: others used the processors too; CPU an event still compares, rates and latencies hardly")
		}
	}
	return append(lines, fmt.Sprintf("checks over %d runs, %d events: %s", r.faults.Runs, r.faults.Posted, r.faults))
}

func highest(values []float64) (high float64) {
	for _, v := range values {
		high = max(high, v)
	}
	return high
}

func (r *report) cells(m measure) []string {
	ours, theirs := stats.Median(r.values[m.label][gatewayName]), stats.Median(r.values[m.label][referenceName])
	ratio := math.NaN()
	// Below that an idle reference has no figure to divide by.
	if theirs >= 0.01 {
		ratio = ours / theirs
	}
	ratioText := ""
	if !math.IsNaN(ratio) {
		ratioText = fmt.Sprintf("%.2f", ratio)
	}
	return []string{m.label, m.unit, number(ours), number(theirs), ratioText, m.aim.String(), m.aim.verdict(ours, ratio)}
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

// printAligned pads the columns, numbers to the right.
func printAligned(w io.Writer, rows [][]string) {
	widths := make([]int, len(columns))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			if numeric := i >= 2 && i <= 4; numeric {
				line += fmt.Sprintf("%*s  ", widths[i], cell)
			} else {
				line += fmt.Sprintf("%-*s  ", widths[i], cell)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}

func printMarkdown(w io.Writer, rows [][]string) {
	for i, row := range rows {
		fmt.Fprintln(w, "| "+strings.Join(row, " | ")+" |")
		if i == 0 {
			fmt.Fprintln(w, "|---|---|---:|---:|---:|---|---|")
		}
	}
}
