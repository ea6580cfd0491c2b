package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
)

func unavailable(cause error) error {
	return &core.Refusal{Kind: core.Unavailable, Message: "database unavailable", Cause: cause}
}

// isUnsent tells whether an error is of a time before anything of a batch was sent.
func isUnsent(err error) bool {
	return errors.Is(err, errNoConnection) || pgconn.SafeToRetry(err)
}

// code is the SQLSTATE of an error, or empty if it is not the server's:
// https://www.postgresql.org/docs/current/errcodes-appendix.html
func code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// conflict tells whether a batch failed because of another, left no trace and may
// be run again as it is.
func conflict(err error) bool {
	switch code(err) {
	case "40001", "40P01", "55P03": // serialization, deadlock, lock not available
		return true
	}
	return false
}

// isLost tells whether an error is about the connection, and not about what was
// sent on it.
func isLost(err error) bool {
	switch c := code(err); {
	case strings.HasPrefix(c, "08"), strings.HasPrefix(c, "57P"), c == "25006":
		return true // 25006: read-only; the one that writes may be somewhere else by now
	case c != "":
		return false
	}
	var dial *pgconn.ConnectError
	if errors.As(err, &dial) {
		return false // there was none to lose
	}
	var network net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, pgconn.ErrConnClosed) || errors.As(err, &network) || pgconn.SafeToRetry(err)
}

// classify turns a driver's error into one of the kinds that store.Conn promises.
func classify(err error) error {
	var refusal *core.Refusal
	var dial *pgconn.ConnectError
	switch c := code(err); {
	case errors.As(err, &refusal):
		return err
	case errors.As(err, &dial), isLost(err), conflict(err), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return unavailable(err)
	case c == "25006", c == "57014", strings.HasPrefix(c, "53"), strings.HasPrefix(c, "58"):
		// Read-only, canceled, out of disk, memory or connections, trouble with files.
		return unavailable(err)
	case c == "42P01", c == "42703", c == "42704": // no such table, column or index
		return store.SchemaMismatch(err)
	case c == "42501", c == "3F000":
		return unavailable(missingRight(err)) // for whoever sends events; Migrate says it as it is
	}
	return err
}

// missingRight says what to grant. Which table or schema it is about is in the
// server's own message.
func missingRight(err error) error {
	var e *pgconn.PgError
	errors.As(err, &e)
	return core.Refuse(core.Invalid, "PostgreSQL does not let the user of database.url work (%s): "+
		"GRANT USAGE, CREATE ON SCHEMA public and SELECT, INSERT, UPDATE, DELETE on the gateway's tables to it, or make it the owner of the database", e.Message)
}

// tlsTrouble is what is wrong with TLS, if that is what an error is about.
func tlsTrouble(err error) string {
	var verification *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	switch {
	case errors.As(err, &verification), errors.As(err, &record), errors.As(err, &alert):
		return rootCause(err)
	case strings.Contains(err.Error(), "tls error"), strings.Contains(err.Error(), "failed to configure TLS"):
		return rootCause(err) // the driver has no type for these
	}
	return ""
}

func named(s store.Stmt, err error) error { return fmt.Errorf("%s: %w", s.Name, err) }

// sentence says why no connection could be made, and what to change.
func sentence(c *pgconn.Config, err error) error {
	say := func(k core.Kind, format string, args ...any) error {
		return &core.Refusal{Kind: k, Message: fmt.Sprintf(format, args...)}
	}
	var e *pgconn.PgError
	if errors.As(err, &e) {
		switch {
		case strings.HasPrefix(e.Code, "28"):
			return say(core.Invalid, "PostgreSQL does not let user %q in (%s): check the user and the password in database.url", c.User, e.Message)
		case e.Code == "3D000":
			return say(core.Invalid, "PostgreSQL has no database %q: create it, or correct its name in database.url", c.Database)
		case e.Code == "42501":
			return say(core.Invalid, "PostgreSQL does not let user %q connect to database %q: GRANT CONNECT on it, or correct database.url", c.User, c.Database)
		}
		return say(core.Unavailable, "PostgreSQL at %s takes no connections now: %s", address(c), e.Message)
	}
	if why := tlsTrouble(err); why != "" {
		return say(core.Invalid, "TLS with PostgreSQL at %s fails (%s): check sslmode and sslrootcert in database.url", address(c), why)
	}
	return say(core.Unavailable, "PostgreSQL at %s cannot be reached (%s): check the host and port in database.url, and that the server runs", address(c), rootCause(err))
}

func address(c *pgconn.Config) string {
	if strings.HasPrefix(c.Host, "/") {
		return c.Host
	}
	return net.JoinHostPort(c.Host, fmt.Sprint(c.Port))
}

// rootCause is the shortest true reason of a network error.
func rootCause(err error) string {
	var dns *net.DNSError
	var sys *os.SyscallError
	switch {
	case errors.As(err, &dns):
		return dns.Err
	case errors.As(err, &sys):
		return sys.Err.Error()
	case errors.Is(err, context.DeadlineExceeded), os.IsTimeout(err):
		return "no answer in time"
	}
	for {
		switch u := err.(type) {
		case interface{ Unwrap() error }:
			if next := u.Unwrap(); next != nil {
				err = next
				continue
			}
		case interface{ Unwrap() []error }:
			if all := u.Unwrap(); len(all) > 0 {
				err = all[len(all)-1]
				continue
			}
		}
		return err.Error()
	}
}
