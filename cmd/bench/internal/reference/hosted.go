package reference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Lists travel as one parameter: D1 takes 100 of them a statement, and each
// statement of a request costs about as much as a few rows. Numbers are bound as
// REAL, so they are cast or meet an integer column.
const (
	hostedEvents = `INSERT INTO events (id, source, type, payload, created_at)
		SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, ? FROM json_each(?)`
	hostedJobs     = `INSERT INTO jobs (id, event_id, attempt, due_at) SELECT value ->> 4, value ->> 0, 0, ? FROM json_each(?)`
	hostedAttempts = `INSERT INTO attempts (job_id, attempt, status, error, duration_ms, created_at)
		SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, ? FROM json_each(?)`
	hostedFinish = `UPDATE jobs SET due_at = list.value ->> 5 FROM json_each(?) AS list WHERE jobs.id = list.value ->> 0`
	hostedClaim  = `UPDATE jobs SET attempt = attempt + 1, due_at = ? WHERE id IN
		(SELECT id FROM jobs WHERE due_at <= ? ORDER BY due_at, id LIMIT CAST(? AS INTEGER))
		RETURNING id, attempt, (SELECT payload FROM events WHERE events.id = event_id) AS payload`
)

// hosted is SQL over HTTP. A commit is one request, and events that wait while one is under way
// join the next. There is no floor here: rows that are finished leave the partial index at once
// on SQLite.
type hosted struct {
	unlocked
	client     *http.Client
	url, token string
	ids        *ids
}

// openHosted creates the tables of SQLite.
func openHosted(url, token string, connections int) (*hosted, error) {
	s := connectHosted(url, token, connections)
	var all []statement
	for _, text := range sqliteSchema {
		all = append(all, statement{SQL: text})
	}
	if _, err := s.send(all...); err != nil {
		return nil, fmt.Errorf("prepare the tables: %w", err)
	}
	return s, nil
}

// connectHosted makes no request yet. As many connections stay open as there are writers.
func connectHosted(url, token string, connections int) *hosted {
	return &hosted{
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}, Timeout: 30 * time.Second},
		url:    url + "/raw", token: token, ids: newIDs(),
	}
}

func (s *hosted) close() error {
	s.client.CloseIdleConnections()
	return nil
}

// accept stores events with a job each, in one request. The jobs do not need the payloads, so
// these are sent once.
func (s *hosted) accept(batch []*post) error {
	now := time.Now().UnixMilli()
	rows := make([][5]string, len(batch))
	for i, p := range batch {
		event, job := s.ids.pair(now)
		rows[i] = [5]string{event, p.source, p.kind, p.payload, job}
	}
	_, err := s.send(statement{hostedEvents, []any{now, text(rows)}}, statement{hostedJobs, []any{now, text(ends(rows))}})
	return err
}

// ends leaves out the values that only the events need.
func ends(rows [][5]string) [][5]string {
	out := make([][5]string, len(rows))
	for i, r := range rows {
		out[i] = [5]string{0: r[0], 4: r[4]}
	}
	return out
}

// turn settles and claims in one request.
func (s *hosted) turn(done []outcome, free int) ([]job, error) {
	now := time.Now().UnixMilli()
	var batch []statement
	if len(done) > 0 {
		rows := make([][6]any, len(done))
		for i, o := range done {
			rows[i] = [6]any{o.id, o.attempt, o.status, o.problem(), o.duration.Milliseconds(), o.due(now)}
		}
		batch = append(batch, statement{hostedAttempts, []any{now, text(rows)}}, statement{hostedFinish, []any{text(rows)}})
	}
	results, err := s.send(append(batch, statement{hostedClaim, []any{now + lease, now, free}})...)
	if err != nil {
		return nil, err
	}
	return claims(results[len(results)-1])
}

// claims reads the rows of hostedClaim. A row is a JSON array, in the order of the columns.
func claims(rows []json.RawMessage) (claimed []job, err error) {
	for _, row := range rows {
		var j job
		var payload string
		if err := json.Unmarshal(row, &[]any{&j.id, &j.attempt, &payload}); err != nil {
			return nil, fmt.Errorf("read a claimed job: %w", err)
		}
		j.payload = []byte(payload)
		claimed = append(claimed, j)
	}
	return claimed, nil
}

// text is JSON as a parameter.
func text(rows any) string {
	b, err := json.Marshal(rows)
	if err != nil {
		panic(err) // rows are of texts and numbers
	}
	return string(b)
}

// A statement is one SQL text with its arguments, as D1's API has it.
type statement struct {
	SQL    string `json:"sql"`
	Params []any  `json:"params,omitempty"`
}

// send runs statements in one transaction and returns the rows of each. It calls
// https://developers.cloudflare.com/api/resources/d1/subresources/database/methods/raw/.
func (s *hosted) send(batch ...statement) ([][]json.RawMessage, error) {
	body, err := json.Marshal(map[string]any{"batch": batch})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest(http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	req.Header.Set("Content-Type", "application/json")
	res, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if body, err = io.ReadAll(res.Body); err != nil {
		return nil, err
	}
	return answers(res.StatusCode, body, len(batch))
}

// answers returns the rows of each of n statements. Any status except 200, and another number
// of results, is an error: the reference tries nothing again.
func answers(status int, body []byte, n int) ([][]json.RawMessage, error) {
	var envelope struct {
		Result []struct {
			Results struct {
				Rows []json.RawMessage `json:"rows"`
			} `json:"results"`
		} `json:"result"`
	}
	if err := json.Unmarshal(body, &envelope); err != nil || status != http.StatusOK || len(envelope.Result) != n {
		return nil, fmt.Errorf("the database answered %d %.300q", status, body)
	}
	rows := make([][]json.RawMessage, n)
	for i, r := range envelope.Result {
		rows[i] = r.Results.Rows
	}
	return rows, nil
}
