package workflow

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/eventgateway/gateway/core"
)

// What a run writes is counted where it is written, and stored with the run: so the count is
// part of the transition, and no attempt that is lost or told twice counts.
//
// A state that only goes on from step to step is not counted: the store keeps it once, or it
// is small. Rows count as about what they take beside their texts.

const (
	stepBytes    = 500
	entryBytes   = 150
	attemptBytes = 200

	// much is from how many bytes on the writer of a text is remembered. A run whose texts are
	// all smaller has more than enough room for as many as it may have steps.
	much = 1 << 10
)

const tooLong = "data: more than 10,000 transitions"

// passOn gives a step its output.
func (m *move) passOn(r *row, output []byte) {
	r.Output = output
	m.written += len(output)
	if !bytes.Equal(output, r.State) {
		m.wrote(r.Name, r.Path, len(output))
	}
}

// wrote counts bytes that a step writes, at a path. Rows have no writer.
func (m *move) wrote(writer, path string, n int) {
	m.run.Written += n
	if writer != "" && n >= much {
		m.run.Writers = more(m.run.Writers, writer, n)
	}
	if most := m.d.bytes; most > 0 && m.run.Written > most*m.run.Epoch && !m.run.Status.Finished() {
		m.fill(path, tooMuch(m.run, most))
	}
}

// fill notes that the run is full, and where it was then.
func (m *move) fill(path, why string) {
	if m.full == "" {
		m.full, m.why = path, why
	}
}

// more are writers as they are stored, after one of them wrote n bytes more.
func more(writers, name string, n int) string {
	all := map[string]int{}
	if writers != "" {
		_ = json.Unmarshal([]byte(writers), &all)
	}
	all[name] += n
	text, err := json.Marshal(all)
	if err != nil {
		panic(err) // names and numbers
	}
	return string(text)
}

// tooMuch says that a run has written more than it may, and which step wrote most.
func tooMuch(run core.Run, most int) string {
	why := fmt.Sprintf("data: the run writes more than max_bytes of its workflow, %d bytes", most)
	if run.Epoch > 1 {
		why += " for each redrive"
	}
	all := map[string]int{}
	_ = json.Unmarshal([]byte(run.Writers), &all)
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

// keptOf are the names of the texts that steps refer to which were read.
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
