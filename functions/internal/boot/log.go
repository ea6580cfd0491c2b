package boot

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"log/slog"
	"runtime/debug"
	"sync/atomic"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/eventgateway/gateway/core/telemetry"
)

// newLog makes the log from the environment variables. The default format is JSON, since a
// service collects the log.
func newLog(s system, request *requestID) *slog.Logger {
	log, err := telemetry.NewLogger(telemetry.LogOptions{
		Out:    s.out,
		Format: cmp.Or(s.env("GATEWAY_LOG_FORMAT"), "json"),
		Filter: cmp.Or(s.env("GATEWAY_LOG"), s.env("RUST_LOG")),
	})
	log = slog.New(&naming{log.Handler(), request})
	if err != nil {
		log.Warn(err.Error())
	}
	return log
}

// unquoted is the output of the standard logger, without one kind of line: net/http quotes
// data that a server sent unasked, which may be secret. Fatal errors of the Lambda library
// stay.
type unquoted struct{ out io.Writer }

func (u unquoted) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("Unsolicited response received")) {
		return len(line), nil
	}
	return u.out.Write(line)
}

// A requestID is the id of the invocation under way, in an environment that has one at a time.
// Log lines without a context then belong to that invocation too.
type requestID struct{ id atomic.Pointer[string] }

func (r *requestID) set(ctx context.Context) {
	if lc, ok := lambdacontext.FromContext(ctx); ok && lambdacontext.MaxConcurrency() == 1 {
		r.id.Store(&lc.AwsRequestID)
	}
}

// naming adds the id of the invocation to each line.
type naming struct {
	slog.Handler
	request *requestID
}

func (n *naming) Handle(ctx context.Context, r slog.Record) error {
	if id := n.request.id.Load(); id != nil {
		r.AddAttrs(slog.String("request_id", *id))
	}
	return n.Handler.Handle(ctx, r)
}

// Flush writes the reports of suppressed lines that are still missing; see [telemetry.Flush].
func (n *naming) Flush() {
	if h, ok := n.Handler.(interface{ Flush() }); ok {
		h.Flush()
	}
}

func (n *naming) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &naming{n.Handler.WithAttrs(attrs), n.request}
}

func (n *naming) WithGroup(name string) slog.Handler {
	return &naming{n.Handler.WithGroup(name), n.request}
}

// version returns the version of the module as the go command recorded it, or "devel" for a
// working copy.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
