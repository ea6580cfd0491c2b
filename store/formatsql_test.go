package store

import (
	"slices"
	"strings"
)

// clauses are the words that begin a line, each with the words that may follow it. A nil list
// permits any word.
var clauses = map[string][]string{
	"SELECT": nil, "(SELECT": nil, "(UPDATE": nil, "INSERT": nil, "FROM": nil, "WHERE": nil, "AND": nil, "SET": nil, "VALUES": nil, "LIMIT": nil, "UNION": nil,
	"JOIN": nil, "STRAIGHT_JOIN": nil, "USING": nil, "UPDATE": nil, "RETURNING": nil,
	"ORDER": {"BY"}, "LEFT": {"JOIN"}, "CROSS": {"JOIN"}, "FOR": {"UPDATE"}, "ON": {"CONFLICT", "DUPLICATE"},
}

// notAfter lists, for a clause word, the words before it with which it does not begin a clause.
var notAfter = map[string][]string{
	"SELECT": {"ALL"}, "JOIN": {"LEFT", "CROSS"}, "SET": {"CHARACTER"}, "UPDATE": {"FOR", "KEY"},
}

// maxLineWidth is the largest number of characters of a line, unless a single word is longer.
const maxLineWidth = 110

// A layout breaks a statement into lines: at its clauses, where lines are long, and at the
// columns of a table.
type layout struct {
	lines  []string
	line   []string
	indent int
	open   []bool // for each parenthesis and each CASE that is open, whether its text has clauses
}

// formatSQL breaks a statement into lines. The joined lines differ from the statement only in
// white space.
func formatSQL(sql string) string {
	l, words := layout{}, strings.Fields(sql)
	table := strings.HasPrefix(sql, "CREATE TABLE")
	for i, w := range words {
		if i > 0 && l.begins(words, i) {
			l.end(w)
		}
		l.line = append(l.line, w)
		l.nest(w)
		if table && len(l.open) == 1 && (strings.HasSuffix(w, ",") || w == "(") {
			l.end("column")
		}
	}
	l.end("")
	return strings.Join(l.lines, "\n")
}

// begins reports whether word i begins a clause.
func (l *layout) begins(words []string, i int) bool {
	next := append(slices.Clone(words[i+1:]), "")[0]
	follow, clause := clauses[words[i]]
	within := len(l.open) == 0 || l.open[len(l.open)-1] || hasClauses(words[i])
	return clause && within && (follow == nil || slices.Contains(follow, next)) && !slices.Contains(notAfter[words[i]], words[i-1])
}

// hasClauses reports whether the text in a parenthesis has clauses, by the word that begins it.
func hasClauses(w string) bool {
	return strings.HasPrefix(w, "(SELECT") || strings.HasPrefix(w, "(UPDATE")
}

// nest updates the open parentheses by those of a word.
func (l *layout) nest(w string) {
	if strings.TrimRight(w, "),") == "END" {
		l.open = l.open[:len(l.open)-1]
	}
	for i, c := range w {
		switch c {
		case '(':
			l.open = append(l.open, hasClauses(w[i:]))
		case ')':
			l.open = l.open[:len(l.open)-1]
		}
	}
	if strings.HasSuffix(w, "(CASE") || w == "CASE" {
		l.open = append(l.open, false)
	}
}

// end ends the line before the word next.
func (l *layout) end(next string) {
	for indent := l.indent; len(l.line) > 0; indent = l.indent + 4 {
		n := firstLine(l.line, maxLineWidth-indent)
		l.lines = append(l.lines, strings.Repeat(" ", indent)+strings.Join(l.line[:n], " "))
		l.line = l.line[n:]
	}
	l.indent = 0
	for _, clauses := range l.open {
		if clauses {
			l.indent += 2
		}
	}
	if next == "AND" || hasClauses(next) || next == "column" {
		l.indent += 2
	}
}

// firstLine returns the number of words of the first line. The line ends at a comma if there is
// one in its second half.
func firstLine(words []string, width int) int {
	used, comma := 0, 0
	for i, w := range words {
		if used += len(w); used > width && i > 0 {
			if comma > 0 {
				return comma
			}
			return i
		}
		used++
		if strings.HasSuffix(w, ",") && used > width/2 {
			comma = i + 1
		}
	}
	return len(words)
}
