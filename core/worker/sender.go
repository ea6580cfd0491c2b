package worker

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A Sender makes one attempt to deliver a job to its handler. A delivery that fails is an
// ordinary Reply and not an error. The deadline of ctx covers connecting, headers and body.
type Sender interface {
	Send(ctx context.Context, job core.TakenJob) Reply
}

// A Reply is the result of an attempt, as far as the sender knows it.
type Reply struct {
	OK         bool           // the handler took it
	StatusCode int            // of the answer; 0 if there was none
	Error      string         // "<class>: <detail>" unless OK; classes are in the package comment of egress, but for "panic"
	Response   string         // the stored part of the answer, valid UTF-8, at most core.MaxResponse bytes
	Final      bool           // trying again cannot help
	Unsent     bool           // nothing was sent, so the reply says nothing about the handler
	RetryAfter time.Duration  // the least wait that the handler asked for; zero if it asked for none
	Exchange   *core.Exchange // the request and the reply; nil if they are not recorded
}
