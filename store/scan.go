package store

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// millis is how a time is stored: Unix milliseconds, or null for the zero time.
func millis(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}

func instant(v any) time.Time {
	ms, ok := v.(int64)
	if !ok {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// orNull stores the empty string as null, in columns where a unique index must
// not take two "none" for the same.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func str(v any) string {
	s, _ := v.(string)
	return s
}

func whole(v any) int {
	n, _ := v.(int64)
	return int(n)
}

// qualified prefixes each column of a list with its table, in its name as well.
func qualified(table, columns string) string {
	names := strings.Split(columns, ", ")
	for i, c := range names {
		names[i] = table + "." + c + " AS " + table + "_" + c
	}
	return strings.Join(names, ", ")
}

func encodeHeaders(h map[string]string) string {
	if len(h) == 0 {
		return ""
	}
	b, err := json.Marshal(h)
	if err != nil {
		panic("store: headers: " + err.Error()) // strings only; cannot fail
	}
	return string(b)
}

func decodeHeaders(s string) map[string]string {
	if s == "" {
		return nil
	}
	var h map[string]string
	if json.Unmarshal([]byte(s), &h) != nil {
		return nil
	}
	return h
}

// inBase64 is the encoding of a payload that is any bytes: a text column does not take them in
// every database, nor does SQL over HTTP.
const inBase64 = "base64"

// encodePayload is a payload as its column has it.
func encodePayload(e core.Event) string {
	if e.Binary {
		return base64.StdEncoding.EncodeToString(e.Payload)
	}
	return string(e.Payload)
}

// decodePayload sets the payload of an event from its columns.
func decodePayload(e *core.Event, text, encoding string) {
	if encoding == "" {
		e.Payload = []byte(text)
		return
	}
	// Nothing else writes the column. Should it be damaged, the bytes before the damage are there.
	e.Payload, _ = base64.StdEncoding.DecodeString(text)
	e.Binary = true
}

// scanEvent reads eventStored.
func scanEvent(row []any) core.Event {
	e := core.Event{
		ID:          core.ID(str(row[0])),
		Source:      str(row[1]),
		Type:        str(row[2]),
		ContentType: str(row[4]),
		Headers:     decodeHeaders(str(row[5])),
		DeliveryID:  str(row[6]),
		CreatedAt:   instant(row[7]),
	}
	decodePayload(&e, str(row[3]), str(row[8]))
	return e
}

// The widths of jobStored and of takenColumns.
const (
	jobWidth   = 14
	takenWidth = jobWidth + 9
)

// scanJob reads jobStored.
func scanJob(row []any) core.Job {
	return core.Job{
		ID:          core.ID(str(row[0])),
		EventID:     core.ID(str(row[1])),
		Lane:        core.Lane(str(row[2])),
		Key:         str(row[3]),
		Status:      core.Status(str(row[4])),
		Attempt:     whole(row[5]),
		MaxAttempts: whole(row[6]),
		DueAt:       instant(row[7]),
		Lease:       core.Lease(str(row[8])),
		LastError:   str(row[9]),
		CreatedAt:   instant(row[10]),
		FinishedAt:  instant(row[11]),
		Earlier:     whole(row[12]),
		ScheduledAt: instant(row[13]),
	}
}

// scanShown reads jobShown.
func scanShown(row []any) core.Job {
	j := scanJob(row)
	j.RunID, j.Step = core.ID(str(row[jobWidth])), str(row[jobWidth+1])
	return j
}

// textOrNull stores JSON, of which nil is not the same as any.
func textOrNull(b []byte) any {
	if b == nil {
		return nil
	}
	return string(b)
}

func bytesOf(v any) []byte {
	text, ok := v.(string)
	if !ok {
		return nil
	}
	return []byte(text)
}

// encodeFan is empty for the zero Fan.
func encodeFan(f core.Fan) string {
	if f == (core.Fan{}) {
		return ""
	}
	return fmt.Sprintf("%d/%d/%d/%d", f.Total, f.Started, f.Ended, f.Bytes)
}

func decodeFan(s string) (f core.Fan) {
	if s == "" {
		return f
	}
	_, _ = fmt.Sscanf(s, "%d/%d/%d/%d", &f.Total, &f.Started, &f.Ended, &f.Bytes)
	return f
}

// scanRun reads runColumns.
func scanRun(row []any) core.Run {
	r := scanRunRest(row[1:])
	r.ID = core.ID(str(row[0]))
	return r
}

func scanRunRest(row []any) core.Run {
	return core.Run{
		Workflow:   str(row[0]),
		EventID:    core.ID(str(row[1])),
		Definition: str(row[2]),
		Status:     core.RunStatus(str(row[3])),
		Epoch:      whole(row[4]),
		Seq:        whole(row[5]),
		Step:       str(row[6]),
		Output:     bytesOf(row[7]),
		Error:      str(row[8]),
		DeadlineAt: instant(row[9]),
		CreatedAt:  instant(row[10]),
		StartedAt:  instant(row[11]),
		FinishedAt: instant(row[12]),
		Written:    whole(row[13]),
		Writers:    str(row[14]),
	}
}

const (
	stepWidth      = 20
	situationWidth = stepWidth + 15
	aboveWidth     = 13

	// The places of a step's texts, and of their names, in stepColumns.
	stateAt, outputAt, stateInAt, outputInAt = 10, 11, 18, 19
)

// scanStep reads stepColumns. Texts that are kept apart are nil if the query did not read
// them.
func scanStep(row []any) core.Step {
	st := core.Step{
		ID:         core.ID(str(row[0])),
		RunID:      core.ID(str(row[1])),
		Epoch:      whole(row[2]),
		ParentID:   core.ID(str(row[3])),
		Branch:     str(row[4]),
		Path:       str(row[5]),
		Name:       str(row[6]),
		Type:       str(row[7]),
		Status:     core.StepStatus(str(row[8])),
		Attempt:    whole(row[9]),
		State:      bytesOf(row[10]),
		Output:     bytesOf(row[11]),
		Error:      str(row[12]),
		Carry:      str(row[13]),
		Fan:        decodeFan(str(row[14])),
		Last:       row[15] != nil,
		StartedAt:  instant(row[16]),
		FinishedAt: instant(row[17]),
		StateName:  str(row[18]),
		OutputName: str(row[19]),
	}
	if st.Output != nil && len(st.Output) == 0 { // see outputOf
		st.Output, st.OutputName = st.State, st.StateName
	}
	return st
}

// scanSituation reads stepAndRun, and the columns of above.
func scanSituation(row []any) core.Situation {
	s := core.Situation{Step: scanStep(row), Run: scanRunRest(row[stepWidth:])}
	s.Run.ID = s.Step.RunID
	s.Above = scanAbove(row[situationWidth:], s.Step)
	return s
}

// scanAbove reads the columns of above, of what a step is in.
func scanAbove(row []any, below core.Step) (above []core.Step) {
	for ; len(row) > 0 && row[2] != nil; row = row[aboveWidth:] {
		below = scanOneAbove(row, below)
		above = append(above, below)
	}
	return above
}

// scanOneAbove reads aboveColumns, of the step that another is in.
func scanOneAbove(row []any, below core.Step) core.Step {
	return core.Step{
		ID:         below.ParentID,
		RunID:      below.RunID,
		Epoch:      below.Epoch,
		ParentID:   core.ID(str(row[0])),
		Branch:     str(row[1]),
		Path:       str(row[2]),
		Name:       str(row[3]),
		Type:       str(row[4]),
		Status:     core.StepStatus(str(row[5])),
		Attempt:    whole(row[6]),
		Error:      str(row[7]),
		Carry:      str(row[8]),
		Fan:        decodeFan(str(row[9])),
		Last:       row[10] != nil,
		StartedAt:  instant(row[11]),
		FinishedAt: instant(row[12]),
	}
}

// scanEntry reads an entry of a history.
func scanEntry(row []any) core.Entry {
	return core.Entry{
		Seq:   whole(row[0]),
		At:    instant(row[1]),
		Epoch: whole(row[2]),
		Type:  core.EntryType(str(row[3])),
		Path:  str(row[4]),
		Data:  str(row[5]),
	}
}

// attemptWidth is how many columns scanAttempt reads.
const attemptWidth = 6

func scanAttempt(row []any) core.Attempt {
	return core.Attempt{
		Number:     whole(row[0]),
		StatusCode: whole(row[1]),
		Error:      str(row[2]),
		Response:   str(row[3]),
		Duration:   time.Duration(whole(row[4])) * time.Millisecond,
		StartedAt:  instant(row[5]),
	}
}
