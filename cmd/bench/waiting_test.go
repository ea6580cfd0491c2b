package main

import (
	"database/sql"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/cmd/bench/internal/event"
	"github.com/eventgateway/gateway/cmd/bench/internal/server"
	"github.com/eventgateway/gateway/cmd/bench/internal/sink"
)

// backlogRows selects all that a stored backlog consists of, one text a job. Times are compared
// with the time at which the event came in.
const backlogRows = `SELECT e.source || ' ' || e.type || ' ' || e.content_type || e.headers || coalesce(e.delivery_id, '-') || e.encoding
	|| ' payload ' || e.payload || ' job ' || j.lane || ' ' || j.status || j.attempt || ' of ' || j.max_attempts || coalesce(j.job_key, '-') || coalesce(j.lease, '-')
	|| j.last_error || coalesce(j.finished_at, '-') || ' due ' || coalesce(j.due_at - e.created_at, '-') || coalesce(j.scheduled_at - e.created_at, '-')
	|| ' created ' || (j.created_at - e.created_at) || j.earlier || ' line ' || coalesce(j.line, '-')
	|| ' slot ' || coalesce((SELECT slot || ' ' || reached || ' ' || stopped_at FROM line_slots AS s WHERE s.line = j.line AND s.job_id = j.id), '-')
	|| ' place ' || coalesce((SELECT place FROM line_places AS p WHERE p.line = j.line AND p.job_id = j.id), '-')
	FROM jobs AS j JOIN events AS e ON e.id = j.event_id WHERE j.status <> 'running' ORDER BY j.id`

// TestBacklogAsTheGatewayStoresIt: a backlog has the rows that the gateway makes of the same events.
func TestBacklogAsTheGatewayStoresIt(t *testing.T) {
	b := benchOnSQLite(t)
	const jobs, keys, size = 8, 3, 200
	for _, key := range []string{backlogKey, ""} {
		filled := placeWith(t, b, key)
		if err := b.made(t.Context(), filled); err != nil {
			t.Fatal(err)
		}
		backlog := server.Backlog{Jobs: jobs, Bodies: jobs, Size: size}
		if key != "" {
			backlog.Keys = keys
		}
		if err := filled.database.PileBacklog(t.Context(), backlog); err != nil {
			t.Fatal(err)
		}
		got := readRows(t, filled.database)
		for _, row := range got {
			_, payload, _ := strings.Cut(row, " payload ")
			payload, _, _ = strings.Cut(payload, " job ")
			if len(payload) != size {
				t.Errorf("a body has %d bytes, want %d: %s", len(payload), size, payload)
			}
		}
		if want := posted(t, b, key, bodies(got)); !slices.Equal(got, want) {
			t.Errorf("key %q: the rows are\n%s\nthe gateway stores\n%s", key, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// bodies returns the bodies of the events in rows.
func bodies(rows []string) (list []string) {
	for _, row := range rows {
		_, payload, _ := strings.Cut(row, " payload ")
		payload, _, _ = strings.Cut(payload, " job ")
		list = append(list, payload)
	}
	return list
}

// posted returns the rows that the gateway makes of events. Its only slot has another event, whose
// delivery is never answered, and whose job is running.
func posted(t *testing.T, b *bench, key string, bodies []string) []string {
	p := placeWith(t, b, key)
	r, err := launch(t.Context(), *p, sink.Config{Events: 1}, intakeOnly)
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	defer func() {
		if !stopped {
			_ = r.stop()
		}
	}()
	for i, body := range slices.Concat([]string{string(event.Body(event.MinSize))}, bodies) {
		res, err := http.Post(r.url()+postPath, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode/100 != 2 {
			t.Fatalf("event %d: status %d", i, res.StatusCode)
		}
		if i == 0 && !r.sink.Wait(t.Context(), 1, 10*time.Second) {
			t.Fatal("the first event was not delivered")
		}
	}
	rows := readRows(t, p.database)
	stopped = true
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestBacklogIsDelivered: the gateway delivers a whole backlog, of one key and of several.
func TestBacklogIsDelivered(t *testing.T) {
	b := benchOnSQLite(t)
	for _, keys := range []int{1, 7} {
		w := backlogRun{Backlog: server.Backlog{Jobs: 50, Keys: keys, Bodies: 50, Size: bodySize}, warm: 5}
		f, err := b.deliver(t.Context(), b.systems[0], w)
		if err != nil || len(f.delivered) != 45 || b.report.faults.any() {
			t.Errorf("%d keys: %d deliveries, %v, %s, want 45", keys, len(f.delivered), err, b.report.faults)
		}
	}
}

// benchOnSQLite returns a bench in a folder on disk that measures the gateway.
func benchOnSQLite(t *testing.T) *bench {
	if testing.Short() {
		t.Skip("the gateway is built")
	}
	o, err := parse([]string{"-quick", "-gateway", builtGateway(t), "-dir", t.TempDir()}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	b, err := newBench(t.Context(), o, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.close)
	leave, err := b.enter(t.Context(), server.SQLite, server.Disk)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := leave(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func placeWith(t *testing.T, b *bench, key string) *place {
	p, err := b.place(b.systems[0])
	if err != nil {
		t.Fatal(err)
	}
	p.key = key
	t.Cleanup(func() { _ = p.close() })
	return p
}

func readRows(t *testing.T, d *server.Database) (list []string) {
	db, err := sql.Open("sqlite", d.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), backlogRows)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var row string
		if err := rows.Scan(&row); err != nil {
			t.Fatal(err)
		}
		list = append(list, row)
	}
	if len(list) == 0 || rows.Err() != nil {
		t.Fatal(fmt.Errorf("%d rows: %w", len(list), rows.Err()))
	}
	return list
}
