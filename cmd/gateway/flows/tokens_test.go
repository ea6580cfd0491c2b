package flows_test

import (
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

// badTokens are tokens that are no good, by what is wrong with them.
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
	if a := w.ask("POST", "/callback/"+used, `{}`); a.status != http.StatusOK {
		t.Fatalf("callback = %s, want 200", a)
	}
	if err := w.rest(); err != nil {
		t.Fatal(err)
	}
	ran := ask() // and in time, but nobody has looked since
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

// flip writes a token in lower case if it is in upper case, else the other way round.
func flip(token string) string {
	if lower := strings.ToLower(token); lower != token {
		return lower
	}
	return strings.ToUpper(token)
}

// TestBadTokensLookAlike: whoever tries tokens learns nothing, not even by a body that
// would be refused. The database is asked the same of each.
func TestBadTokensLookAlike(t *testing.T) {
	for _, p := range everywhere {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, p, asks)
			tokens := badTokens(t, w)
			asked := &counted{Conn: w.conn}
			w.wrap = func(store.Conn) store.Conn { return asked }
			g := w.begin()
			var first answer
			for _, name := range slices.Sorted(maps.Keys(tokens)) {
				for _, body := range []string{`{}`, ``, `not JSON`} {
					asked.batches = nil
					a := askOf(g, "POST", "/callback/"+tokens[name], body)
					if len(asked.batches) != 1 {
						t.Errorf("%s: %q, want one look", name, asked.batches)
					}
					if first.status == 0 {
						first = a
					}
					if diff := cmp.Diff(first, a, cmp.AllowUnexported(answer{})); diff != "" {
						t.Errorf("%s, body %q (-first +this):\n%s", name, body, diff)
					}
				}
			}
			if want := `404 {"error":"not found"}`; first.String() != want {
				t.Errorf("answer = %s, want %s", first, want)
			}
		})
	}
}

// BenchmarkBadTokens tells the median time that each kind of bad token takes, the kinds
// in turns, so that what disturbs one disturbs all.
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

// TestTokensAreNotKept: the database holds nothing from which a token could be told.
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
