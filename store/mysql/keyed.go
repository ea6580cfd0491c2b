package mysql

import (
	"strings"
	"sync"

	"github.com/eventgateway/gateway/store"
)

// maxKeyed is how many rows a [Keyed] statement has at most. The server looks through the keys for each row
// and each value, so with many rows that takes longer than the tables that it saves.
const maxKeyed = 50

// A Keyed is an UPDATE for several rows without a row source. It finds the rows of its table by a list of
// keys, and chooses the values by the key: CASE jobs.id WHEN ? THEN ? ... END. A value that all rows have in
// common stands there alone.
//
// It saves the server two temporary tables: that of the row source, and that in which an UPDATE of joined
// tables keeps the new values. The second one is a file if a column of unbounded length is set. A
// transaction that settles jobs takes the server 226 µs a job with the row source if there are two, 87 with
// eight and 43 with 40. Without the row source it takes 75, 35 and 28 (MariaDB 10.11).
type Keyed struct {
	pieces  []string // the text around the references to columns of the row source
	columns []int    // of each reference, the column
	in      int      // the reference with which the key is compared; the list of keys stands there
	key     string   // the column of the table: jobs.id
}

// soleKeys are tables whose rows are changed by Keyed statements, with the only column of their primary key.
var soleKeys = map[string]string{"jobs": "id", "steps": "id", "runs": "id", "gates": "lane"}

// OfKeys makes a Keyed of an UPDATE on a row source. It is nil for other statements, for an UPDATE of joined
// tables, and for a table that is not in soleKeys. The first condition has to compare the key.
func OfKeys(sql string) *Keyed {
	head, names, tail := source(sql)
	table, _, _ := strings.Cut(tail, " ")
	if head != "UPDATE " || soleKeys[table] == "" || strings.Contains(tail, "JOIN ") {
		return nil
	}
	k := &Keyed{key: table + "." + soleKeys[table], in: -1}
	condition := " WHERE " + k.key + " = "
	where := outside(tail, condition)
	text, at := head+tail, len(head)+where+len(condition)
	from := 0
	for _, r := range ofSource().FindAllStringIndex(text, -1) {
		if where >= 0 && r[0] == at {
			k.in = len(k.columns)
		}
		k.pieces = append(k.pieces, text[from:r[0]])
		k.columns = append(k.columns, names.of(text[r[0]:r[1]]))
		from = r[1]
	}
	if k.in < 0 {
		return nil
	}
	k.pieces = append(k.pieces, text[from:])
	k.pieces[k.in] = strings.TrimSuffix(k.pieces[k.in], "= ") + "IN ("
	k.pieces[k.in+1] = ")" + k.pieces[k.in+1]
	return k
}

// outside is the position of a word outside of all parentheses, or -1.
func outside(text, word string) int {
	depth := 0
	for i := range text {
		switch {
		case text[i] == '(':
			depth++
		case text[i] == ')':
			depth--
		case depth == 0 && strings.HasPrefix(text[i:], word):
			return i
		}
	}
	return -1
}

// keyed caches the results of OfKeys, as singles does those of OfOne.
var keyed sync.Map

func ofKeys(sql string) *Keyed {
	if k, ok := keyed.Load(sql); ok {
		return k.(*Keyed)
	}
	k := OfKeys(sql)
	keyed.Store(sql, k)
	return k
}

// keyedParts cuts a statement with Rows into parts without a row source. There are none if the statement has
// to keep it, or if two rows have the same key: the row of the table would get the values of one of them.
func keyedParts(i int, s store.Stmt, packet int) (all []part) {
	k := ofKeys(s.SQL)
	if k == nil || !k.tellsApart(s.Rows) {
		return nil
	}
	for rows := s.Rows; len(rows) > 0; {
		n, bytes := 0, len(s.SQL)+len(rowCount)
		for n < min(len(rows), maxKeyed) {
			bytes += k.size(rows[n])
			if n > 0 && bytes > packet {
				break
			}
			n++
		}
		p := part{stmt: i}
		p.sql, p.args = k.On(rows[:n])
		p.size = len(p.sql) + len(rowCount) + size(p.args) // less than bytes, if values are shared
		all, rows = append(all, p), rows[n:]
	}
	return all
}

// tellsApart reports whether each row has a key of its own.
func (k *Keyed) tellsApart(rows [][]any) bool {
	seen := make(map[any]bool, len(rows))
	for _, row := range rows {
		key := row[k.columns[k.in]]
		if key == nil || seen[key] {
			return false
		}
		seen[key] = true
	}
	return true
}

// On returns the statement for rows, each of which has a key of its own, and its arguments.
func (k *Keyed) On(rows [][]any) (sql string, args []any) {
	var text strings.Builder
	keys := k.columns[k.in]
	for i, c := range k.columns {
		text.WriteString(k.pieces[i])
		switch {
		case i == k.in:
			text.WriteString("?" + strings.Repeat(", ?", len(rows)-1))
			for _, row := range rows {
				args = append(args, row[keys])
			}
		case c == keys:
			text.WriteString(k.key)
		case isShared(rows, c):
			text.WriteString("?")
			args = append(args, rows[0][c])
		default:
			text.WriteString("CASE " + k.key + strings.Repeat(" WHEN ? THEN ?", len(rows)) + " END")
			for _, row := range rows {
				args = append(args, row[keys], row[c])
			}
		}
	}
	text.WriteString(k.pieces[len(k.columns)])
	return text.String(), args
}

// isShared reports whether all rows have the same value in a column.
func isShared(rows [][]any, column int) bool {
	for _, row := range rows[1:] {
		if row[column] != rows[0][column] {
			return false
		}
	}
	return true
}

// size is an upper bound of the bytes that a row takes.
func (k *Keyed) size(row []any) int {
	n, key := 0, size(row[k.columns[k.in]:k.columns[k.in]+1])
	for _, c := range k.columns {
		n += len("CASE "+k.key+" WHEN ? THEN ? END") + key + size(row[c:c+1])
	}
	return n
}
