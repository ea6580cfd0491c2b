package store

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/eventgateway/gateway/core/once"
)

// A shape describes tables and indexes, either of the schema steps or of a database. The first
// kind is parsed from the text of the steps, so there is no second list of tables that could
// differ from it.
type shape struct {
	tables  map[string]*tableShape
	indexes map[string]*indexShape
}

// A tableShape describes a table.
type tableShape struct {
	create  string // the CREATE TABLE of the step
	columns []columnShape
	key     []string // the columns of the primary key
}

// A columnShape describes a column. kind is its type in lower case, with the collation if it is
// not the default.
type columnShape struct {
	name, kind string
	notNull    bool
	filled     bool   // it has a default value
	computed   string // the normalized expression of a generated column
	definition string // the text of the step, without the name
	added      bool   // by an ALTER TABLE
}

// An indexShape describes an index.
type indexShape struct {
	table     string
	unique    bool
	columns   []string // "name" or "name desc"
	where     string   // the normalized condition of a partial index
	condition string   // the same as the step has it
	invalid   bool     // the database does not use it
}

// shapeOf returns the tables and indexes that the schema steps of a dialect make.
func shapeOf(d Dialect) *shape {
	s := newShape()
	s.apply(d.sql(schemaStepsTable))
	for _, step := range schemaSteps[1:] {
		s.apply(d.sql(step))
	}
	return s
}

// newShape returns an empty shape.
func newShape() *shape {
	return &shape{tables: map[string]*tableShape{}, indexes: map[string]*indexShape{}}
}

// column returns a column by name, or nil.
func (t *tableShape) column(name string) *columnShape {
	i := slices.IndexFunc(t.columns, func(c columnShape) bool { return c.name == name })
	if i < 0 {
		return nil
	}
	return &t.columns[i]
}

// apply changes the shape as a statement of the schema would. It parses the statements of
// schema steps and the statements that SQLite keeps. An operator may have written some of the
// latter. Other statements are ignored.
func (s *shape) apply(sql string) {
	w := &tokenReader{rest: tokens(sql)}
	switch {
	case w.accept("CREATE", "TABLE"):
		w.accept("IF", "NOT", "EXISTS")
		s.createTable(w.name(), w.parenthesized(), sql)
	case w.accept("CREATE", "UNIQUE", "INDEX"):
		s.createIndex(w, true)
	case w.accept("CREATE", "INDEX"):
		s.createIndex(w, false)
	case w.accept("DROP", "INDEX"):
		w.accept("IF", "EXISTS")
		delete(s.indexes, w.name())
	case w.accept("ALTER", "TABLE"):
		s.alter(w.name(), w.rest)
	}
}

// createTable adds a table with the columns between its parentheses.
func (s *shape) createTable(name string, body []string, sql string) {
	t := &tableShape{create: oneLine(sql)}
	for _, part := range splitAtCommas(body) {
		if w := (&tokenReader{rest: part}); w.accept("PRIMARY", "KEY") {
			for _, c := range splitAtCommas(w.parenthesized()) {
				t.key = append(t.key, unquoted(c[0]))
			}
			continue
		}
		t.add(part, false)
	}
	s.tables[name] = t
}

// add adds a column by its definition, which begins with the name. Words that are no constraint
// belong to the type.
func (t *tableShape) add(part []string, later bool) {
	c := columnShape{name: unquoted(part[0]), definition: strings.Join(part[1:], " "), added: later}
	w := &tokenReader{rest: part[1:]}
	var kind []string
	for len(w.rest) > 0 {
		switch {
		case w.accept("NOT", "NULL"):
			c.notNull = true
		case w.accept("PRIMARY", "KEY"):
			t.key = []string{c.name}
		case w.accept("DEFAULT"):
			c.filled = true
			w.next()
		case w.accept("GENERATED", "ALWAYS", "AS"):
			c.computed = normalized(strings.Join(w.parenthesized(), " "))
			w.rest = nil
		case w.accept("NULL"):
		default:
			kind = append(kind, strings.ToLower(unquoted(w.next())))
		}
	}
	c.kind = compactSpaces.Replace(strings.Join(kind, " "))
	t.columns = append(t.columns, c)
}

// compactSpaces removes the spaces that joining tokens left around parentheses and commas.
var compactSpaces = strings.NewReplacer(" ( ", "(", " )", ")", " , ", ", ")

// createIndex adds an index, from behind CREATE INDEX.
func (s *shape) createIndex(w *tokenReader, unique bool) {
	w.accept("IF", "NOT", "EXISTS")
	name := w.name()
	w.accept("ON")
	i := &indexShape{table: w.name(), unique: unique, columns: columnsOf(w.parenthesized())}
	if w.accept("WHERE") {
		i.condition = compactSpaces.Replace(strings.Join(w.rest, " "))
		i.where = normalized(i.condition)
		w.rest = nil
	}
	s.indexes[name] = i
}

// columnsOf returns the columns of an index.
func columnsOf(body []string) (columns []string) {
	for _, c := range splitAtCommas(body) {
		column := unquoted(c[0])
		if slices.ContainsFunc(c[1:], func(word string) bool { return strings.EqualFold(word, "DESC") }) {
			column += " desc"
		}
		columns = append(columns, column)
	}
	return columns
}

// alter applies the parts of an ALTER TABLE that add or drop a column or an index.
func (s *shape) alter(table string, body []string) {
	t := s.tables[table]
	for _, part := range splitAtCommas(body) {
		w := &tokenReader{rest: part}
		switch {
		case t == nil:
		case w.accept("ADD", "COLUMN"):
			w.accept("IF", "NOT", "EXISTS")
			t.add(w.rest, true)
		case w.accept("ADD", "INDEX"):
			s.indexes[w.name()] = &indexShape{table: table, columns: columnsOf(w.parenthesized())}
		case w.accept("DROP", "INDEX"):
			delete(s.indexes, w.name())
		case w.accept("DROP", "COLUMN"):
			name := w.name()
			t.columns = slices.DeleteFunc(t.columns, func(c columnShape) bool { return c.name == name })
		}
	}
}

// tokens splits a statement into quoted names, texts, words, signs of two characters and other signs. It is
// no regular expression, since it reads the whole schema when a process starts.
func tokens(sql string) (all []string) {
	for sql != "" {
		if n := tokenLength(sql); n > 0 {
			all = append(all, sql[:n])
			sql = sql[n:]
		} else {
			sql = sql[1:] // a space
		}
	}
	return all
}

// tokenLength returns the length of the token at the beginning of a text; 0 for a space.
func tokenLength(sql string) int {
	switch first := sql[0]; first {
	case ' ', '\t', '\n', '\r', '\f':
		return 0
	case '"', '`', '[':
		closing := first
		if first == '[' {
			closing = ']'
		}
		if end := strings.IndexByte(sql[1:], closing); end >= 0 {
			return end + 2
		}
	case '\'':
		if n := textLength(sql); n > 0 {
			return n
		}
	default:
		n := 0
		for n < len(sql) && (isWord(sql[n]) || sql[n] == '.') {
			n++
		}
		if n > 0 {
			return n
		}
	}
	if len(sql) > 1 && slices.Contains([]string{"<=", ">=", "!=", "<>", "::"}, sql[:2]) {
		return 2
	}
	_, n := utf8.DecodeRuneInString(sql)
	return n
}

// textLength returns the length of the text in quotes at the beginning of a statement, in which two quotes
// stand for one; 0 if it has no end.
func textLength(sql string) (length int) {
	for at := 1; ; {
		end := strings.IndexByte(sql[at:], '\'')
		if end < 0 {
			return length
		}
		length = at + end + 1
		if length == len(sql) || sql[length] != '\'' {
			return length
		}
		at = length + 1
	}
}

// unquoted removes the quotes of a name, in any dialect.
func unquoted(word string) string { return strings.Trim(word, "\"`[]") }

// A tokenReader holds the tokens of a statement that are not read yet.
type tokenReader struct{ rest []string }

// accept reads the expected tokens if they come next, in any case. It reports whether they did.
func (w *tokenReader) accept(expected ...string) bool {
	if len(w.rest) < len(expected) {
		return false
	}
	for i, e := range expected {
		if !strings.EqualFold(w.rest[i], e) {
			return false
		}
	}
	w.rest = w.rest[len(expected):]
	return true
}

// next reads a token; "" at the end.
func (w *tokenReader) next() string {
	if len(w.rest) == 0 {
		return ""
	}
	word := w.rest[0]
	w.rest = w.rest[1:]
	return word
}

// name reads a name, without quotes and without the schema before it.
func (w *tokenReader) name() string {
	name := unquoted(w.next())
	return name[strings.LastIndexByte(name, '.')+1:]
}

// parenthesized reads the next pair of parentheses and returns the tokens inside.
func (w *tokenReader) parenthesized() []string {
	depth, from := 0, 0
	for i, word := range w.rest {
		switch word {
		case "(":
			if depth++; depth == 1 {
				from = i + 1
			}
		case ")":
			if depth--; depth == 0 {
				inside := w.rest[from:i]
				w.rest = w.rest[i+1:]
				return inside
			}
		}
	}
	return nil
}

// splitAtCommas splits tokens at the commas that are in no parentheses.
func splitAtCommas(body []string) (parts [][]string) {
	depth, from := 0, 0
	for i, word := range append(body[:len(body):len(body)], ",") {
		switch word {
		case "(":
			depth++
		case ")":
			depth--
		case ",":
			if depth == 0 && i > from {
				parts = append(parts, body[from:i])
			}
			if depth == 0 {
				from = i + 1
			}
		}
	}
	return parts
}

// oneLine returns a statement in one line.
func oneLine(sql string) string { return strings.Join(strings.Fields(sql), " ") }

// databaseNoise matches text that databases add to an expression when they store it:
// parentheses, quotes, casts and character sets.
var databaseNoise = once.Regexp("::[a-z]+|_utf8mb[34]\\s*|_utf8\\s*|_latin1\\s*|_binary\\s*|[\\s()`\"\\\\]")

// normalized returns an expression in a form that is the same for all databases.
func normalized(expression string) string {
	return databaseNoise().ReplaceAllString(strings.ToLower(strings.ReplaceAll(expression, ":: ", "::")), "")
}
