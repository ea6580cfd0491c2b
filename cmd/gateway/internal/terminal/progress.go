package terminal

import (
	"fmt"
	"time"
)

// A Progress is a line on Err with the progress of a long command. It is shown only if Err is a
// terminal: in a log, each update would be a line.
type Progress struct {
	screen *Screen
	next   time.Time // before this time, the line is not written again
	shown  bool      // whether the line is on the screen
}

// progressRest is the shortest time between two updates of the line. A command that counts
// thousands of events a second would otherwise wait for the terminal.
const progressRest = 200 * time.Millisecond

// Progress returns a line of progress. It is shown after 200 ms at the earliest, so a quick
// command shows none.
func (s *Screen) Progress() *Progress {
	return &Progress{screen: s, next: s.Clock().Add(progressRest)}
}

// Show writes the line, unless it was written less than 200 ms ago.
func (p *Progress) Show(format string, args ...any) {
	if !p.screen.Watched {
		return
	}
	now := p.screen.Clock()
	if now.Before(p.next) {
		return
	}
	p.next, p.shown = now.Add(progressRest), true
	// The carriage return goes back to the begin of the line; the escape clears the rest of it.
	fmt.Fprintf(p.screen.Err, "\r%s\x1b[K", Visible(fmt.Sprintf(format, args...)))
}

// Clear removes the line. The caller does so before it prints anything else.
func (p *Progress) Clear() {
	if p.shown {
		p.shown = false
		fmt.Fprint(p.screen.Err, "\r\x1b[K")
	}
}
