// Package ledger queries the gateway's database directly, for tests that run the gateway from
// the outside. It has the invariants of every database. Of this module it imports only the
// package that starts servers.
//
// The idea to know: a query is one SELECT of one column, in SQL that every database accepts.
package ledger

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/eventgateway/gateway/infra/test/servers"
)

// An Ask runs one query and returns the column, each value as text.
type Ask func(query string) ([]string, error)

// An Invariant must hold in every database once its gateway has stopped: the answer to
// SQL is the number of rows that break it.
type Invariant struct{ Name, SQL string }

// Invariants returns all invariants. None has NOT IN (SELECT ...): PostgreSQL reads the whole
// list anew for each row if the list does not fit its memory, as with 100,000 events.
func Invariants() []Invariant {
	return []Invariant{
		{"jobs still running", `SELECT COUNT(*) FROM jobs WHERE status = 'running'`},
		{"jobs with a lease nobody holds", `SELECT COUNT(*) FROM jobs WHERE lease IS NOT NULL AND status <> 'running'`},
		{"jobs of an unknown status", `SELECT COUNT(*) FROM jobs
			WHERE status NOT IN ('available', 'scheduled', 'waiting', 'running', 'completed', 'retryable', 'dead', 'canceled')`},
		{"jobs without their event", `SELECT COUNT(*) FROM jobs WHERE NOT EXISTS (SELECT 1 FROM events WHERE events.id = jobs.event_id)`},
		{"attempts without their job", `SELECT COUNT(*) FROM attempts WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = attempts.job_id)`},
		{"jobs without a due time that are not finished and do not wait in a line, or the reverse", `SELECT COUNT(*) FROM jobs
			WHERE (status IN ('waiting', 'completed', 'dead', 'canceled')) <> (due_at IS NULL)`},
		{"finished jobs without the time at which they finished, or the reverse", `SELECT COUNT(*) FROM jobs
			WHERE (status IN ('completed', 'dead', 'canceled')) <> (finished_at IS NOT NULL)`},
		{"jobs that wait in a line and have no place in it", `SELECT COUNT(*) FROM jobs WHERE status = 'waiting'
			AND NOT EXISTS (SELECT 1 FROM line_places WHERE line_places.job_id = jobs.id AND line_places.line = jobs.line)`},
		{"places of jobs that do not wait", `SELECT COUNT(*) FROM line_places
			WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = line_places.job_id AND jobs.status = 'waiting')`},
		// A line whose slots are all free has no other way to give one to the jobs that wait.
		{"places in lines in which no job has a slot", `SELECT COUNT(*) FROM line_places
			WHERE NOT EXISTS (SELECT 1 FROM line_slots WHERE line_slots.line = line_places.line)`},
		{"slots of jobs that wait", `SELECT COUNT(*) FROM line_slots JOIN jobs ON jobs.id = job_id WHERE status = 'waiting'`},
		// Only a dead job keeps its slot, with the time at which it stopped its line.
		{"slots of jobs that are gone or finished", `SELECT COUNT(*) FROM line_slots WHERE NOT EXISTS (SELECT 1 FROM jobs
			WHERE jobs.id = line_slots.job_id AND (jobs.finished_at IS NULL OR jobs.status = 'dead' AND line_slots.stopped_at > 0))`},
		{"jobs with two slots", `SELECT COUNT(*) FROM (SELECT 1 FROM line_slots GROUP BY job_id HAVING COUNT(*) > 1) AS again`},
		// A success begins with its number and its status code. An ack leaves no attempt, since its
		// consumer keeps the result. A wait leaves none either, a step counts its attempts itself, and
		// an operation sends nothing.
		{"completed jobs without a successful attempt as their newest", `SELECT COUNT(*) FROM jobs
			WHERE status = 'completed' AND lane NOT LIKE 'queue/%' AND lane NOT LIKE 'workflow/%' AND lane NOT LIKE 'operation/%'
				AND COALESCE(success, '') NOT LIKE CONCAT(attempt, ' 2__ %') AND NOT EXISTS (SELECT 1 FROM attempts
				WHERE job_id = jobs.id AND attempts.attempt = jobs.attempt AND error = '' AND status_code BETWEEN 200 AND 299)`},
		{"successful attempts of jobs that are not completed", `SELECT COUNT(*) FROM attempts JOIN jobs ON jobs.id = job_id
			WHERE error = '' AND status <> 'completed'`},
		{"jobs with a success that are not completed", `SELECT COUNT(*) FROM jobs WHERE success IS NOT NULL AND status <> 'completed'`},
		{"jobs that succeeded more than once", `SELECT COUNT(*) FROM (SELECT 1 FROM attempts JOIN jobs ON jobs.id = job_id
			WHERE error = '' GROUP BY job_id HAVING COUNT(*) + COUNT(success) > 1) AS again`},
		{"attempts of a job with the same number", `SELECT COUNT(*) FROM (SELECT 1 FROM attempts JOIN jobs ON jobs.id = job_id
			WHERE lane NOT LIKE 'workflow/%' GROUP BY job_id, attempts.attempt HAVING COUNT(*) > 1) AS again`},
		{"attempts with the number of the success", `SELECT COUNT(*) FROM attempts JOIN jobs ON jobs.id = job_id
			WHERE lane NOT LIKE 'workflow/%' AND success LIKE CONCAT(attempts.attempt, ' %')`},
		{"dead jobs with attempts left", `SELECT COUNT(*) FROM jobs WHERE status = 'dead' AND attempt < max_attempts AND lane NOT LIKE 'workflow/%'`},
		// A step that is canceled before its turn is never attempted.
		{"jobs with attempts never made", `SELECT COUNT(*) FROM jobs WHERE status IN ('completed', 'dead') AND attempt < 1 AND lane NOT LIKE 'workflow/%'`},
		{"jobs of the same event and consumer", `SELECT COUNT(*) FROM (SELECT 1 FROM jobs
			WHERE lane NOT LIKE 'workflow/%' GROUP BY event_id, lane HAVING COUNT(*) > 1) AS again`},
		{"runs of the same event and workflow", `SELECT COUNT(*) FROM (SELECT 1 FROM runs GROUP BY event_id, workflow HAVING COUNT(*) > 1) AS again`},
		{"runs whose history has gaps, or another end", `SELECT COUNT(*) FROM runs
			WHERE seq <> (SELECT COUNT(*) FROM history WHERE run_id = runs.id)
			   OR seq <> COALESCE((SELECT MAX(seq) FROM history WHERE run_id = runs.id), 0)`},
		{"open steps of runs that are finished, or of an earlier epoch", `SELECT COUNT(*) FROM steps JOIN runs ON runs.id = run_id
			WHERE steps.status IN ('ready', 'running', 'waiting')
			  AND (runs.status IN ('completed', 'failed', 'canceled') OR steps.epoch <> runs.epoch)`},
		{"jobs that wait for steps that are over", `SELECT COUNT(*) FROM jobs JOIN steps ON steps.id = jobs.id
			WHERE jobs.due_at IS NOT NULL AND steps.status NOT IN ('ready', 'running', 'waiting')`},
		{"runs under way without a job", `SELECT COUNT(*) FROM runs WHERE status IN ('pending', 'running') AND NOT EXISTS
			(SELECT 1 FROM jobs JOIN steps ON steps.id = jobs.id WHERE steps.run_id = runs.id AND jobs.due_at IS NOT NULL)`},
		{"joins that were made twice", `SELECT COUNT(*) FROM (SELECT 1 FROM history
			WHERE type = 'step_succeeded' GROUP BY run_id, epoch, path HAVING COUNT(*) > 1) AS again`},
		{"tokens of steps that are over", `SELECT COUNT(*) FROM callbacks JOIN steps ON steps.id = step_id
			WHERE steps.status NOT IN ('ready', 'running', 'waiting')`},
	}
}

// SQL returns an Ask for a database that has a driver for database/sql.
func SQL(db *sql.DB) Ask {
	return func(query string) ([]string, error) { return askSQL(db, query) }
}

func askSQL(db *sql.DB, query string) (all []string, err error) {
	rows, err := db.Query(query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, rows.Err()
}

// D1 returns an Ask for a D1 database, through its REST API.
func D1(h servers.Hosted) Ask {
	client := &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	return func(query string) ([]string, error) { return askD1(client, h, query) }
}

func askD1(client *http.Client, h servers.Hosted, query string) ([]string, error) {
	question, _ := json.Marshal(map[string]any{"batch": []any{map[string]string{"sql": query}}}) // cannot fail
	url := fmt.Sprintf("%s/client/v4/accounts/%s/d1/database/%s/raw", h.API, h.Account, h.Database)
	r, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(question))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+h.Token)
	r.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var said struct {
		Result []struct {
			Results struct {
				Rows [][]any `json:"rows"`
			} `json:"results"`
		} `json:"result"`
	}
	d := json.NewDecoder(resp.Body)
	d.UseNumber()
	if err := d.Decode(&said); err != nil || resp.StatusCode != http.StatusOK || len(said.Result) != 1 {
		return nil, fmt.Errorf("D1 answered %d", resp.StatusCode)
	}
	var all []string
	for _, row := range said.Result[0].Results.Rows {
		all = append(all, fmt.Sprint(row[0]))
	}
	return all, nil
}
