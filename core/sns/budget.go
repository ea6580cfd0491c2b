package sns

import (
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
)

// The calls that requests may cause, for each client address and for all addresses together.
// The budget of an address is far smaller, so that it cannot use up the calls that others need.
var (
	perClient = rate{most: 10, every: 6 * time.Second}
	inAll     = rate{most: 40, every: time.Second}
)

// maxClients bounds how many addresses have their own budget, at about 100 bytes each.
const maxClients = 1024

var errNoBudget = errors.New("not called: too many calls were asked for in a short time, by this address or in all; if strangers ask, set topic_arns")

// A rate allows most calls at once, and one more after every interval.
type rate struct {
	most  int
	every time.Duration
}

// span is how long an empty budget takes to fill up.
func (r rate) span() time.Duration { return time.Duration(r.most) * r.every }

// A budget is a number of calls that fills up at a rate. The zero budget is full.
type budget struct {
	full time.Time // when it is full again
}

// left reports whether the budget has a call left. It also corrects a budget that has long
// been full, and a budget after the clock was set back.
func (b *budget) left(r rate, now time.Time) bool {
	switch end := now.Add(r.span()); {
	case b.full.Before(now):
		b.full = now
	case b.full.After(end):
		b.full = end
	}
	return !b.full.Add(r.every).After(now.Add(r.span()))
}

func (b *budget) spend(r rate) { b.full = b.full.Add(r.every) }

// A client is the address that requests come from; see [core.ClientOf]. The zero client
// stands for all unknown addresses.
type client struct{ netip.Addr }

func clientOf(a netip.Addr) client { return client{core.ClientOf(a)} }

// budgets has a budget for each client, and one for all clients together. The zero value is
// full. It is safe for concurrent use.
type budgets struct {
	mu      sync.Mutex
	all     budget
	clients map[client]*purse
}

// A purse is a client's budget, and the turn of its one call at a time.
type purse struct {
	budget
	turn chan struct{}
}

// take spends one call of a client, which then waits for its turn to make the call. It
// returns false if the budget has no call left.
func (b *budgets) take(c client, now time.Time) (*purse, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.clients[c]
	if p == nil {
		p = b.add(c)
	}
	if !p.left(perClient, now) || !b.all.left(inAll, now) {
		return nil, false
	}
	p.spend(perClient)
	b.all.spend(inAll)
	return p, true
}

// add makes the budget of a new client. If there is no room, it drops the budget of the
// client that has spent least.
func (b *budgets) add(c client) *purse {
	if b.clients == nil {
		b.clients = map[client]*purse{}
	}
	if len(b.clients) >= maxClients {
		var least client
		for other, p := range b.clients {
			if first := b.clients[least]; first == nil || p.full.Before(first.full) {
				least = other
			}
		}
		delete(b.clients, least)
	}
	p := &purse{turn: make(chan struct{}, 1)}
	b.clients[c] = p
	return p
}
