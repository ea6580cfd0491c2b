package flows_test

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
)

const asks = `
workflows:
  asks:
    source: shop
    steps:
      - {name: ask, type: callback, url: http://receiver/ask, callback_timeout: 3600}
`

// badTokens returns invalid tokens, by their mistake.
func badTokens(t testing.TB, w *world) map[string]string {
	t.Helper()
	ask := func() string {
		w.accept("order", `{}`)
		if err := w.rest(); err != nil {
			t.Fatal(err)
		}
		return w.receiver.token("ask")
	}
	expired := ask()
	w.clock.move(2 * time.Hour)
	used := ask()
	if a := w.ask("POST", "/callback/"+used, `"used"`); a.status != http.StatusOK {
		t.Fatalf("callback = %s, want 200", a)
	}
	if err := w.rest(); err != nil {
		t.Fatal(err)
	}
	ran := ask() // the run got it in time, but no process has looked since
	w.clock.move(2 * time.Hour)
	return map[string]string{
		"unknown":            strings.Repeat("AB34", 13),
		"malformed":          "x",
		"malformed and long": strings.Repeat("x", 5000),
		"malformed and odd":  "%00%ff%2e%2e",
		"expired":            expired,
		"expired unseen":     ran,
		"used":               used,
		"in other letters":   flip(ran),
	}
}

// flip returns a token in lower case if it is in upper case, otherwise in upper case.
func flip(token string) string {
	if lower := strings.ToLower(token); lower != token {
		return lower
	}
	return strings.ToUpper(token)
}

// TestBadTokensLookAlike: a caller that tries tokens learns nothing. A readable body is
// answered with 404 after one look into the database, for any mistake in the token. Any other
// body is answered with 400 without a look, also with a good token.
func TestBadTokensLookAlike(t *testing.T) {
	for _, p := range everywhere {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, p, asks)
			tokens := badTokens(t, w)
			w.accept("order", `{}`)
			if err := w.rest(); err != nil {
				t.Fatal(err)
			}
			good := w.receiver.token("ask")
			asked := &counted{Conn: w.conn}
			w.wrap = func(store.Conn) store.Conn { return asked }
			g := w.begin()
			expect := func(name, token, body, want string, looks int, first *answer) {
				asked.batches = nil
				a := askOf(g, "POST", "/callback/"+token, body)
				if len(asked.batches) != looks {
					t.Errorf("%s, body %q: %q, want %d looks", name, body, asked.batches, looks)
				}
				if a.String() != want {
					t.Errorf("%s, body %q: %s, want %s", name, body, a, want)
				}
				if first.status == 0 {
					*first = a
				}
				if diff := cmp.Diff(*first, a, cmp.AllowUnexported(answer{})); diff != "" {
					t.Errorf("%s, body %q (-first +this):\n%s", name, body, diff)
				}
			}
			var unreadable, unknown answer
			expectRefused := func(name, token string) {
				expect(name, token, `not JSON`, `400 {"error":"the body must be JSON, or empty"}`, 0, &unreadable)
			}
			expectRefused("good", good)
			for _, name := range slices.Sorted(maps.Keys(tokens)) {
				for _, body := range []string{`{}`, ``} {
					expect(name, tokens[name], body, `404 {"error":"not found"}`, 1, &unknown)
				}
				expectRefused(name, tokens[name])
			}
			if a := askOf(g, "POST", "/callback/"+good, `{}`); a.status != http.StatusOK {
				t.Errorf("good, after a refusal: %s, want 200", a)
			}
		})
	}
}

// forgetful is a connection that loses the answers of batches that change a run.
type forgetful struct {
	store.Conn
	on bool
}

func (f *forgetful) Batch(ctx context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	results, err := f.Conn.Batch(ctx, stmts...)
	if f.on && slices.ContainsFunc(stmts, func(s store.Stmt) bool { return s.Name == "insert_history" }) {
		return nil, core.Refuse(core.Unavailable, "the answer got lost")
	}
	return results, err
}

// TestCallbackOfUnknownOutcome: a callback was stored, but answered with 503. Its repeat is
// answered with 200, and another body with 404.
func TestCallbackOfUnknownOutcome(t *testing.T) {
	for _, p := range everywhere {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, p, asks)
			run := w.accept("order", `{}`)[0]
			if err := w.rest(); err != nil {
				t.Fatal(err)
			}
			token := w.receiver.token("ask")
			conn := &forgetful{Conn: w.conn, on: true}
			w.wrap = func(store.Conn) store.Conn { return conn }
			g := w.begin()
			expect := func(body, want string) {
				t.Helper()
				if a := askOf(g, "POST", "/callback/"+token, body); a.String() != want {
					t.Errorf("callback %s = %s, want %s", body, a, want)
				}
			}
			expect(`{"ok": 1}`, `503 {"error":"the answer got lost"}`)
			conn.on = false
			expect(`{"ok": 2}`, `404 {"error":"not found"}`)
			expect(`{"ok": 1}`, `200 {"status":"ok","message":"callback received"}`)
			if r, err := w.store.Run(t.Context(), run); err != nil || r.Status != core.RunCompleted || string(r.Output) != `{"ok": 1}` {
				t.Errorf("run is %s with %s, %v; want it completed with the first body", r.Status, r.Output, err)
			}
		})
	}
}

// BenchmarkBadTokens measures the median time of each kind of bad token. The kinds take turns,
// so that a disturbance affects all of them.
func BenchmarkBadTokens(b *testing.B) {
	w := newWorld(b, onSQLite, asks)
	tokens := badTokens(b, w)
	for _, kind := range []string{"malformed and long", "malformed and odd", "expired unseen", "in other letters"} {
		delete(tokens, kind)
	}
	g := w.begin()
	took := map[string][]time.Duration{}
	for b.Loop() {
		for name, token := range tokens {
			start := time.Now()
			a := askOf(g, "POST", "/callback/"+token, `{}`)
			took[name] = append(took[name], time.Since(start))
			if a.status != http.StatusNotFound {
				b.Fatalf("%s: %s, want 404", name, a)
			}
		}
	}
	for name, all := range took {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Nanoseconds()), name+"-p50-ns")
	}
}

// TestTokensAreNotKept: no token can be computed from the database.
func TestTokensAreNotKept(t *testing.T) {
	w := newWorld(t, onSQLite, asks)
	w.accept("order", `{}`)
	if err := w.rest(); err != nil {
		t.Fatal(err)
	}
	token := w.receiver.token("ask")
	if len(token) != 52 {
		t.Fatalf("token %q has %d characters, want 52", token, len(token))
	}
	for _, table := range tables {
		for _, column := range w.query("SELECT name AS n FROM pragma_table_info(?)", table) {
			name := column[0].(string)
			sql := "SELECT COUNT(*) AS n FROM " + table + " WHERE instr(lower(" + name + "), ?) > 0"
			if n := w.query(sql, strings.ToLower(token))[0][0]; n != int64(0) {
				t.Errorf("%s.%s holds the token", table, name)
			}
		}
	}
	if n := w.query("SELECT COUNT(*) AS n FROM callbacks")[0][0]; n != int64(1) {
		t.Errorf("%v tokens are stored, want one", n)
	}
	if r := w.runs()[0]; r.Status != core.RunRunning {
		t.Errorf("run is %s, want running", r.Status)
	}
}
