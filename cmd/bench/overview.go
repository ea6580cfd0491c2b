package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/eventgateway/gateway/cmd/bench/internal/stats"
)

// figuresTitle is the heading of the section that publish replaces.
const figuresTitle = "Ratios"

// overview returns the table of ratios: a row for each figure with a goal for its ratio, a
// column for each site. A ratio that misses its goal is in parentheses. Without such figures
// there are no rows.
func (r *report) overview() (rows [][]string) {
	head := []string{"ratio", "beside", "goal"}
	type row struct{ label, beside, goal string }
	var order []row
	cells := map[row][]string{}
	for i, s := range r.sections {
		if len(s.rows) == 0 {
			continue
		}
		for _, m := range s.rows {
			name, ratio := s.ratio(m)
			if !m.aim.ratio || math.IsNaN(ratio) {
				continue
			}
			// A figure has the same place on all sites, also if their goals differ. The row shows the
			// goal of the first site.
			at := row{m.label, name, m.aim.String()}
			if n := slices.IndexFunc(order, func(o row) bool { return o.label == at.label && o.beside == at.beside }); n >= 0 {
				at = order[n]
			} else {
				order = append(order, at)
			}
			text := fmt.Sprintf("%.2f", ratio)
			if m.aim.verdict(ratio, ratio) == "no" {
				text = "(" + text + ")"
			}
			cells[at] = append(append(cells[at], make([]string, i-len(cells[at]))...), text)
		}
	}
	if len(order) == 0 {
		return nil
	}
	for _, s := range r.sections {
		head = append(head, s.driver+", "+s.medium)
	}
	rows = append(rows, head)
	for _, at := range order {
		line := append([]string{at.label, at.beside, strings.TrimSuffix(at.goal, "x")}, cells[at]...)
		rows = append(rows, append(line, make([]string, len(head)-len(line))...))
	}
	return rows
}

// ratio returns the gateway's figure over that of the best system beside it, NaN without both: the
// median of the ratios of the rounds. The systems of a round run after each other, so a machine that
// is faster in some rounds than in others changes their ratios little. A ratio of medians may be of a
// slow round and a fast one. If the systems have not as many runs, there are no rounds, and it
// divides the medians. A lower figure of an idle system is too small to divide by.
func (s *section) ratio(m measure) (beside string, ratio float64) {
	name, theirs := s.best(m.label, m.beside)
	if !(theirs >= 0.01) {
		return name, math.NaN()
	}
	ours, others := s.values[m.label][gatewayName], s.values[m.label][name]
	if len(ours) != len(others) {
		return name, stats.Median(ours) / theirs
	}
	var rounds []float64
	for i, value := range ours {
		if others[i] >= 0.01 {
			rounds = append(rounds, value/others[i])
		}
	}
	return name, stats.Median(rounds)
}

// printOverview writes the table of ratios.
func (r *report) printOverview(w io.Writer, f format) {
	rows := r.overview()
	if rows == nil {
		return
	}
	fmt.Fprint(w, "\nRatios; those in parentheses miss their goal\n\n")
	printRows(w, f, rows, []int{2, 3, 4, 5, 6, 7, 8, 9})
}

// publish replaces the section of figures in a Markdown file by the table of ratios and facts
// about the machine. The section ends at the next heading of its level.
func (r *report) publish(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var section strings.Builder
	fmt.Fprintf(&section, "## %s\n\nWritten by `make bench` on %s. A ratio divides the gateway's figure by the figure of the system beside it, in\none round; it is the median of all rounds. Ratios in parentheses miss their goal.\n\n", figuresTitle, time.Now().Format(time.DateOnly))
	for _, line := range r.surroundings() {
		fmt.Fprintln(&section, "- "+line)
	}
	fmt.Fprintln(&section)
	printRows(&section, format{markdown: true}, r.overview(), []int{2, 3, 4, 5, 6, 7, 8, 9})
	replaced, err := replaceSection(string(text), figuresTitle, section.String())
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, []byte(replaced), 0o644)
}

// replaceSection replaces a section of the second level, heading and all.
func replaceSection(text, title, section string) (string, error) {
	heading := "## " + title + "\n"
	before, rest, found := strings.Cut(text, heading)
	if !found || before != "" && !strings.HasSuffix(before, "\n") {
		return "", fmt.Errorf("no section %q", heading[:len(heading)-1])
	}
	_, after, more := strings.Cut(rest, "\n## ")
	if more {
		after = "\n## " + after
	}
	return before + section + after, nil
}
