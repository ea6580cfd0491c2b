package server

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	_ "github.com/go-sql-driver/mysql" // drivers of the databases that are looked into
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/eventgateway/gateway/infra/test/servers"
)

// A Database is a database for a run, with its address. The methods open a connection for each
// call and close it again: a connection that stays would be a client of the measured server.
type Database struct {
	Driver string // as Options have it
	URL    string // of sqlite its path, of hosted_sql its hosted_sql_endpoint
	Token  string // of hosted_sql

	drop func() error
}

// Drop removes the database.
func (d *Database) Drop() error { return d.drop() }

// stored counts events that have a job. All systems call the tables the same. An event without
// a job, or a job without an event, is a broken promise and does not count.
const stored = `SELECT count(DISTINCT event_id) AS n FROM jobs WHERE event_id IN (SELECT id FROM events)`

// Stored is the number of events in the database that have a job.
func (d *Database) Stored(ctx context.Context) (int, error) {
	n, err := d.Count(ctx, stored)
	if err != nil {
		return 0, fmt.Errorf("count the stored events: %w", err)
	}
	return n, nil
}

// Count runs a query that selects one number, called n.
func (d *Database) Count(ctx context.Context, query string) (n int, err error) {
	if d.Driver == Hosted {
		return d.countBehindHTTP(ctx, query)
	}
	err = d.within(func(db *sql.DB) error { return db.QueryRowContext(ctx, query).Scan(&n) })
	return n, err
}

// Analyze collects the statistics that PostgreSQL plans by.
func (d *Database) Analyze(ctx context.Context) error {
	return d.within(func(db *sql.DB) error {
		_, err := db.ExecContext(ctx, "ANALYZE")
		return err
	})
}

// within runs fn on a pool that is closed after it.
func (d *Database) within(fn func(*sql.DB) error) error {
	db, err := d.open()
	if err != nil {
		return err
	}
	defer db.Close()
	return fn(db)
}

// open opens a pool.
func (d *Database) open() (*sql.DB, error) {
	name, source := d.Driver, d.URL
	switch d.Driver {
	case Postgres:
		name = "pgx"
	case MySQL:
		source = mysqlSource(d.URL)
	}
	return sql.Open(name, source)
}

// mysqlSource is the driver's form of mysql://user@host:port/database; an address
// of a socket, user@unix(path)/database, is that already.
func mysqlSource(url string) string {
	rest := strings.TrimPrefix(url, "mysql://")
	user, place, _ := strings.Cut(rest, "@")
	host, database, _ := strings.Cut(place, "/")
	if strings.Contains(host, "(") {
		return rest
	}
	return user + "@tcp(" + host + ")/" + database
}

// countBehindHTTP is Count over the API of D1, which has no driver.
func (d *Database) countBehindHTTP(ctx context.Context, query string) (int, error) {
	rows, err := d.askHosted(ctx, query, 30*time.Second)
	if err == nil && len(rows) != 1 {
		err = fmt.Errorf("the database returned %d rows", len(rows))
	}
	if err != nil {
		return 0, err
	}
	var n int
	return n, json.Unmarshal(rows[0][0], &n)
}

// askHosted runs a statement over the API of D1 and returns its rows.
func (d *Database) askHosted(ctx context.Context, text string, timeout time.Duration) ([][]json.RawMessage, error) {
	body, err := json.Marshal(map[string]string{"sql": text})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL+"/raw", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+d.Token)
	client := http.Client{Timeout: timeout}
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	answered, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Result []struct {
			Results struct{ Rows [][]json.RawMessage }
		}
	}
	if err := json.Unmarshal(answered, &answer); err != nil || len(answer.Result) != 1 || res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the database answered %d %.300q", res.StatusCode, answered)
	}
	return answer.Result[0].Results.Rows, nil
}

// sqliteFiles needs no server: a database is a folder. A folder and not a file, since the log
// and the lock of SQLite are beside the file.
type sqliteFiles struct{ dir string }

func (f sqliteFiles) fresh(name string) (*Database, error) {
	dir := filepath.Join(f.dir, name)
	return &Database{URL: filepath.Join(dir, "bench.db"), drop: func() error { return os.RemoveAll(dir) }}, os.Mkdir(dir, 0o700)
}

func (f sqliteFiles) stop() error { return nil }

// A database is reached over TCP, as over a network, and not over a socket file: the driver and
// the server take the same way as in an installation.
type postgresServer struct{ *servers.PostgresServer }

func startPostgres(s *Server) (engine, error) {
	p, err := servers.StartPostgres(servers.PostgresOptions{Dir: s.folder, TCP: true, Settings: s.Settings, Env: s.shim.env()})
	return postgresServer{p}, err
}

func (p postgresServer) fresh(name string) (*Database, error) {
	_, err := p.NewDatabase(name)
	drop := func() error {
		admin := &Database{Driver: Postgres, URL: p.TCP("postgres")}
		// FORCE ends connections that a killed system has left.
		return admin.exec("DROP DATABASE " + name + " WITH (FORCE)")
	}
	return &Database{URL: p.TCP(name), drop: drop}, err
}

func (p postgresServer) stop() error { return p.Stop() }

type mysqlServer struct{ *servers.MySQLServer }

func startMySQL(s *Server) (engine, error) {
	// A larger log, so that no run waits for the log to come round.
	m, err := servers.StartMySQL(servers.MySQLOptions{Dir: s.folder, TCP: true, Settings: []string{"innodb-log-file-size=256M"}})
	return mysqlServer{m}, err
}

func (m mysqlServer) fresh(name string) (*Database, error) {
	_, err := m.NewDatabase(name)
	drop := func() error {
		admin := &Database{Driver: MySQL, URL: m.TCP("")}
		return admin.exec("DROP DATABASE " + name)
	}
	return &Database{URL: m.TCP(name), drop: drop}, err
}

func (m mysqlServer) stop() error { return m.Stop() }

// exec runs one text, within a minute.
func (d *Database) exec(text string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return d.within(func(db *sql.DB) error {
		_, err := db.ExecContext(ctx, text)
		return err
	})
}

// hostedServer starts D1's engine anew whenever its databases, which are named
// when it starts, are used up.
type hostedServer struct {
	dir    string
	server *servers.D1Server
	used   int
}

// hostedDatabases is how many runs share a start of the engine.
const hostedDatabases = 8

func startHosted(s *Server) (engine, error) {
	h := &hostedServer{dir: s.folder}
	return h, h.renew()
}

func (h *hostedServer) fresh(string) (*Database, error) {
	if h.used == hostedDatabases {
		if err := h.renew(); err != nil {
			return nil, err
		}
	}
	given := h.server.Hosted(h.used)
	h.used++
	return &Database{URL: given.Endpoint, Token: given.Token, drop: func() error { return nil }}, nil
}

// renew starts the new engine before it stops the old one, whose databases are no longer used.
func (h *hostedServer) renew() error {
	old := h.server
	server, err := servers.StartD1(servers.D1Options{Dir: h.dir, Databases: hostedDatabases})
	if err != nil {
		return err
	}
	h.server, h.used = server, 0
	if old != nil {
		return old.Stop()
	}
	return nil
}

func (h *hostedServer) stop() error { return h.server.Stop() }
