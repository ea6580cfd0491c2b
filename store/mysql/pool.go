package mysql

import (
	"context"
	"database/sql/driver"
	"sync"

	"github.com/go-sql-driver/mysql"

	"github.com/eventgateway/gateway/store"
)

// A pool keeps idle connections. It hands out the connection that was used last, so that the
// connections left over from a busy hour stay idle until they are too old. A batch waits for a
// free slot, not for a certain connection.
type pool struct {
	address   *address
	connector driver.Connector
	schema    driver.Connector // see exchange
	slots     chan struct{}    // has an element for each connection in use; its capacity is the bound

	mu     sync.Mutex // guards the fields below
	idle   []*session // the connection used last is at the end
	closed bool
}

func newPool(a *address, size int) (*pool, error) {
	connector, err := mysql.NewConnector(a.config)
	if err != nil {
		return nil, malformed(err)
	}
	config := a.config.Clone()
	config.ReadTimeout = 0
	if err := config.Apply(mysql.Charset(schemaCharset, "")); err != nil {
		return nil, malformed(err)
	}
	schema, err := mysql.NewConnector(config)
	if err != nil {
		return nil, malformed(err)
	}
	return &pool{address: a, connector: connector, schema: schema, slots: make(chan struct{}, size)}, nil
}

// take waits for a free slot and returns an idle connection that the server has not closed, or
// a new one. The caller gives it back by put. After an error the slot is free again.
func (p *pool) take(ctx context.Context) (*session, error) {
	select {
	case p.slots <- struct{}{}:
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
			<-p.slots
			return nil, err
		}
		return s, nil
	}
}

// exchange replaces a connection by one for the statements of the schema. It waits for a packet as long as its
// caller does: a server sends nothing while it rebuilds a table, and for a table of a million jobs that
// takes longer than packetTimeout. Its character set is utf8mb4, which the server may write into the
// tables' expressions.
func (p *pool) exchange(ctx context.Context, s *session) (*session, error) {
	if s.schema {
		return s, nil
	}
	s.conn.Close()
	s, err := dial(ctx, p.schema)
	if err != nil {
		<-p.slots
		return nil, err
	}
	s.schema = true
	return s, nil
}

// last removes the idle connection that was used last from the pool; nil if there is none.
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

// put gives a connection back to the pool, which closes it if it is broken.
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
	<-p.slots
}

// close closes all connections. It waits for the connections in use, by taking all slots.
func (p *pool) close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, s := range idle {
		s.conn.Close()
	}
	for range cap(p.slots) {
		p.slots <- struct{}{}
	}
	for range cap(p.slots) {
		<-p.slots // callers that wait in take get the slot and find the pool closed
	}
}
