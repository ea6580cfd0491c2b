package main

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

const (
	spoolLines = 4096        // waiting to be written
	spoolFlush = time.Second // bound for writing the rest at the end
)

// A spool writes log lines on its own goroutine. If the reader stops, such as a terminal on
// hold or a stuck collector, log lines are lost and the service goes on. Without a spool the
// first blocked line would block every request, every delivery and the shutdown.
type spool struct {
	out     io.Writer
	lines   chan []byte
	dropped atomic.Int64
	quit    chan struct{}
	done    chan struct{}
}

// newSpool returns a running spool. The caller closes it.
func newSpool(out io.Writer) *spool {
	s := &spool{out: out, lines: make(chan []byte, spoolLines), quit: make(chan struct{}), done: make(chan struct{})}
	go s.run()
	return s
}

// Write queues a line, or counts it as dropped. It never blocks and never fails.
func (s *spool) Write(line []byte) (int, error) {
	select {
	// The logger uses its buffer again after Write, so the line is copied.
	case s.lines <- append([]byte(nil), line...):
	default:
		s.dropped.Add(1)
	}
	return len(line), nil
}

// close writes the waiting lines, for at most spoolFlush. Later lines are lost.
func (s *spool) close() {
	close(s.quit)
	select {
	case <-s.done:
	case <-time.After(spoolFlush):
	}
}

// run writes lines in the order in which they came, until the spool is closed and no line
// waits.
func (s *spool) run() {
	defer close(s.done)
	for {
		select {
		case line := <-s.lines:
			s.pass(line)
		case <-s.quit:
			for {
				select {
				case line := <-s.lines:
					s.pass(line)
				default:
					return
				}
			}
		}
	}
}

// pass writes a line, and after it the number of lines that were dropped meanwhile: the reader
// of the log must see the gap.
func (s *spool) pass(line []byte) {
	s.out.Write(line) //nolint:errcheck // there is nowhere left to say so
	if n := s.dropped.Swap(0); n > 0 {
		fmt.Fprintf(s.out, "%d log lines were dropped: the reader of the log was too slow\n", n)
	}
}
