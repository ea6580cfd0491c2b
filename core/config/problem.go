package config

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/agnivade/levenshtein"

	"github.com/eventgateway/gateway/core/order"
)

// Problem is one message about a configuration: its place, the fault and the remedy.
type Problem struct {
	// File is the file's name, as Options gives it.
	File string
	// Line and Column count from 1; 0 means the file as a whole.
	Line, Column int
	// Path is the dotted way to the field, such as handlers.billing.events[0]; empty for the
	// file as a whole.
	Path string
	// Message says how the field is wrong and which values are allowed. It contains no secret
	// and no value of a variable.
	Message string
}

// String returns one line: gateway.yaml:12:3: handlers.billing.retires: unknown field; did you
// mean "retry"?
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	if p.Path != "" {
		b.WriteString(": " + p.Path)
	}
	b.WriteString(": " + p.Message)
	return b.String()
}

// Problems is the error of Load: all problems, sorted by file and line.
type Problems []Problem

// Error returns one line for each problem.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// maxProblems bounds the list of problems: 1 MiB of mistakes would be 25 MB of messages, and a
// log line of that size.
const maxProblems = 1000

// A report collects problems. The decoder, the checker and the warner share it. It is used by
// one goroutine.
type report struct {
	problems Problems
	more     int             // problems beyond the full list
	paths    map[string]bool // fields with a reported problem
	fatal    bool            // a file could not be read, so further problems would only follow from that
}

// stop notes a problem after which the files cannot be checked any further.
func (r *report) stop(file string, line int, format string, args ...any) {
	at := position{file: file}
	if line > 0 {
		at.line, at.column = line, 1
	}
	r.add(at, "", format, args...)
	r.fatal = true
}

// add notes a problem. Quoted texts in a message pass through quote, so that the message stays
// one line.
func (r *report) add(at position, path, format string, args ...any) {
	if r.paths == nil {
		r.paths = map[string]bool{}
	}
	r.paths[path] = true
	if r.full() {
		r.more++
		return
	}
	r.problems = append(r.problems, Problem{at.file, at.line, at.column, path, fmt.Sprintf(format, args...)})
}

// full reports whether further problems are only counted. A caller then need not look for
// suggestions.
func (r *report) full() bool { return len(r.problems) >= maxProblems }

// sorted returns the problems by file, line and column. A last problem has the number of
// further ones, if there are any.
func (r *report) sorted() Problems {
	order.Stable(r.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Path, b.Path))
	})
	if r.more > 0 {
		last := r.problems[len(r.problems)-1]
		return append(r.problems, Problem{File: last.File, Message: fmt.Sprintf("has %d more problems, which are reported once some of these are fixed", r.more)})
	}
	return r.problems
}

// suggest returns the result of [suggest], or "" for a problem that would not be listed.
func (r *report) suggest(word, label string, candidates []string) string {
	if r.full() {
		return ""
	}
	return suggest(word, label, candidates)
}

const (
	maxWord       = 64  // longest word for which a suggestion is searched
	maxCandidates = 500 // most words with which it is compared
	maxListed     = 20  // most words a message lists
)

// nearest returns the candidate closest to word if it is close enough to be meant, else "". A
// third of the letters may differ, rounded up: "retires" is "retry", "prot" is "port".
func nearest(word string, candidates []string) string {
	if len(word) > maxWord {
		return "" // the distance costs the product of both lengths
	}
	best, least := "", (len(word)+2)/3+1
	// Another case is always the nearest: Retry is retry.
	for _, c := range candidates[:min(len(candidates), maxCandidates)] {
		if strings.EqualFold(c, word) {
			return c
		}
		if d := levenshtein.ComputeDistance(word, c); d < least {
			best, least = c, d
		}
	}
	return best
}

// suggest returns the end of a message about an unknown word: the nearest candidate, or all of
// them after a label.
func suggest(word, label string, candidates []string) string {
	if near := nearest(word, candidates); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	more := ""
	if len(candidates) > maxListed {
		candidates, more = candidates[:maxListed], ", …"
	}
	if len(candidates) == 0 {
		return ""
	}
	return "; " + label + ": " + strings.Join(candidates, ", ") + more
}

// quote shows a piece of the file in a message, short and on one line.
func quote(s string) string {
	const most = 60
	if runes := []rune(s); len(runes) > most {
		s = string(runes[:most]) + "…"
	}
	return fmt.Sprintf("%q", s)
}
