package web

import (
	"cmp"
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core/pull"
)

// MaxUnwritten is how many bytes all replies together may have that are not yet written, or
// are being made. A client address may have a third of the free bytes. So it has a quarter of
// the budget if no other client has any, and some bytes however many other clients there are.
//
// The budget is a sixth of the gateway's memory limit. The heap may be a few times as large
// as its live data, and there are two copies of messages while the puller takes them.
const MaxUnwritten = 64 << 20

// roomTime is how long a request of an operator waits for bytes.
const roomTime = 5 * time.Second

var (
	errUnread = &verdict{status: 503, reason: "unread", retryAfter: time.Second,
		text: "Too many replies wait to be read by their clients"}
	errUnreadHere = &verdict{status: 503, reason: "unread_address", retryAfter: time.Second,
		text: "Too many replies to this client address wait to be read: read them first, or ask for fewer at once"}
)

// An outflow is the budget of all replies whose size is not a constant. The zero outflow is
// ready to use.
type outflow struct {
	mu    sync.Mutex
	all   usage
	by    map[netip.Addr]usage // by client
	freed chan struct{}        // closed when bytes come back; nil if no request was refused since
}

// A usage is bytes of the budget. The held bytes belong to replies. The reserved bytes are
// for replies whose size is not known yet.
type usage struct{ held, reserved int }

func (u usage) sum() int { return u.held + u.reserved }

func (u *usage) add(held, reserved int) { u.held, u.reserved = u.held+held, u.reserved+reserved }

// A room is the part of the budget that one reply holds. It is empty at first.
type room struct {
	of  *outflow
	who netip.Addr
	has usage
}

var _ pull.Room = (*room)(nil)

// room returns an empty room for a reply to a client of a network.
func (o *outflow) room(network netip.Addr) *room { return &room{of: o, who: network} }

// bytes returns the bytes of all replies together, with the reserved bytes.
func (o *outflow) bytes() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.sum()
}

// left returns how many more bytes a client may have, given the bytes of all clients and of
// this one. It grants a client's first reply of least bytes if so many bytes are free. It
// grants a reply of any size while there is no other.
func left(all, client, least int) int {
	// A client that holds c bytes and gets n of the free bytes f shall have at most a third of the
	// bytes that are free afterwards: c + n = (f - n) / 3. So n = (f - 3c) / 4.
	free := MaxUnwritten - all
	n := (free - 3*client) / 4 // afterwards it has at most a third of the bytes that are free then
	switch {
	case all == 0:
		return max(n, least)
	case client == 0 && least <= free:
		return max(n, least)
	}
	return n
}

// Reserve grants between least and most bytes, or says why it cannot. The first reply of a
// client gets all that left allows. A further reply gets half of that, to leave room for
// others.
func (r *room) Reserve(least, most int) (int, *pull.Full) {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	// The client's replies count together, over all its connections.
	client := r.of.by[r.who]
	n := left(r.of.all.sum(), client.sum(), least)
	if n < least {
		return 0, r.of.full(client, least)
	}
	// Each further reply of a client gets half of the rest of its share, so that the client can
	// still have another reply.
	if client.sum() > 0 {
		n = max(least, n/2)
	}
	n = min(most, n)
	r.add(0, n)
	return n, nil
}

// full returns the reason for which a client gets no bytes.
func (o *outflow) full(client usage, least int) *pull.Full {
	if o.freed == nil {
		o.freed = make(chan struct{})
	}
	// The reason tells the client either to read its own replies or to wait. If reserved bytes
	// are the only hindrance there is no reason, since most of these bytes come back at once.
	f := &pull.Full{Freed: o.freed}
	switch {
	case left(o.all.held, client.held, least) >= least: // it would get them without the reserved bytes
	case left(client.held, client.held, least) < least: // it would get none without other clients either
		f.Err = errUnreadHere
	default:
		f.Err = errUnread
	}
	return f
}

// Hold states how many bytes the reply has. They replace its former and its reserved bytes.
func (r *room) Hold(bytes int) {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	r.add(bytes-r.has.held, -r.has.reserved)
}

// close gives all bytes of the reply back.
func (r *room) close() { r.Hold(0) }

// add counts bytes, under the budget's lock. If bytes come back, it wakes the requests that
// were refused.
func (r *room) add(held, reserved int) {
	if held == 0 && reserved == 0 {
		return
	}
	o := r.of
	client := o.by[r.who]
	// The three sums change together: of the reply, of its client, and of all.
	for _, u := range []*usage{&r.has, &client, &o.all} {
		u.add(held, reserved)
	}
	if o.by == nil {
		o.by = map[netip.Addr]usage{}
	}
	if o.by[r.who] = client; client == (usage{}) {
		delete(o.by, r.who)
	}
	if held+reserved < 0 && o.freed != nil {
		close(o.freed)
		o.freed = nil
	}
}

// wait reserves bytes. If too few are free it waits for them, up to roomTime.
func (r *room) wait(ctx context.Context, bytes int) error {
	timer := time.NewTimer(roomTime)
	defer timer.Stop()
	for {
		_, full := r.Reserve(bytes, bytes)
		if full == nil {
			return nil
		}
		select {
		// Another request may be faster, so the wait goes on until the timer ends.
		case <-full.Freed:
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return cmp.Or(full.Err, error(errUnread))
		}
	}
}
