package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/sqlite"
)

// A meter is a database connection that counts the bytes of texts in statements and rows.
type meter struct {
	store.Conn
	mu    sync.Mutex
	wrote int // in all batches
	read  int // at most, in one batch
}

func (m *meter) Batch(ctx context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	results, err := m.Conn.Batch(ctx, stmts...)
	m.mu.Lock()
	defer m.mu.Unlock()
	read := 0
	for i, s := range stmts {
		m.wrote += textIn(append(s.Rows, s.Args)...)
		if err == nil {
			read += textIn(results[i].Rows...)
		}
	}
	m.read = max(m.read, read)
	return results, err
}

func textIn(rows ...[]any) (n int) {
	for _, row := range rows {
		for _, v := range row {
			text, _ := v.(string)
			n += len(text)
		}
	}
	return n
}

// counts returns the bytes since its last call.
func (m *meter) counts() (wrote, read int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	wrote, read = m.wrote, m.read
	m.wrote, m.read = 0, 0
	return wrote, read
}

// metered is a store on SQLite whose bytes are counted.
func metered(t *testing.T) (core.Store, *meter) {
	t.Helper()
	conn, err := sqlite.Open(filepath.Join(t.TempDir(), "gateway.db"))
	if err != nil {
		t.Fatal(err)
	}
	m := &meter{Conn: conn}
	s := store.New(m, store.SQLite, core.SystemClock)
	if err := s.Migrate(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, m
}

// A run that loops with a large state writes the state once.
func TestUnchangedStateIsWrittenOnce(t *testing.T) {
	const rounds, large = 20, 300_000
	sink, _ := answering(t, func(n int, w http.ResponseWriter) {
		if n == rounds {
			w.WriteHeader(404)
		}
	})
	s, m := metered(t)
	w := wiredTo(t, s, flow("{name: poll, url: '"+sink+"', result_path: 'null'}, {name: again, type: choice, choices: [{when: $.pad, goto: poll}], default: end}, {name: end, url: '"+sink+"'}", private))
	event := core.ID(post(t, w.url+"/events/shop/order.created", `{"pad": "`+strings.Repeat("x", large)+`"}`).Header.Get("x-gateway-event-id"))
	m.counts()
	w.deliver(t)
	run := runOf(t, s, event, finished)
	if run.Status != core.RunFailed || run.Seq < 2*rounds {
		t.Fatalf("run %+v, want it to fail after %d rounds", run, rounds)
	}
	if wrote, _ := m.counts(); wrote > 2*large {
		t.Errorf("%d rounds with %d bytes of state wrote %d bytes, want the state once", rounds, large, wrote)
	}
}

// A large run is read a page at a time.
func TestInspectLargeRun(t *testing.T) {
	const steps, large, most = 200, 300_000, 8 << 20
	s, m := metered(t)
	w := wiredTo(t, s, flow("{name: a, type: wait, seconds: 3600}"))
	event := w.accept202(t, "order.created")
	run := runOf(t, s, event, always)
	ids := core.NewIDs(core.SystemClock)
	state := []byte(`"` + strings.Repeat("x", large) + `"`)
	for n := range steps {
		step := core.Step{ID: ids.Next(), RunID: run.ID, Epoch: 1, Path: fmt.Sprintf("a#%d", n+2), Name: "a", Type: "wait",
			Status: core.StepSucceeded, State: state, Output: state, StartedAt: run.CreatedAt, FinishedAt: run.CreatedAt}
		next := run
		next.Seq, next.Status = run.Seq+1, core.RunRunning
		made, err := s.Transit(context.Background(), core.Transition{Mark: core.ID(fmt.Sprintf("mark-%d", n)), Seq: run.Seq, Run: next, New: []core.Step{step},
			Entries: []core.Entry{{Seq: next.Seq, At: run.CreatedAt, Epoch: 1, Type: core.EntrySucceeded, Path: step.Path}}})
		if err != nil || !made[0].Made {
			t.Fatal(made, err)
		}
		run = next
	}
	m.counts()
	var paths []string
	entries, query := 0, ""
	for pages := 0; ; pages++ {
		status, body := call(t, "GET", w.url+"/api/workflow-runs/"+string(run.ID)+query, "", "")
		if _, read := m.counts(); status != 200 || len(body) > most+2*large || read > most+2*large {
			t.Fatalf("page %d = %d with %d bytes, for which %d were read at once; want at most %d and one step", pages, status, len(body), read, most)
		}
		var page struct {
			Steps   []struct{ Path string }
			History []struct{ Seq int }
			Next    string
			More    bool `json:"has_more"`
		}
		if err := json.Unmarshal([]byte(body), &page); err != nil {
			t.Fatal(err)
		}
		for _, step := range page.Steps {
			paths = append(paths, step.Path)
		}
		entries += len(page.History)
		if query = "?after=" + url.QueryEscape(page.Next); !page.More {
			break
		}
	}
	if len(paths) != steps+1 || paths[steps] != fmt.Sprintf("a#%d", steps+1) || entries != steps {
		t.Errorf("the pages have %d steps to %q and %d entries, want %d and %d", len(paths), paths[len(paths)-1], entries, steps+1, steps)
	}
}
