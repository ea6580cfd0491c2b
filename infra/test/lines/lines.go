// Package lines checks histories of lines: jobs with the same key whose attempts must keep an
// order. A test records its observations outside of the gateway, and Check finds the violations of
// the order.
//
// The idea to know: Check is a function of the history alone. So it judges the store, the worker
// and a whole gateway in the same way, and its own test shows which histories it refuses. The
// package imports no other package of this module.
package lines

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
)

// A Kind is the kind of an observation: see [Entry].
type Kind string

// The kinds of entries.
const (
	Stored  Kind = "stored"  // the job entered its line
	Begun   Kind = "begun"   // an attempt began
	Ended   Kind = "ended"   // an attempt ended
	Skipped Kind = "skipped" // an operator let the line go on without its dead job
	Retried Kind = "retried" // an operator made a dead job available again
)

// An Outcome is the end of an attempt.
type Outcome string

// The outcomes of attempts.
const (
	Completed Outcome = "completed"
	Failed    Outcome = "failed" // there is to be another attempt
	Dead      Outcome = "dead"
)

// An Entry is one observation. A history is a list of entries in the order in which they
// happened. Only the Stored entries may come later than they happened: the jobs of a key are in
// the order of their Stored entries.
type Entry struct {
	Kind    Kind
	Key     string
	Job     string
	Attempt int     // of Begun and Ended
	Outcome Outcome // of Ended
}

// Rules are the promises that a history must keep.
type Rules struct {
	Limit      int  // attempts of a key at the same time; with 1 each job waits for the end of the job before it
	StopOnDead bool // a dead job stops its line until it is skipped or retried

	// Repeats permits an attempt after a success or a death. A process that was killed may not
	// have stored the end. With a Limit of 1 no later job of the key may have begun.
	Repeats bool
}

// A Log records a history. Its methods may be called concurrently.
type Log struct {
	mu      sync.Mutex
	entries []Entry
}

// Add adds an entry.
func (l *Log) Add(e Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, e)
}

// Entries returns the history.
func (l *Log) Entries() []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries)
}

// Check returns the problems of a history that has ended; none if it keeps the rules. Each
// problem begins with its class: unknown, overlap, inversion, repeated, unstopped, lost or stuck.
func Check(r Rules, history []Entry) []string {
	c := checker{Rules: r, lines: map[string]*line{}}
	for i, e := range history {
		if e.Kind == Stored {
			c.store(i, e)
		}
	}
	for i, e := range history {
		if e.Kind != Stored {
			c.see(i, e)
		}
	}
	c.end()
	return c.problems
}

// A line is the jobs of a key.
type line struct {
	jobs    []*job // in the order of the line
	running int    // attempts
}

// A job is the state of a job after some entries.
type job struct {
	name     string
	place    int // in the line: the number of the entry by which it got there
	begun    bool
	running  bool
	finished Outcome // Completed or Dead; "" before
	stops    bool    // it is dead and stops its line
}

type checker struct {
	Rules
	lines    map[string]*line
	problems []string
}

// problem notes a problem at an entry.
func (c *checker) problem(i int, class string, e Entry, format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf("%s: key %s, job %s, entry %d (%s): %s", class, e.Key, e.Job, i, e.Kind, fmt.Sprintf(format, args...)))
}

// store adds a job to its line.
func (c *checker) store(i int, e Entry) {
	l := c.lines[e.Key]
	if l == nil {
		l = &line{}
		c.lines[e.Key] = l
	}
	if l.find(e.Job) != nil {
		c.problem(i, "unknown", e, "the job was stored before")
		return
	}
	l.jobs = append(l.jobs, &job{name: e.Job, place: i})
}

func (l *line) find(name string) *job {
	for _, j := range l.jobs {
		if j.name == name {
			return j
		}
	}
	return nil
}

// see moves a job by an entry.
func (c *checker) see(i int, e Entry) {
	l := c.lines[e.Key]
	if l == nil || l.find(e.Job) == nil {
		c.problem(i, "unknown", e, "no such job was stored")
		return
	}
	j := l.find(e.Job)
	switch e.Kind {
	case Begun:
		c.begin(i, e, l, j)
	case Ended:
		if !j.running {
			c.problem(i, "unknown", e, "no attempt of the job is under way")
			return
		}
		j.running = false
		l.running--
		if e.Outcome != Failed {
			j.finished = e.Outcome
			j.stops = e.Outcome == Dead && c.StopOnDead
		}
	case Skipped:
		j.stops = false
	case Retried:
		// A job that stops its line has kept its place. Any other goes to the end.
		if !j.stops {
			j.place, j.begun = i, false
			slices.SortStableFunc(l.jobs, func(a, b *job) int { return cmp.Compare(a.place, b.place) })
		}
		j.finished, j.stops = "", false
	default:
		c.problem(i, "unknown", e, "no such kind")
	}
}

// begin begins an attempt.
func (c *checker) begin(i int, e Entry, l *line, j *job) {
	at := slices.Index(l.jobs, j)
	switch {
	case j.running:
		c.problem(i, "overlap", e, "an attempt of the job is under way")
		return // its end would end both
	case j.finished != "" && !c.Repeats:
		c.problem(i, "repeated", e, "the job is %s", j.finished)
	case j.finished != "" && c.Limit == 1:
		if k := slices.IndexFunc(l.jobs[at+1:], func(later *job) bool { return later.begun }); k >= 0 {
			c.problem(i, "repeated", e, "the job is %s, and job %s behind it has begun", j.finished, l.jobs[at+1+k].name)
		}
	}
	if l.running >= c.Limit {
		c.problem(i, "overlap", e, "%d attempts of the key are under way, and the limit is %d", l.running, c.Limit)
	}
	unbegun := 0
	for _, before := range l.jobs[:at] {
		switch {
		case before.stops:
			c.problem(i, "unstopped", e, "job %s is dead and stops the line", before.name)
		case c.Limit == 1 && before.finished == "":
			c.problem(i, "inversion", e, "job %s before it has not ended", before.name)
		case !before.begun:
			unbegun++
		}
	}
	// Admitted jobs that have not begun have a slot each, as this job has.
	if c.Limit > 1 && unbegun >= c.Limit {
		c.problem(i, "inversion", e, "%d jobs before it have not begun, and the limit is %d", unbegun, c.Limit)
	}
	j.begun, j.running = true, true
	l.running++
}

// end checks that every job has ended that no dead job stops.
func (c *checker) end() {
	for _, key := range sortedKeys(c.lines) {
		l := c.lines[key]
		stopped := false
		for at, j := range l.jobs {
			stopped = stopped || j.stops
			if j.finished != "" || stopped && !j.begun {
				continue
			}
			class, why := "stuck", "the job has not ended, nor has any job behind it begun"
			if j.begun || slices.ContainsFunc(l.jobs[at+1:], func(later *job) bool { return later.begun }) {
				class, why = "lost", "the job has not ended"
			}
			c.problems = append(c.problems, fmt.Sprintf("%s: key %s, job %s: %s", class, key, j.name, why))
			if class == "stuck" {
				break // the jobs behind it are stuck too
			}
		}
	}
}

func sortedKeys(lines map[string]*line) []string {
	keys := make([]string, 0, len(lines))
	for k := range lines {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
