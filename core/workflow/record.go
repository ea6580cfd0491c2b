package workflow

import (
	"bytes"
	"slices"

	"github.com/eventgateway/gateway/core"
)

// details are the data of an entry beside its type. They are stored as JSON in the history and
// shown to users, so a name here never changes.
type details struct {
	Attempt  int    `json:"attempt,omitempty"`
	Error    string `json:"error,omitempty"`
	Goto     string `json:"goto,omitempty"` // the next step after a failure
	Branches int    `json:"branches,omitempty"`
	Until    string `json:"until,omitempty"`
	From     string `json:"from,omitempty"`

	Definition string `json:"definition,omitempty"` // "current" if a redrive changed it
	Late       bool   `json:"late,omitempty"`       // the answer came after the step had ended
}

// record adds an entry. It leaves the last free place to the entry for the end of the run. A run without room for another entry is full, and Advance replaces the move: see exhausted.
func (m *move) record(t core.EntryType, path string, d details) {
	if !m.run.Status.Finished() && m.run.Seq+1 >= m.d.entries*m.run.Epoch {
		m.setFull(path, errHistoryFull)
		return
	}
	m.run.Seq++
	e := core.Entry{Seq: m.run.Seq, At: m.now, Epoch: m.run.Epoch, Type: t, Path: path}
	if d != (details{}) {
		data, err := encode(d)
		if err != nil {
			panic(err) // every field has a JSON form
		}
		e.Data = string(data)
	}
	m.wrote("", path, entryBytes+len(path)+len(e.Data))
	m.entries = append(m.entries, e)
}

// state adds a fact, to be stated once the transition is stored. Facts become logs, metrics and
// traces. A move that is not stored must not appear there.
func (m *move) state(f core.Fact) { m.facts = append(m.facts, f) }

// moved adds the fact that the status of a step has changed.
func (m *move) moved(r *row) {
	m.state(core.StepMoved{Run: m.run, Event: m.event, Step: r.Step, Attempt: r.call})
}

// need asks for steps that were not read yet. The move goes on after it, so that one reading
// asks for as much as possible. Its other results are discarded.
func (m *move) need(w core.Wanted) {
	m.missing = m.missing.And(without(w, m.have))
}

// without returns the part of w that had does not include. This keeps a caller from asking for
// a missing step for ever.
func without(w, had core.Wanted) core.Wanted {
	if had.All {
		return core.Wanted{}
	}
	return core.Wanted{
		All: w.All, Open: w.Open && !had.Open, Failed: w.Failed && !had.Failed,
		IDs: absent(w.IDs, had.IDs), Paths: absent(w.Paths, had.Paths), Leaves: absent(w.Leaves, had.Leaves),
	}
}

// absent returns the wanted elements that were not had. The lists have few elements, so it
// compares all pairs.
func absent[T comparable](wanted, had []T) []T {
	return slices.DeleteFunc(slices.Clone(wanted), func(t T) bool { return slices.Contains(had, t) })
}

// result returns the move with all its writes. The rows have their final values.
func (m *move) result(lost map[int]string) Move {
	// Nothing is returned beside Missing: the caller would store a part.
	if !m.missing.Nothing() {
		return Move{Missing: m.missing}
	}
	t := core.Transition{
		Mark: m.pen.Mint(), Seq: m.seq, Run: m.run, Entries: m.entries,
		JobsEnd: m.closed, Attempts: m.attempts, Held: m.held, Disarm: m.disarmed, Receipts: m.receipts, Facts: m.facts,
		Apart: m.d.separateTexts, Kept: m.kept, Definition: m.recast,
	}
	for _, r := range m.order {
		// A row is written once: as a new step, or as a change.
		switch {
		case r.fresh:
			t.New = append(t.New, r.Step)
		case r.changed:
			t.Changed = append(t.Changed, r.change())
		}
		if !r.job.DueAt.IsZero() {
			t.Jobs = append(t.Jobs, r.job)
		}
		if r.end != nil {
			t.JobsEnd = append(t.JobsEnd, *r.end)
		}
	}
	// A token that was stored and disarmed in the same move is never written.
	t.Tokens = slices.DeleteFunc(m.tokens, func(t core.Token) bool { return slices.Contains(m.disarmed, t.StepID) })
	if m.obituaryOf != nil && m.pen.Obituary != nil {
		t.GivesRise = m.pen.Obituary(m.run, m.obituaryOf.Step, m.event)
	}
	return Move{Transition: t, Lost: lost, Moved: true}
}

// change returns the update of an existing row. Passes says that the output equals the state,
// so that the store need not write it again.
func (r *row) change() core.StepChange {
	return core.StepChange{
		ID: r.ID, Status: r.Status, Attempt: r.Attempt, Output: r.Output, Passes: r.Output != nil && bytes.Equal(r.Output, r.State),
		Error: r.Error, Carry: r.Carry, Fan: r.Fan, Last: r.Last, FinishedAt: r.FinishedAt,
	}
}
