package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/eventgateway/gateway/core"
)

// Large States and Outputs of steps are rows of step_texts, each once in a run. A state that
// passes unchanged from step to step is one row, to which the steps refer by name. The name is
// made of the content: the same text has the same name in every process, and writing it again
// changes nothing.

// sharedTextMin is the least size in bytes of such a text. A shorter text is stored in each
// step: the copy costs less than a row and a read of its own.
const sharedTextMin = 1 << 10

// nameOf returns the name of a text: its SHA-256 in base64, and its size in bytes.
func nameOf(text []byte) string {
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:]) + "." + strconv.Itoa(len(text))
}

// stateNameOf returns the name of the state of the step whose job a transition takes, "" if the state is
// stored in the step.
func stateNameOf(t core.Transition) string {
	for _, n := range t.New {
		if n.ID == t.Take.Job && t.Apart && len(n.State) >= sharedTextMin {
			return nameOf(n.State)
		}
	}
	return ""
}

// sizeOf returns the size in a name, 0 for no name.
func sizeOf(name string) int {
	_, size, _ := strings.Cut(name, ".")
	n, _ := strconv.Atoi(size)
	return n
}

// stepTextRows are the rows that a transition writes for its steps, and the rows of the texts
// that may not be stored yet.
type stepTextRows struct {
	of                    *motion
	known                 map[string]bool  // names of texts that are stored, or are in texts
	names                 map[*byte]string // names by the first byte of a text in memory: many steps share one text, which is hashed once
	added, changed, texts [][]any
}

// newStepTextRows makes the rows of a transition. Kept names the texts that are known to be
// stored.
func newStepTextRows(m *motion) *stepTextRows {
	s := &stepTextRows{of: m}
	if m.Apart {
		s.known, s.names = make(map[string]bool, len(m.Kept)), map[*byte]string{}
		for _, name := range m.Kept {
			s.known[name] = true
		}
	}
	for i := range m.New {
		s.add(&m.New[i])
	}
	for i := range m.Changed {
		s.change(&m.Changed[i])
	}
	return s
}

// add adds the row of a new step.
func (s *stepTextRows) add(n *core.Step) {
	state, stateIn := s.stored(n.State)
	output, outputIn := s.output(n.Output, bytes.Equal(n.Output, n.State))
	s.added = append(s.added, s.of.heldRow(string(n.ID), int64(n.Epoch), orNull(string(n.ParentID)), n.Branch, n.Path, n.Name, n.Type, string(n.Status),
		int64(n.Attempt), state, output, n.Error, n.Carry, encodeFan(n.Fan), leafOf(n, s.of.Run.ID),
		millis(n.StartedAt), millis(n.FinishedAt), stateIn, outputIn))
}

// change adds the row of a step that changes.
func (s *stepTextRows) change(c *core.StepChange) {
	last := "no"
	if c.Last {
		last = "yes"
	}
	output, outputIn := s.output(c.Output, c.Passes)
	s.changed = append(s.changed, s.of.heldRow(string(c.Status), int64(c.Attempt), output, c.Error, c.Carry, encodeFan(c.Fan), last,
		millis(c.FinishedAt), outputIn, string(c.ID)))
}

// output returns the two columns of a step's output. An output that equals the step's state is
// stored as "", which is no JSON, so that the text is not stored twice.
func (s *stepTextRows) output(text []byte, passes bool) (with, in any) {
	if text != nil && passes {
		return "", nil
	}
	return s.stored(text)
}

// stored returns the two columns of a text: the text itself, or its name in step_texts.
func (s *stepTextRows) stored(text []byte) (with, in any) {
	if !s.of.Apart || len(text) < sharedTextMin {
		return textOrNull(text), nil
	}
	name, ok := s.names[&text[0]]
	if !ok || sizeOf(name) != len(text) {
		name = nameOf(text)
		s.names[&text[0]] = name
	}
	if !s.known[name] {
		s.known[name] = true
		s.texts = append(s.texts, s.of.heldRow(name, string(text)))
	}
	return nil, name
}

// lacksText reports whether a row of stepColumns names a text that was not found: its run is
// being purged.
func lacksText(row []any) bool {
	return row[stateAt] == nil && row[stateInAt] != nil || row[outputAt] == nil && row[outputInAt] != nil
}

// readTexts reads the texts that steps of a run refer to, each once, and sets them. Steps with
// the same text share its bytes.
func (s *Store) readTexts(ctx context.Context, run core.ID, steps []core.Step) error {
	names := map[string]bool{}
	for i := range steps {
		names[steps[i].StateName], names[steps[i].OutputName] = true, true
	}
	delete(names, "")
	if len(names) == 0 {
		return nil
	}
	st := s.sql.textsOf.on()
	for name := range names {
		st.Rows = append(st.Rows, []any{string(run), name})
	}
	results, err := s.readBatch(ctx, st)
	if err != nil {
		return err
	}
	texts := make(map[string][]byte, len(names))
	for i, row := range results[0].Rows {
		r := rowReader{row}
		name, text := r.text(), r.text()
		texts[name] = []byte(text)
		results[0].Rows[i] = nil // frees the row: there may be many, and large ones
	}
	if len(texts) < len(names) {
		return errTextsGone
	}
	for i := range steps {
		setTexts(&steps[i], texts)
	}
	return nil
}

// setTexts sets the texts of a step.
func setTexts(st *core.Step, texts map[string][]byte) {
	if st.StateName != "" {
		st.State = texts[st.StateName]
	}
	if st.OutputName != "" {
		st.Output = texts[st.OutputName]
	}
}

// errTextsGone is the error for a step whose text is no longer there: the run was purged
// between two reads.
var errTextsGone = core.Refuse(core.NotFound, "the run was deleted while it was read")
