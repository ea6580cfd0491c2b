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

// Large States and Outputs of steps are kept apart from the steps, in step_texts, each once
// in a run: a state that goes unchanged from step to step is one row, to which the steps
// refer. The name of a text is made of its content. So the same text has the same name in
// every process, and writing it again changes nothing.

// apartFrom is the least size in bytes of a text that is kept apart. A shorter text is copied
// from step to step: the copy costs less than a row of its own and a read of the row.
const sharedTextMin = 1 << 10

// nameOf is the name of a text: a hash, and its size in bytes.
func nameOf(text []byte) string {
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:]) + "." + strconv.Itoa(len(text))
}

// sizeOf is how many bytes the text with a name has; 0 for no name.
func sizeOf(name string) int {
	_, size, _ := strings.Cut(name, ".")
	n, _ := strconv.Atoi(size)
	return n
}

// A shelf is the rows that a transition writes for its steps: the rows of the steps, and the
// rows of texts that the steps refer to and that may not be stored yet.
type stepTextRows struct {
	shares         bool
	holder         []any
	known          map[string]bool  // names
	names          map[*byte]string // by the first byte of a text: many steps share one text
	added, changed [][]any
	texts          [][]any
}

func newStepTextRows(t core.Transition) *stepTextRows {
	s := &stepTextRows{shares: t.Apart, holder: holdArgs(t)}
	if t.Apart {
		s.known, s.names = make(map[string]bool, len(t.Kept)), map[*byte]string{}
		for _, name := range t.Kept {
			s.known[name] = true
		}
	}
	for _, n := range t.New {
		s.add(n, t.Run.ID)
	}
	for _, c := range t.Changed {
		s.change(c)
	}
	return s
}

func (s *stepTextRows) add(n core.Step, run core.ID) {
	state, stateIn := s.stored(n.State)
	output, outputIn := s.output(n.Output, bytes.Equal(n.Output, n.State))
	s.added = append(s.added, append([]any{string(n.ID), int64(n.Epoch), orNull(string(n.ParentID)), n.Branch, n.Path, n.Name, n.Type, string(n.Status),
		int64(n.Attempt), state, output, n.Error, n.Carry, encodeFan(n.Fan), leafOf(n, run),
		millis(n.StartedAt), millis(n.FinishedAt), stateIn, outputIn}, s.holder...))
}

func (s *stepTextRows) change(c core.StepChange) {
	last := "no"
	if c.Last {
		last = "yes"
	}
	output, outputIn := s.output(c.Output, c.Passes)
	s.changed = append(s.changed, append([]any{string(c.Status), int64(c.Attempt), output, c.Error, c.Carry, encodeFan(c.Fan), last,
		millis(c.FinishedAt), outputIn, string(c.ID)}, s.holder...))
}

// output returns the stored form of a step's output. For an output that is the step's state
// it is "", which is no JSON.
func (s *stepTextRows) output(text []byte, passes bool) (with, in any) {
	if text != nil && passes {
		return "", nil
	}
	return s.stored(text)
}

// put returns the stored form of a step's text: the whole text, or its name.
func (s *stepTextRows) stored(text []byte) (with, in any) {
	if !s.shares || len(text) < sharedTextMin {
		return textOrNull(text), nil
	}
	name, ok := s.names[&text[0]]
	if !ok || sizeOf(name) != len(text) {
		name = nameOf(text)
		s.names[&text[0]] = name
	}
	if !s.known[name] {
		s.known[name] = true
		s.texts = append(s.texts, append([]any{name, string(text)}, s.holder...))
	}
	return nil, name
}

// lacksText tells whether a row of stepColumns refers to a text that was not read.
func lacksText(row []any) bool {
	return row[stateAt] == nil && row[stateInAt] != nil || row[outputAt] == nil && row[outputInAt] != nil
}

// fill reads the texts that steps of a run refer to, each once. Steps that refer to the same
// text share it.
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
		results[0].Rows[i] = nil // there may be many rows, and large ones
	}
	if len(texts) < len(names) {
		return errTextsGone
	}
	for i := range steps {
		setTexts(&steps[i], texts)
	}
	return nil
}

func setTexts(st *core.Step, texts map[string][]byte) {
	if st.StateName != "" {
		st.State = texts[st.StateName]
	}
	if st.OutputName != "" {
		st.Output = texts[st.OutputName]
	}
}

// errTextsGone is the error for a step that refers to a text which is no longer there: the
// run was purged between the two reads.
var errTextsGone = core.Refuse(core.NotFound, "the run is gone")
