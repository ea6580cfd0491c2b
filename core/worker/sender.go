package worker

import (
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A Sender makes one attempt to deliver a job to its handler. A delivery that
// fails is an ordinary Reply, not an error. ctx carries the one deadline that
// covers connecting, headers and body.
type Sender interface {
	Send(ctx context.Context, job core.TakenJob) Reply
}

// A Reply is how an attempt went, as far as the wire could tell.
type Reply struct {
	OK         bool          // the handler took it
	StatusCode int           // of the answer; 0 if there was none
	Error      string        // "<class>: <detail>" unless OK; classes are in the package comment of egress, but for "panic"
	Response   string        // what is kept of the answer, valid UTF-8, at most core.MaxResponse bytes
	Final      bool          // trying again cannot help
	Unsent     bool          // nothing was sent, so this tells nothing about the handler
	RetryAfter time.Duration // how long the handler asked to be left alone; zero if it did not
}
