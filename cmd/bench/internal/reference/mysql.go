package reference

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"
)

// Binary columns compare bytes: a collation would cost CPU at each comparison of ids.
const mysqlSchema = `
CREATE TABLE IF NOT EXISTS events (id VARBINARY(26) PRIMARY KEY, source VARBINARY(255) NOT NULL, type VARBINARY(255) NOT NULL, payload LONGBLOB NOT NULL, created_at BIGINT NOT NULL) ENGINE = InnoDB;
CREATE TABLE IF NOT EXISTS jobs (id VARBINARY(26) PRIMARY KEY, event_id VARBINARY(26) NOT NULL, attempt BIGINT NOT NULL, due_at BIGINT, KEY jobs_due (due_at, id)) ENGINE = InnoDB;
CREATE TABLE IF NOT EXISTS attempts (job_id VARBINARY(26) NOT NULL, attempt BIGINT NOT NULL, status BIGINT NOT NULL, error TEXT, duration_ms BIGINT NOT NULL, created_at BIGINT NOT NULL, PRIMARY KEY (job_id, attempt)) ENGINE = InnoDB;
UPDATE jobs SET due_at = 0 WHERE due_at IS NOT NULL`

// begin goes without gap locks, so that inserts and claims do not wait for each
// other. It is text, because the variable's name differs between the servers.
const begin = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED;BEGIN;"

// The texts before and after a list of rows or of keys.
const (
	mysqlEvents   = `INSERT INTO events (id, source, type, payload, created_at) VALUES `
	mysqlJobs     = `;INSERT INTO jobs (id, event_id, attempt, due_at) VALUES `
	mysqlAttempts = `INSERT INTO attempts (job_id, attempt, status, error, duration_ms, created_at) VALUES `
	mysqlFinish   = `;UPDATE jobs SET due_at = NULL WHERE id IN `
	mysqlRetry    = `;UPDATE jobs SET due_at = ? WHERE id IN `
	mysqlPick     = `SELECT id, event_id, attempt, due_at FROM jobs FORCE INDEX (jobs_due) WHERE due_at BETWEEN ? AND ? ORDER BY due_at, id LIMIT ? FOR UPDATE SKIP LOCKED`
	mysqlTake     = `UPDATE jobs SET attempt = attempt + 1, due_at = ? WHERE id IN `
	mysqlPayloads = `;SELECT id, payload FROM events WHERE id IN `
)

// mysql writes rows by the hundred in one INSERT and sends the statements of a
// transaction together. There is one claimer, since claims of several get in each
// other's way in InnoDB; that takes two round trips, for there is no RETURNING.
type mysql struct {
	unlocked
	db    *sql.DB
	ids   *ids
	floor floor
}

// openMySQL connects and creates the tables.
func openMySQL(url string, connections int) (*mysql, error) {
	db, err := connectMySQL(url, connections)
	if err != nil {
		return nil, err
	}
	s := &mysql{db: db, ids: newIDs()}
	if _, err := s.db.Exec(mysqlSchema); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare the tables: %w", err), s.db.Close())
	}
	return s, nil
}

// connectMySQL takes texts with several statements.
func connectMySQL(url string, connections int) (*sql.DB, error) {
	c, err := driver.ParseDSN(dsn(url))
	if err != nil {
		return nil, err
	}
	// Arguments are put into the text by the driver. Otherwise each text would be prepared on
	// the server first, and a text of several statements cannot be.
	c.InterpolateParams, c.MultiStatements = true, true
	connector, err := driver.NewConnector(c)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(connections)
	// Idle connections stay open: the default of two would close and open them all the time.
	db.SetMaxIdleConns(connections)
	return db, nil
}

// dsn is the driver's form of mysql://user@host:port/database; an address of a
// socket, user@unix(path)/database, is that already.
func dsn(url string) string {
	rest := strings.TrimPrefix(url, "mysql://")
	user, place, _ := strings.Cut(rest, "@")
	host, database, _ := strings.Cut(place, "/")
	if strings.Contains(host, "(") {
		return rest
	}
	return user + "@tcp(" + host + ")/" + database
}

func (s *mysql) close() error { return s.db.Close() }

// accept stores events with a job each: one text with BEGIN, two INSERTs and COMMIT.
func (s *mysql) accept(batch []*post) error {
	now := time.Now().UnixMilli()
	events, jobs := make([]any, 0, 5*len(batch)), make([]any, 0, 4*len(batch))
	for _, p := range batch {
		event, job := s.ids.pair(now)
		events = append(events, event, p.source, p.kind, p.payload, now)
		jobs = append(jobs, job, event, 0, now)
	}
	n := len(batch)
	text := begin + mysqlEvents + list("(?,?,?,?,?)", n) + mysqlJobs + list("(?,?,?,?)", n) + ";COMMIT"
	return s.within(func(ctx context.Context, c *sql.Conn) error {
		_, err := c.ExecContext(ctx, text, append(events, jobs...)...)
		return err
	})
}

// list repeats a part, with commas between.
func list(part string, n int) string { return strings.Repeat(part+",", n-1) + part }

// keys is a list of n keys in brackets.
func keys(n int) string { return "(" + list("?", n) + ")" }

// within runs fn, which begins a transaction and commits it, and cleans up after
// it when it fails.
func (s *mysql) within(fn func(context.Context, *sql.Conn) error) error {
	ctx := context.Background()
	c, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := fn(ctx, c); err != nil {
		_, _ = c.ExecContext(ctx, "ROLLBACK")
		return err
	}
	return nil
}

// A picked job is one that is locked and not taken yet.
type picked struct {
	job
	event string
	due   int64
}

// turn takes two round trips: settle and pick, then take and commit. Only the dispatcher calls
// it, so claims never meet.
func (s *mysql) turn(done []outcome, free int) (claimed []job, err error) {
	now := time.Now()
	text, args := settleMySQL(done, now.UnixMilli())
	args = append(args, s.floor.from(now), now.UnixMilli(), free)
	err = s.within(func(ctx context.Context, c *sql.Conn) error {
		found, err := pick(ctx, c, begin+text+mysqlPick, args)
		if err != nil {
			return err
		}
		// The outcomes are settled even if no job is due.
		if len(found) == 0 {
			_, err := c.ExecContext(ctx, "COMMIT")
			return err
		}
		claimed, err = s.take(ctx, c, found, now.UnixMilli()+lease)
		return err
	})
	return claimed, err
}

// settleMySQL is the text and the arguments that settle outcomes, empty for none.
func settleMySQL(done []outcome, now int64) (text string, args []any) {
	var finished, failed []any
	// Finished and failed jobs are two statements, since they get different due times.
	for _, o := range done {
		args = append(args, o.id, o.attempt, o.status, o.problem(), o.duration.Milliseconds(), now)
		if o.delivered() {
			finished = append(finished, o.id)
		} else {
			failed = append(failed, o.id)
		}
	}
	if len(done) == 0 {
		return "", nil
	}
	text = mysqlAttempts + list("(?,?,?,?,?,?)", len(done))
	if len(finished) > 0 {
		text, args = text+mysqlFinish+keys(len(finished)), append(args, finished...)
	}
	if len(failed) > 0 {
		text, args = text+mysqlRetry+keys(len(failed)), append(append(args, now+retry), failed...)
	}
	return text + ";", args
}

// pick reads the rows of a text's last statement.
func pick(ctx context.Context, c *sql.Conn, text string, args []any) (found []picked, err error) {
	err = results(ctx, c, text, args, func(rows *sql.Rows) error {
		var p picked
		err := rows.Scan(&p.id, &p.event, &p.attempt, &p.due)
		found = append(found, p)
		return err
	})
	return found, err
}

// results calls scan for each row of each result of a text with several
// statements.
func results(ctx context.Context, c *sql.Conn, text string, args []any, scan func(*sql.Rows) error) error {
	rows, err := c.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for more := true; more; more = rows.NextResultSet() {
		for rows.Next() {
			if err := scan(rows); err != nil {
				return err
			}
		}
	}
	return rows.Err()
}

// take marks picked jobs as taken, reads their payloads and commits.
func (s *mysql) take(ctx context.Context, c *sql.Conn, found []picked, until int64) (claimed []job, err error) {
	args, events := []any{until}, []any{}
	for _, p := range found {
		args, events = append(args, p.id), append(events, p.event)
	}
	payloads := make(map[string][]byte, len(found))
	text := mysqlTake + keys(len(found)) + mysqlPayloads + keys(len(found)) + ";COMMIT"
	err = results(ctx, c, text, append(args, events...), func(rows *sql.Rows) error {
		var id string
		var payload []byte
		err := rows.Scan(&id, &payload)
		payloads[id] = payload
		return err
	})
	for _, p := range found {
		s.floor.claimed(p.due)
		claimed = append(claimed, job{id: p.id, attempt: p.attempt + 1, payload: payloads[p.event]})
	}
	return claimed, err
}
