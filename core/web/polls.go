package web

import (
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// MaxPolls is how many requests for messages are served at once; more is 503. They
// have this budget of their own, since most of them do nothing but wait.
//
// No queue and no client address can take it from the others: a queue may have as many
// polls as are still free, which is half of all if the others have none, and an address
// three times as many, which is three quarters. Where k queues want all they can get, each
// has a (k+1)th, and as many are free. One poll of each queue is served beside the budget,
// since there may be more queues than polls. Where there is one queue it may have all.
const MaxPolls = 1000

// perAddress is how many polls a client address may have for each that is free. There may
// be many consumers behind one address.
const perAddress = 3

var (
	errPolls = &verdict{status: 503, reason: "polls", retryAfter: time.Second,
		text: "Too many consumers wait for messages"}
	errQueuePolls = &verdict{status: 503, reason: "polls_queue", retryAfter: time.Second,
		text: "Too many consumers of this queue wait for messages: the rest of the waiting room is for other queues"}
	errAddressPolls = &verdict{status: 503, reason: "polls_address", retryAfter: time.Second,
		text: "Too many consumers at this client address wait for messages: the rest of the waiting room is for other addresses"}
)

// Reasons are those for which Settings.Refused is called.
func Reasons() (all []string) {
	for _, v := range []*verdict{errBusy, errTooMany, errPolls, errQueuePolls, errAddressPolls, errUnread, errUnreadHere} {
		all = append(all, v.reason)
	}
	return all
}

// polls is how many polls are being served. The zero polls is ready to use.
type polls struct {
	mu       sync.Mutex
	all      int
	queues   map[string]int
	networks map[netip.Addr]int
}

// enter lets a poll in, which must leave. Alone says that there is no other queue.
func (p *polls) enter(queue string, network netip.Addr, alone bool) *verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	free := MaxPolls - p.all
	switch {
	case p.queues[queue] == 0:
	case free <= 0:
		return errPolls
	case !alone && p.queues[queue] >= free:
		return errQueuePolls
	case p.networks[network] >= perAddress*free:
		return errAddressPolls
	}
	if p.queues == nil {
		p.queues, p.networks = map[string]int{}, map[netip.Addr]int{}
	}
	p.all++
	p.queues[queue]++
	p.networks[network]++
	return nil
}

func (p *polls) leave(queue string, network netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	less(p.queues, queue)
	less(p.networks, network)
}

// less takes one away from a count, and the count if none is left.
func less[K comparable](counts map[K]int, of K) {
	if counts[of]--; counts[of] == 0 {
		delete(counts, of)
	}
}

func (p *polls) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all
}

// polling serves a route on which clients wait, and which counts them itself.
func (d *Door) polling(serve route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := serve(w, r); err != nil {
			d.fail(w, r, err)
		}
	}
}
