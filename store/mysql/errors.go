package mysql

import (
	"crypto/tls"
	"crypto/x509"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
)

// Numbers of errors, by what they mean here. See
// https://dev.mysql.com/doc/mysql-errors/8.0/en/server-error-reference.html and
// https://mariadb.com/kb/en/mariadb-error-code-reference/.
var (
	// Another writer was in the way, and nothing of the transaction is left once it
	// is rolled back: a deadlock, a lock that was waited for in vain, a row or table
	// that changed since the snapshot, a conflict between nodes of a cluster.
	conflicts = numbers(1213, 1205, 1020, 1412, 3101)

	// The server cannot do it now: out of connections, memory, disk or locks, being
	// stopped or killed, too slow, or not the one of a cluster that writes.
	transient = numbers(1021, 1030, 1037, 1038, 1040, 1041, 1047, 1053, 1077, 1078, 1079, 1080, 1114, 1135, 1152, 1158,
		1159, 1160, 1161, 1180, 1184, 1203, 1206, 1226, 1290, 1317, 1792, 1836, 1927, 1969, 2006, 2013, 3024, 3100, 4031)

	// A table, column or index is not there, or a column that is not ours has no default.
	misfit = numbers(1054, 1146, 1176, 1364)

	// The user may not do it.
	forbidden = numbers(1044, 1142, 1143, 1227, 1370)

	// What a schema step was to make is there, or what it was to drop is not.
	there = numbers(1050, 1060, 1061, 1091)
)

func numbers(list ...uint16) map[uint16]bool {
	set := map[uint16]bool{}
	for _, n := range list {
		set[n] = true
	}
	return set
}

// number is that of an error the server sent, or 0.
func number(err error) uint16 {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}

func isThere(err error) bool { return there[number(err)] }

// errNothingSent is what the driver says of a connection that turned out to be
// closed before anything of a text was sent.
var errNothingSent = driver.ErrBadConn

// isLost tells whether the connection is of no more use: all but a clear no of a
// server that works.
func isLost(err error) bool {
	n := number(err)
	return n == 0 || transient[n]
}

// failure is the meaning of an error of a batch.
func failure(err error) store.Failure {
	switch n := number(err); {
	case errors.Is(err, driver.ErrSkip), errors.Is(err, mysql.ErrPktTooLarge):
		return store.Failure{Class: store.Rejected, Err: err}
	case n == 0:
		return store.Failure{Class: store.Lost, Err: err}
	case conflicts[n]:
		return store.Failure{Class: store.Conflict, Err: err}
	case transient[n]:
		return store.Failure{Class: store.Down, Err: err}
	case misfit[n]:
		return store.Failure{Class: store.Mismatched, Err: err}
	case forbidden[n]:
		return store.Failure{Class: store.Misconfigured, Err: lacking(err)}
	}
	return store.Failure{Class: store.Rejected, Err: err}
}

var deniedCommand = regexp.MustCompile(`^([A-Z, ]+) command denied`)

// lacking says which right the user of the database lacks.
func lacking(err error) error {
	what := "do this"
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		if m := deniedCommand.FindStringSubmatch(e.Message); m != nil {
			what = allowed(m[1])
		}
	}
	return core.Refuse(core.Invalid, "the database user may not %s: grant it SELECT, INSERT, UPDATE, DELETE, CREATE, INDEX and ALTER on the database", what)
}

// allowed is a denied command in words.
func allowed(command string) string {
	switch command {
	case "CREATE":
		return "create tables"
	case "INDEX":
		return "create indexes"
	case "SELECT":
		return "read tables (SELECT)"
	}
	return "write tables (" + command + ")"
}

// explain says in one sentence why a first connection came to nothing.
func (a *address) explain(err error) error {
	invalid := func(format string, args ...any) error {
		return core.Refuse(core.Invalid, "database.url: "+format, args...)
	}
	c := a.config
	switch number(err) {
	case 1045, 1698:
		return invalid("the server at %s refuses user %q: wrong user or password", a, c.User)
	case 1049:
		return invalid("the server at %s has no database %q: create it, or correct the name", a, c.DBName)
	case 1044:
		return invalid("user %q may not use the database %q, or there is none: create it, or grant the user all rights on it", c.User, c.DBName)
	case 1130:
		return invalid("the server at %s accepts nobody from this host: create a user that may connect from here", a)
	case 1193, 1231, 1064:
		return invalid("a parameter after the question mark is neither the driver's nor a variable of the server")
	case 3159:
		return invalid("the server at %s accepts encrypted connections only: add ?tls=true", a)
	}
	var unknown x509.UnknownAuthorityError
	var record tls.RecordHeaderError
	var network net.UnknownNetworkError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &network):
		return invalid("%q is no network: it is tcp(host:port) or unix(/path)", string(network))
	case errors.Is(err, mysql.ErrNoTLS):
		return invalid("the server at %s offers no TLS: set it up there, or leave tls out", a)
	case errors.As(err, &unknown), errors.As(err, &certificate), errors.As(err, &record):
		return invalid("no TLS with the server at %s (%s): its certificate must name that host and be signed by an authority known here (SSL_CERT_FILE)", a, rootCause(err))
	case errors.Is(err, mysql.ErrCleartextPassword), errors.Is(err, mysql.ErrNativePassword),
		errors.Is(err, mysql.ErrOldPassword), errors.Is(err, mysql.ErrUnknownPlugin):
		return invalid("user %q has a way of authentication that is not supported: give it a password (caching_sha2_password or mysql_native_password)", c.User)
	}
	return core.Refuse(core.Unavailable, "the database at %s cannot be reached (%s): check the host and port in database.url, and that the server runs", a, rootCause(err))
}

// rootCause is what the system or the server said, without what each layer above
// it added.
func rootCause(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}

// The oldest versions that were looked at; SKIP LOCKED came with 8.0.1 and 10.6.
var (
	oldestMySQL   = version{8, 0, 4}
	oldestMariaDB = version{10, 6, 0}
)

type version [3]int

func (v version) String() string { return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2]) }

func (v version) before(w version) bool {
	for i := range v {
		if v[i] != w[i] {
			return v[i] < w[i]
		}
	}
	return false
}

var versionForm = regexp.MustCompile(`^(\d+)\.(\d+)\.(\d+)`)

// checkVersion refuses servers that are too old. The text is that of VERSION().
func checkVersion(text string) error {
	product, oldest := "MySQL", oldestMySQL
	if strings.Contains(text, "MariaDB") {
		product, oldest = "MariaDB", oldestMariaDB
	}
	m := versionForm.FindStringSubmatch(text)
	if m == nil {
		return core.Refuse(core.Invalid, "database.url: the server says its version is %q, which is neither MySQL's nor MariaDB's", text)
	}
	var v version
	for i := range v {
		v[i], _ = strconv.Atoi(m[i+1])
	}
	if v.before(oldest) {
		return core.Refuse(core.Invalid, "database.url: the server is %s %s, too old: use MySQL %s or MariaDB %s, or later",
			product, v, oldestMySQL, oldestMariaDB)
	}
	return nil
}
