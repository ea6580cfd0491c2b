package servers

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// PostgresOptions are the options of a server.
type PostgresOptions struct {
	Dir      string   // parent of its folder, e.g. /dev/shm; default: the system's temporary files
	Settings []string // "name=value", as postgres -c takes them; they win over the defaults
	TCP      bool     // listen on 127.0.0.1 too, on a port of its own
	Env      []string // "NAME=value", besides the environment of this process
}

// A PostgresServer is a cluster of its own in a folder of its own: fsync on,
// synchronous_commit on, 300 connections, no passwords, time zone UTC.
type PostgresServer struct {
	process *process
	args    []string
	port    int
}

// StartPostgres makes a cluster and starts it, which takes about a second. The
// error wraps [ErrMissing] if PostgreSQL is not installed.
func StartPostgres(o PostgresOptions) (*PostgresServer, error) {
	if err := allowed(); err != nil {
		return nil, err
	}
	postgres, initdb := findPostgres("postgres"), findPostgres("initdb")
	if postgres == "" || initdb == "" {
		return nil, missing("PostgreSQL", "apt-get install postgresql, or set GATEWAY_TEST_POSTGRES_URL")
	}
	// Both refuse to run as root. SIGQUIT lets the postmaster end its backends,
	// which lead sessions of their own, and give back shared memory.
	p, err := newProcess(o.Dir, "QUIT", unprivileged("postgres"))
	if err != nil {
		return nil, err
	}
	p.env = append(p.env, o.Env...)
	s := &PostgresServer{process: p, port: 5432}
	if err := s.create(postgres, initdb, o); err != nil {
		_ = s.Stop()
		return nil, fmt.Errorf("start PostgreSQL in %s: %w", p.dir, err)
	}
	return s, nil
}

func findPostgres(name string) string {
	return find(name, "/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin")
}

func (s *PostgresServer) create(postgres, initdb string, o PostgresOptions) (err error) {
	listen := "listen_addresses="
	if o.TCP {
		listen += "127.0.0.1"
		if s.port, err = s.process.reserve(); err != nil {
			return err
		}
	}
	data := filepath.Join(s.process.dir, "data")
	// -N leaves out initdb's own sync of the new folder, not the server's syncs.
	err = s.process.run(time.Minute, initdb, "-N", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C")
	if err != nil {
		return err
	}
	// Without TCP the port is only part of the socket's name, so any will do.
	s.args = []string{postgres, "-D", data, "-k", s.process.dir, "-p", strconv.Itoa(s.port)}
	for _, set := range append([]string{listen, "fsync=on", "synchronous_commit=on", "max_connections=300",
		"timezone=UTC", "log_min_messages=warning"}, o.Settings...) {
		s.args = append(s.args, "-c", set)
	}
	return s.Restart()
}

// URL is the address of a database on the server's socket.
func (s *PostgresServer) URL(database string) string {
	u := url.URL{Scheme: "postgres", User: url.User("postgres"), Path: "/" + database}
	u.RawQuery = url.Values{"host": {s.process.dir}, "port": {strconv.Itoa(s.port)}, "sslmode": {"disable"}}.Encode()
	return u.String()
}

// TCP is the address of a database on 127.0.0.1; the server must have been
// started with the option TCP. The port stays the same over restarts.
func (s *PostgresServer) TCP(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", s.port, database)
}

// NewDatabase makes an empty database and returns its URL.
func (s *PostgresServer) NewDatabase(name string) (string, error) {
	return s.URL(name), execPostgres(s.URL("postgres"), "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
}

// NewDatabaseAt makes an empty database whose tables are in a new folder, such as one on a
// small disk, and returns its URL. The server's log stays where it is.
func (s *PostgresServer) NewDatabaseAt(name, folder string) (string, error) {
	if err := os.Mkdir(folder, 0o700); err != nil {
		return "", err
	}
	if as := s.process.as; as != nil {
		if err := os.Chown(folder, as.uid, as.gid); err != nil {
			return "", err
		}
	}
	if err := execPostgres(s.URL("postgres"), "CREATE TABLESPACE "+pgx.Identifier{name}.Sanitize()+" LOCATION '"+folder+"'"); err != nil {
		return "", err
	}
	return s.URL(name), execPostgres(s.URL("postgres"), "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()+" TABLESPACE "+pgx.Identifier{name}.Sanitize())
}

// Freeze stops all processes of the server where they are, as a machine without CPU time
// would. Connections stay open and nothing is answered.
func (s *PostgresServer) Freeze() { s.process.signalAll(sigStop) }

// Thaw lets a frozen server go on.
func (s *PostgresServer) Thaw() { s.process.signalAll(sigCont) }

// Kill ends the server at once, without a checkpoint, as a crash would
// (PostgreSQL's "immediate shutdown"); when it returns, nothing of it runs.
// Committed data stays.
func (s *PostgresServer) Kill() { s.process.end(sigQuit, 10*time.Second) }

// Restart starts the server on its data, after ending it in good order if it
// runs, and returns when it accepts connections.
func (s *PostgresServer) Restart() error {
	s.process.end(sigInt, 30*time.Second)
	if err := s.process.start(s.args[0], s.args[1:]...); err != nil {
		return err
	}
	return s.process.ready(time.Minute, func() error { return execPostgres(s.URL("postgres"), "SELECT 1") })
}

// Log returns the end of the server's output.
func (s *PostgresServer) Log() string { return s.process.log() }

// Stop ends the server and removes its folder. It may be called again.
func (s *PostgresServer) Stop() error {
	s.Kill()
	return s.process.remove()
}

var sharedPostgres = sync.OnceValues(func() (*PostgresServer, error) { return StartPostgres(PostgresOptions{}) })

// Postgres returns the URL of a fresh, empty database, which is dropped when the test ends. It
// is in the test binary's own server or in the server of GATEWAY_TEST_POSTGRES_URL, whose user
// needs the right to make databases.
func Postgres(t testing.TB) string {
	t.Helper()
	Check(t, allowed())
	admin := os.Getenv("GATEWAY_TEST_POSTGRES_URL")
	if admin == "" {
		s, err := sharedPostgres()
		Check(t, err)
		admin = s.URL("postgres")
	}
	u, err := url.Parse(admin)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		t.Fatal("GATEWAY_TEST_POSTGRES_URL is not of the form postgres://user:password@host:port/database")
	}
	name := databaseName()
	if err := execPostgres(admin, "CREATE DATABASE "+name); err != nil {
		t.Fatalf("make a database for the test: %v", err)
	}
	t.Cleanup(func() {
		if err := execPostgres(admin, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
	})
	u.Path = "/" + name
	return u.String()
}

func execPostgres(address, sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql)
	return err
}
