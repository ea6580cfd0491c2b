package hosted

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/group"
)

// oddRows are responses in D1's envelope whose results do not fit the query.
var oddRows = map[string]string{
	"no results":           `null`,
	"an empty result":      `{}`,
	"results null":         `{"results": null}`,
	"no rows":              `{"results": {"columns": [], "rows": []}}`,
	"rows null":            `{"results": {"rows": null}}`,
	"a row null":           `{"results": {"rows": [null]}}`,
	"an empty row":         `{"results": {"columns": ["a"], "rows": [[]]}}`,
	"a row of null":        `{"results": {"columns": ["a"], "rows": [[null]]}}`,
	"a short row":          `{"results": {"columns": ["a"], "rows": [["x"], [1]]}}`,
	"a long row":           `{"results": {"rows": [[` + strings.Repeat(`"x",`, 99) + `1]]}}`,
	"a row of numbers":     `{"results": {"rows": [[` + strings.Repeat(`9223372036854775807,`, 99) + `-9223372036854775808]]}}`,
	"huge numbers":         `{"meta": {"changes": 1e308}, "results": {"rows": [[1e308]]}}`,
	"more than an integer": `{"meta": {"changes": 9223372036854775808}, "results": {"rows": []}}`,
	"negative changes":     `{"meta": {"changes": -9223372036854775808}, "results": {"rows": []}}`,
	"rows of objects":      `{"results": {"rows": [{"a": 1}]}}`,
	"rows deeper":          `{"results": {"rows": [[[["x"]]]]}}`,
	"rows as text":         `{"results": {"rows": "x"}}`,
	"results as a list":    `{"results": [{"a": 1}]}`,
	"meta as a list":       `{"meta": [], "results": {"rows": []}}`,
	"success as text":      `{"success": "yes"}`,
	"a list":               `[]`,
	"a number":             `1`,
}

// oddBodies are responses of servers that are not D1.
var oddBodies = map[string]string{
	"nothing": "", "null": "null", "an object": "{}", "a list": "[]", "a number": "1e999", "HTML": "<html><body>Sign in</body></html>",
	"success alone": `{"success": true}`, "result null": `{"success": true, "result": null}`, "result as an object": `{"success": true, "result": {}}`,
	"errors null": `{"success": false, "errors": null}`, "an error null": `{"success": false, "errors": [null]}`, "errors as text": `{"success": false, "errors": "no"}`,
	"a huge code": `{"success": false, "errors": [{"code": 1e99, "message": null}]}`, "success null": `{"success": null, "result": [null]}`,
	"deep nesting": strings.Repeat("[", 1_000_000), "cut": `{"success": true, "result": [{"results": {"rows": [[1,`, "bytes": "\x00\xff\x1f\x8b",
	"two objects": `{} {}`, "control characters": "\x1b[31m\x07",
}

// oddly answers each request with body or, if reply is set, with one reply for each statement.
type oddly struct{ body, reply string }

func (o oddly) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(time.Millisecond) // in virtual time: some methods retry until their deadline
	var asked request
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		return nil, err
	}
	body := o.body
	if o.reply != "" {
		body = `{"success": true, "errors": [], "result": [` + strings.TrimSuffix(strings.Repeat(o.reply+",", len(asked.Batch)), ",") + `]}`
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// panicking is a transport with a defect.
type panicking struct{}

func (panicking) RoundTrip(*http.Request) (*http.Response, error) { panic("not thought of") }

// odd returns a connection to a server that is not D1. It skips the check of the server at Open.
func odd(o oddly) *Conn {
	c := newConn(target{url: "http://d1.example.com/raw", name: "http://d1.example.com", proxy: true}, 4)
	c.client.HTTPClient.Transport = o
	c.line = group.NewLine(1, c.commit)
	return c
}

// filled returns a value of a type with which each method sends a query, and does not return at
// once.
func filled(ctx context.Context, t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch {
	case t == reflect.TypeFor[context.Context]():
		v.Set(reflect.ValueOf(ctx))
	case t == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Now()))
	case t == reflect.TypeFor[core.Lane]():
		v.SetString("handler/a")
	case t.Kind() == reflect.String:
		v.SetString("01JQ0000000000000000000000")
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		v.SetInt(1)
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		v.Set(reflect.Append(v, filled(ctx, t.Elem())))
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			if t.Field(i).IsExported() {
				v.Field(i).Set(filled(ctx, t.Field(i).Type))
			}
		}
	}
	return v
}

// everyMethod calls each method of a store, and returns the errors by name.
func everyMethod(s core.Store) map[string]error {
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	var mu sync.Mutex
	var calls sync.WaitGroup
	errs := map[string]error{}
	all := reflect.TypeFor[core.Store]()
	for i := range all.NumMethod() {
		m := all.Method(i)
		if m.Name == "Close" {
			continue
		}
		call := reflect.ValueOf(s).MethodByName(m.Name)
		var args []reflect.Value
		for j := range m.Type.NumIn() {
			in := m.Type.In(j)
			if m.Type.IsVariadic() && j == m.Type.NumIn()-1 {
				in = in.Elem()
			}
			args = append(args, filled(ctx, in))
		}
		calls.Go(func() {
			err := core.Contain(func() error {
				results := call.Call(args)
				err, _ := results[len(results)-1].Interface().(error)
				return err
			})
			mu.Lock()
			defer mu.Unlock()
			errs[m.Name] = err
		})
	}
	calls.Wait()
	return errs
}

// TestOddRows: no method of a store panics on a response that does not fit its query.
func TestOddRows(t *testing.T) {
	for name, reply := range oddRows {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { survives(t, oddly{reply: reply}) }) })
	}
}

func survives(t *testing.T, o oddly) {
	t.Helper()
	c := odd(o)
	defer c.Close()
	for method, err := range everyMethod(store.New(c, store.D1, core.SystemClock)) {
		if p := (*core.Panic)(nil); errors.As(err, &p) {
			t.Errorf("%s: %v\n%.1500s", method, err, p.Stack)
		}
	}
}

// TestOddBodies: a response that is not from D1 gives an error that says so and shows the
// response.
func TestOddBodies(t *testing.T) {
	for name, body := range oddBodies {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				survives(t, oddly{body: body})
				c := odd(oddly{body: body})
				defer c.Close()
				err := store.ProveAtomic(t.Context(), c)
				if err == nil || !core.IsKind(err, core.Unavailable) {
					t.Fatalf("ProveAtomic = %v, want it to be unavailable", err)
				}
				if text := c.target.opening(err).Error(); !strings.Contains(text, "the database at http://d1.example.com does not answer as D1 does") {
					t.Errorf("opening = %q, want an error that shows the response", text)
				}
			})
		})
	}
}

// TestPanicInTheClient: a panic of the HTTP client becomes an error of the batch, on the
// committing goroutine too.
func TestPanicInTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := odd(oddly{body: "null"})
		defer c.Close()
		c.client.HTTPClient.Transport = panicking{}
		for _, s := range []store.Stmt{{Name: "write", SQL: "DELETE FROM a"}, {Name: "read", SQL: "SELECT b FROM a", Reads: true}} {
			_, err := c.Batch(t.Context(), s)
			if p := (*core.Panic)(nil); !errors.As(err, &p) || !core.IsKind(err, core.Unavailable) {
				t.Errorf("%s: Batch = %v, want a panic that is an error, and unavailable", s.Name, err)
			}
		}
	})
}

func TestColumns(t *testing.T) {
	for sql, want := range map[string]int{
		"SELECT a FROM b": 1,
		"SELECT a, COUNT(*), f(b, c), 'x, FROM' FROM b":                            4,
		"SELECT (SELECT a, b FROM c), d FROM e":                                    2,
		"WITH x AS (SELECT a, b, c FROM d) SELECT from_x, selected FROM x":         2,
		"SELECT 1, 2 UNION ALL SELECT 3, 4":                                        2,
		"SELECT 1, 2 WHERE a = 1, 2":                                               2,
		"UPDATE a SET b = 1, c = 2 WHERE d IN (SELECT e FROM f) RETURNING g, h, i": 3,
		"INSERT INTO a (b, c) SELECT d, e FROM f WHERE g = 1 RETURNING b":          1,
		"SELECT * FROM a":           -1,
		"SELECT a.*, b FROM a":      -1,
		"DELETE FROM a WHERE b = 1": -1,
		"PRAGMA x":                  -1,
		"EXPLAIN SELECT a FROM b":   -1,
		"":                          -1,
	} {
		n, known := columns(sql)
		if !known {
			n = -1
		}
		if n != want {
			t.Errorf("columns(%q) = %d, want %d", sql, n, want)
		}
	}
}
