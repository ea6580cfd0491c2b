//go:build !nogrpc

package egress

import (
	"context"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"google.golang.org/grpc/codes"
	rpcmeta "google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/worker"
	gatewayv1 "github.com/eventgateway/gateway/proto/gateway/v1"
)

// maxMessage is how many bytes of a receiver's message are kept.
const maxMessage = 1 << 10

// refusal returns the error in an answer, "" if the answer is a success.
func refusal(answer *gatewayv1.DeliverResponse) string {
	if answer.Success {
		return ""
	}
	return oneLine("status: refused", answer.Message)
}

// fail makes a Reply of a call that got no answer.
func fail(ctx context.Context, err error, ch *channel, p *progress, trailer rpcmeta.MD, start time.Time) worker.Reply {
	st := status.Convert(err)
	late := isLate(ctx, st) && (st.Code() == codes.DeadlineExceeded || st.Code() == codes.Canceled)
	// grpc sends a call again on a new connection if none of it was sent. If that connection ends too,
	// the error may be a bare EOF and no status.
	if late || err == io.EOF || !p.isReceivers(st) {
		return worker.Reply{Error: explainCall(ctx, st, ch, p, start)}
	}
	return worker.Reply{
		Error:      oneLine("status: "+codeName(st.Code()), st.Message()),
		Response:   clean(st.Message(), maxMessage),
		RetryAfter: leaveAlone(st, trailer, start),
	}
}

// explainCall is explain for a call whose receiver sent no status.
func explainCall(ctx context.Context, st *status.Status, ch *channel, p *progress, start time.Time) string {
	if !p.sent.Load() {
		if err := ch.link.failure(); err != nil {
			return explain(ctx, err, start)
		}
	}
	if isLate(ctx, st) {
		return clean("timeout: "+late(ctx, start), maxError)
	}
	message := plain(st.Message())
	if err := ch.link.end(message); err != nil {
		message = broken(err)
	}
	return oneLine("protocol", message)
}

// plain returns grpc's message without the names of its layers.
func plain(message string) string {
	if quoted, ok := strings.CutPrefix(message, "connection error: desc = "); ok {
		if text, err := strconv.Unquote(quoted); err == nil {
			message = text
		}
	}
	return strings.TrimPrefix(strings.TrimPrefix(message, "transport: "), "grpc: ")
}

// oneLine makes one line of a class and the other side's message, if there is one.
func oneLine(class, message string) string {
	message = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, message))
	if message == "" {
		return class
	}
	return clean(class+": "+message, maxError)
}

// codeNames are the names of https://github.com/grpc/grpc/blob/master/doc/statuscodes.md.
var codeNames = [...]string{
	"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED",
	"RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE",
	"DATA_LOSS", "UNAUTHENTICATED",
}

func codeName(c codes.Code) string {
	if int(c) < len(codeNames) {
		return codeNames[c]
	}
	return "code " + strconv.FormatUint(uint64(c), 10)
}

// leaveAlone returns for how long a receiver asks for no further calls, as RetryInfo in the
// status or as retry-after in the trailer, from 0 to [core.MaxBackoff]. It counts with the
// two statuses that mean "not now".
func leaveAlone(st *status.Status, trailer rpcmeta.MD, now time.Time) time.Duration {
	if st.Code() != codes.Unavailable && st.Code() != codes.ResourceExhausted {
		return 0
	}
	for _, detail := range st.Proto().GetDetails() {
		if detail.GetTypeUrl() == "type.googleapis.com/google.rpc.RetryInfo" {
			return retryDelay(detail.GetValue())
		}
	}
	if values := trailer.Get("retry-after"); len(values) > 0 {
		return parseRetryAfter(values[0], now)
	}
	return 0
}

// retryDelay reads the one field of a google.rpc.RetryInfo. Linking all the messages of its
// definition is not worth it:
// https://github.com/googleapis/googleapis/blob/master/google/rpc/error_details.proto.
func retryDelay(info []byte) time.Duration {
	var delay durationpb.Duration
	for len(info) > 0 {
		number, kind, n := protowire.ConsumeTag(info)
		if n < 0 {
			return 0
		}
		size := protowire.ConsumeFieldValue(number, kind, info[n:])
		if size < 0 {
			return 0
		}
		if number == 1 && kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(info[n:])
			if (proto.UnmarshalOptions{Merge: true}).Unmarshal(value, &delay) != nil {
				return 0
			}
		}
		info = info[n+size:]
	}
	return min(max(delay.AsDuration(), 0), core.MaxBackoff)
}

// progress is the stage that a call reached. An error of grpc does not say whether the
// receiver sent it or grpc made it.
type progress struct {
	sent   atomic.Bool // the call has gone out on a connection
	opened atomic.Bool // headers have come back
	ended  atomic.Bool // a status has come back
}

// answered reports whether the receiver has sent anything.
func (p *progress) answered() bool { return p.opened.Load() || p.ended.Load() }

// isReceivers reports whether the receiver sent a status. After an answer without a status,
// the status may also be grpc's own: the answer is too long, or garbled.
func (p *progress) isReceivers(st *status.Status) bool {
	said := st.Message()
	garbled := p.opened.Load() && (strings.HasPrefix(said, "grpc: ") || said == io.ErrUnexpectedEOF.Error())
	miscounted := strings.HasPrefix(said, "cardinality violation: ")
	return p.ended.Load() && !garbled && !miscounted
}

// isLate reports whether a call failed because its deadline has passed. The receiver knows
// the deadline too, and may report it up to 20 ms before this process's clock reaches it.
func isLate(ctx context.Context, st *status.Status) bool {
	const moment = 20 * time.Millisecond
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && st.Code() == codes.DeadlineExceeded && time.Until(deadline) < moment
}

type progressKey struct{}

func (p *progress) watch(ctx context.Context) context.Context {
	return context.WithValue(ctx, progressKey{}, p)
}

// A progressHandler notes the progress of each call. It implements [stats.Handler].
type progressHandler struct{}

func (progressHandler) HandleRPC(ctx context.Context, event stats.RPCStats) {
	p, ok := ctx.Value(progressKey{}).(*progress)
	if !ok {
		return
	}
	switch event.(type) {
	case *stats.Begin: // again, if a receiver that is closing down sends a call back unread
		p.sent.Store(false)
	case *stats.OutHeader:
		p.sent.Store(true)
	case *stats.InHeader:
		p.opened.Store(true)
	case *stats.InTrailer:
		p.ended.Store(true)
	}
}

func (progressHandler) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (progressHandler) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (progressHandler) HandleConn(context.Context, stats.ConnStats)                       {}
