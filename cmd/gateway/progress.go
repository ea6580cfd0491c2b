package main

import (
	"fmt"
	"time"
)

// A progress is a line on stderr that tells how far a long command has come. It is
// shown to people only: where stderr is no terminal it says nothing.
type progress struct {
	*app
	next  time.Time
	shown bool
}

// progressRest is how long a line stands before it is written anew.
const progressRest = 200 * time.Millisecond

func (a *app) progress() *progress { return &progress{app: a, next: a.clock().Add(progressRest)} }

// show writes the line, unless it was written a moment ago.
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

// clear makes room for another line.
func (p *progress) clear() {
	if p.shown {
		p.shown = false
		fmt.Fprint(p.stderr, "\r\x1b[K")
	}
}
