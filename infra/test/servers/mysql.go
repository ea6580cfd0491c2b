package servers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// MySQLOptions are the options of a server.
type MySQLOptions struct {
	Dir      string   // parent of its folder, e.g. /dev/shm; default: the system's temporary files
	Settings []string // "name=value", as the server's command line takes them; they win over the defaults
	TCP      bool     // listen on 127.0.0.1 too, on a port of its own
	Env      []string // "NAME=value", besides the environment of this process
}

// A MySQLServer is a MariaDB server of its own in a folder of its own: every
// commit flushed, 300 connections, user root without a password, time zone UTC,
// utf8mb4.
type MySQLServer struct {
	process *process
	args    []string
	port    int
}

// StartMySQL makes a server and starts it, which takes about two seconds. The
// error wraps [ErrMissing] if MariaDB is not installed.
func StartMySQL(o MySQLOptions) (*MySQLServer, error) {
	if err := allowed(); err != nil {
		return nil, err
	}
	server := find("mariadbd", "/usr/sbin", "/usr/local/sbin", "/usr/libexec")
	install := find("mariadb-install-db")
	if server == "" || install == "" {
		return nil, missing("MariaDB", "apt-get install mariadb-server-core mariadb-client-core, or set GATEWAY_TEST_MYSQL_URL")
	}
	p, err := newProcess(o.Dir, "KILL", nil)
	if err != nil {
		return nil, err
	}
	p.env = append(p.env, o.Env...)
	s := &MySQLServer{process: p}
	if err := s.create(server, install, o); err != nil {
		_ = s.Stop()
		return nil, fmt.Errorf("start MariaDB in %s: %w", p.dir, err)
	}
	return s, nil
}

func (s *MySQLServer) create(server, install string, o MySQLOptions) error {
	me, err := user.Current()
	if err != nil {
		return err
	}
	// --no-defaults comes first or not at all. --user makes it run as root too.
	common := []string{"--no-defaults", "--user=" + me.Username, "--datadir=" + filepath.Join(s.process.dir, "data"),
		"--skip-name-resolve", "--innodb-log-file-size=16M"}
	err = s.process.run(time.Minute, install, append(common, "--auth-root-authentication-method=normal", "--skip-test-db")...)
	if err != nil {
		return err
	}
	network := []string{"--skip-networking"}
	if o.TCP {
		if s.port, err = s.process.reserve(); err != nil {
			return err
		}
		network = []string{"--bind-address=127.0.0.1", "--port=" + strconv.Itoa(s.port)}
	}
	s.args = append([]string{server}, common...)
	s.args = append(s.args, "--socket="+s.socket(), "--pid-file="+filepath.Join(s.process.dir, "server.pid"),
		"--innodb-flush-log-at-trx-commit=1", "--max-connections=300", "--default-time-zone=+00:00",
		"--character-set-server=utf8mb4")
	s.args = append(s.args, network...)
	for _, set := range o.Settings {
		s.args = append(s.args, "--"+set)
	}
	return s.Restart()
}

func (s *MySQLServer) socket() string { return filepath.Join(s.process.dir, "s") }

// URL is the address of a database on the server's socket:
// mysql://root@unix(/path/of/socket)/database.
func (s *MySQLServer) URL(database string) string {
	return fmt.Sprintf("mysql://root@unix(%s)/%s", s.socket(), database)
}

// TCP is the address of a database on 127.0.0.1; the server must have been
// started with the option TCP. The port stays the same over restarts.
func (s *MySQLServer) TCP(database string) string {
	return fmt.Sprintf("mysql://root@127.0.0.1:%d/%s", s.port, database)
}

// NewDatabase makes an empty database and returns its URL.
func (s *MySQLServer) NewDatabase(name string) (string, error) {
	return s.URL(name), execMySQL(s.URL(""), "CREATE DATABASE `"+strings.ReplaceAll(name, "`", "``")+"`")
}

// Freeze stops the server where it is, as a machine without CPU time would. Connections stay
// open and nothing is answered.
func (s *MySQLServer) Freeze() { s.process.signalAll(sigStop) }

// Thaw lets a frozen server go on.
func (s *MySQLServer) Thaw() { s.process.signalAll(sigCont) }

// Kill ends the server at once with SIGKILL; committed data stays.
func (s *MySQLServer) Kill() { s.process.kill() }

// Restart starts the server on its data, after ending it in good order if it
// runs, and returns when it accepts connections.
func (s *MySQLServer) Restart() error {
	s.process.end(sigTerm, 30*time.Second)
	if err := s.process.start(s.args[0], s.args[1:]...); err != nil {
		return err
	}
	return s.process.ready(time.Minute, func() error { return execMySQL(s.URL(""), "SELECT 1") })
}

// Log returns the end of the server's output.
func (s *MySQLServer) Log() string { return s.process.log() }

// Deadlocks returns the deadlocks in the server's log, with the waiting transactions. The
// server needs the setting innodb-print-all-deadlocks=ON.
func (s *MySQLServer) Deadlocks() ([]string, error) {
	log, err := os.ReadFile(filepath.Join(s.process.dir, "log"))
	told := strings.Split(string(log), "Transactions deadlock detected")
	return told[1:], err
}

// Stop ends the server and removes its folder. It may be called again.
func (s *MySQLServer) Stop() error { return s.process.remove() }

var sharedMySQL = sync.OnceValues(func() (*MySQLServer, error) { return StartMySQL(MySQLOptions{}) })

// MySQL returns the address of a fresh, empty database, which is dropped when the test ends.
// It is in the test binary's own server (mysql://root@unix(/path)/database) or in the server
// of GATEWAY_TEST_MYSQL_URL. That variable has the form mysql://user:password@host:port/db or
// go-sql-driver's own form, and the result has the same form. Its user needs the right to make
// databases.
func MySQL(t testing.TB) string {
	t.Helper()
	Check(t, allowed())
	admin := os.Getenv("GATEWAY_TEST_MYSQL_URL")
	if admin == "" {
		s, err := sharedMySQL()
		Check(t, err)
		admin = s.URL("")
	}
	name := databaseName()
	address, err := withDatabase(admin, name)
	if err != nil {
		t.Fatalf("GATEWAY_TEST_MYSQL_URL: %v", err)
	}
	if err := execMySQL(admin, "CREATE DATABASE "+name); err != nil {
		t.Fatalf("make a database for the test: %v", err)
	}
	t.Cleanup(func() {
		if err := execMySQL(admin, "DROP DATABASE IF EXISTS "+name); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
	})
	return address
}

// withDatabase is an address in the same form that names another database.
func withDatabase(address, database string) (string, error) {
	form := "%s"
	if rest, ok := strings.CutPrefix(address, "mysql://"); ok {
		if !strings.Contains(rest, "@unix(") {
			u, err := url.Parse(address)
			if err != nil {
				return "", errMySQLForm
			}
			u.Path = "/" + database
			return u.String(), nil
		}
		address, form = rest, "mysql://%s"
	}
	c, err := mysql.ParseDSN(address)
	if err != nil {
		return "", errMySQLForm
	}
	c.DBName = database
	return fmt.Sprintf(form, c.FormatDSN()), nil
}

// The parsers' own errors are not passed on: they repeat the password.
var errMySQLForm = errors.New("not of the form mysql://user:password@host:port/database, " +
	"mysql://user@unix(/path/of/socket)/database or user:password@tcp(host:port)/database")

// mysqlConfig reads an address in either form; of a URL's parameters it takes
// tls alone.
func mysqlConfig(address string) (*mysql.Config, error) {
	rest, isURL := strings.CutPrefix(address, "mysql://")
	if !isURL || strings.Contains(rest, "@unix(") {
		c, err := mysql.ParseDSN(rest)
		if err != nil {
			return nil, errMySQLForm
		}
		return c, nil
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, errMySQLForm
	}
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr, c.DBName = u.User.Username(), "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	c.Passwd, _ = u.User.Password()
	c.TLSConfig = u.Query().Get("tls")
	if u.Port() == "" {
		c.Addr += ":3306"
	}
	return c, nil
}

func execMySQL(address, statement string) error {
	c, err := mysqlConfig(address)
	if err != nil {
		return err
	}
	c.Logger = &mysql.NopLogger{} // a server that does not answer yet is no news
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_, err = db.ExecContext(ctx, statement)
	return err
}
