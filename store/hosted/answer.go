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

// maxAnswer bounds what is read of an answer, in bytes: more than a Worker or the
// API can send.
const maxAnswer = 128 << 20

// An answer is what D1 returned for one statement.
type answer struct {
	rows    [][]any
	changed int64
}

// gather joins answers that belong to one statement.
func gather(stmts []store.Stmt, counts []int, answers []answer) []store.Result {
	results := make([]store.Result, len(stmts))
	for i, s := range stmts {
		limit := s.ByteLimit()
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

// cut cuts the rows beyond the byte limit, and returns how many.
func cut(limit *store.ByteLimit, rows [][]any) (n int) {
	for _, row := range rows {
		if limit.CutRow(row) {
			n++
		}
	}
	return n
}

// An envelope is what every call of Cloudflare's API answers.
type envelope struct {
	Success bool `json:"success"`
	Errors  []struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"errors"`
	Result []struct {
		Success *bool `json:"success"`
		Meta    struct {
			Changes json.Number `json:"changes"`
		} `json:"meta"`
		Results struct {
			Rows [][]any `json:"rows"`
		} `json:"results"`
	} `json:"result"`
}

// read reads the answer to n statements.
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

// parse reads the body of an answer to n statements.
func parse(status int, body []byte, n int) ([]answer, *failure) {
	var e envelope
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&e); err != nil || len(e.Errors) == 0 && !e.Success {
		return nil, classify(status, 0, "not an answer of D1: "+excerpt(body))
	}
	if len(e.Errors) > 0 || !e.Success || status >= 300 {
		code, message := 0, http.StatusText(status)
		if len(e.Errors) > 0 {
			code, message = e.Errors[0].Code, e.Errors[0].Message
		}
		return nil, classify(status, code, message)
	}
	answers, err := e.answers(n)
	if err != nil { // it may have taken effect
		return nil, &failure{status: status, message: err.Error(), class: store.Lost}
	}
	return answers, nil
}

// excerpt is the beginning of something that should have been JSON.
func excerpt(body []byte) string {
	const most = 200
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(body[:min(len(body), most)]), "")), " ")
	if text == "" {
		return "it is empty"
	}
	return text
}

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

// value is a column as store.Result has it.
func value(v any) (any, error) {
	switch v := v.(type) {
	case nil, string:
		return v, nil
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		// JavaScript has one kind of number, and may write a whole one in another way.
		if f, err := v.Float64(); err == nil && f == math.Trunc(f) && math.Abs(f) <= 1<<53 {
			return int64(f), nil
		}
		return nil, fmt.Errorf("a column holds the number %s", v)
	}
	return nil, errors.New("a column holds neither text nor a number")
}

// after reads a Retry-After header: seconds or a date.
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
