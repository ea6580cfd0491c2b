// Package load posts events to a system and measures how it accepts them.
//
// A run is bounded by its number of events and by a deadline. In a closed loop every
// connection posts its next event as soon as the last one is answered. With a rate, events
// leave on a fixed timetable, independent of the answers. Each connection is one goroutine
// on a raw socket with a prebuilt request. Generator, system and sink share the machine, so
// the system lacks the CPU time that the generator uses.
//
// It imports event, stats, wire and the standard library.
package load

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventgateway/gateway/cmd/bench/internal/event"
	"github.com/eventgateway/gateway/cmd/bench/internal/stats"
	"github.com/eventgateway/gateway/cmd/bench/internal/wire"
)

// Plan is the load of a run.
type Plan struct {
	Addr    string        // host:port of the system
	Also    []string      // of further processes of it, which the connections take in turns
	Path    string        // where events are posted
	Types   int           // how many types events take in turns, named at the end of Path; 0 for the one in Path, or for batches
	Size    int           // bytes of an event's body
	First   int           // sequence number of the first event
	Count   int           // number of events, a multiple of Batch
	Batch   int           // events in a request, as a batch of CloudEvents; 0 for requests that are an event
	Conns   int           // keep-alive connections, at most Count are used
	Rate    float64       // events a second over all connections, 0 for a closed loop
	Timeout time.Duration // of the whole run
}

// Result is the result of a run. Times are of event.Nanos, indexed by sequence number minus
// Plan.First. An event that was not accepted has a zero in Answered.
type Result struct {
	Start, End int64
	Sent       []int64
	Answered   []int64
	Accepted   int   // answered 2xx
	Refused    int   // answered otherwise
	Broken     int   // posted without an answer, or never posted
	Err        error // the first refusal or broken connection
}

// Latencies returns how long each accepted event took to be answered, in
// nanoseconds and in no order.
func (r *Result) Latencies() []int64 {
	out := make([]int64, 0, r.Accepted)
	for i, at := range r.Answered {
		if at > 0 {
			out = append(out, at-r.Sent[i])
		}
	}
	return out
}

// Tails returns the time within which 99 of 100 events were answered that were sent in each window, in
// nanoseconds. The last window is left out, unless it is the only one: it may be a short one.
func (r *Result) Tails(window time.Duration) (tails []int64) {
	var latencies [][]int64
	for i, at := range r.Answered {
		if at == 0 {
			continue
		}
		n := int((r.Sent[i] - r.Start) / window.Nanoseconds())
		for len(latencies) <= n {
			latencies = append(latencies, nil)
		}
		latencies[n] = append(latencies[n], at-r.Sent[i])
	}
	for i, l := range latencies {
		if len(l) > 0 && (i < len(latencies)-1 || i == 0) {
			tails = append(tails, stats.Percentile(l, 0.99))
		}
	}
	return tails
}

// Rate is accepted events a second from the first request to the last answer.
func (r *Result) Rate() float64 {
	return float64(r.Accepted) / time.Duration(r.End-r.Start).Seconds()
}

// Run posts the plan's events and returns when all are answered, the deadline has passed or
// ctx ends. An error means that no connection could be made; all later failures are in the
// result.
func Run(ctx context.Context, p Plan) (*Result, error) {
	clients, err := dial(ctx, p)
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, c := range clients {
			_ = c.conn.Close()
		}
	}()
	// Setting a deadline on the connections ends a run early: a read that waits for an
	// answer does not watch ctx.
	stop := context.AfterFunc(ctx, func() {
		for _, c := range clients {
			_ = c.conn.SetDeadline(time.Unix(1, 0))
		}
	})
	defer stop()

	res := &Result{Sent: make([]int64, p.Count), Answered: make([]int64, p.Count)}
	s := &shared{plan: p, res: res}
	res.Start = event.Nanos()
	var group sync.WaitGroup
	for i, c := range clients {
		// A connection that fails ends its own loop. The others post its remaining events in a
		// closed loop; on a timetable these stay unsent and count as broken.
		group.Go(func() { s.fail(c.post(ctx, s, i, len(clients))) })
	}
	group.Wait()
	s.sum()
	return res, nil
}

// dial opens the connections before the clock starts.
func dial(ctx context.Context, p Plan) ([]*client, error) {
	dialer := net.Dialer{Timeout: 5 * time.Second}
	clients := make([]*client, 0, p.Conns)
	addrs := append([]string{p.Addr}, p.Also...)
	for i := range min(p.Conns, p.Count) {
		conn, err := dialer.DialContext(ctx, "tcp", addrs[i%len(addrs)])
		if err == nil {
			err = conn.SetDeadline(time.Now().Add(p.Timeout))
		}
		if err != nil {
			for _, c := range clients {
				_ = c.conn.Close()
			}
			return nil, fmt.Errorf("connect to the system: %w", err)
		}
		clients = append(clients, newClient(conn, p))
	}
	return clients, nil
}

// shared is the state that a run's connections share. The slices of the result need no
// lock: each index belongs to the connection that drew it.
type shared struct {
	plan  Plan
	res   *Result
	drawn atomic.Int64
	once  sync.Once
}

// fail keeps the first error of all connections.
func (s *shared) fail(err error) {
	if err != nil {
		s.once.Do(func() { s.res.Err = err })
	}
}

// sum counts the answers once all connections have ended. It also turns the negative times of
// refused events into zeros.
func (s *shared) sum() {
	r := s.res
	for _, at := range r.Answered {
		r.End = max(r.End, at, -at)
		switch {
		case at > 0:
			r.Accepted++
		case at < 0:
			r.Refused++
		default:
			r.Broken++
		}
	}
	for i, at := range r.Answered {
		r.Answered[i] = max(at, 0)
	}
	r.End = max(r.End, r.Start+1)
}

// client is one connection with its prebuilt request.
type client struct {
	conn    net.Conn
	replies *wire.Reader
	request []byte
	batch   int      // events in a request
	kind    []byte   // the end of the path, within request; none without types
	events  [][]byte // their bodies, within request
	ids     [][]byte // their ids as CloudEvents, within request; none without a batch
}

// newClient prebuilds the request. one later overwrites digits of it in place, so a post
// allocates nothing.
func newClient(conn net.Conn, p Plan) *client {
	c := &client{conn: conn, replies: wire.NewReader(conn), batch: max(1, p.Batch)}
	body, form, path := event.Body(p.Size), "application/json", p.Path
	if p.Batch > 0 {
		body, form = batchOf(p.Batch, body), "application/cloudevents-batch+json"
	}
	if p.Types > 0 {
		path = TypeOf(p.Path, 0)
	}
	c.request = fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n",
		path, p.Addr, form, len(body))
	c.request = append(c.request, body...)
	if p.Types > 0 {
		c.kind = c.request[len("POST ")+len(path)-event.SeqWidth:][:event.SeqWidth]
	}
	tail := c.request[len(c.request)-len(body):]
	if p.Batch == 0 {
		c.events = [][]byte{tail}
		return c
	}
	each := (len(tail) - len("[]") + len(",")) / p.Batch
	for i := range p.Batch {
		one := tail[len("[")+i*each:][:each-len(",")]
		c.ids = append(c.ids, one[len(batchID):][:event.SeqWidth])
		c.events = append(c.events, one[len(one)-len("}")-max(p.Size, event.MinSize):len(one)-len("}")])
	}
	return c
}

// TypeOf returns the path, or the type, of the i-th of the types that begin with a text.
func TypeOf(base string, i int) string { return fmt.Sprintf("%s.%d", base, event.SeqBase+i) }

// batchID begins each CloudEvent of a batch. The id follows.
const batchID = `{"id":"`

// batchOf returns a batch of n CloudEvents that have the body as their data.
func batchOf(n int, body []byte) []byte {
	one := batchID + strings.Repeat("0", event.SeqWidth) +
		`","specversion":"1.0","source":"/bench","type":"bench.event","datacontenttype":"application/json","data":` + string(body) + "}"
	return []byte("[" + strings.Repeat(one+",", n-1) + one + "]")
}

// post draws events until none is left. In an open loop, index and of select this
// connection's part of the timetable.
func (c *client) post(ctx context.Context, s *shared, index, of int) error {
	if s.plan.Rate > 0 {
		return c.onTime(ctx, s, index, of)
	}
	for {
		// Connections draw from one counter: a slow one takes fewer events and does not delay
		// the end of the run.
		i := int(s.drawn.Add(int64(c.batch))) - c.batch
		if i >= s.plan.Count || ctx.Err() != nil {
			return nil
		}
		if err := c.one(s, i, 0); err != nil {
			return err
		}
	}
}

// onTime posts every of-th event of the timetable. If the connection was still
// waiting for an answer when an event was due, the event counts from when it was
// due, so that a stall cannot hide the requests it held up.
func (c *client) onTime(ctx context.Context, s *shared, index, of int) error {
	for i := index; i < s.plan.Count; i += of {
		due := s.res.Start + int64(float64(i)/s.plan.Rate*float64(time.Second))
		wait := due - event.Nanos()
		if wait > 0 {
			select {
			case <-time.After(time.Duration(wait)):
			case <-ctx.Done():
				return nil
			}
			due = 0
		}
		if err := c.one(s, i, due); err != nil {
			return err
		}
	}
	return nil
}

// one posts event i, or the batch that begins with it, and waits for the answer. since
// replaces the time of sending when it is above zero.
func (c *client) one(s *shared, i int, since int64) error {
	now := time.Now().UnixNano()
	for n, body := range c.events {
		event.Stamp(body, s.plan.First+i+n, now)
	}
	if c.kind != nil {
		event.StampSeq(c.kind, (s.plan.First+i)%s.plan.Types)
	}
	for n, id := range c.ids {
		event.StampSeq(id, s.plan.First+i+n)
	}
	// An event that left late counts from the time at which it was due.
	sent := since
	if sent == 0 {
		sent = event.Nanos()
	}
	for n := range c.batch {
		s.res.Sent[i+n] = sent
	}
	if _, err := c.conn.Write(c.request); err != nil {
		return fmt.Errorf("post event %d: %w", s.plan.First+i, err)
	}
	head, body, err := c.replies.Next()
	if err != nil {
		return fmt.Errorf("reply to event %d: %w", s.plan.First+i, err)
	}
	at := event.Nanos()
	if status := wire.Status(head); status < 200 || status > 299 {
		at = -at // refused, told apart from unanswered by its sign until sum
		s.fail(fmt.Errorf("event %d: status %d %.100q", s.plan.First+i, status, body))
	}
	for n := range c.batch {
		s.res.Answered[i+n] = at
	}
	return nil
}
