package hosted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/eventgateway/gateway/store"
)

// maxAnswer bounds how many bytes of an answer are read. Neither the API nor a Worker, which has
// 128 MB of memory, can send a longer one.
const maxAnswer = 128 << 20

// An answer is D1's result of one query. A statement with many rows is sent as several queries,
// so it has several answers.
type answer struct {
	rows    [][]any // with the types of store.Result
	changed int64   // rows inserted, updated or deleted
}

// gather joins the answers of each statement to one result. counts has the number of queries
// for each statement, as encode made them.
func gather(stmts []store.Stmt, counts []int, answers []answer) []store.Result {
	results := make([]store.Result, len(stmts))
	for i, s := range stmts {
		limit := s.ByteLimit() // one limit over all queries of the statement
		for _, a := range answers[:counts[i]] {
			if s.Reads {
				results[i].Rows = append(results[i].Rows, a.rows...)
				results[i].Cut += cut(&limit, a.rows)
			} else {
				results[i].Changed += a.changed
			}
		}
		answers = answers[counts[i]:]
	}
	return results
}

// cut cuts the rows beyond the byte limit and returns how many it cut. The whole answer is in
// memory by then, so the limit bounds only the memory that the results keep.
func cut(limit *store.ByteLimit, rows [][]any) (n int) {
	for _, row := range rows {
		if limit.CutRow(row) {
			n++
		}
	}
	return n
}

// An envelope is the body of each answer of Cloudflare's API, and of the proxy. See
// https://developers.cloudflare.com/api/resources/d1/subresources/database/methods/raw/
type envelope struct {
	Success bool `json:"success"`
	Errors  []struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"errors"`
	Result []struct { // one for each query
		Success *bool `json:"success"` // nil if the answer leaves it out, which counts as true
		Meta    struct {
			Changes json.Number `json:"changes"`
		} `json:"meta"`
		Results struct {
			Rows [][]any `json:"rows"`
		} `json:"results"`
	} `json:"result"`
}

// read reads the answer to n queries and closes its body. A body that ends early means Lost: the
// batch may have taken effect.
func read(resp *http.Response, n int) ([]answer, *failure) {
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, &failure{status: resp.StatusCode, message: err.Error(), class: store.Lost}
	}
	answers, f := parse(resp.StatusCode, body, n)
	if f != nil {
		f.consider(resp.Header)
	}
	return answers, f
}

// parse reads the body of an answer to n queries.
func parse(status int, body []byte, n int) ([]answer, *failure) {
	var e envelope
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber() // a float64 would round integers beyond 2^53
	if err := d.Decode(&e); err != nil || len(e.Errors) == 0 && !e.Success {
		return nil, classify(status, 0, "not an answer of D1: "+excerpt(body))
	}
	// Any of the three signs means a failure. The code and message in the body say more than the
	// status, so they are used if there are any.
	if len(e.Errors) > 0 || !e.Success || status >= 300 {
		code, message := 0, http.StatusText(status)
		if len(e.Errors) > 0 {
			code, message = e.Errors[0].Code, e.Errors[0].Message
		}
		return nil, classify(status, code, message)
	}
	answers, err := e.answers(n)
	if err != nil { // success with results that make no sense: the batch may have taken effect
		return nil, &failure{status: status, message: err.Error(), class: store.Lost}
	}
	return answers, nil
}

// excerpt is the beginning of a body that is not JSON, such as the HTML page of a server in
// between, as one line for an error text.
func excerpt(body []byte) string {
	const most = 200
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(body[:min(len(body), most)]), "")), " ")
	if text == "" {
		return "it is empty"
	}
	return text
}

// answers converts the results of a successful call. It is an error if their number is not n, or
// if one of them is marked as failed: in both cases the server is not D1 as this package knows
// it, and results would go to the wrong statements.
func (e envelope) answers(n int) ([]answer, error) {
	if len(e.Result) != n {
		return nil, fmt.Errorf("%d results for %d statements", len(e.Result), n)
	}
	answers := make([]answer, n)
	for i, r := range e.Result {
		if r.Success != nil && !*r.Success {
			return nil, fmt.Errorf("statement %d has no success, but the batch has", i)
		}
		for _, row := range r.Results.Rows {
			for j := range row {
				var err error
				if row[j], err = value(row[j]); err != nil {
					return nil, err
				}
			}
		}
		answers[i].rows = r.Results.Rows
		if r.Meta.Changes != "" {
			changed, err := value(r.Meta.Changes)
			if err != nil {
				return nil, err
			}
			answers[i].changed = changed.(int64)
		}
	}
	return answers, nil
}

// value converts a column to the types of store.Result: string, int64 or nil. The schema has no
// column of another type, so any other value is an error.
func value(v any) (any, error) {
	switch v := v.(type) {
	case nil, string:
		return v, nil
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		// JavaScript has only floating-point numbers, and may write an integer with an
		// exponent. Up to 2^53 such a number is exact.
		if f, err := v.Float64(); err == nil && f == math.Trunc(f) && math.Abs(f) <= 1<<53 {
			return int64(f), nil
		}
		return nil, fmt.Errorf("a column holds the number %s", v)
	}
	return nil, errors.New("a column holds neither text nor a number")
}

// after reads a Retry-After header, which has seconds or a date. It returns 0 for a header that
// is missing or malformed, and for more than a day of seconds.
func after(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if text == "" {
		return 0
	}
	if t, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(t))
	}
	var n int64
	if _, err := fmt.Sscanf(text, "%d", &n); err != nil || n < 0 || n > 24*60*60 {
		return 0
	}
	return time.Duration(n) * time.Second
}
