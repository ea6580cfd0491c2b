package hosted

import (
	"fmt"
	"strings"

	"github.com/eventgateway/gateway/store"
)

// suits refuses results whose rows do not have the columns of the query: the store reads rows
// by position. An outdated proxy, or another server that answers in its place, may leave
// columns out.
func suits(stmts []store.Stmt, results []store.Result) error {
	for i, s := range stmts {
		want, known := columns(s.SQL)
		if !s.Reads || !known {
			continue
		}
		for _, row := range results[i].Rows {
			if len(row) != want {
				return &failure{status: 200, message: fmt.Sprintf("not an answer of D1: a row of %d columns for %s, which asks for %d", len(row), s.Name, want)}
			}
		}
	}
	return nil
}

// columns counts the columns of the rows that a statement returns. The number is unknown for a
// * outside of parentheses, for an EXPLAIN, and for a statement that neither selects nor returns.
func columns(sql string) (n int, known bool) {
	if isWord(sql, 0, "EXPLAIN") {
		return 0, false
	}
	list, known := columnList(sql)
	n = 1
	outside(list, func(rest string) bool {
		switch rest[0] {
		case ',':
			n++
		case '*':
			known = false
		}
		return true
	})
	return n, known
}

// columnList is the text between the outermost SELECT and its FROM, or after RETURNING.
func columnList(sql string) (list string, ok bool) {
	begin, end := -1, len(sql)
	outside(sql, func(rest string) bool {
		at := len(sql) - len(rest)
		switch {
		case begin < 0 && isWord(sql, at, "SELECT"):
			begin = at + len("SELECT")
		case isWord(sql, at, "RETURNING"):
			begin, end = at+len("RETURNING"), len(sql)
			return false
		case begin >= 0 && end == len(sql) && isFromOrUnion(sql, at):
			end = at
		}
		return true
	})
	if begin < 0 {
		return "", false
	}
	return sql[begin:end], true
}

func isFromOrUnion(sql string, at int) bool {
	for _, word := range []string{"FROM", "WHERE", "UNION", "ORDER", "LIMIT"} {
		if isWord(sql, at, word) {
			return true
		}
	}
	return false
}

// isWord tells whether a keyword is at a position of a text.
func isWord(sql string, at int, word string) bool {
	after := at + len(word)
	return strings.HasPrefix(sql[at:], word) && (at == 0 || !isLetter(sql[at-1])) && (after == len(sql) || !isLetter(sql[after]))
}

func isLetter(c byte) bool { return c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' }

// outside calls visit with the rest of a statement at each byte outside of parentheses and
// quotes, until visit returns false.
func outside(sql string, visit func(rest string) bool) {
	depth, quote := 0, byte(0)
	for i := range len(sql) {
		switch c := sql[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"' || c == '`':
			quote = c
		case c == '(':
			depth++
		case c == ')':
			depth--
		case depth == 0:
			if !visit(sql[i:]) {
				return
			}
		}
	}
}
