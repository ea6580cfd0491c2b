// Package terminal writes the output of a command line program: lines, tables, colours, JSON
// documents, a line of progress, and pages of a manual.
//
// The idea to know: a [Screen] is one run's pair of output streams, with the few facts that
// decide how output looks. Is a user looking or a program, how wide is the window, are colours
// refused? The caller fills these facts in once. No function here asks the operating system
// for them, so tests see the same bytes as users.
//
// Text from outside (payloads, errors of handlers, replies of servers) can hold escape
// sequences that steer a terminal. [Visible] and [VisibleJSON] take their effect away. The
// methods for whole messages call them; the caller of [Screen.Printf], of a [Grid] and of
// [Screen.PrintField] must, since only the caller knows which part of a line is from outside.
//
// The package imports core/once and no other package of this module, and knows nothing of
// events, jobs and commands. It chooses no words: the caller gives all texts, and decides where
// a link of a manual leads. It reads no input.
package terminal

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// A Screen is the output of one run of a program. Its methods are for one goroutine at a time.
type Screen struct {
	Program  string    // the prefix of errors, such as "gateway"
	Out, Err io.Writer // standard output for results, standard error for all other text
	Terminal bool      // whether Out is a terminal
	Watched  bool      // whether Err is a terminal: only then a line of progress is shown
	Columns  int       // width of the terminal behind Out, in characters; 0 if there is none
	NoColor  bool      // whether the user refuses colours

	Env   func(name string) string // the environment; it is asked for NO_COLOR and TERM
	Clock func() time.Time         // paces the line of progress
}

// Printf writes a line to Out. Arguments with text from outside must have passed [Visible].
func (s *Screen) Printf(format string, args ...any) {
	fmt.Fprintf(s.Out, format+"\n", args...)
}

// fieldWidth is the number of characters of a field's name, with the blanks behind it.
const fieldWidth = 14

// PrintField writes a name and its value to Out, and nothing if the value is "". The value must
// have passed [Visible].
func (s *Screen) PrintField(indent, name, value string) {
	if value != "" {
		s.Printf("%s%-*s%s", indent, fieldWidth, name, value)
	}
}

// Complain prints an error to Err. The prefix stands before each of its lines, so that a log
// with the output of several programs shows which program said them.
func (s *Screen) Complain(message string) {
	for line := range strings.SplitSeq(strings.TrimSpace(message), "\n") {
		fmt.Fprintf(s.Err, "%s: %s\n", s.Program, Visible(line))
	}
}

// Notef prints a note to Err. It is not part of the output.
func (s *Screen) Notef(format string, args ...any) {
	fmt.Fprintln(s.Err, Visible(fmt.Sprintf(format, args...)))
}

// Bounds for the width of a page, in characters. Below MinWidth most tables would not fit, and
// lines above MaxWidth are hard to read.
const (
	PipeWidth = 80 // the width if Out is no terminal
	MinWidth  = 60
	MaxWidth  = 100
)

// PageWidth returns the number of characters in a line of prose.
func (s *Screen) PageWidth() int {
	if s.Columns == 0 {
		return PipeWidth
	}
	return min(max(s.Columns, MinWidth), MaxWidth)
}
