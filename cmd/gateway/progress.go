package main

import (
	"fmt"
	"time"
)

// A progress is a line on stderr with the progress of a long command. It is shown only if
// stderr is a terminal.
type progress struct {
	*app
	next  time.Time
	shown bool
}

// progressRest is the shortest time between two updates of the line.
const progressRest = 200 * time.Millisecond

func (a *app) progress() *progress { return &progress{app: a, next: a.clock().Add(progressRest)} }

// show writes the line, unless it was written less than progressRest ago.
func (p *progress) show(format string, args ...any) {
	if !p.watched {
		return
	}
	now := p.clock()
	if now.Before(p.next) {
		return
	}
	p.next, p.shown = now.Add(progressRest), true
	fmt.Fprintf(p.stderr, "\r%s\x1b[K", visible(fmt.Sprintf(format, args...)))
}

// clear removes the line.
func (p *progress) clear() {
	if p.shown {
		p.shown = false
		fmt.Fprint(p.stderr, "\r\x1b[K")
	}
}
