package store

import (
	"encoding/json"
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

// scanEvent reads eventColumns.
func scanEvent(row []any) core.Event {
	return core.Event{
		ID:          core.ID(str(row[0])),
		Source:      str(row[1]),
		Type:        str(row[2]),
		Payload:     []byte(str(row[3])),
		ContentType: str(row[4]),
		Headers:     decodeHeaders(str(row[5])),
		DeliveryID:  str(row[6]),
		CreatedAt:   instant(row[7]),
	}
}

const jobWidth = 12

// scanJob reads jobColumns.
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
	}
}

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
