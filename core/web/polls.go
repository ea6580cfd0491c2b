package web

import (
	"net/netip"
	"sync"
	"time"
)

// MaxPolls is how many requests for messages are served at once. Further requests get 503.
// Polls have a budget of their own, since most of them only wait.
//
// No queue and no client address can take the whole budget. A queue may have as many polls as
// are still free: half of all if other queues have none. An address may have three times as
// many as are free: three quarters of all. Within a queue it may have three times as many as
// the queue may still have. Where k queues want as many polls as they can get,
// each has a (k+1)th of the budget, and as many stay free. One poll of each queue is served
// beside the budget, since there may be more queues than polls. A gateway with a single queue
// gives it the whole budget.
const MaxPolls = 1000

// perAddress is how many polls a client address may have for each free one. There may be many
// consumers behind one address.
const perAddress = 3

var (
	errPolls = &verdict{status: 503, reason: "polls", retryAfter: time.Second,
		text: "Too many consumers wait for messages"}
	errQueuePolls = &verdict{status: 503, reason: "polls_queue", retryAfter: time.Second,
		text: "Too many consumers of this queue wait for messages: the rest of the waiting room is for other queues"}
	errAddressPolls = &verdict{status: 503, reason: "polls_address", retryAfter: time.Second,
		text: "Too many consumers at this client address wait for messages: the rest of the waiting room is for other addresses"}
)

// polls counts the polls that are being served. The zero polls is ready to use.
//
// An example with two queues and no other polls: the first queue gets 500, and the second then up
// to 250. As queues come and go, the bounds move, and polls that are being served stay.
type polls struct {
	mu       sync.Mutex
	all      int
	queues   map[string]int
	networks map[netip.Addr]int
	pairs    map[pair]int
}

// A pair is the polls of one network for one queue.
type pair struct {
	queue   string
	network netip.Addr
}

// enter admits a poll, which must call leave at its end. Alone says that there is no other
// queue.
func (p *polls) enter(queue string, network netip.Addr, alone bool) *verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	// All three bounds follow from the free polls, so they tighten as the room fills.
	free := MaxPolls - p.all
	ofQueue := free // how many more polls the queue may have
	if !alone {
		ofQueue = free - p.queues[queue]
	}
	switch {
	// The first poll of a queue is always served: no other queue can lock it out.
	case p.queues[queue] == 0:
	case free <= 0:
		return errPolls
	case ofQueue <= 0:
		return errQueuePolls
	case p.networks[network] >= perAddress*free, p.pairs[pair{queue, network}] >= perAddress*ofQueue:
		return errAddressPolls
	}
	if p.queues == nil {
		p.queues, p.networks, p.pairs = map[string]int{}, map[netip.Addr]int{}, map[pair]int{}
	}
	p.all++
	p.queues[queue]++
	p.networks[network]++
	p.pairs[pair{queue, network}]++
	return nil
}

// leave ends a poll that enter admitted.
func (p *polls) leave(queue string, network netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	less(p.queues, queue)
	less(p.networks, network)
	less(p.pairs, pair{queue, network})
}

// less decrements a count, and deletes it at zero.
func less[K comparable](counts map[K]int, of K) {
	if counts[of]--; counts[of] == 0 {
		delete(counts, of)
	}
}

// count returns the number of polls that are being served.
func (p *polls) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all
}
