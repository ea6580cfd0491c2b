package mysql

import (
	"context"
	"database/sql/driver"
	"sync"

	"github.com/go-sql-driver/mysql"

	"github.com/eventgateway/gateway/store"
)

// A pool keeps connections for whoever needs one next: the one used last, so that
// those a busy hour has left grow old and go.
type pool struct {
	address   *address
	connector driver.Connector
	patient   driver.Connector // of connections that wait for a packet as long as their callers do
	turns     chan struct{}    // one for each connection there may be

	mu     sync.Mutex
	idle   []*session
	closed bool
}

func newPool(a *address, size int) (*pool, error) {
	connector, err := mysql.NewConnector(a.config)
	if err != nil {
		return nil, malformed(err)
	}
	unbounded := a.config.Clone()
	unbounded.ReadTimeout = 0
	patient, err := mysql.NewConnector(unbounded)
	if err != nil {
		return nil, malformed(err)
	}
	return &pool{address: a, connector: connector, patient: patient, turns: make(chan struct{}, size)}, nil
}

// take waits for a connection that works as far as can be told.
func (p *pool) take(ctx context.Context) (*session, error) {
	select {
	case p.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, store.Unavailable(ctx.Err())
	}
	for {
		s, err := p.last()
		if err == nil && s == nil {
			s, err = dial(ctx, p.connector)
		} else if s != nil && !s.usable(ctx) {
			s.conn.Close()
			continue
		}
		if err != nil {
			<-p.turns
			return nil, err
		}
		return s, nil
	}
}

// exchange gives a connection for one that waits for a packet as long as its caller does: to
// rebuild a table of a million jobs takes a server longer than packetTimeout, and it says
// nothing meanwhile.
func (p *pool) exchange(ctx context.Context, s *session) (*session, error) {
	if s.patient {
		return s, nil
	}
	s.conn.Close()
	s, err := dial(ctx, p.patient)
	if err != nil {
		<-p.turns
		return nil, err
	}
	s.patient = true
	return s, nil
}

// last is the idle connection that was used last, if there is one.
func (p *pool) last() (s *session, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, store.Unavailable(store.ErrClosed)
	}
	if n := len(p.idle); n > 0 {
		s, p.idle = p.idle[n-1], p.idle[:n-1]
	}
	return s, nil
}

// put gives a connection back.
func (p *pool) put(s *session) {
	p.mu.Lock()
	keep := !p.closed && !s.broken
	if keep {
		p.idle = append(p.idle, s)
	}
	p.mu.Unlock()
	if !keep {
		s.conn.Close()
	}
	<-p.turns
}

// close closes all connections; it waits for those in use.
func (p *pool) close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, s := range idle {
		s.conn.Close()
	}
	for range cap(p.turns) {
		p.turns <- struct{}{}
	}
	for range cap(p.turns) {
		<-p.turns // for those that wait to find it closed
	}
}
