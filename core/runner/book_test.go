package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A book is a store in memory, for runs and their jobs, in the simplest way that satisfies
// the interfaces. Every call can be made to fail, before or after its effect.
type book struct {
	mu       sync.Mutex
	defs     map[string]core.Definition
	events   map[core.ID]core.Event
	runs     map[core.ID]core.Run
	steps    map[core.ID]core.Step
	jobs     map[core.ID]core.Job
	tokens   map[string]core.Token
	receipts map[string]core.ID
	history  map[core.ID][]core.Entry
	marks    map[core.ID][]core.ID // of the entries of history
	attempts map[string]core.Attempt
	leases   int
	held     bool // the workflows are held, as far as transitions are concerned

	ops    map[string]int                      // calls of each kind
	before func(op string) error               // in place of the effect
	after  func(op string) error               // in place of the answer
	wrong  []string                            // forbidden effects of transitions
	refuse func(t core.Transition) (err error) // permanently
}

func newBook() *book {
	return &book{
		defs: map[string]core.Definition{}, events: map[core.ID]core.Event{}, runs: map[core.ID]core.Run{},
		steps: map[core.ID]core.Step{}, jobs: map[core.ID]core.Job{}, tokens: map[string]core.Token{}, receipts: map[string]core.ID{},
		history: map[core.ID][]core.Entry{}, marks: map[core.ID][]core.ID{}, attempts: map[string]core.Attempt{},
		ops: map[string]int{},
	}
}

var errAway = core.Refuse(core.Unavailable, "the database is away")

// do runs an operation of the store.
func do[T any](b *book, op string, effect func() (T, error)) (T, error) {
	var none T
	b.mu.Lock()
	b.ops[op]++
	before, after := b.before, b.after
	b.mu.Unlock()
	if before != nil {
		if err := before(op); err != nil {
			return none, err
		}
	}
	b.mu.Lock()
	got, err := effect()
	b.mu.Unlock()
	if after != nil && err == nil {
		err = after(op)
	}
	if err != nil {
		return none, err
	}
	return got, nil
}

func find[K comparable, V any](m map[K]V, key K) (V, error) {
	v, ok := m[key]
	if !ok {
		return v, core.Refuse(core.NotFound, "there is no %v", key)
	}
	return v, nil
}

func (b *book) Definition(_ context.Context, hash string) (core.Definition, error) {
	return do(b, "definition", func() (core.Definition, error) { return find(b.defs, hash) })
}

func (b *book) Run(_ context.Context, id core.ID) (core.Run, error) {
	return do(b, "run", func() (core.Run, error) { return find(b.runs, id) })
}

func (b *book) Event(_ context.Context, id core.ID) (core.Event, error) {
	return do(b, "event", func() (core.Event, error) { return find(b.events, id) })
}

func (b *book) Situations(_ context.Context, steps []core.ID) (map[core.ID]core.Situation, error) {
	return do(b, "situations", func() (map[core.ID]core.Situation, error) {
		all := map[core.ID]core.Situation{}
		for _, id := range steps {
			if s, ok := b.situation(id); ok {
				all[id] = s
			}
		}
		return all, nil
	})
}

func (b *book) situation(id core.ID) (core.Situation, bool) {
	s, ok := b.steps[id]
	if !ok {
		return core.Situation{}, false
	}
	at := core.Situation{Run: b.runs[s.RunID], Step: s}
	for up := s.ParentID; up != ""; up = b.steps[up].ParentID {
		above := b.steps[up]
		above.State, above.Output = nil, nil
		at.Above = append(at.Above, above)
	}
	return at, true
}

func (b *book) Survey(_ context.Context, run core.ID, epoch int, w core.Wanted) ([]core.Step, error) {
	return do(b, "survey", func() ([]core.Step, error) {
		var all []core.Step
		for _, s := range b.stepsOf(run, epoch) {
			if w.All || w.Open && s.Status.Open() || w.Failed && s.Status == core.StepFailed ||
				slices.Contains(w.IDs, s.ID) || slices.Contains(w.Paths, s.Path) || s.Last && slices.Contains(w.Leaves, s.ParentID) {
				all = append(all, s)
			}
		}
		return all, nil
	})
}

func (b *book) stepsOf(run core.ID, epoch int) []core.Step {
	var all []core.Step
	for _, s := range b.steps {
		if s.RunID == run && s.Epoch == epoch {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(x, y core.Step) int { return cmp.Compare(x.ID, y.ID) })
	return all
}

func (b *book) Awaited(_ context.Context, now time.Time, hash, receipt string) (core.Awaiting, error) {
	return do(b, "awaited", func() (core.Awaiting, error) {
		found := core.Awaiting{RunID: b.receipts[receipt]}
		if t := b.tokens[hash]; t.ExpiresAt.After(now) {
			found.StepID = t.StepID
		}
		return found, nil
	})
}

func (b *book) Transit(_ context.Context, ts ...core.Transition) ([]core.Transited, error) {
	return do(b, "transit", func() ([]core.Transited, error) {
		for _, t := range ts {
			if b.refuse != nil && b.refuse(t) != nil {
				return nil, b.refuse(t)
			}
		}
		results := make([]core.Transited, len(ts))
		for i, t := range ts {
			results[i].Made = b.transit(t)
			results[i].Taken = results[i].Made && t.Take.Job != "" && b.jobs[t.Take.Job].Lease == core.Lease(t.Mark)
		}
		return results, nil
	})
}

func (b *book) transit(t core.Transition) bool {
	id := t.Run.ID
	if marks := b.marks[id]; len(marks) > t.Seq {
		return marks[t.Seq] == t.Mark
	}
	b.judge(t)
	for _, e := range t.Entries {
		b.history[id], b.marks[id] = append(b.history[id], e), append(b.marks[id], t.Mark)
	}
	for _, a := range t.Attempts {
		b.attempts[string(a.JobID)+"/"+string(a.Lease)] = a.Attempt
	}
	for _, s := range t.New {
		b.steps[s.ID] = s
	}
	for _, c := range t.Changed {
		b.steps[c.ID] = changed(b.steps[c.ID], c)
	}
	for _, n := range t.Jobs {
		b.addJob(n.ID, t.Run, n.DueAt)
		if j := b.jobs[n.ID]; n.ID == t.Take.Job && !b.held {
			j.Status, j.Attempt, j.DueAt, j.Lease = core.Running, 1, t.Take.Until, core.Lease(t.Mark)
			b.jobs[n.ID] = j
		}
	}
	for _, c := range t.JobsEnd {
		j := b.jobs[c.ID]
		j.Status, j.DueAt, j.LastError, j.FinishedAt, j.Lease = c.Status, c.DueAt, c.Error, c.FinishedAt, ""
		b.jobs[c.ID] = j
	}
	for _, k := range t.Tokens {
		b.tokens[k.Hash] = k
	}
	for _, k := range t.Receipts {
		b.receipts[k] = id
	}
	for hash, k := range b.tokens {
		if slices.Contains(t.Disarm, k.StepID) {
			delete(b.tokens, hash)
		}
	}
	b.runs[id] = t.Run
	return true
}

// judge records forbidden effects of a transition.
func (b *book) judge(t core.Transition) {
	complain := func(format string, args ...any) { b.wrong = append(b.wrong, fmt.Sprintf(format, args...)) }
	for i, e := range t.Entries {
		if e.Seq != t.Seq+1+i {
			complain("entry %d of the transition after %d has number %d", i, t.Seq, e.Seq)
		}
	}
	if len(t.Entries) == 0 || t.Run.Seq != t.Seq+len(t.Entries) {
		complain("run at %d after %d entries from %d", t.Run.Seq, len(t.Entries), t.Seq)
	}
	for _, s := range t.New {
		for _, old := range b.stepsOf(s.RunID, s.Epoch) {
			if old.Path == s.Path {
				complain("step %s begins twice", s.Path)
			}
		}
	}
	for _, c := range t.Changed {
		if s := b.steps[c.ID]; !s.Status.Open() {
			complain("step %s changes after its end", s.Path)
		}
	}
}

func (b *book) addJob(id core.ID, run core.Run, due time.Time) {
	b.jobs[id] = core.Job{
		ID: id, EventID: run.EventID, Lane: core.WorkflowLane(run.Workflow), Status: core.Available,
		MaxAttempts: core.Unlimited, DueAt: due,
	}
}

// The rest is core.Worklist.

func (b *book) Due(_ context.Context, lanes []core.Lane) (map[core.Lane]core.Outlook, error) {
	return do(b, "due", func() (map[core.Lane]core.Outlook, error) {
		due := map[core.Lane]core.Outlook{}
		for _, j := range b.jobs {
			if o := due[j.Lane]; slices.Contains(lanes, j.Lane) && !j.DueAt.IsZero() && (o.DueAt.IsZero() || j.DueAt.Before(o.DueAt)) {
				due[j.Lane] = core.Outlook{DueAt: j.DueAt}
			}
		}
		return due, nil
	})
}

func (b *book) Take(_ context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	return do(b, "take", func() ([]core.TakenJob, error) {
		b.leases++
		var taken []core.TakenJob
		for _, q := range quotas {
			for _, j := range b.due(q.Lane, now, q.N) {
				j.Status, j.DueAt, j.Lease = core.Running, now.Add(q.Hold), core.Lease(fmt.Sprint(b.leases))
				j.Attempt++
				b.jobs[j.ID] = j
				at, _ := b.situation(j.ID)
				taken = append(taken, core.TakenJob{Job: j, Event: b.events[j.EventID], Situation: at})
			}
		}
		return taken, nil
	})
}

func (b *book) due(lane core.Lane, now time.Time, most int) []core.Job {
	var due []core.Job
	for _, j := range b.jobs {
		if j.Lane == lane && !j.DueAt.IsZero() && !j.DueAt.After(now) {
			due = append(due, j)
		}
	}
	slices.SortFunc(due, func(x, y core.Job) int { return cmp.Or(x.DueAt.Compare(y.DueAt), cmp.Compare(x.ID, y.ID)) })
	return due[:min(most, len(due))]
}

func (b *book) Settle(_ context.Context, outcomes ...core.Outcome) (core.Settlement, error) {
	return do(b, "settle", func() (s core.Settlement, _ error) {
		for _, o := range outcomes {
			j := b.jobs[o.JobID]
			if j.Lease != o.Lease {
				s.Lost = append(s.Lost, o.JobID)
				continue
			}
			j.Status, j.DueAt, j.Lease, j.LastError, j.FinishedAt = o.Status, o.DueAt, "", o.Attempt.Error, o.At
			b.jobs[o.JobID] = j
		}
		return s, nil
	})
}

func (b *book) Release(_ context.Context, due time.Time, jobs ...core.Job) error {
	_, err := do(b, "release", func() (bool, error) {
		for _, r := range jobs {
			if j := b.jobs[r.ID]; j.Lease == r.Lease && j.Status == core.Running {
				j.Status, j.DueAt, j.Lease = core.Available, due, ""
				j.Attempt--
				b.jobs[r.ID] = j
			}
		}
		return true, nil
	})
	return err
}

func (b *book) Recover(context.Context, time.Time, []core.Lane) (int, error) { return 0, nil }

func (b *book) Lapsed(context.Context, time.Time, []core.Lane, int) ([]core.TakenJob, error) {
	return nil, nil
}

func (b *book) Strays(context.Context, time.Time, []core.Lane) (map[core.Lane]time.Time, error) {
	return nil, nil
}

func (b *book) CloseBreakers(context.Context, time.Time, ...core.Lane) ([]core.Lane, error) {
	return nil, nil
}

// left returns the steps and jobs that a finished run must not have.
func (b *book) left(run core.ID) (all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.steps {
		if s.RunID == run && s.Status.Open() {
			all = append(all, "open step "+s.Path)
		}
	}
	for _, j := range b.jobs {
		if !j.Status.Finished() || j.Lease != "" {
			all = append(all, "job of "+b.steps[j.ID].Path)
		}
	}
	for range b.tokens {
		all = append(all, "a token")
	}
	return append(all, b.wrong...)
}

// entriesOf returns the history of a run, of these types: "type path", in order.
func (b *book) entriesOf(run core.ID, types ...core.EntryType) (lines []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.history[run] {
		if len(types) == 0 || slices.Contains(types, e.Type) {
			lines = append(lines, strings.TrimSpace(string(e.Type)+" "+e.Path))
		}
	}
	return lines
}

var errDefect = errors.New("value out of range")
