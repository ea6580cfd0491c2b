package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/eventgateway/gateway/cmd/bench/internal/stats"
)

// aim is the goal of the gateway's figure: a bound of its ratio to the reference's, or of
// the figure itself.
type aim struct {
	bound   float64 // 0 for no aim
	atLeast bool
	ratio   bool
}

var none aim

// The ratio aims are for figures that have a denominator, the others for figures that a machine
// hardly changes, such as memory.
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

// verdict is yes or no, and empty without an aim or without the figures. A figure on the bound
// itself meets the aim.
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

// measure is a row of the report: the label of the gateway's figure, its aim, and the systems
// by whose figure it is divided. Of several systems the one with the highest figure counts.
// Label and beside together identify a row: the same figure may have several denominators.
type measure struct {
	label  string
	unit   string
	aim    aim
	beside []string
}

// faults counts events that must not occur in a run without a crash.
// They are counted over all runs, the warm-ups included: a promise holds for the first event
// too.
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

// add adds the faults of a run. The first error stays.
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

// any includes duplicates: delivery is at least once by contract, but without a crash no
// event may be delivered twice.
func (f faults) any() bool {
	return f.Refused+f.Broken+f.Lost+f.Duplicated+f.Strange+f.Unsigned > 0 || f.Err != nil
}

func (f faults) String() string {
	text := fmt.Sprintf("lost %d, duplicated %d, refused %d, unanswered %d, strange %d, unsigned %d",
		f.Lost, f.Duplicated, f.Refused, f.Broken, f.Strange, f.Unsigned)
	if f.Err != nil {
		text += ": " + strings.ReplaceAll(f.Err.Error(), "\n", "; ")
	}
	return text
}

// report collects the measurements. Measurements are added while the benchmark runs, and
// printed once at its end.
type report struct {
	sections []*section
	leftOut  []string
	faults   faults
	others   []float64 // share of all CPUs, one a run
	steal    []float64
}

// section has the measurements on one database and medium.
type section struct {
	driver, medium string
	place          string // the file system
	syncs          []float64
	rows           []measure
	values         map[string]map[string][]float64 // by label and system
}

// section adds a section. Sections are printed in the order in which they were added.
func (r *report) section(driver, medium, place string) *section {
	s := &section{driver: driver, medium: medium, place: place, values: map[string]map[string][]float64{}}
	r.sections = append(r.sections, s)
	return s
}

// disturbed adds the share of the processors that a run did not get.
func (r *report) disturbed(others, steal float64) {
	r.others = append(r.others, others)
	r.steal = append(r.steal, steal)
}

// row adds a row, unless there is one with the same label and systems.
func (s *section) row(m measure) {
	if !slices.ContainsFunc(s.rows, func(o measure) bool { return o.label == m.label && slices.Equal(o.beside, m.beside) }) {
		s.rows = append(s.rows, m)
	}
}

// add keeps the value of one run; cells prints the median of all runs.
func (s *section) add(label, system string, value float64) {
	if s.values[label] == nil {
		s.values[label] = map[string][]float64{}
	}
	s.values[label][system] = append(s.values[label][system], value)
}

// best is the system with the highest median, and the first of them if none has
// one.
func (s *section) best(label string, systems []string) (name string, value float64) {
	name, value = systems[0], stats.Median(s.values[label][systems[0]])
	for _, other := range systems[1:] {
		if v := stats.Median(s.values[label][other]); v > value || math.IsNaN(value) && !math.IsNaN(v) {
			name, value = other, v
		}
	}
	return name, value
}

// cells returns the row of a measure as texts: medians, and the ratio.
func (s *section) cells(m measure) []string {
	ours := stats.Median(s.values[m.label][gatewayName])
	name, theirs := s.best(m.label, m.beside)
	_, ratio := s.ratio(m)
	ratioText := ""
	if !math.IsNaN(ratio) {
		ratioText = fmt.Sprintf("%.2f", ratio)
	}
	return []string{m.label, m.unit, number(ours), name, number(theirs), ratioText, m.aim.String(), m.aim.verdict(ours, ratio)}
}
