package workflow

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/eventgateway/gateway/core"
)

// The bytes that a run writes are counted at each write, and stored with the run. So the
// count is part of the transition. An attempt that is lost or reported twice does not
// count.
//
// A state that passes unchanged from step to step does not count: it is small, or the store
// keeps it once. A row counts as about the bytes that it takes beside its texts.

const (
	// These are about the sizes of rows in the databases, without their texts.
	stepBytes    = 500
	entryBytes   = 150
	attemptBytes = 200

	// largeText is the smallest size in bytes of a text whose writer is remembered. A run with
	// only smaller texts can have all its permitted steps without reaching its bound.
	largeText = 1 << 10
)

// errHistoryFull is the error of a run whose history has no room for another entry but its end.
const errHistoryFull = "data: more than 10,000 transitions"

// setOutput gives a step its output.
func (m *move) setOutput(r *row, output []byte) {
	r.Output = output
	m.written += len(output)
	if !bytes.Equal(output, r.State) {
		m.wrote(r.Name, r.Path, len(output))
	}
}

// wrote counts n bytes that a step writes, at a path. For rows, writer is empty. The bound is
// per epoch: each redrive permits as much again. A finished run does not fail by its late
// answers.
func (m *move) wrote(writer, path string, n int) {
	m.run.Written += n
	// Small texts are not attributed, so that this list stays short.
	if writer != "" && n >= largeText {
		m.run.Writers = addWriter(m.run.Writers, writer, n)
	}
	if most := m.d.bytes; most > 0 && m.run.Written > most*m.run.Epoch && !m.run.Status.Finished() {
		m.setFull(path, errWrittenTooMuch(m.run, most))
	}
}

// setFull notes that the run is full, with the path of the current step and the error. Only the
// first cause is kept.
func (m *move) setFull(path, why string) {
	if m.full == "" {
		m.full, m.why = path, why
	}
}

// addWriter returns the stored form of writers, after one of them wrote n more bytes. It is
// JSON with sorted names, so that the same counts have the same text.
func addWriter(writers, name string, n int) string {
	all := map[string]int{}
	if writers != "" {
		_ = json.Unmarshal([]byte(writers), &all)
	}
	all[name] += n
	text, err := json.Marshal(all)
	if err != nil {
		panic(err) // names and numbers always have a JSON form
	}
	return string(text)
}

// errWrittenTooMuch returns the error of a run that has written too much. It names the step that
// wrote most.
func errWrittenTooMuch(run core.Run, most int) string {
	why := fmt.Sprintf("data: the run writes more than max_bytes of its workflow, %d bytes", most)
	if run.Epoch > 1 {
		why += " for each redrive"
	}
	all := map[string]int{}
	_ = json.Unmarshal([]byte(run.Writers), &all)
	// Equal sizes are decided by the name, so that the error is the same in each process.
	first := ""
	for name, n := range all {
		if n > all[first] || n == all[first] && name < first {
			first = name
		}
	}
	if first == "" {
		return why
	}
	return fmt.Sprintf("%s; step %s wrote most, %d bytes", why, first, all[first])
}

// keptOf returns the names of the stored texts of all steps that were read. They go into Kept of the transition.
func keptOf(v View) (names []string) {
	add := func(s core.Step) {
		for _, name := range []string{s.StateName, s.OutputName} {
			if name != "" {
				names = append(names, name)
			}
		}
	}
	for _, s := range v.Situations {
		add(s.Step)
	}
	for _, s := range v.Steps {
		add(s)
	}
	return names
}
