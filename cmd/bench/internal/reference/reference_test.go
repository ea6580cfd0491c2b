package reference

import (
	"context"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/eventgateway/gateway/cmd/bench/internal/load"
	"github.com/eventgateway/gateway/cmd/bench/internal/server"
	"github.com/eventgateway/gateway/cmd/bench/internal/sink"
	"github.com/eventgateway/gateway/infra/test/servers"
)

var key = []byte("key")

func receive(t *testing.T, cfg sink.Config) *sink.Sink {
	t.Helper()
	s, err := sink.Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// databases makes a fresh one of each kind that can be started here.
var databases = map[string]func(*testing.T) server.Database{
	server.SQLite: sqliteFile,
	server.Postgres: func(t *testing.T) server.Database {
		return server.Database{Driver: server.Postgres, URL: servers.Postgres(t)}
	},
	server.MySQL: func(t *testing.T) server.Database {
		return server.Database{Driver: server.MySQL, URL: servers.MySQL(t)}
	},
	server.Hosted: func(t *testing.T) server.Database {
		d := servers.D1(t)
		return server.Database{Driver: server.Hosted, URL: d.Endpoint, Token: d.Token}
	},
}

func sqliteFile(t *testing.T) server.Database {
	return server.Database{Driver: server.SQLite, URL: filepath.Join(t.TempDir(), "ref.db")}
}

// onEach runs a test on each database. Databases with a server are tested in long runs only.
func onEach(t *testing.T, test func(*testing.T, server.Database)) {
	for _, driver := range slices.Sorted(maps.Keys(databases)) {
		t.Run(driver, func(t *testing.T) {
			if testing.Short() && driver != server.SQLite {
				t.Skip("a server is needed")
			}
			test(t, databases[driver](t))
		})
	}
}

func start(t *testing.T, db server.Database, sinkURL string, slots int) *Pipeline {
	t.Helper()
	return startWith(t, db, Config{Sink: sinkURL, Slots: slots, Committers: 2})
}

func startWith(t *testing.T, db server.Database, c Config) *Pipeline {
	t.Helper()
	c.Listen, c.Driver, c.URL, c.Token, c.Key = "127.0.0.1:0", db.Driver, db.URL, db.Token, key
	p, err := Start(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func stop(t *testing.T, p *Pipeline) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := p.Close(ctx); err != nil {
		t.Errorf("Close() = %v", err)
	}
	select {
	case err := <-p.errs:
		t.Errorf("the pipeline failed: %v", err)
	default:
	}
}

func submit(t *testing.T, p *Pipeline, first, count int) {
	t.Helper()
	res, err := load.Run(t.Context(), load.Plan{
		Addr: p.Addr(), Path: "/events/bench/order.created", Size: 1024, First: first, Count: count, Conns: 16, Timeout: 5 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	if res.Accepted != count {
		t.Fatalf("accepted %d of %d, %v", res.Accepted, count, res.Err)
	}
}

func count(t *testing.T, db server.Database, query string) int {
	t.Helper()
	n, err := db.Count(t.Context(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

const (
	unfinished = "SELECT count(*) AS n FROM jobs WHERE due_at IS NOT NULL"
	patience   = 20 * time.Second
)

func TestEveryEventIsDeliveredOnce(t *testing.T) {
	for name, c := range map[string]Config{"in groups": {Committers: 2}, "a transaction each": {Pool: 4}} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, db server.Database) {
				const events = 200
				s := receive(t, sink.Config{Events: events, Key: key})
				c.Sink, c.Slots = s.URL(), 8
				p := startWith(t, db, c)
				submit(t, p, 0, events)
				if !s.Wait(t.Context(), events, patience) {
					t.Errorf("delivered %d, want %d", s.Unique(), events)
				}
				stop(t, p)
				if got := s.Counts(); got != (sink.Counts{Unique: events}) {
					t.Errorf("Counts() = %+v, want %d unique and nothing else", got, events)
				}
				if n, err := db.Stored(t.Context()); n != events || err != nil {
					t.Errorf("stored events = %d, %v, want %d", n, err, events)
				}
				// The last deliveries may have been answered and not settled when it ended.
				settled := count(t, db, "SELECT count(*) AS n FROM attempts WHERE status = 200 AND attempt = 1")
				if left := count(t, db, unfinished); settled+left != events || left > 8 {
					t.Errorf("%d attempts and %d unfinished jobs of %d", settled, left, events)
				}
			})
		})
	}
}

// An event that was accepted and not delivered when the process ended is delivered by the next
// process.
func TestNothingIsLostOverARestart(t *testing.T) {
	onEach(t, func(t *testing.T, db server.Database) {
		const events = 100
		hanging := receive(t, sink.Config{Events: events, Hang: true})
		p := start(t, db, hanging.URL(), 4)
		submit(t, p, 0, events)
		if !hanging.Wait(t.Context(), 4, patience) {
			t.Fatal("no delivery was under way")
		}
		stop(t, p)
		if n := count(t, db, unfinished); n != events {
			t.Errorf("unfinished jobs = %d, want %d", n, events)
		}

		s := receive(t, sink.Config{Events: events})
		p = start(t, db, s.URL(), 4)
		if !s.Wait(t.Context(), events, patience) {
			t.Errorf("delivered %d after the restart, want %d", s.Unique(), events)
		}
		stop(t, p)
	})
}

func TestAFailedDeliveryStaysDue(t *testing.T) {
	onEach(t, func(t *testing.T, db server.Database) {
		tried := make(chan struct{}, 10)
		p := start(t, db, "http://127.0.0.1:1/", 1)
		p.client.Transport = tell{tried}
		submit(t, p, 0, 2)
		<-tried
		<-tried // the second job is only tried once the first is settled: there is one slot
		stop(t, p)
		if n := count(t, db, unfinished); n != 2 {
			t.Errorf("unfinished jobs = %d, want 2", n)
		}
		if n := count(t, db, "SELECT count(*) AS n FROM attempts WHERE status = 503"); n < 1 {
			t.Errorf("failed attempts = %d, want one at least", n)
		}
	})
}

// tell answers 503 and says that it was asked.
type tell struct{ asked chan<- struct{} }

func (t tell) RoundTrip(*http.Request) (*http.Response, error) {
	t.asked <- struct{}{}
	return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: http.NoBody}, nil
}

func TestIntakeAloneDeliversNothing(t *testing.T) {
	db := sqliteFile(t)
	p := start(t, db, "http://127.0.0.1:1/", 0)
	submit(t, p, 0, 50)
	stop(t, p)
	if n := count(t, db, unfinished); n != 50 {
		t.Errorf("due jobs = %d, want 50", n)
	}
}

// PostgreSQL's plans are made before it knows anything of the tables.
func TestPostgresClaimsByIndexOnNewTables(t *testing.T) {
	if testing.Short() {
		t.Skip("a server is needed")
	}
	s, err := openPostgres(servers.Postgres(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	plan := ""
	for text, args := range map[string][]any{
		postgresClaim:  {int64(0), int64(1), int64(10), int64(2)},
		postgresSettle: settled([]outcome{{status: 200}}, 1),
	} {
		rows, err := s.pool.Query(t.Context(), "EXPLAIN "+text, args...)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		plan += strings.Join(lines, "\n") + "\n"
	}
	for _, want := range []string{"using jobs_due", "Tid Scan on jobs", "using events_pkey", "using jobs_pkey"} {
		if !strings.Contains(plan, want) {
			t.Errorf("plan lacks %q:\n%s", want, plan)
		}
	}
	for _, scan := range []string{"Seq Scan", "Hash", "Merge"} {
		if strings.Contains(plan, scan) {
			t.Errorf("plan has a %s:\n%s", scan, plan)
		}
	}
}

func TestFloorFollowsTheLastClaim(t *testing.T) {
	var f floor
	now := time.UnixMilli(1_000_000)
	f.claimed(999_500)
	f.claimed(999_400) // a retry
	got := []int64{f.from(now), f.from(now.Add(500 * time.Millisecond)), f.from(now.Add(time.Second))}
	if want := []int64{0, 999_500 - margin, 0}; !slices.Equal(got, want) {
		t.Errorf("from() = %v, want %v", got, want)
	}
}

func TestTheClaimUsesItsIndex(t *testing.T) {
	s, err := openSQLite(filepath.Join(t.TempDir(), "ref.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	rows, err := s.conn.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+claimJobs, 1, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var plan []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		plan = append(plan, detail)
	}
	text := strings.Join(plan, "\n")
	if !strings.Contains(text, "jobs_due (due_at<?)") || strings.Contains(text, "SCAN") || strings.Contains(text, "TEMP B-TREE") {
		t.Errorf("plan:\n%s\nwant only searches, and jobs_due", text)
	}
}
