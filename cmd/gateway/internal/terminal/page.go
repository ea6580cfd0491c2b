package terminal

import (
	"strings"
	"unicode/utf8"

	"github.com/eventgateway/gateway/core/once"
)

// Page sets a chapter of a manual for a terminal of width characters: paragraphs are filled,
// tables are set in columns, blocks of code stay as they are, and links say where they lead. It
// reads the Markdown that the chapters use, and no other, so that the released program needs no
// library for Markdown.
//
// The function link returns the shown form of a link, from its text and its target.
func Page(markdown string, width int, link func(text, target string) string) string {
	return (&page{width: width, link: link}).render(markdown)
}

// A page is a chapter that is being set.
type page struct {
	width int
	link  func(text, target string) string
	out   strings.Builder // the lines so far
}

// fence begins and ends a block of code, heading and bullet begin a line of their kind, and
// ruleCell is a cell of the line below the heading of a table.
var (
	fence    = once.Regexp("^( *)```")
	heading  = once.Regexp(`^(#+) (.*)$`)
	bullet   = once.Regexp(`^( *)(- |\d+\. )(.*)$`)
	ruleCell = once.Regexp(`^:?-+:?$`)
)

// render sets a text.
func (p *page) render(text string) string {
	// Each round takes the lines of one block. The first characters of its first line tell its
	// kind.
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for len(lines) > 0 {
		n := 1
		switch line := lines[0]; {
		case strings.TrimSpace(line) == "":
			p.gap()
		case fence().MatchString(line):
			n = p.code(lines)
		case heading().MatchString(line):
			p.heading(line)
		case strings.HasPrefix(line, "|"):
			n = p.table(lines)
		default:
			n = p.paragraph(lines)
		}
		lines = lines[n:]
	}
	return p.out.String()
}

// gap leaves a line empty, unless the line above is.
func (p *page) gap() {
	if text := p.out.String(); text != "" && !strings.HasSuffix(text, "\n\n") {
		p.out.WriteString("\n")
	}
}

// line writes a line without blanks at its end.
func (p *page) line(text string) { p.out.WriteString(strings.TrimRight(text, " ") + "\n") }

// heading underlines the heading of a chapter and of a section.
func (p *page) heading(line string) {
	m := heading().FindStringSubmatch(line)
	text := p.inline(m[2])
	p.gap()
	p.line(text)
	if len(m[1]) <= 2 {
		p.line(strings.Repeat([]string{"=", "-"}[len(m[1])-1], utf8.RuneCountInString(text)))
	}
}

// code indents a block of code.
func (p *page) code(lines []string) int {
	for i, line := range lines[1:] {
		if fence().MatchString(line) {
			return i + 2
		}
		p.line("    " + line)
	}
	return len(lines)
}

// paragraph fills a paragraph or one entry of a list, and returns how many lines it has.
func (p *page) paragraph(lines []string) int {
	n := 1
	// Markdown joins the lines of a paragraph; the breaks of the source mean nothing.
	for n < len(lines) && !startsBlock(lines[n]) {
		n++
	}
	text, first := strings.Join(lines[:n], " "), ""
	if m := bullet().FindStringSubmatch(text); m != nil {
		first, text = m[1]+m[2], m[3]
	} else {
		first = text[:len(text)-len(strings.TrimLeft(text, " "))]
	}
	// The further lines of an entry stand below its text, not below its bullet.
	hanging := strings.Repeat(" ", len(first))
	for i, line := range wrapped(p.inline(text), p.width-len(first)) {
		if i > 0 {
			first = hanging
		}
		p.line(first + line)
	}
	return n
}

// startsBlock reports whether a line cannot go on with the paragraph above it.
func startsBlock(line string) bool {
	return strings.TrimSpace(line) == "" || fence().MatchString(line) || heading().MatchString(line) || bullet().MatchString(line) || strings.HasPrefix(line, "|")
}

// table sets a table in columns. Cells that are too long are wrapped. If the page is too narrow
// for the longest words, each row is a list instead.
func (p *page) table(lines []string) int {
	n := 0
	var rows [][]string
	for ; n < len(lines) && strings.HasPrefix(lines[n], "|"); n++ {
		if cells := p.cells(lines[n]); !ruleCell().MatchString(cells[0]) {
			rows = append(rows, cells)
		}
	}
	// A row of several lines would run into the next row, so such tables get empty lines
	// between rows.
	widths, fits := columnWidths(rows, p.width)
	if !fits {
		p.lists(rows)
		return n
	}
	tall := false
	for i, row := range rows {
		if i > 1 && tall {
			p.gap()
		}
		tall = p.row(row, widths) > 1 || tall
		if i == 0 {
			p.underline(widths)
		}
	}
	return n
}

// cells are the cells of a row, as they are shown.
func (p *page) cells(line string) (all []string) {
	// A pipe within code is a part of the cell, as in Markdown.
	code := false
	split := func(r rune) rune {
		if r == '`' {
			code = !code
		}
		if r == '|' && !code {
			return '\x00'
		}
		return r
	}
	for cell := range strings.SplitSeq(strings.Map(split, strings.Trim(strings.TrimSpace(line), "|")), "\x00") {
		all = append(all, p.inline(strings.TrimSpace(cell)))
	}
	return all
}

// columnGap is the number of blanks between two columns.
const columnGap = 2

// columnWidths gives each column the width of its longest cell, and narrows the widest columns
// until the table fits. It returns false if the table cannot fit: no column becomes narrower
// than its longest word, since a broken command or field name cannot be copied.
func columnWidths(rows [][]string, width int) (widths []int, fits bool) {
	widths = make([]int, len(rows[0]))
	spare := make([]int, len(widths)) // characters that a column can lose
	for i := range widths {
		longest := 0
		for _, row := range rows {
			if i < len(row) {
				widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
				for word := range strings.FieldsSeq(row[i]) {
					longest = max(longest, utf8.RuneCountInString(word))
				}
			}
		}
		spare[i] = widths[i] - longest
		width -= widths[i]
	}
	// One character at a time is taken from the widest column that can lose one. So narrow
	// columns keep their width, and wide ones end about equal.
	for width -= columnGap * (len(widths) - 1); width < 0; width++ {
		widest := -1
		for i, w := range widths {
			if spare[i] > 0 && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return nil, false
		}
		widths[widest]--
		spare[widest]--
	}
	return widths, true
}

// lists sets each row of a table as a list under its first cell.
func (p *page) lists(rows [][]string) {
	for _, row := range rows[1:] {
		p.gap()
		for _, line := range wrapped(row[0], p.width) {
			p.line(line)
		}
		for i, cell := range row[1:] {
			if title := rows[0][i+1]; title != "" && cell != "" {
				cell = title + ": " + cell
			}
			for n, line := range wrapped(cell, p.width-4) {
				p.line([]string{"  ", "    "}[min(n, 1)] + line)
			}
		}
	}
}

// row sets a row, and returns how many lines it has.
func (p *page) row(cells []string, widths []int) (height int) {
	columns := make([][]string, len(widths))
	for i := range widths {
		if i < len(cells) {
			columns[i] = wrapped(cells[i], widths[i])
			height = max(height, len(columns[i]))
		}
	}
	for n := range height {
		var b strings.Builder
		for i, column := range columns {
			text := ""
			if n < len(column) {
				text = column[n]
			}
			b.WriteString(text + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text)+columnGap))
		}
		p.line(b.String())
	}
	return height
}

// underline draws the line below the heading of a table.
func (p *page) underline(widths []int) {
	var b strings.Builder
	for _, w := range widths {
		b.WriteString(strings.Repeat("-", w) + strings.Repeat(" ", columnGap))
	}
	p.line(b.String())
}

// marked matches a span of code, bold or slanted text, or a link.
var marked = once.Regexp("(`[^`]*`)|\\*\\*([^*]+)\\*\\*|\\*([^*\\s][^*]*)\\*|\\[((?:[^\\]`]|`[^`]*`)*)\\]\\(([^)\\s]+)\\)")

// inline takes the marks out of a text. Code keeps its marks, since a reader must see where
// it ends.
func (p *page) inline(text string) string {
	return marked().ReplaceAllStringFunc(text, func(s string) string {
		m := marked().FindStringSubmatch(s)
		switch {
		case m[1] != "":
			return s
		case m[5] != "":
			return p.link(p.inline(m[4]), m[5])
		}
		return m[2] + m[3]
	})
}

// wrapped breaks a text into lines of at most width characters. A longer word is broken.
func wrapped(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		for {
			room := width - utf8.RuneCountInString(line)
			if line != "" {
				room--
			}
			if utf8.RuneCountInString(word) <= room {
				line = strings.TrimLeft(line+" "+word, " ")
				break
			}
			if line != "" {
				lines, line = append(lines, line), ""
				continue
			}
			runes := []rune(word)
			lines, word = append(lines, string(runes[:width])), string(runes[width:])
		}
	}
	if line != "" || len(lines) == 0 {
		lines = append(lines, line)
	}
	return lines
}
