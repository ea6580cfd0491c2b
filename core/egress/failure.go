package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Explain converts the error of a call by a client of [Client.HTTPClient] to the format of
// deliveries: its class, then a detail that contains no part of the URL except its host.
// The call began at start. Of ctx, Explain reads the deadline and whether it has passed.
func Explain(ctx context.Context, err error, start time.Time) error {
	return errors.New(explain(ctx, err, start))
}

// explain describes a failed round trip: its class, then a detail that contains no part of
// the URL except its host.
func explain(ctx context.Context, err error, start time.Time) string {
	class, detail := classify(ctx, err, start)
	return clean(class+": "+detail, maxError)
}

func classify(ctx context.Context, err error, start time.Time) (class, detail string) {
	if e, ok := errors.AsType[*blockedError](err); ok {
		return "blocked", e.why
	}
	if ctx.Err() != nil {
		return "timeout", late(ctx, start)
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		return "dns", e.Err + " (" + e.Name + ")"
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return "timeout", innermost(err)
	}
	if isTLS(err) {
		return "tls", strings.TrimPrefix(innermost(err), "tls: ")
	}
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "dial" {
		return "connect", innermost(err)
	}
	return "protocol", broken(err)
}

// late says that the deadline has passed, or that the caller canceled the call.
func late(ctx context.Context, start time.Time) string {
	if _, ok := ctx.Deadline(); !ok || errors.Is(ctx.Err(), context.Canceled) {
		return "given up before there was an answer"
	}
	limit, unit := core.LimitOf(ctx, start), time.Millisecond
	if limit > time.Second {
		unit = 100 * time.Millisecond
	}
	return "no answer within " + limit.Round(unit).String()
}

// isTLS reports whether the set-up of TLS failed. Some failures of a handshake have no type
// and are recognised by their prefix.
func isTLS(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok {
		return true
	}
	return errors.Is(err, http.ErrSchemeMismatch) || errors.Is(err, ErrNoHTTP2) || strings.HasPrefix(innermost(err), "tls: ")
}

func broken(err error) string {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "connection closed before there was an answer"
	}
	return innermost(err)
}

// innermost returns the text of the innermost error. The outer errors add addresses and the
// names of packages.
func innermost(err error) string {
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		return e.Error()
	}
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), "net/http: "), "http: ")
}
