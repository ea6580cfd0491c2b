// Package sink receives deliveries and keeps count of them: for every sequence
// number the time of its first delivery, and how often it came again.
//
// It is a socket server with a parser of its own for the same reason as load: it shares the
// machine with the system that it measures. Its answers are fixed: 200 without a body,
// after an optional delay or never.
//
// It imports event, wire and the standard library.
package sink

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventgateway/gateway/cmd/bench/internal/event"
	"github.com/eventgateway/gateway/cmd/bench/internal/wire"
)

// signatureEvery is how many deliveries share one signature check. All are
// signed alike, so a sample proves that the system does the work without
// charging the check to the machine each time.
const signatureEvery = 64

var ok = []byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

// Config has the settings of a sink.
// The sink knows how many events there are, so that its counters are arrays: a map would take a
// lock for each delivery.
type Config struct {
	Events int           // sequence numbers are 0 to Events-1
	Delay  time.Duration // from the request to the answer
	Hang   bool          // never answer, until Close
	Key    []byte        // of the Standard Webhooks signature; none is not checked

	// Steps is how many deliveries each event needs, as the steps of a workflow: the k-th
	// delivery goes to the path /k, from 0. With the last of them the event counts as delivered.
	// Zero means one.
	Steps int
}

// Counts are the deliveries of a sink.
type Counts struct {
	Unique     int   // events delivered at least once
	Duplicated int   // deliveries beyond an event's first
	Strange    int   // requests that carry no sequence number of this run
	Unsigned   int   // sampled deliveries whose signature is absent or wrong
	Err        error // the first request that could not be read
}

// Sink is a running receiver. Each connection has a goroutine. The counters are atomic, and
// each event has its own place in first and before, so deliveries take no lock. mu guards conns
// and err.
type Sink struct {
	cfg      Config
	listener net.Listener
	first    []int64 // event.Nanos of the first delivery, 0 for none
	before   []int64 // the same of the steps before the last, by event and step
	unique   atomic.Int64
	repeated atomic.Int64
	strange  atomic.Int64
	unsigned atomic.Int64
	held     atomic.Int64 // nanoseconds from request to answer, summed
	answered atomic.Int64
	target   atomic.Int64  // Wait's number
	reached  chan struct{} // holds one value once unique has passed target

	closing chan struct{}
	group   sync.WaitGroup
	mu      sync.Mutex
	conns   map[net.Conn]struct{}
	err     error
}

// Listen starts a sink on a free loopback port.
func Listen(cfg Config) (*Sink, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for deliveries: %w", err)
	}
	s := &Sink{
		cfg: cfg, listener: l, first: make([]int64, cfg.Events), before: make([]int64, cfg.Events*max(0, cfg.Steps-1)),
		reached: make(chan struct{}, 1),
		closing: make(chan struct{}), conns: map[net.Conn]struct{}{},
	}
	s.group.Go(s.accept)
	return s, nil
}

// URL is where deliveries are to be posted.
func (s *Sink) URL() string { return "http://" + s.listener.Addr().String() + "/" }

// Close ends all connections and waits for them. It may be called again.
func (s *Sink) Close() {
	s.mu.Lock()
	select {
	case <-s.closing:
	default:
		close(s.closing)
	}
	_ = s.listener.Close()
	// Under the lock, so a connection that was just accepted is either closed here or refused
	// by track.
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.group.Wait()
}

// Unique is the number of events delivered so far.
func (s *Sink) Unique() int { return int(s.unique.Load()) }

// Counts returns the deliveries so far.
func (s *Sink) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Counts{
		Unique: s.Unique(), Duplicated: int(s.repeated.Load()), Strange: int(s.strange.Load()),
		Unsigned: int(s.unsigned.Load()), Err: s.err,
	}
}

// First is the event.Nanos of an event's first delivery, 0 for none.
func (s *Sink) First(seq int) int64 { return atomic.LoadInt64(&s.first[seq]) }

// Held returns the mean delay of the answers. Timers overshoot, so a delay of 10 ms is a
// little more, and slots are divided by the real delay.
func (s *Sink) Held() time.Duration {
	n := s.answered.Load()
	if n == 0 {
		return 0
	}
	return time.Duration(s.held.Load() / n)
}

// accept serves connections until the listener is closed.
func (s *Sink) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		if !s.track(c) {
			_ = c.Close()
			return
		}
		s.group.Go(func() {
			defer s.untrack(c)
			s.fail(s.serve(c))
		})
	}
}

// track remembers a connection for Close, false when Close came first.
func (s *Sink) track(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closing:
		return false
	default:
		s.conns[c] = struct{}{}
		return true
	}
}

// untrack closes a connection and forgets it.
func (s *Sink) untrack(c net.Conn) {
	_ = c.Close()
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}

// fail keeps the first error that is not an ordinary end of a connection.
func (s *Sink) fail(err error) {
	var gone *net.OpError
	if err == nil || errors.Is(err, io.EOF) || errors.As(err, &gone) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = fmt.Errorf("read a delivery: %w", err)
	}
}

// serve answers the requests of a connection. The delivery is counted before it is answered: a
// system that has its answer has delivered.
func (s *Sink) serve(c net.Conn) error {
	requests := wire.NewReader(c)
	for {
		head, body, err := requests.Next()
		if err != nil {
			return err
		}
		at := event.Nanos()
		s.count(head, body, at)
		// The connection is held until Close. Its system waits for the answer and delivers
		// nothing else.
		if s.cfg.Hang {
			<-s.closing
			return nil
		}
		if s.cfg.Delay > 0 {
			time.Sleep(s.cfg.Delay)
			s.held.Add(event.Nanos() - at)
			s.answered.Add(1)
		}
		if _, err := c.Write(ok); err != nil {
			return err
		}
	}
}

// count counts a delivery with its time of arrival. Compare-and-swap decides which of two
// deliveries of an event was the first.
func (s *Sink) count(head, body []byte, at int64) {
	seq, known := event.Seq(body)
	if !known || seq >= len(s.first) {
		s.strange.Add(1)
		return
	}
	// The sample is chosen by the sequence number, so repeats of an event are checked like its
	// first delivery.
	if seq%signatureEvery == 0 && len(s.cfg.Key) > 0 && !signed(head, body, s.cfg.Key) {
		s.unsigned.Add(1)
	}
	if step := s.step(head); step < s.cfg.Steps-1 {
		if !atomic.CompareAndSwapInt64(&s.before[seq*(s.cfg.Steps-1)+step], 0, at) {
			s.repeated.Add(1)
		}
		return
	}
	if atomic.CompareAndSwapInt64(&s.first[seq], 0, at) {
		s.arrived()
	} else {
		s.repeated.Add(1)
	}
}

// step returns the step of a request: the digit that is its path, else the last step.
func (s *Sink) step(head []byte) int {
	_, path, _ := bytes.Cut(head, []byte(" /"))
	if s.cfg.Steps < 2 || len(path) == 0 || path[0] < '0' || path[0] > '9' {
		return s.cfg.Steps - 1
	}
	return int(path[0] - '0')
}

// Skipped returns how many steps before the last one did not come, for delivered events.
func (s *Sink) Skipped() (n int) {
	for seq := range s.first {
		for step := range max(0, s.cfg.Steps-1) {
			if s.First(seq) > 0 && atomic.LoadInt64(&s.before[seq*(s.cfg.Steps-1)+step]) == 0 {
				n++
			}
		}
	}
	return n
}

// arrived counts an event that was delivered for the first time, and wakes Wait once its number
// is reached.
func (s *Sink) arrived() {
	if s.unique.Add(1) != s.target.Load() {
		return
	}
	select {
	case s.reached <- struct{}{}:
	default:
	}
}

// Wait returns true once n events have been delivered, false when none came for
// as long as stall or ctx ended. One Wait runs at a time.
func (s *Sink) Wait(ctx context.Context, n int, stall time.Duration) bool {
	// The target is set before the first look: an event that arrives between the two is seen by
	// the look.
	s.target.Store(int64(n))
	tick := time.NewTicker(stall)
	defer tick.Stop()
	for last := s.Unique(); s.Unique() < n; {
		select {
		case <-s.reached:
		case <-ctx.Done():
			return false
		case <-tick.C:
			if s.Unique() == last {
				return false
			}
			last = s.Unique()
		}
	}
	return true
}

// signed checks the first signature of a Standard Webhooks delivery,
// https://www.standardwebhooks.com.
func signed(head, body, key []byte) bool {
	id, _ := wire.Header(head, "webhook-id")
	timestamp, _ := wire.Header(head, "webhook-timestamp")
	signature, _ := wire.Header(head, "webhook-signature")
	mac := hmac.New(sha256.New, key)
	_, _ = fmt.Fprintf(mac, "%s.%s.%s", id, timestamp, body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	return len(id) > 0 && hmac.Equal(signature, []byte(want))
}
