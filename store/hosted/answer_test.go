package hosted

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/store"
)

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		status, code int
		message      string
		want         failure
	}{
		{400, 7500, "UNIQUE constraint failed: jobs.id: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_PRIMARYKEY)", failure{class: store.Rejected}},
		{400, 7500, "no such table: jobs: SQLITE_ERROR", failure{class: store.Mismatched}},
		{500, 7500, "no such table: jobs: SQLITE_ERROR", failure{class: store.Mismatched}},
		{400, 7400, "The request is malformed: either the SQL is missing or it is not valid JSON", failure{class: store.Rejected}},
		{413, 7400, "the body is larger than 16777216 bytes", failure{class: store.Rejected}},
		{400, 7500, "string or blob too big: SQLITE_TOOBIG", failure{class: store.Rejected, tooBig: true}},
		{400, 7500, "database or disk is full: SQLITE_FULL", failure{class: store.Down}},
		{400, 7500, "Exceeded maximum DB size", failure{class: store.Down}},
		{400, 7500, "database is locked: SQLITE_BUSY", failure{class: store.Lost}},
		{400, 7500, "D1 DB reset because its code was updated.", failure{class: store.Lost}},
		{400, 7500, "Internal error while starting up D1 DB storage caused object to be reset.", failure{class: store.Lost}},
		{400, 7500, "Internal error in D1 DB storage caused object to be reset.", failure{class: store.Lost}},
		{400, 7500, "Network connection lost.", failure{class: store.Lost}},
		{503, 7500, "Cannot resolve D1 DB due to transient issue on remote node.", failure{class: store.Lost}},
		{400, 7500, "D1 DB storage operation exceeded timeout which caused object to be reset.", failure{class: store.Lost}},
		{400, 7500, "D1 DB's isolate exceeded its memory limit and was reset.", failure{class: store.Lost}},
		{400, 7500, "D1 DB exceeded its CPU time limit and was reset.", failure{class: store.Lost}},
		{400, 7500, "D1 DB is overloaded. Requests queued for too long.", failure{class: store.Overloaded, wait: firstHold}},
		{503, 7500, "D1 DB is overloaded. Too many requests queued.", failure{class: store.Overloaded, wait: firstHold}},
		{500, 7500, "internal error", failure{class: store.Lost}},
		{502, 0, "not an answer of D1: <html>", failure{class: store.Lost}},
		{200, 0, "not an answer of D1: <html>", failure{class: store.Lost}},
		{429, 971, "Please wait and consider throttling your request speed", failure{class: store.Overloaded, wait: firstHold}},
		{408, 0, "", failure{class: store.Lost}},
		{403, 10000, "Authentication error", failure{class: store.Misconfigured}},
		{400, 6003, "Invalid request headers", failure{class: store.Misconfigured}},
		{401, 0, "not an answer of D1: <html>", failure{class: store.Misconfigured}},
		{404, 7404, "The database x could not be found", failure{class: store.Misconfigured}},
		{308, 0, "", failure{class: store.Misconfigured}},
	} {
		c.want.status, c.want.code, c.want.message = c.status, c.code, c.message
		if got := classify(c.status, c.code, c.message); *got != c.want {
			t.Errorf("classify(%d, %d, %q) = %+v, want %+v", c.status, c.code, c.message, *got, c.want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "1": time.Second, "300": 5 * time.Minute, "-1": 0, "soon": 0,
		"99999999999999999999": 0, "1000000": 0, "Sun, 06 Nov 1994 08:49:37 GMT": 0} {
		if got := after(http.Header{"Retry-After": {text}}); got != want {
			t.Errorf("after(%q) = %v, want %v", text, got, want)
		}
	}
	date := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	if got := after(http.Header{"Retry-After": {date}}); got < 59*time.Minute || got > time.Hour {
		t.Errorf("after(%q) = %v, want an hour", date, got)
	}
}

const good = `{"success":true,"errors":[],"messages":[],"result":[
	{"success":true,"meta":{"changes":0},"results":{"columns":["a","b","c","d"],"rows":[["x",1,null,1700000000000.0],["",-9007199254740991,"0",1e3]]}},
	{"success":true,"meta":{"changes":2},"results":{"columns":[],"rows":[]}}]}`

func TestParse(t *testing.T) {
	got, f := parse(200, []byte(good), 2)
	want := []answer{
		{rows: [][]any{{"x", int64(1), nil, int64(1700000000000)}, {"", int64(-9007199254740991), "0", int64(1000)}}},
		{rows: [][]any{}, changed: 2},
	}
	if f != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("parse = %v, %v, want %v", got, f, want)
	}
	for body, want := range map[string]string{
		good: "2 results for 1 statements",
		`{"success":true,"errors":[],"result":[{"results":{"rows":[[1.5]]}}]}`:            "a column holds the number 1.5",
		`{"success":true,"errors":[],"result":[{"results":{"rows":[[true]]}}]}`:           "neither text nor a number",
		`{"success":true,"errors":[],"result":[{"results":{"rows":[[[1]]]}}]}`:            "neither text nor a number",
		`{"success":true,"errors":[],"result":[{"success":false,"results":{"rows":[]}}]}`: "statement 0 has no success",
		`{"success":true,"errors":[],"result":null}`:                                      "0 results for 1 statements",
		`{"success":true,"errors":[],"result":[{"meta":{"changes":1.5}}]}`:                "holds the number 1.5",
		`{}`:          "not an answer of D1: {}",
		``:            "not an answer of D1: it is empty",
		`{"success":`: "not an answer of D1",
		`[]`:          "not an answer of D1",
		`null`:        "not an answer of D1",
	} {
		if _, f := parse(200, []byte(body), 1); f == nil || f.class != store.Lost || !strings.Contains(f.message, want) {
			t.Errorf("parse(%.60q) = %+v, want another try and %q", body, f, want)
		}
	}
}

// FuzzAnswer: any response is parsed either as a result for each statement, or as an error of a
// known kind.
func FuzzAnswer(f *testing.F) {
	f.Add(200, 2, []byte(good))
	f.Add(400, 1, []byte(`{"success":false,"errors":[{"code":7500,"message":"no such table: x: SQLITE_ERROR"}],"messages":[],"result":[]}`))
	f.Add(502, 1, []byte("<html>Bad gateway</html>"))
	f.Add(200, 1, []byte(`{"success":true,"result":[{"meta":{"changes":null},"results":{"rows":[[1e400,null,"\ud800"]]}}]}`))
	f.Add(0, 0, []byte("{\"success\":true,\"result\":[]}"))
	f.Fuzz(func(t *testing.T, status, n int, body []byte) {
		n = min(max(n, 0), 1000)
		answers, failed := parse(status, body, n)
		if failed != nil {
			if answers != nil || failed.class < store.Rejected || failed.class > store.Misconfigured || failed.Error() == "" {
				t.Errorf("parse = %v, %+v", answers, failed)
			}
			return
		}
		if len(answers) != n {
			t.Errorf("parse = %d answers, want %d", len(answers), n)
		}
		for _, a := range answers {
			for _, row := range a.rows {
				for _, v := range row {
					switch v.(type) {
					case nil, string, int64:
					default:
						t.Errorf("parse brought a %T", v)
					}
				}
			}
		}
	})
}
