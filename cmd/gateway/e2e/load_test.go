//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// A load is senders that post unique events, each as fast as it gets answers, and report to a
// witness. Deliveries reach the witness through the receiver.
type load struct {
	*witness
	gateways []*gateway // they get the events in turn
	client   *http.Client
	stop     context.CancelFunc
	senders  sync.WaitGroup

	// Options, set before start.
	last  serial        // the senders stop after this serial
	pause time.Duration // of a sender after each event
}

type loadBody struct {
	Serial serial `json:"serial"`
	Fill   string `json:"fill"`
}

// filling makes a body as large as a small real one.
var filling = strings.Repeat("the quick brown fox ", 12)

// newLoad makes a load on a gateway. It gets the deliveries of the receiver.
func newLoad(g *gateway, r *receiver.Receiver, client *http.Client) *load {
	l := &load{witness: newWitness(), gateways: []*gateway{g}, client: client}
	r.Tap(l.delivered)
	return l
}

func (l *load) delivered(d receiver.Delivery) {
	var body loadBody
	_ = json.Unmarshal([]byte(d.Body), &body) // serial 0 is never sent, so the witness reports it
	l.see(sighting{body.Serial, d.Job(), d.Attempt(), d.Number("X-Life"), d.At})
}

// start starts n senders; events of sender i have serials i+1, i+1+n, ...
func (l *load) start(n int) {
	ctx, cancel := context.WithCancel(context.Background())
	l.stop = cancel
	l.gateways[0].t.Cleanup(l.end)
	for i := range n {
		l.senders.Go(func() {
			for s := serial(i + 1); ctx.Err() == nil && (l.last == 0 || s <= l.last); s += serial(n) {
				wait := l.pause
				if !l.post(s) {
					wait = max(wait, 2*time.Millisecond)
				}
				if wait > 0 {
					pause(ctx, wait)
				}
			}
		})
	}
}

// end stops the senders and waits for their last answers.
func (l *load) end() {
	l.stop()
	l.senders.Wait()
}

// post sends one event and reports whether it was accepted. An event without an answer may
// have been stored or not: it counts as sent and not as accepted.
func (l *load) post(s serial) bool {
	l.send(s)
	body, _ := json.Marshal(loadBody{s, filling}) // cannot fail
	g := l.gateways[int(s)%len(l.gateways)]
	a, err := fetch(l.client, request{method: http.MethodPost, url: g.url("/events/load"), body: string(body)})
	switch {
	case err != nil:
		l.miss(kindOf(err))
	case a.status == http.StatusServiceUnavailable && a.header.Get("Retry-After") == "":
		l.miss("503 without Retry-After")
	case a.status != http.StatusAccepted:
		l.miss(fmt.Sprint(a.status))
	default:
		l.accept(s, a.eventID())
		return true
	}
	return false
}

// settle waits until all accepted events are delivered. It gives up after limit without any
// progress; the verdict then fails.
func (l *load) settle(limit time.Duration) { l.progress(limit, l.idle) }

// progress waits until cond holds. It gives up after limit without an accepted or delivered
// event: a busy machine may be slow.
func (l *load) progress(limit time.Duration, cond func() bool) bool {
	for {
		accepted, delivered := l.counts()
		moved := func() bool { a, d := l.counts(); return a != accepted || d != delivered }
		if !wait.Until(limit, func() bool { return cond() || moved() }) {
			return false
		}
		if cond() {
			return true
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// Kinds of missing answers.
const (
	noAnswer = "no answer in time"
	refused  = "connection refused"
	broken   = "connection broken"
)

// kindOf returns the reason of a missing answer in a few words.
func kindOf(err error) string {
	var network net.Error
	switch {
	case errors.As(err, &network) && network.Timeout():
		return noAnswer
	case errors.Is(err, syscall.ECONNREFUSED):
		return refused
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		strings.Contains(err.Error(), "server closed idle connection"): // net/http does not export the error
		return broken
	}
	return err.Error()
}
