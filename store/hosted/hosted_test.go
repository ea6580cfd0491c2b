package hosted

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/infra/test/servers"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/storetest"
)

// faces are the two ways to reach a database.
var faces = map[string]func(servers.Hosted) Options{
	"api": func(h servers.Hosted) Options {
		return Options{API: h.API, AccountID: h.Account, DatabaseID: h.Database, APIToken: h.Token}
	},
	"proxy": func(h servers.Hosted) Options { return Options{Endpoint: h.Endpoint, APIToken: h.Token} },
}

func onEachFace(t *testing.T, test func(t *testing.T, face func(servers.Hosted) Options)) {
	for name, face := range faces {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, face)
		})
	}
}

// onAPI runs a test over the API, and over the proxy as well if the suites run in full.
func onAPI(t *testing.T, test func(t *testing.T, face func(servers.Hosted) Options)) {
	if storetest.Whole() {
		onEachFace(t, test)
		return
	}
	test(t, faces["api"])
}

// connect opens a database.
func connect(tb testing.TB, o Options) *Conn {
	tb.Helper()
	c, err := Open(context.Background(), o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return c.(*Conn)
}

// migrated returns a migrated store over a connection to an empty database.
func migrated(tb testing.TB, conn store.Conn) core.Store {
	tb.Helper()
	s := over(conn)
	if err := s.Migrate(context.Background()); err != nil {
		tb.Fatalf("Migrate: %v", err)
	}
	return s
}

// over returns a store over a connection to a migrated database.
func over(conn store.Conn) core.Store {
	return store.New(storetest.Weakened(conn), store.D1, core.SystemClock)
}

// onShelf returns a function that returns connections to migrated and empty databases, and uses both again
// until t ends.
func onShelf(t *testing.T, face func(servers.Hosted) Options) func(t *testing.T) *Conn {
	var shelf storetest.Shelf[*Conn]
	return func(sub *testing.T) *Conn {
		c := shelf.Take(sub, func() *Conn {
			c := connect(t, face(database(sub)))
			migrated(sub, c)
			return c
		})
		sub.Cleanup(func() { // when no write of the check is under way any more
			c.line.Close()
			c.line = c.newLine()
		})
		storetest.Empty(sub, c)
		return c
	}
}

// pool holds the servers of this package's tests, in memory if the system has /dev/shm. Each
// database is used by one shelf or test. Databases alternate between two servers: a server runs all its databases
// in one thread, which takes nearly three quarters of the time of these tests.
var pool struct {
	sync.Mutex
	servers []*servers.D1Server
	used    int
}

const (
	databases = 128 // of a server
	abreast   = 2   // servers in use at a time
)

// database returns a new, empty database.
func database(tb testing.TB) servers.Hosted {
	tb.Helper()
	if storetest.Mutated() {
		return newTwin(tb)
	}
	pool.Lock()
	defer pool.Unlock()
	n := pool.used % (databases * abreast)
	if n == 0 {
		o := servers.D1Options{Databases: databases}
		if _, err := os.Stat("/dev/shm"); err == nil {
			o.Dir = "/dev/shm"
		}
		for range abreast {
			s, err := servers.StartD1(o)
			servers.Check(tb, err)
			pool.servers = append(pool.servers, s)
		}
	}
	pool.used++
	return pool.servers[len(pool.servers)-1-n%abreast].Hosted(n / abreast)
}

var slow = storetest.Options{Slow: true}

func TestStore(t *testing.T) {
	for name, face := range faces {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open := onShelf(t, face)
			storetest.Run(t, func(sub *testing.T) core.Store { return over(open(sub)) }, storetest.Options{Slow: true, Sampled: true, SecondFace: name == "proxy"})
		})
	}
}

// TestFaults makes the faults above the protocol; TestChaos makes faults of each protocol.
func TestFaults(t *testing.T) {
	onAPI(t, func(t *testing.T, face func(servers.Hosted) Options) {
		open := onShelf(t, face)
		storetest.RunFaults(t, func(sub *testing.T, f *storetest.Fault) core.Store {
			return over(storetest.Faulty(open(sub), f))
		}, slow)
	})
}

// TestSeveralStores: gates hold for all processes and functions of a database.
func TestSeveralStores(t *testing.T) {
	h := database(t)
	storetest.RunSeveral(t, migrated(t, connect(t, faces["api"](h))), migrated(t, connect(t, faces["proxy"](h))))
}

func TestMigrations(t *testing.T) {
	onEachFace(t, func(t *testing.T, face func(servers.Hosted) Options) {
		storetest.RunMigrations(t, store.D1, func(t *testing.T) func() store.Conn {
			h := database(t)
			return func() store.Conn { return connect(t, face(h)) }
		})
	})
}

func TestGuards(t *testing.T) { storetest.Guards(t) }

func BenchmarkStore(b *testing.B) {
	storetest.Bench(b, func(b *testing.B) core.Store {
		return migrated(b, connect(b, faces["proxy"](database(b))))
	})
}

func TestShapes(t *testing.T) {
	storetest.Shapes(t, store.D1, func(t *testing.T) store.Conn { return connect(t, faces["api"](database(t))) })
}
