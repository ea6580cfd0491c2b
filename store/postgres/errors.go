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

// code is the SQLSTATE of an error, or empty for an error that the server did not send:
// https://www.postgresql.org/docs/current/errcodes-appendix.html
func code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// classify is the class of an error of a try. On a closed pool the errors of pgx have many
// forms, so all of them become store.ErrClosed.
func (c *conn) classify(err error) store.Failure {
	f := failure(err)
	if c.closed.Load() {
		return store.Failure{Class: store.Down, Err: store.ErrClosed, Unsent: f.Unsent || f.Class == store.Conflict}
	}
	return f
}

// failure maps the SQLSTATE of an error to a class.
func failure(err error) store.Failure {
	f := store.Failure{Err: err, Unsent: pgconn.SafeToRetry(err)}
	switch c := code(err); {
	case c == "":
		f.Class = ofNetwork(err)
	case c == "40001", c == "40P01", c == "55P03": // serialization, deadlock, lock not available
		f.Class = store.Conflict
	// Connection exceptions, and a server that stops or starts. 25006 is a write on a read-only
	// server: after a failover, a new connection may lead to the server that accepts writes.
	case strings.HasPrefix(c, "08"), strings.HasPrefix(c, "57P"), c == "25006":
		f.Class = store.Lost
	case errors.As(err, new(*pgconn.ConnectError)):
		f.Class = store.Down // no connection could be made; Open explains the reasons
	// The statement was canceled; no disk, memory or connections are left; files have errors.
	case c == "57014", strings.HasPrefix(c, "53"), strings.HasPrefix(c, "58"):
		f.Class = store.Down
	case c == "42P01", c == "42703", c == "42704": // no such table, column or index
		f.Class = store.Mismatched
	case c == "42501", c == "3F000": // a missing right, on a table or on the schema
		f.Class, f.Err = store.Misconfigured, missingRight(err)
	}
	// pgx found the connection closed before it sent anything.
	if f.Class == store.Lost && f.Unsent {
		f.Class = store.Stale
	}
	return f
}

// ofNetwork is the class of an error that the server did not send. An error of pgx itself, such
// as a value that it cannot encode, is a defect and stays as it is.
func ofNetwork(err error) store.Class {
	var dial *pgconn.ConnectError
	var network net.Error
	switch {
	case errors.As(err, &dial):
		return store.Down // no connection could be made, so none was lost
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, pgconn.ErrConnClosed), errors.As(err, &network), pgconn.SafeToRetry(err):
		return store.Lost
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return store.Down
	}
	return store.Rejected
}

// missingRight is the refusal that says which rights to grant. The server's own message, which
// it repeats, names the table or schema. Senders of events get "database unavailable"; only
// Migrate gives this text.
func missingRight(err error) error {
	var e *pgconn.PgError
	errors.As(err, &e)
	return core.Refuse(core.Invalid, "the user of database.url lacks a right in PostgreSQL (%s): "+
		"GRANT USAGE, CREATE ON SCHEMA public and SELECT, INSERT, UPDATE, DELETE on the gateway's tables to it, or make it the owner of the database", e.Message)
}

// tlsReason is the reason of an error of TLS, or empty for all other errors.
func tlsReason(err error) string {
	var verification *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	switch {
	case errors.As(err, &verification), errors.As(err, &record), errors.As(err, &alert):
		return rootCause(err)
	case strings.Contains(err.Error(), "tls error"), strings.Contains(err.Error(), "failed to configure TLS"):
		return rootCause(err) // pgx has no type for these errors
	}
	return ""
}

// named adds the name of the statement that failed.
func named(s store.Stmt, err error) error { return fmt.Errorf("%s: %w", s.Name, err) }

// connectError is the refusal for a first connection that failed. It names the setting or the
// right to change, and never the password.
func connectError(c *pgconn.Config, err error) error {
	say := func(k core.Kind, format string, args ...any) error {
		return &core.Refusal{Kind: k, Message: fmt.Sprintf(format, args...)}
	}
	var e *pgconn.PgError
	if errors.As(err, &e) {
		switch {
		case strings.HasPrefix(e.Code, "28"):
			return say(core.Invalid, "PostgreSQL refuses user %q (%s): check the user and the password in database.url", c.User, e.Message)
		case e.Code == "3D000":
			return say(core.Invalid, "PostgreSQL has no database %q: create it, or correct its name in database.url", c.Database)
		case e.Code == "42501":
			return say(core.Invalid, "user %q may not connect to the PostgreSQL database %q: GRANT CONNECT on it, or correct database.url", c.User, c.Database)
		}
		return say(core.Unavailable, "PostgreSQL at %s accepts no connections now: %s", address(c), e.Message)
	}
	if why := tlsReason(err); why != "" {
		return say(core.Invalid, "TLS with PostgreSQL at %s fails (%s): check sslmode and sslrootcert in database.url", address(c), why)
	}
	return say(core.Unavailable, "PostgreSQL at %s cannot be reached (%s): check the host and port in database.url, and that the server runs", address(c), rootCause(err))
}

// address is the host and port of the server, or the folder of its Unix socket.
func address(c *pgconn.Config) string {
	if strings.HasPrefix(c.Host, "/") {
		return c.Host
	}
	return net.JoinHostPort(c.Host, fmt.Sprint(c.Port))
}

// rootCause is the innermost reason of a network error, such as "connection refused". The layers
// above it repeat the address.
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
	// Of joined errors the last one counts: pgx appends one for each address that it tried.
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
