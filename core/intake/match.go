package intake

import (
	"slices"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/expr"
)

// A Consumer receives events of one source.
type Consumer struct {
	Lane   core.Lane
	Source string

	// Events are the types that it wants: exact, or with * for any number of characters,
	// also none ("order.*", "*.created"). An empty list means all types.
	Events []string

	// Filter selects among these events; nil selects all.
	Filter *expr.Filter

	// Key finds the value by which it recognises duplicates; nil accepts every event.
	Key *expr.Path

	// Lines are the lines in which its jobs wait for each other.
	Lines Lines

	// Reads says that its processing of a payload reads the JSON view, as a transform does.
	Reads bool

	// MaxAttempts is the budget of its jobs, at least 1.
	MaxAttempts int

	// Delay is how long its jobs wait before they are due, unless the sender of an event says
	// when they are.
	Delay time.Duration

	// Workflow is the workflow of which each event starts a run; nil for other consumers.
	// Such a consumer has no filter, key and lines, and MaxAttempts is the budget of the
	// first step's job.
	Workflow *Workflow
}

// A Workflow has the data of a workflow that the start of a run needs.
type Workflow struct {
	Name       string
	Definition core.Definition // the definition that the runs follow
	Step       string          // name of the first step
	StepType   string          // its type
	Timeout    time.Duration   // of a run; zero for none

	// Check returns the faults of a payload, in at most ten lines; an empty result means
	// that it fits. A nil Check accepts any payload.
	Check func(*expr.Document) []string
}

// A matcher finds the consumers of an event. Types without a pattern are looked up, so that
// consumers of other types cost nothing; only patterns are tried one by one.
type matcher map[string]*audience // by source

// audience are the consumers of one source. A consumer is found in at most one of the three
// fields, so that it never gets two jobs for one event.
type audience struct {
	all   []target            // consumers of every type
	exact map[string][]target // by type
	wild  []wildTarget
}

// A target is a consumer as the matcher keeps it, without its source and types.
type target struct {
	lane        core.Lane
	filter      *expr.Filter
	key         *expr.Path
	lines       Lines
	reads       bool
	maxAttempts int
	delay       time.Duration
	workflow    *Workflow
	place       uint32 // place of its jobs' ids in their blocks; the places of its runs are beside
}

// A wildTarget is a consumer with at least one pattern, none of which matches everything.
type wildTarget struct {
	target
	patterns []pattern
}

func newMatcher(consumers []Consumer) matcher {
	m := matcher{}
	for i, c := range consumers {
		if m[c.Source] == nil {
			m[c.Source] = &audience{exact: map[string][]target{}}
		}
		m[c.Source].add(c, 2*uint32(i))
	}
	return m
}

func (a *audience) add(c Consumer, place uint32) {
	reads := c.Reads || c.Key != nil || c.Lines.Key != nil || c.Workflow != nil
	t := target{lane: c.Lane, filter: c.Filter, key: c.Key, lines: c.Lines, reads: reads, maxAttempts: c.MaxAttempts, delay: c.Delay, workflow: c.Workflow, place: place}
	// A literal that a pattern of the same consumer matches is left out: the consumer
	// would be found twice.
	literals, patterns := split(c.Events)
	switch {
	case len(c.Events) == 0 || slices.ContainsFunc(patterns, pattern.everything):
		a.all = append(a.all, t)
		return
	case len(patterns) > 0:
		a.wild = append(a.wild, wildTarget{t, patterns})
	}
	for _, l := range literals {
		if !anyMatches(patterns, l) {
			a.exact[l] = append(a.exact[l], t)
		}
	}
}

// split separates the distinct exact types of a list from its patterns.
func split(events []string) (literals []string, patterns []pattern) {
	for _, e := range events {
		switch {
		case strings.Contains(e, "*"):
			patterns = append(patterns, newPattern(e))
		case !slices.Contains(literals, e):
			literals = append(literals, e)
		}
	}
	return literals, patterns
}

// match returns the consumers that want events of this type from this source. The caller
// must not change the result.
func (m matcher) match(source, eventType string) []target {
	a := m[source]
	if a == nil {
		return nil
	}
	// Clipped, so that appending to the shared list copies it first.
	found := append(slices.Clip(a.all), a.exact[eventType]...)
	for _, w := range a.wild {
		if anyMatches(w.patterns, eventType) {
			found = append(found, w.target)
		}
	}
	return found
}

// arrivalFor returns an event with a job for each of the consumers whose filters select it,
// and a run for each workflow. The delays of consumers begin at the time from.
//
// A consumer whose filter runs out of steps gets no job, and the other consumers get
// theirs. The event is stored, so nothing is lost: the failure is logged and counted, and a
// replay evaluates the filter again after its correction. Two alternatives were rejected.
// To refuse the event would let one filter keep it from all other consumers. To make a job
// for the consumer would deliver events that its filter may be there to exclude.
func arrivalFor(wanted []target, e core.Event, d *expr.Document, ids core.Block, from time.Time) core.Arrival {
	arrival := core.Arrival{Event: e, Jobs: make([]core.NewJob, 0, len(wanted))}
	var about *expr.Context
	for _, t := range wanted {
		if t.filter != nil {
			// The context of filters is made at most once, and only if a consumer
			// has a filter.
			if about == nil {
				about = contextOf(e)
			}
			holds, err := t.filter.Match(d, about)
			if err != nil {
				arrival.Undecided = append(arrival.Undecided, core.Undecided{Lane: t.lane, Why: err})
			}
			if !holds {
				continue
			}
		}
		job := core.NewJob{ID: ids.At(t.place + forJob), Lane: t.lane, Key: key(t.key, d), MaxAttempts: t.maxAttempts, Line: t.lines.line(d)}
		if t.delay > 0 {
			job.DueAt = from.Add(t.delay)
		}
		arrival.Jobs = append(arrival.Jobs, job)
		if t.workflow != nil {
			arrival.Runs = append(arrival.Runs, t.workflow.run(ids.At(t.place+forRun), job.ID))
		}
	}
	return arrival
}

// legible refuses an arrival whose payload is JSON without a view, if a consumer that wants
// it has to read the view. In a replay there is no sender to refuse: then the filter fails,
// or the delivery does.
func legible(wanted []target, a core.Arrival, d *expr.Document) error {
	for _, u := range a.Undecided {
		if expr.Unreadable(u.Why) {
			return unreadable(u.Lane, u.Why)
		}
	}
	for _, t := range wanted {
		gets := func(j core.NewJob) bool { return j.Lane == t.lane }
		if t.reads && slices.ContainsFunc(a.Jobs, gets) && d.Err() != nil {
			return unreadable(t.lane, d.Err())
		}
	}
	return nil
}

func unreadable(lane core.Lane, why error) error {
	return core.Refuse(core.Invalid, "%v, and %s has to read it", why, lane)
}

// Rematch returns a function that matches a stored event with the consumers of now. The
// result is an arrival with a new job for each consumer that wants the event and a new run
// for each workflow, without keys. Its jobs enter their lines. Delays of consumers begin now. The
// schema of the source is not checked again. A workflow whose params the event lacks is left out,
// since there is no sender to refuse.
func Rematch(consumers []Consumer, ids *core.IDs) func(core.Event) core.Arrival {
	m := newMatcher(consumers)
	return func(e core.Event) core.Arrival {
		wanted := m.match(e.Source, e.Type)
		if len(wanted) == 0 {
			return core.Arrival{Event: e}
		}
		document := view(&e)
		var fit []target
		for _, t := range wanted {
			if len(t.lacks(document)) == 0 {
				// With its key the new job would be a duplicate of the job
				// that the operator wants to repeat.
				t.key = nil
				fit = append(fit, t)
			}
		}
		block := ids.Block()
		return arrivalFor(fit, e, document, block, block.At(0).Time())
	}
}

func anyMatches(patterns []pattern, s string) bool {
	for _, p := range patterns {
		if p.matches(s) {
			return true
		}
	}
	return false
}

// A pattern is a text with stars, split at them. Each middle piece is matched at its first
// occurrence. That is correct, since only stars are between the pieces, and takes linear
// time.
type pattern struct {
	prefix, suffix string
	middle         []string
}

// newPattern splits a text that has at least one star.
func newPattern(s string) pattern {
	pieces := strings.Split(s, "*")
	last := len(pieces) - 1
	return pattern{prefix: pieces[0], suffix: pieces[last], middle: pieces[1:last]}
}

func (p pattern) everything() bool {
	return strings.Join(p.middle, "") == "" && p.prefix == "" && p.suffix == ""
}

func (p pattern) matches(s string) bool {
	// The length comes first: without it, prefix and suffix could share characters, and
	// "a*a" would match "a".
	if len(s) < len(p.prefix)+len(p.suffix) || !strings.HasPrefix(s, p.prefix) || !strings.HasSuffix(s, p.suffix) {
		return false
	}
	s = s[len(p.prefix) : len(s)-len(p.suffix)]
	for _, piece := range p.middle {
		i := strings.Index(s, piece)
		if i < 0 {
			return false
		}
		s = s[i+len(piece):]
	}
	return true
}
