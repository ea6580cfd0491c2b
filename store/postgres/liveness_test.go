package postgres

import (
	"context"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/eventgateway/gateway/infra/test/servers"
	"github.com/eventgateway/gateway/store"
)

// A network carries connections to a server until it forgets them.
type network struct {
	listener net.Listener
	dial     func() (net.Conn, error)

	mu   sync.Mutex
	dead *atomic.Bool // shared by the connections made since the last forget
	made []net.Conn
}

// between puts a network in front of a server, and returns it with its address.
func between(t *testing.T, address string) (*network, string) {
	t.Helper()
	to, err := pgconn.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	kind, at := pgconn.NetworkAddress(to.Host, to.Port)
	n := &network{listener: l, dial: func() (net.Conn, error) { return net.Dial(kind, at) }, dead: &atomic.Bool{}}
	go n.serve()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Del("host")
	q.Del("port")
	u.Host, u.RawQuery = l.Addr().String(), q.Encode()
	return n, u.String()
}

func (n *network) serve() {
	for {
		outer, err := n.listener.Accept()
		if err != nil {
			return
		}
		inner, err := n.dial()
		if err != nil {
			outer.Close()
			continue
		}
		n.mu.Lock()
		dead := n.dead
		n.made = append(n.made, outer)
		n.mu.Unlock()
		go pump(inner, outer, dead)
		go pump(outer, inner, dead)
	}
}

func pump(to, from net.Conn, dead *atomic.Bool) {
	defer to.Close()
	defer from.Close()
	piece := make([]byte, 64<<10)
	for {
		n, err := from.Read(piece)
		if err != nil {
			return
		}
		if dead.Load() {
			continue
		}
		if _, err := to.Write(piece[:n]); err != nil {
			return
		}
	}
}

// forget stops all traffic on the existing connections without closing them.
func (n *network) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dead.Store(true)
	n.dead = &atomic.Bool{}
}

// close closes all connections, including the forgotten ones, for whose end their owner would
// wait.
func (n *network) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listener.Close()
	for _, c := range n.made {
		c.Close()
	}
}

func (n *network) connections() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.made)
}

// openedThrough opens a database over a network. The network closes before the database does.
func openedThrough(t *testing.T, address string) (*conn, *network) {
	t.Helper()
	n, through := between(t, address)
	c := opened(t, through)
	t.Cleanup(n.close)
	return c, n
}

// backdate makes all idle connections look unused for the time quiet, and returns their number.
func (c *conn) backdate(quiet time.Duration) (n int) {
	for _, pc := range c.pool.AcquireAllIdle(context.Background()) {
		if u, ok := pc.Conn().PgConn().CustomData()["use"].(*use); ok {
			u.at = u.at.Add(-quiet)
		}
		n++
		defer pc.Release()
	}
	return n
}

// fill makes the pool open n connections, by n batches at the same time.
func (c *conn) fill(t *testing.T, n int) {
	t.Helper()
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			if _, err := c.Batch(t.Context(), read("SELECT pg_sleep(0.3)::text")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestForgottenConnections: the network forgets all connections, as it does while a function is
// stopped. The next batch gets its answer within 9 s.
func TestForgottenConnections(t *testing.T) {
	t.Parallel()
	for name, stmt := range map[string]store.Stmt{"what may be sent twice": read("SELECT 1"), "what may not": {Name: "once", SQL: "SELECT 1", Reads: true, Once: true}} {
		c, n := openedThrough(t, servers.Postgres(t))
		c.fill(t, 3)
		idle := c.backdate(time.Hour)
		before := n.connections()
		n.forget()
		ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second) // less than the deadline of a batch
		if _, err := c.Batch(ctx, stmt); err != nil {
			t.Errorf("%s, after %d connections were forgotten: %v", name, idle, err)
		}
		cancel()
		if made := n.connections() - before; idle != 3 || made > 3 { // including connections for cancel requests
			t.Errorf("%s: %d were idle, %d were made, want one for all of them, and who cancels", name, idle, made)
		}
	}
}

// TestAllConnectionsForgotten: batches at the same time, with each place of the pool taken by a
// forgotten connection, get their answers too.
func TestAllConnectionsForgotten(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 2} {
		n, through := between(t, servers.Postgres(t))
		opened, err := Open(t.Context(), through, size)
		if err != nil {
			t.Fatal(err)
		}
		c := opened.(*conn)
		c.fill(t, size)
		c.backdate(time.Hour)
		n.forget()
		ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
		var all sync.WaitGroup
		for range 2 * size {
			all.Go(func() {
				if _, err := c.Batch(ctx, read("SELECT 1")); err != nil {
					t.Errorf("pool of %d: %v", size, err)
				}
			})
		}
		all.Wait()
		cancel()
		n.close()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestQuietConnectionsStay: a working connection stays in use after an idle time.
func TestQuietConnectionsStay(t *testing.T) {
	t.Parallel()
	c, n := openedThrough(t, servers.Postgres(t))
	c.fill(t, 1)
	before := n.connections()
	for _, quiet := range []time.Duration{time.Hour, -time.Hour, 0} {
		c.backdate(quiet)
		do(t, c, read("SELECT 1"))
	}
	if made := n.connections() - before; made != 0 {
		t.Errorf("%d connections were made, want none", made)
	}
}
