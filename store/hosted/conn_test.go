package hosted

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/infra/test/servers"
	"github.com/eventgateway/gateway/store"
)

var ids = core.NewIDs(core.SystemClock)

const lane = core.Lane("handler/h")

// arrival returns an event with a number of jobs.
func arrival(jobs int) core.Arrival {
	a := core.Arrival{Event: core.Event{ID: ids.Next(), Source: "shop", Type: "order.created", Payload: []byte(`{"order": 1}`),
		ContentType: "application/json", CreatedAt: core.SystemClock().Truncate(time.Millisecond)}}
	for range jobs {
		a.Jobs = append(a.Jobs, core.NewJob{ID: ids.Next(), Lane: lane, MaxAttempts: 3})
	}
	return a
}

// ended returns an outcome of a taken job.
func ended(j core.Job, s core.Status, now time.Time) core.Outcome {
	return core.Outcome{JobID: j.ID, Lease: j.Lease, Status: s, At: now, DueAt: now,
		Attempt: core.Attempt{Number: j.Attempt, StatusCode: 200, Error: "1", Response: "2", Duration: 1500 * time.Millisecond, StartedAt: now}}
}

func query1(t *testing.T, c store.Conn, sql string, args ...any) [][]any {
	t.Helper()
	res, err := c.Batch(context.Background(), store.Stmt{Name: "query", SQL: sql, Args: args, Reads: true})
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return res[0].Rows
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// live makes every call that writes to jobs.
func live(t *testing.T, s core.Store) {
	t.Helper()
	ctx, now := context.Background(), core.SystemClock().Add(time.Second) // after the arrivals below
	a := arrival(8)
	a.Event.DeliveryID, a.Event.Type, a.Jobs[0].Key = "17", "18", "19"
	_, err := s.Accept(ctx, a)
	_, again := s.Accept(ctx, a)
	must(t, err, again)
	jobs, err := s.Take(ctx, now, []core.Quota{{Lane: lane, N: 8, Hold: time.Minute}})
	if err != nil || len(jobs) != 8 {
		t.Fatalf("Take = %d jobs, %v, want 8", len(jobs), err)
	}
	_, err = s.Settle(ctx, ended(jobs[0].Job, core.Completed, now), ended(jobs[1].Job, core.Retryable, now),
		ended(jobs[2].Job, core.Dead, now), ended(jobs[3].Job, core.Dead, now))
	must(t, err, s.Release(ctx, now, jobs[4].Job))
	_, recovered := s.Recover(ctx, now, []core.Lane{lane})
	_, one := s.Retry(ctx, now, jobs[2].ID, "")
	_, all := s.Retry(ctx, now, "", lane)
	must(t, recovered, one, all)
}

// TestTypes: D1 binds every JSON number as REAL. The stored values must have the types of their
// columns all the same.
func TestTypes(t *testing.T) {
	t.Parallel()
	onEachFace(t, func(t *testing.T, face func(servers.Hosted) Options) {
		c := connect(t, face(database(t)))
		live(t, migrated(t, c))
		for _, table := range []string{"events", "jobs", "attempts", "schema_steps", "gates"} {
			columns := query1(t, c, "SELECT name, type FROM pragma_table_info(?)", table)
			if len(columns) < 2 {
				t.Fatalf("%s has the columns %v", table, columns)
			}
			for _, col := range columns {
				name, want := col[0].(string), strings.ToLower(col[1].(string))
				for _, row := range query1(t, c, "SELECT DISTINCT typeof("+name+") AS type FROM "+table) {
					if row[0] != want && row[0] != "null" {
						t.Errorf("%s.%s holds %v, want %s", table, name, row[0], want)
					}
				}
			}
		}
	})
}

// TestOneRequestEach: each call of a store is one request, because the API permits 1,200 requests
// in five minutes.
func TestOneRequestEach(t *testing.T) {
	t.Parallel()
	c := connect(t, faces["api"](database(t)))
	s, ctx, now := migrated(t, c), context.Background(), core.SystemClock()
	var jobs []core.TakenJob
	steps := []struct {
		name string
		do   func() error
	}{
		{"Accept", func() error { _, err := s.Accept(ctx, arrival(20)); return err }},
		{"Due", func() error { _, err := s.Due(ctx, []core.Lane{lane, "handler/other"}); return err }},
		{"Take", func() (err error) {
			jobs, err = s.Take(ctx, now.Add(time.Second), []core.Quota{{Lane: lane, N: 20, Hold: time.Minute}, {Lane: "handler/other", N: 1, Hold: time.Minute}})
			return err
		}},
		{"Settle", func() error {
			var all []core.Outcome
			for _, j := range jobs {
				all = append(all, ended(j.Job, core.Completed, now))
			}
			settled, err := s.Settle(ctx, all...)
			if len(all) != 20 || len(settled.Lost) > 0 {
				t.Errorf("settled %d jobs, lost %v, want 20 and none", len(all), settled.Lost)
			}
			return err
		}},
	}
	for _, step := range steps {
		before := c.Requests()
		must(t, step.do())
		if n := c.Requests() - before; n != 1 {
			t.Errorf("%s sent %d requests, want 1", step.name, n)
		}
	}
}

// TestWaitingBatchesJoin: batches that wait during a request share the next request.
func TestWaitingBatchesJoin(t *testing.T) {
	t.Parallel()
	h := database(t)
	faults := servers.NewFaults(t, h.Endpoint)
	c := connect(t, Options{Endpoint: faults.URL, APIToken: h.Token})
	s := migrated(t, c)
	before := c.Requests()
	faults.Once(servers.Stall(300*time.Millisecond), servers.Stall(300*time.Millisecond))
	const callers = 60
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			if _, err := s.Accept(context.Background(), arrival(1)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := c.Requests() - before; n > callers/4 {
		t.Errorf("%d callers made %d requests", callers, n)
	}
	if got := query1(t, c, "SELECT COUNT(*) AS n FROM jobs"); got[0][0] != int64(callers) {
		t.Errorf("%v jobs, want %d", got, callers)
	}
}

// TestBadBatchFailsAlone: a batch that fails does not affect other batches in the same request.
func TestBadBatchFailsAlone(t *testing.T) {
	t.Parallel()
	h := database(t)
	faults := servers.NewFaults(t, h.Endpoint)
	c := connect(t, Options{Endpoint: faults.URL, APIToken: h.Token, MaxConnections: 1})
	must(t, writes(c, store.Stmt{Name: "create", SQL: "CREATE TABLE t (n INTEGER PRIMARY KEY)"}))
	faults.Once(servers.Stall(200 * time.Millisecond))
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			sql := "INSERT INTO t VALUES (?)"
			if i == 7 {
				sql = "INSERT INTO t VALUES (?" // a syntax error
			}
			err := writes(c, store.Stmt{Name: "insert", SQL: sql, Args: []any{int64(i)}})
			if (err != nil) != (i == 7) || err != nil && (core.IsKind(err, core.Unavailable) || !strings.HasPrefix(err.Error(), "insert: ")) {
				t.Errorf("insert %d = %v", i, err)
			}
		})
	}
	all.Wait()
	if got := query1(t, c, "SELECT COUNT(*) AS n FROM t"); got[0][0] != int64(9) {
		t.Errorf("%v rows, want 9", got)
	}
}

func writes(c store.Conn, stmts ...store.Stmt) error {
	_, err := c.Batch(context.Background(), stmts...)
	return err
}

// TestTooLarge: a payload above the limit is refused before it is sent. A payload at the limit
// passes even with the longest headers and ids.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	c := connect(t, faces["proxy"](database(t)))
	s, ctx := migrated(t, c), context.Background()
	long := strings.Repeat("x", 255)
	a := arrival(1)
	a.Event.Source, a.Event.Type, a.Event.ContentType, a.Event.DeliveryID = long, long, long, long
	a.Event.Headers = map[string]string{"x": strings.Repeat("h", 40_000)}
	a.Event.Payload = []byte(strings.Repeat(`"`, MaxPayload))
	_, err := s.Accept(ctx, a)
	must(t, err)
	jobs, err := s.Take(ctx, core.SystemClock(), []core.Quota{{Lane: lane, N: 1, Hold: time.Minute}})
	if err != nil || len(jobs) != 1 || !slices.Equal(jobs[0].Event.Payload, a.Event.Payload) {
		t.Errorf("Take = %d jobs, %v, want the one with its payload", len(jobs), err)
	}
	before := c.Requests()
	a = arrival(1)
	a.Event.Payload = []byte(strings.Repeat("x", MaxRow))
	if _, err := s.Accept(ctx, a); !core.IsKind(err, core.TooLarge) {
		t.Errorf("Accept of %d bytes = %.200v, want it refused as too large", MaxRow, err)
	}
	for name, st := range map[string]store.Stmt{
		"too many parameters": {Name: "many", SQL: "SELECT 1", Args: make([]any, 101)},
		"too much SQL":        {Name: "long", SQL: "SELECT 1" + strings.Repeat(" ", 100_000)},
		"another text":        {Name: "bytes", SQL: "SELECT ?", Args: []any{"\xff"}},
		"another type":        {Name: "float", SQL: "SELECT ?", Args: []any{1.5}},
	} {
		if err := writes(c, st); err == nil || core.IsKind(err, core.Unavailable) {
			t.Errorf("%s = %v, want an error", name, err)
		}
	}
	if n := c.Requests() - before; n > 0 {
		t.Errorf("%d requests were sent for batches beyond the limits of D1", n)
	}
	if err := writes(c, store.Stmt{Name: "hundred", SQL: "SELECT COALESCE(?" + strings.Repeat(", ?", 99) + ")", Args: make([]any, 100), Reads: true}); err != nil {
		t.Errorf("100 parameters = %v", err)
	}
}

// TestPauses: after status 429 and after an overload, no request is sent until the pause is over.
func TestPauses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		after  string
		body   string
		want   time.Duration
	}{
		"rate limit": {429, "300", `{"success":false,"errors":[{"code":971,"message":"throttled"}]}`, 5 * time.Minute},
		"overload":   {503, "20", servers.Overloaded, 20 * time.Second},
		"overloaded": {400, "", servers.Overloaded, firstHold},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := connect(t, faces["api"](database(t)))
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Retry-After", c.after)
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.body)
			}))
			defer s.Close()
			conn.target.url = s.URL
			before := conn.Requests()
			for range 3 {
				_, err := conn.Batch(context.Background(), store.Stmt{Name: "ask", SQL: "SELECT 1", Reads: true})
				wait, refused := retryAfter(err)
				if !refused || wait <= 0 || wait > c.want {
					t.Errorf("Batch = %v, after %v, want unavailable for %v", err, wait, c.want)
				}
			}
			if n := conn.Requests() - before; n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
}

func TestClosed(t *testing.T) {
	t.Parallel()
	c := connect(t, faces["api"](database(t)))
	must(t, c.Close(), c.Close())
	for _, reads := range []bool{true, false} {
		if _, err := c.Batch(context.Background(), store.Stmt{Name: "ask", SQL: "SELECT 1", Reads: reads}); !core.IsKind(err, core.Unavailable) {
			t.Errorf("Batch after Close = %v, want unavailable", err)
		}
	}
}

func TestRowsOfNothing(t *testing.T) {
	t.Parallel()
	c := connect(t, faces["proxy"](database(t)))
	before := c.Requests()
	res, err := c.Batch(context.Background(), store.Stmt{Name: "none", SQL: "SELECT 1", Rows: [][]any{}, Reads: true})
	if err != nil || len(res) != 1 || len(res[0].Rows) > 0 || c.Requests() != before {
		t.Errorf("Batch = %v, %v and %d requests, want nothing", res, err, c.Requests()-before)
	}
}
