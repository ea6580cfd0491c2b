package config

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The reference of the manual is written by hand. These tests compare it with the decoder: the
// fields, types and bounds come from the struct types and their tags, the defaults from a
// decoded configuration that leaves out every value, and the column Reload from Forbids.

const referenceFile = "../../cmd/gateway/manual/configuration.md"

// A row is one row of a table, by the heads of its columns.
type row struct {
	line    int
	section string // the last heading of the second level
	cells   map[string]string
}

var cellBorder = regexp.MustCompile(`\s*\|\s*`)

// rowsOf reads the tables of a text whose first columns have these heads.
func rowsOf(text string, heads ...string) (rows []row) {
	const border = "\x00"
	var columns []string
	section := ""
	for i, line := range strings.Split(text, "\n") {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			section = strings.Trim(title, "`")
		}
		if !strings.HasPrefix(line, "|") {
			columns = nil
			continue
		}
		line = strings.ReplaceAll(line, `\|`, border)
		cells := cellBorder.Split(strings.Trim(line, "| "), -1)
		switch {
		case columns == nil:
			columns = cells
		case strings.HasPrefix(line, "|---"):
		case len(columns) >= len(heads) && slices.Equal(columns[:len(heads)], heads):
			r := row{i + 1, section, map[string]string{}}
			for n, cell := range cells {
				if n < len(columns) {
					r.cells[columns[n]] = strings.ReplaceAll(cell, border, "|")
				}
			}
			rows = append(rows, r)
		}
	}
	return rows
}

func referenceText(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestReference: the reference has a row for each field and no other, and each row agrees with
// the code.
func TestReference(t *testing.T) {
	rows := map[string]row{}
	for _, r := range rowsOf(referenceText(t), "Field", "Type", "Default") {
		path := strings.Trim(r.cells["Field"], "`")
		if _, twice := rows[path]; twice {
			t.Errorf("%s:%d: %s has two rows", referenceFile, r.line, path)
		}
		rows[path] = r
	}
	defaults := defaultsOf(t)
	c, _ := decodedWith(t)
	for _, l := range leaves(c) {
		r, ok := rows[l.path]
		if !ok {
			t.Errorf("%s has no row for the field %s (%s, default %s)", referenceFile, l.path, kindOf(l), defaults[l.path])
			continue
		}
		delete(rows, l.path)
		block, _, inBlock := strings.Cut(l.path, ".")
		block, _, inList := strings.Cut(block, "[")
		if inBlock || inList {
			checkCell(t, r, "Reload", reloadOf(t, l))
			checkCell(t, r, "For", onlyFor(l.path))
			checkExample(t, r, l)
			if r.section != block {
				t.Errorf("%s:%d: %s is in the section %q, want %q", referenceFile, r.line, l.path, r.section, block)
			}
		}
		checkCell(t, r, "Type", kindOf(l))
		checkCell(t, r, "Default", defaults[l.path])
		if purpose := r.cells["Purpose"]; !strings.HasSuffix(purpose, ".") {
			t.Errorf("%s:%d: the purpose of %s is %q, want sentences", referenceFile, r.line, l.path, purpose)
		}
	}
	for path, r := range rows {
		t.Errorf("%s:%d: there is no field %s", referenceFile, r.line, path)
	}
}

func checkCell(t *testing.T, r row, column, want string) {
	t.Helper()
	if got := strings.Trim(r.cells[column], "`"); got != want {
		t.Errorf("%s:%d: %s of %s is %q, want %q", referenceFile, r.line, column, r.cells["Field"], got, want)
	}
}

// checkExample decodes the example of a field.
func checkExample(t *testing.T, r row, l leaf) {
	t.Helper()
	report := &report{}
	tree := parse("example", []byte("example: "+strings.Trim(r.cells["Example"], "`")), report)
	if n := tree.field("example"); n == nil || n.null() {
		t.Errorf("%s:%d: %s has no example", referenceFile, r.line, l.path)
	} else {
		d := decoder{report: report, origin: &origin{marks: map[string]mark{}}}
		d.value(n, reflect.New(l.typ).Elem(), l.path, l.rules)
	}
	for _, p := range report.problems {
		t.Errorf("%s:%d: example of %s: %s", referenceFile, r.line, l.path, p.Message)
	}
}

// TestReferenceSpellings: the reference has all spellings beside the documented ones.
func TestReferenceSpellings(t *testing.T) {
	var want, got []string
	c, _ := decodedWith(t)
	for _, l := range leaves(c) {
		for spelling, is := range l.rules.also {
			want = append(want, strings.Join([]string{l.path, spelling, is}, " "))
		}
		if alias := l.tag.Get("alias"); alias != "" {
			want = append(want, strings.Join([]string{l.path, alias, l.tag.Get("yaml")}, " "))
		}
	}
	for _, r := range rowsOf(referenceText(t), "Field", "Spelling", "Is") {
		got = append(got, strings.ReplaceAll(strings.Join([]string{r.cells["Field"], r.cells["Spelling"], r.cells["Is"]}, " "), "`", ""))
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the other spellings are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestFieldComments: the comment of a field tells its default and its bounds as they are.
func TestFieldComments(t *testing.T) {
	comments := fieldComments(t)
	defaults := defaultsOf(t)
	seen := map[string]bool{}
	c, _ := decodedWith(t)
	for _, l := range leaves(c) {
		if seen[l.owner] || l.container {
			continue
		}
		seen[l.owner] = true
		comment, is := comments[l.owner], defaults[l.path]
		if !boundsIn(comment, l.rules) {
			t.Errorf("%s: %q does not tell the bounds %s to %s", l.owner, comment, l.rules.low, l.rules.high)
		}
		_, inherited := defaults[is]
		if inherited || is == "none" || is == "required" {
			continue
		}
		if !strings.Contains(comment, "default "+is) && !strings.Contains(comment, is+" (default") {
			t.Errorf("%s: %q does not tell the default %s", l.owner, comment, is)
		}
	}
}

// boundsIn tells whether a comment tells the bounds of a field, if it has some.
func boundsIn(comment string, r rules) bool {
	before, _, found := strings.Cut(comment, "to "+r.high)
	return r.high == "" || found && strings.Contains(before, r.low+" ")
}

// fieldComments are the comments of the fields of all structs, by struct and field.
func fieldComments(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	files, _ := filepath.Glob("*.go")
	for _, name := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if fields, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range fields.Fields.List {
					for _, name := range f.Names {
						all[spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
					}
				}
			}
			return true
		})
	}
	return all
}
