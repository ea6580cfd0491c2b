package mysql

import (
	"crypto/tls"
	"crypto/x509"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/once"
	"github.com/eventgateway/gateway/store"
)

// The error numbers of MySQL and MariaDB by their class. See
// https://dev.mysql.com/doc/mysql-errors/8.0/en/server-error-reference.html and
// https://mariadb.com/kb/en/mariadb-error-code-reference/.
var (
	// Conflict: a deadlock, a timeout of a wait for a lock, a row or table that changed after
	// the snapshot, a conflict between nodes of a cluster. After the ROLLBACK the transaction
	// leaves no trace.
	conflicts = numbers(1213, 1205, 1020, 1412, 3101)

	// Down: the server is out of connections, memory, disk or locks, it stops, the connection
	// or statement was killed or took too long, or this node of the cluster accepts no writes.
	down = numbers(1021, 1030, 1037, 1038, 1040, 1041, 1047, 1053, 1077, 1078, 1079, 1080, 1114, 1135, 1152, 1158,
		1159, 1160, 1161, 1180, 1184, 1203, 1206, 1226, 1290, 1317, 1792, 1836, 1927, 1969, 2006, 2013, 3024, 3100, 4031)

	// Mismatched: a table, column or index does not exist, or a column that the gateway did
	// not make has no default.
	mismatched = numbers(1054, 1146, 1176, 1364)

	// Misconfigured: the user of the database lacks a right.
	forbidden = numbers(1044, 1142, 1143, 1227, 1370)

	// No failure: the table, column or index of a schema step exists already, or the one to
	// drop does not. The step ran before, and its record was lost.
	alreadyDone = numbers(1050, 1060, 1061, 1091)
)

func numbers(list ...uint16) map[uint16]bool {
	set := map[uint16]bool{}
	for _, n := range list {
		set[n] = true
	}
	return set
}

// number is the number of an error that the server sent, or 0 for all other errors.
func number(err error) uint16 {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}

// errNothingSent is the driver's error for a connection that had ended before anything of a
// text was sent.
var errNothingSent = driver.ErrBadConn

// endsConnection reports whether a connection must not be used again after an error: the error
// is not the server's, or the server is failing. After all other errors a ROLLBACK is enough.
func endsConnection(err error) bool {
	n := number(err)
	return n == 0 || down[n]
}

// failure maps the number of an error of a batch to a class.
func failure(err error) store.Failure {
	switch n := number(err); {
	case errors.Is(err, driver.ErrSkip), errors.Is(err, mysql.ErrPktTooLarge): // from the driver, before it sent the text
		return store.Failure{Class: store.Rejected, Err: err}
	case n == 0: // an error of the network or the protocol
		return store.Failure{Class: store.Lost, Err: err}
	case conflicts[n]:
		return store.Failure{Class: store.Conflict, Err: err}
	case down[n]:
		return store.Failure{Class: store.Down, Err: err}
	case mismatched[n]:
		return store.Failure{Class: store.Mismatched, Err: err}
	case forbidden[n]:
		return store.Failure{Class: store.Misconfigured, Err: lacking(err)}
	}
	return store.Failure{Class: store.Rejected, Err: err}
}

// deniedCommand finds the right in the server's message.
var deniedCommand = once.Regexp(`^([A-Z, ]+) command denied`)

// lacking is the refusal that says which right the user of the database lacks. Senders of
// events get "database unavailable"; only Migrate gives this text.
func lacking(err error) error {
	action := "do this"
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		if m := deniedCommand().FindStringSubmatch(e.Message); m != nil {
			action = actionOf(m[1])
		}
	}
	return core.Refuse(core.Invalid, "the database user may not %s: grant it SELECT, INSERT, UPDATE, DELETE, CREATE, INDEX and ALTER on the database", action)
}

// actionOf describes a denied command.
func actionOf(command string) string {
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

// explain is the refusal for a first connection that failed. One sentence names the reason and
// the setting or right to change, and never the password.
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
		return invalid("the server at %s accepts no connections from this host: create a user that may connect from here", a)
	case 1193, 1231, 1064:
		return invalid("a parameter after the question mark is neither the driver's nor a variable of the server")
	case 3159:
		return invalid("the server at %s accepts encrypted connections only: add ?tls=true", a)
	}
	// Errors without a number: of the parameters, of TLS, of authentication and of the network.
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

// rootCause is the innermost error, such as "connection refused". Each layer above it repeats
// the address.
func rootCause(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}

// The oldest supported versions. SKIP LOCKED came with MySQL 8.0.1 and MariaDB 10.6.
var (
	oldestMySQL   = version{8, 0, 4}
	oldestMariaDB = version{10, 6, 0}
)

// A version has the numbers major, minor and patch.
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

var versionForm = once.Regexp(`^(\d+)\.(\d+)\.(\d+)`)

// checkVersion refuses servers that are too old. Its argument is the result of VERSION().
func checkVersion(text string) error {
	product, oldest := "MySQL", oldestMySQL
	if strings.Contains(text, "MariaDB") {
		product, oldest = "MariaDB", oldestMariaDB
	}
	m := versionForm().FindStringSubmatch(text)
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
