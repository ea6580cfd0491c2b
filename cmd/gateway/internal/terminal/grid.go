package terminal

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// A Colour is a colour or a style of text on a terminal.
type Colour text.Color

// The colours in use. They are among the eight that every terminal has, in the shades that the
// user has chosen for them.
const (
	Bold    = Colour(text.Bold)
	Faint   = Colour(text.Faint)
	Red     = Colour(text.FgRed)
	Green   = Colour(text.FgGreen)
	Yellow  = Colour(text.FgYellow)
	Blue    = Colour(text.FgBlue)
	Magenta = Colour(text.FgMagenta)
	Cyan    = Colour(text.FgCyan)
)

// Coloured reports whether output is coloured: only on a terminal that supports it, and not if
// the user refuses it (https://no-color.org).
func (s *Screen) Coloured() bool {
	return s.Terminal && !s.NoColor && s.Env("NO_COLOR") == "" && s.Env("TERM") != "dumb"
}

// Paint colours a piece of output, if output is coloured. The zero Colour is none. Paint
// writes the escapes itself, since the library's switch is a global variable.
func (s *Screen) Paint(piece string, c Colour) string {
	if !s.Coloured() || piece == "" {
		return piece
	}
	return text.Color(c).EscapeSeq() + piece + text.Reset.EscapeSeq()
}

// Width returns the number of columns that a text takes on a terminal. Characters of East Asian
// scripts take two, combining marks none. It counts as Pad and tables do, character by character. To
// count joined emojis as one, as text.StringWidth does, takes 360 KB of tables.
func Width(s string) int { return text.StringWidthWithoutEscSequences(s) }

// Pad appends blanks to a text until it takes width columns.
func Pad(s string, width int) string { return text.Pad(s, width, ' ') }

// A Grid is a table for people: a heading and rows of cells. The cells must have passed
// [Visible], and may be painted.
type Grid struct {
	Heading []string
	Rows    [][]string
	Indent  string // stands before each line
}

// Add appends a row.
func (g *Grid) Add(cells ...string) { g.Rows = append(g.Rows, cells) }

// PrintGrid writes a table to Out in aligned columns with two blanks between them. It draws no
// frame, so that awk and cut can read it. On a terminal, a line separates the heading.
func (s *Screen) PrintGrid(g Grid) {
	w := table.NewWriter()
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	style.Options = table.Options{SeparateHeader: s.Terminal}
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	w.SetStyle(style)
	w.SuppressTrailingSpaces()
	w.AppendHeader(row(g.Heading, func(cell string) string { return s.Paint(cell, Bold) }))
	for _, cells := range g.Rows {
		w.AppendRow(row(cells, func(cell string) string { return cell }))
	}
	for line := range strings.SplitSeq(w.Render(), "\n") {
		fmt.Fprintln(s.Out, g.Indent+line)
	}
}

// row returns cells in the library's type, each changed by dress.
func row(cells []string, dress func(string) string) table.Row {
	r := make(table.Row, len(cells))
	for i, cell := range cells {
		r[i] = dress(cell)
	}
	return r
}
