// Package preview compares two configurations by the events of the past: which consumers would
// get each event, and with which body and settings.
//
// The one idea to know: the package decides nothing about an event. Each configuration is a
// [Side], which the caller makes of the intake and the senders that serve. The package puts the
// two results for one event side by side and counts the differences. It keeps counts and a few
// examples, so its memory does not depend on the number of events, except for the bounded set of
// idempotency keys.
//
// preview imports core, core/order and the standard library. It does no IO.
package preview

import (
	"bytes"
	"hash/maphash"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/order"
)

// A Side is one of the two configurations.
type Side struct {
	// Decide returns the Outcome of an event that comes in now. It does not change the event.
	Decide func(core.Event) Outcome

	// Why says in words why a consumer of the configuration gets no job for an event; "" if it is
	// not known.
	Why func(core.Event, core.Lane) string

	// Sources are the kinds of the sources, by their names.
	Sources map[string]string

	// Consumers are the consumers of events, in the order in which they are shown.
	Consumers []Consumer
}

// A Consumer is a handler, queue or workflow of a configuration.
type Consumer struct {
	Lane  core.Lane
	Lined bool // its jobs stand in lines

	// Settings are the fields that are the same for all its jobs, such as its url, by the names
	// of the fields. The values are compared, and never shown.
	Settings map[string]string
}

// An Outcome is the refusal of an event, or its jobs.
type Outcome struct {
	// Refused says why the event is refused; "" if it is stored.
	Refused string

	// Jobs are the jobs of the stored event, at most one of each lane.
	Jobs []Job

	// Undecided are the consumers whose filters failed with an error.
	Undecided []core.Undecided
}

// A Job is a job and its delivery. The ids of the two sides have no meaning.
type Job struct {
	core.NewJob

	Body        []byte // of the delivery; nil for the jobs of queues and workflows
	ContentType string
	Err         string // why the body cannot be made; "" if it can
}

// The two sides, as indexes.
const (
	Before = iota // the configuration that serves
	After         // the new one
)

// Names of the differences in a job beside the settings of its consumer.
const (
	InBody     = "body" // with its content type, and whether it can be made
	InLine     = "line"
	InDelay    = "delay"
	InAttempts = "attempts" // the budget
	InKey      = "idempotency_key"
	InFilter   = "filter" // it fails with an error on one side only
)

// A Tally counts the events of one consumer. Pairs are by side.
type Tally struct {
	Lane       core.Lane
	Configured [2]bool

	Jobs      [2]int         // events with a job
	Won, Lost int            // events with a job on the After side only, or the Before side only
	Changed   int            // events whose job is another one, or whose filter fails on one side
	Changes   map[string]int // of Changed, by the name of the difference

	Unmade    [2]int // jobs whose body cannot be made
	Undecided [2]int // events without a job, since the filter fails
	Unlined   [2]int // jobs in no line although the consumer has lines: their key is missing
	Repeats   [2]int // events without a job, since an earlier one had the same idempotency key
}

// Differs reports whether an event makes a difference for the consumer.
func (t Tally) Differs() bool { return t.Won+t.Lost+t.Changed > 0 }

// A Refusal counts the events of one source that are refused.
type Refusal struct {
	Source  string
	Refused [2]int
	Why     [2]string // of the first
}

// An Example is an event that makes a difference for a consumer.
type Example struct {
	Event   core.ID
	At      time.Time
	Lane    core.Lane
	Kind    string   // won, lost or changed
	Changes []string // of a changed job: the names of the differences
	Why     string   // why one side has no job, or no body
	Diff    []string // of the bodies, if they differ; see [Diff]
}

// Kinds of an [Example].
const (
	Won     = "won"
	Lost    = "lost"
	Changed = "changed"
)

// A Report is the result of a comparison.
type Report struct {
	Events      int // that were compared
	Affected    int // of these, with a difference
	First, Last time.Time

	Consumers []Tally   // of both sides, in their order
	Refusals  []Refusal // sources with refused events, in the order of their first
	Examples  []Example // at most [Options.Examples] of each kind, for each consumer of both sides

	// Forgotten says that there were more idempotency keys than are remembered. Later events with
	// one of the others count as new.
	Forgotten bool
}

// Differs reports whether an event makes a difference.
func (r Report) Differs() bool { return r.Affected > 0 }

// Options of a comparison.
type Options struct {
	Examples int // of each consumer and kind
}

// maxKeys is how many idempotency keys of each side are remembered: about 20 MiB.
const maxKeys = 1 << 19

// A Comparison compares two sides, event by event. It is for one goroutine.
type Comparison struct {
	options   Options
	sides     [2]Side
	entries   map[core.Lane]*entry
	order     []*entry
	touched   []*entry // of the present event
	refusals  map[string]*Refusal
	refused   []*Refusal
	seen      [2]map[uint64]struct{}
	seed      maphash.Seed
	maxKeys   int
	report    Report
	different bool // the present event makes a difference
}

// An entry is a consumer of one or both sides.
type entry struct {
	Tally
	lined    [2]bool
	settings []string       // the names of the settings that differ
	examples map[string]int // by kind

	// Of the present event.
	present bool
	job     [2]*Job
	fails   [2]error
}

// New begins a comparison of the configuration that serves with a new one.
func New(before, after Side, o Options) *Comparison {
	c := &Comparison{options: o, sides: [2]Side{before, after}, entries: map[core.Lane]*entry{}, refusals: map[string]*Refusal{}, seed: maphash.MakeSeed(), maxKeys: maxKeys}
	for i, side := range c.sides {
		c.seen[i] = map[uint64]struct{}{}
		for _, consumer := range side.Consumers {
			e := c.entry(consumer.Lane)
			e.Configured[i], e.lined[i] = true, consumer.Lined
		}
	}
	earlier := map[core.Lane]Consumer{}
	for _, consumer := range before.Consumers {
		earlier[consumer.Lane] = consumer
	}
	for _, consumer := range after.Consumers {
		if e := c.entry(consumer.Lane); e.Configured[Before] {
			e.settings = differing(earlier[consumer.Lane].Settings, consumer.Settings)
		}
	}
	return c
}

// differing returns the names of the settings that differ, in order.
func differing(before, after map[string]string) (names []string) {
	for name, value := range after {
		if was, ok := before[name]; !ok || was != value {
			names = append(names, name)
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// entry returns the entry of a lane, which it adds if there is none.
func (c *Comparison) entry(l core.Lane) *entry {
	e := c.entries[l]
	if e == nil {
		e = &entry{Tally: Tally{Lane: l, Changes: map[string]int{}}, examples: map[string]int{}}
		c.entries[l] = e
		c.order = append(c.order, e)
	}
	return e
}

// Add compares the two sides for one event. The events must come in the order in which they
// came in: an idempotency key is a repeat if an earlier event had it.
func (c *Comparison) Add(e core.Event) {
	c.touched, c.different = c.touched[:0], false
	outcomes := [2]Outcome{c.sides[Before].Decide(e), c.sides[After].Decide(e)}
	if was, is := c.sides[Before].Sources[e.Source], c.sides[After].Sources[e.Source]; was != "" && is != "" && was != is {
		// The senders of the events use the route of the earlier kind.
		outcomes[After] = Outcome{Refused: "the source is of type " + is + ", not " + was}
	}
	c.refuse(e, outcomes)
	for i := range outcomes {
		c.take(i, outcomes[i])
	}
	for _, t := range c.touched {
		c.judge(t, e, outcomes)
		t.present, t.job, t.fails = false, [2]*Job{}, [2]error{}
	}
	if c.report.Events++; c.report.Events == 1 {
		c.report.First = e.CreatedAt
	}
	c.report.Last = e.CreatedAt
	if c.different {
		c.report.Affected++
	}
}

// refuse counts the sides that refuse an event.
func (c *Comparison) refuse(e core.Event, outcomes [2]Outcome) {
	for i, o := range outcomes {
		if o.Refused == "" {
			continue
		}
		r := c.refusals[e.Source]
		if r == nil {
			r = &Refusal{Source: e.Source}
			c.refusals[e.Source] = r
			c.refused = append(c.refused, r)
		}
		if r.Refused[i]++; r.Refused[i] == 1 {
			r.Why[i] = o.Refused
		}
	}
	c.different = (outcomes[Before].Refused == "") != (outcomes[After].Refused == "")
}

// take notes the jobs of one side.
func (c *Comparison) take(side int, o Outcome) {
	for n := range o.Jobs {
		j := &o.Jobs[n]
		t := c.touch(j.Lane)
		switch {
		case c.repeated(side, j):
			t.Repeats[side]++
		default:
			t.job[side] = j
		}
	}
	for _, u := range o.Undecided {
		c.touch(u.Lane).fails[side] = u.Why
	}
}

// touch returns the entry of a lane that the present event concerns.
func (c *Comparison) touch(l core.Lane) *entry {
	t := c.entry(l)
	if !t.present {
		t.present = true
		c.touched = append(c.touched, t)
	}
	return t
}

// repeated reports whether an earlier event had the idempotency key of a job.
func (c *Comparison) repeated(side int, j *Job) bool {
	if j.Key == "" {
		return false
	}
	// A hash of 64 bits takes less memory than the key. That two of a million keys have the same
	// hash has a chance of 1 in 37 million.
	var h maphash.Hash
	h.SetSeed(c.seed)
	_, _ = h.WriteString(string(j.Lane))
	_ = h.WriteByte(0)
	_, _ = h.WriteString(j.Key)
	seen := c.seen[side]
	if _, ok := seen[h.Sum64()]; ok {
		return true
	}
	if len(seen) >= c.maxKeys {
		c.report.Forgotten = true
		return false
	}
	seen[h.Sum64()] = struct{}{}
	return false
}

// judge compares the two jobs of a consumer.
func (c *Comparison) judge(t *entry, e core.Event, outcomes [2]Outcome) {
	for i, j := range t.job {
		t.count(i, j)
	}
	before, after := t.job[Before], t.job[After]
	switch {
	case before == nil && after == nil:
		if (t.fails[Before] == nil) != (t.fails[After] == nil) {
			c.changed(t, e, []string{InFilter}, nil)
		}
	case before == nil:
		t.Won++
		c.example(t, e, Example{Kind: Won, Why: c.why(Before, t, e, outcomes)})
	case after == nil:
		t.Lost++
		c.example(t, e, Example{Kind: Lost, Why: c.why(After, t, e, outcomes)})
	default:
		if changes := append(before.changes(after), t.settings...); len(changes) > 0 {
			c.changed(t, e, changes, t.job[:])
		}
	}
}

// count counts the job of one side.
func (t *entry) count(side int, j *Job) {
	if t.fails[side] != nil {
		t.Undecided[side]++
	}
	if j == nil {
		return
	}
	t.Jobs[side]++
	if j.Err != "" {
		t.Unmade[side]++
	}
	if t.lined[side] && j.Line.Key == "" {
		t.Unlined[side]++
	}
}

// changes returns the names of the differences between two jobs.
func (j *Job) changes(other *Job) (names []string) {
	for _, f := range []struct {
		name string
		same bool
	}{
		{InBody, j.Err == other.Err && j.ContentType == other.ContentType && bytes.Equal(j.Body, other.Body)},
		{InLine, j.Line == other.Line || j.Line.Key == "" && other.Line.Key == ""}, // without a key it is in no line
		{InDelay, j.DueAt.Equal(other.DueAt)},
		{InAttempts, j.MaxAttempts == other.MaxAttempts},
		{InKey, j.Key == other.Key},
	} {
		if !f.same {
			names = append(names, f.name)
		}
	}
	return names
}

// changed counts an event whose job differs. The jobs are nil if the filter fails on one side.
func (c *Comparison) changed(t *entry, e core.Event, changes []string, jobs []*Job) {
	t.Changed++
	for _, name := range changes {
		t.Changes[name]++
	}
	example := Example{Kind: Changed, Changes: changes}
	if t.examples[Changed] >= c.options.Examples { // the diff is not made in vain
		c.different = true
		return
	}
	switch {
	case jobs == nil:
		for _, err := range t.fails {
			if err != nil {
				example.Why = err.Error()
			}
		}
	case jobs[Before].Err != "" || jobs[After].Err != "":
		for i, j := range jobs {
			if j.Err != "" {
				example.Why = j.Err
				if i == Before && jobs[After].Err == "" {
					example.Why = "no longer: " + j.Err
				}
			}
		}
	case slices.Contains(changes, InBody):
		example.Diff = diffJobs(jobs[Before], jobs[After])
	}
	c.example(t, e, example)
}

// diffJobs returns the diff of two bodies, with the content types if they differ.
func diffJobs(before, after *Job) (lines []string) {
	if before.ContentType != after.ContentType {
		lines = []string{"- content-type: " + shown(before.ContentType), "+ content-type: " + shown(after.ContentType)}
	}
	if !bytes.Equal(before.Body, after.Body) {
		lines = append(lines, Diff(before.Body, after.Body)...)
	}
	return lines
}

// shown returns a text, or a dash for none.
func shown(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// why returns why a side has no job for an event.
func (c *Comparison) why(side int, t *entry, e core.Event, outcomes [2]Outcome) string {
	kind := Won
	if side == After {
		kind = Lost
	}
	switch {
	case t.examples[kind] >= c.options.Examples || !t.Configured[side]:
		return "" // it is not shown
	case outcomes[side].Refused != "":
		return "the event is refused: " + outcomes[side].Refused
	case t.fails[side] != nil:
		return "its filter gives no answer: " + t.fails[side].Error()
	case slices.ContainsFunc(outcomes[side].Jobs, func(j Job) bool { return j.Lane == t.Lane }):
		return "an earlier event has the same idempotency key"
	}
	return c.sides[side].Why(e, t.Lane)
}

// example keeps an event as an example, if there are not enough of the kind. A consumer of one
// side only needs none: all its events differ, for the same reason.
func (c *Comparison) example(t *entry, e core.Event, x Example) {
	c.different = true
	if t.examples[x.Kind] >= c.options.Examples || t.Configured != [2]bool{true, true} {
		return
	}
	t.examples[x.Kind]++
	x.Event, x.At, x.Lane = e.ID, e.CreatedAt, t.Lane
	c.report.Examples = append(c.report.Examples, x)
}

// Report returns the result so far.
func (c *Comparison) Report() Report {
	r := c.report
	for _, t := range c.order {
		r.Consumers = append(r.Consumers, t.Tally)
	}
	order.Stable(r.Consumers, func(a, b Tally) int { return compareLanes(a.Lane, b.Lane) })
	for _, f := range c.refused {
		r.Refusals = append(r.Refusals, *f)
	}
	order.Stable(r.Examples, func(a, b Example) int { return compareLanes(a.Lane, b.Lane) })
	return r
}
