// Package consume empties queues: consumers receive messages and ack them until all are
// acked. It counts the times and the faults of the messages.
//
// Consumers are behind an interface, so that one loop drives the gateway's API and the
// tables with which it is compared. The consumer of the API is a raw socket, as in load,
// because it shares the machine with the system that it measures.
//
// It imports event, wire and the standard library.
package consume

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/eventgateway/gateway/cmd/bench/internal/event"
)

// A Message is a received message.
type Message struct {
	Seq     int    // of its payload; negative for a payload of another origin
	Receipt string // the text that acks it
}

// A Consumer receives messages and acks them.
type Consumer interface {
	// Receive returns up to n messages, none if there are none.
	Receive(ctx context.Context, n int) ([]Message, error)

	// Ack removes messages and returns how many.
	Ack(ctx context.Context, messages []Message) (int, error)
}

// Plan selects the messages of a run.
type Plan struct {
	First int           // sequence number of the first message
	Count int           // number of messages
	Batch int           // messages at once
	Stall time.Duration // without a message, the rest is lost
}

// Result is the result of a run. Times are of event.Nanos.
type Result struct {
	Start, End int64
	Received   []int64 // by sequence number minus Plan.First, 0 for never
	Acked      int
	Duplicated int   // received beyond a message's first time
	Strange    int   // messages of something else
	Err        error // the first failure of a consumer
}

// Rate is acked messages a second from the start to the last ack.
func (r *Result) Rate() float64 {
	return float64(r.Acked) / time.Duration(max(1, r.End-r.Start)).Seconds()
}

// Run lets consumers loop side by side, each receiving and acking. It returns when all
// messages have been received and acked, when no more come, or when ctx ends.
func Run(ctx context.Context, consumers []Consumer, p Plan) *Result {
	r := &run{plan: p, Result: Result{Start: event.Nanos(), Received: make([]int64, p.Count)}}
	r.last = r.Start
	var group sync.WaitGroup
	for _, c := range consumers {
		group.Go(func() { r.fail(r.consume(ctx, c)) })
	}
	group.Wait()
	return &r.Result
}

// run is the state that the consumers of a run share. mu guards all fields below it. Consumers
// hold it only to note messages, never during a call.
type run struct {
	plan Plan
	mu   sync.Mutex
	Result
	unique int   // messages received so far
	last   int64 // when the last one was received
}

// fail keeps the first error.
func (r *run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Err == nil {
		r.Err = err
	}
}

// consume is the loop of one consumer. It ends with the run, or with the first error of its
// own.
func (r *run) consume(ctx context.Context, c Consumer) error {
	for ctx.Err() == nil && r.more() {
		messages, err := c.Receive(ctx, r.plan.Batch)
		if err != nil {
			return fmt.Errorf("receive: %w", err)
		}
		if len(messages) == 0 {
			time.Sleep(time.Millisecond) // others hold the last ones
			continue
		}
		r.received(messages)
		n, err := c.Ack(ctx, messages)
		if err != nil {
			return fmt.Errorf("ack: %w", err)
		}
		r.acked(n)
	}
	return ctx.Err()
}

// more reports whether a message is still expected.
func (r *run) more() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	// Without the bound a lost message would keep the consumers polling until the deadline of
	// the run.
	return r.unique < r.plan.Count && event.Nanos()-r.last < int64(r.plan.Stall)
}

// received notes when each message first came. One time for the batch: its messages came in one
// reply.
func (r *run) received(messages []Message) {
	at := event.Nanos()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = at
	for _, m := range messages {
		i := m.Seq - r.plan.First
		switch {
		case i < 0 || i >= len(r.Received):
			r.Strange++
		case r.Received[i] != 0:
			r.Duplicated++
		default:
			r.Received[i] = at
			r.unique++
		}
	}
}

// acked counts acked messages. The end of the run is its last ack.
func (r *run) acked(n int) {
	at := event.Nanos()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Acked += n
	r.End = max(r.End, at)
}
