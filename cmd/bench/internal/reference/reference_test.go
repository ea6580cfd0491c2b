package reference

import (
	"context"
	"database/sql"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/cmd/bench/internal/load"
	"github.com/eventgateway/gateway/cmd/bench/internal/sink"
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

func start(t *testing.T, db string, sinkURL string, slots int) *Pipeline {
	t.Helper()
	p, err := Start(Config{Listen: "127.0.0.1:0", DB: db, Sink: sinkURL, Slots: slots, Key: key})
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

func count(t *testing.T, db, query string) (n int) {
	t.Helper()
	conn, err := sql.Open("sqlite", db)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.QueryRow(query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

func TestEveryEventIsDeliveredOnce(t *testing.T) {
	const events = 500
	db := filepath.Join(t.TempDir(), "ref.db")
	s := receive(t, sink.Config{Events: events, Key: key})
	p := start(t, db, s.URL(), 8)
	submit(t, p, 0, events)
	if !s.Wait(t.Context(), events, 3*time.Second) {
		t.Errorf("delivered %d, want %d", s.Unique(), events)
	}
	stop(t, p)
	if got := s.Counts(); got != (sink.Counts{Unique: events}) {
		t.Errorf("Counts() = %+v, want %d unique and nothing else", got, events)
	}
	if n := count(t, db, "SELECT count(*) FROM events"); n != events {
		t.Errorf("events = %d, want %d", n, events)
	}
}

// What was accepted and not delivered when the process ended is delivered by the
// next one.
func TestNothingIsLostOverARestart(t *testing.T) {
	const events = 100
	db := filepath.Join(t.TempDir(), "ref.db")
	hanging := receive(t, sink.Config{Events: events, Hang: true})
	p := start(t, db, hanging.URL(), 4)
	submit(t, p, 0, events)
	if !hanging.Wait(t.Context(), 4, 3*time.Second) {
		t.Fatal("no delivery was under way")
	}
	stop(t, p)
	if n := count(t, db, "SELECT count(*) FROM jobs WHERE due_at IS NOT NULL"); n != events {
		t.Errorf("unfinished jobs = %d, want %d", n, events)
	}

	s := receive(t, sink.Config{Events: events})
	p = start(t, db, s.URL(), 4)
	if !s.Wait(t.Context(), events, 3*time.Second) {
		t.Errorf("delivered %d after the restart, want %d", s.Unique(), events)
	}
	stop(t, p)
}

func TestAFailedDeliveryStaysDue(t *testing.T) {
	db := filepath.Join(t.TempDir(), "ref.db")
	tried := make(chan struct{}, 10)
	p := start(t, db, "http://127.0.0.1:1/", 1)
	p.client.Transport = tell{tried}
	submit(t, p, 0, 2)
	<-tried
	<-tried // the second job is only tried once the first is settled: there is one slot
	stop(t, p)
	if n := count(t, db, "SELECT count(*) FROM jobs WHERE due_at IS NOT NULL"); n != 2 {
		t.Errorf("unfinished jobs = %d, want 2", n)
	}
	if n := count(t, db, "SELECT count(*) FROM attempts WHERE status = 503"); n < 1 {
		t.Errorf("failed attempts = %d, want one at least", n)
	}
}

// tell answers 503 and says that it was asked.
type tell struct{ asked chan<- struct{} }

func (t tell) RoundTrip(*http.Request) (*http.Response, error) {
	t.asked <- struct{}{}
	return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: http.NoBody}, nil
}

func TestIntakeAloneDeliversNothing(t *testing.T) {
	db := filepath.Join(t.TempDir(), "ref.db")
	p := start(t, db, "http://127.0.0.1:1/", 0)
	submit(t, p, 0, 50)
	stop(t, p)
	if n := count(t, db, "SELECT count(*) FROM jobs WHERE due_at IS NOT NULL"); n != 50 {
		t.Errorf("due jobs = %d, want 50", n)
	}
}

func TestTheClaimUsesItsIndex(t *testing.T) {
	s, err := open(filepath.Join(t.TempDir(), "ref.db"))
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
