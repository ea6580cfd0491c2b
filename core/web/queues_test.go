package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

const someID = "01J00000000000000000000001"

// Each request of a consumer or operator calls the service with the parameters of the request. A
// request that changes messages does so also if its client has disconnected, since the client may
// assume that it succeeded.
func TestParametersReachTheQueues(t *testing.T) {
	for _, tt := range []struct{ method, path, body, want string }{
		{"GET", "messages", "", "receive work 1 0s"},
		{"GET", "messages?wait=30s&batch=100", "", "receive work 100 30s"},
		{"GET", "messages?wait=20&batch=7", "", "receive work 7 20s"},
		{"GET", "messages?wait=500ms", "", "receive work 1 500ms"},
		{"GET", "messages?wait=0", "", "receive work 1 0s"},
		{"POST", "ack", `{"ids": ["a", "b"]}`, "ack work 2 <nil>"},
		{"POST", "ack", `{"ids": [` + strings.Repeat(`"a",`, 999) + `"a"]}`, "ack work 1000 <nil>"},
		{"POST", "ack", `{"ids": [` + strings.Repeat(`"a",`, 1000) + `"a"]}`, ""},
		{"POST", "nack", `{"ids": ["a"]}`, "nack work 1 0s <nil>"},
		{"POST", "nack", `{"ids": ["a"], "delay": "7d"}`, "nack work 1 168h0m0s <nil>"},
		{"POST", "nack", `{"delay": 90, "ids": []}`, "nack work 0 1m30s <nil>"},
		{"POST", "extend", `{"ids": ["a"]}`, "extend work 1 0s <nil>"},
		{"POST", "extend", `{"ids": ["a"], "visibility_timeout": "\u0031ms"}`, "extend work 1 1ms <nil>"},
		{"POST", "extend", `{"ids": ["a"], "visibility_timeout": 604800}`, "extend work 1 168h0m0s <nil>"},
		{"GET", "peek", "", "peek work 10"},
		{"GET", "peek?limit=100", "", "peek work 100"},
		{"GET", "dlq", "", `dlq work "" 10`},
		{"GET", "dlq?limit=1&after=" + strings.ToLower(someID), "", `dlq work "` + someID + `" 1`},
		{"POST", "retry", "", `retry work ""`},
		{"POST", "retry", `{"id": "` + someID + `"}`, `retry work "` + someID + `"`},
		{"POST", "drain", "{}", "drain work"},
	} {
		w := newWorld(t)
		ctx, hangUp := context.WithCancel(t.Context())
		if strings.HasSuffix(tt.want, "<nil>") {
			hangUp()
		}
		r := httptest.NewRequestWithContext(ctx, tt.method, "/api/queues/work/"+tt.path, strings.NewReader(tt.body))
		w.handler().ServeHTTP(httptest.NewRecorder(), r)
		hangUp()
		if got := strings.Join(w.counter.calls, "; "); got != tt.want {
			t.Errorf("%s %s %.40s: reported %q, want %q", tt.method, tt.path, tt.body, got, tt.want)
		}
	}
}

// A request that has a deadline, as all of a function have, waits no longer than leaves
// three seconds for the rest.
func TestWaitsEndBeforeTheirDeadline(t *testing.T) {
	for _, tt := range []struct {
		wait, left time.Duration
		want       string
	}{
		{20 * time.Second, 29 * time.Second, "20s"},
		{30 * time.Second, 29 * time.Second, "26s"},
		{30 * time.Second, 3 * time.Second, "0s"},
		{30 * time.Second, time.Second, "0s"},
		{0, 29 * time.Second, "0s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			ctx, cancel := context.WithTimeout(t.Context(), tt.left)
			defer cancel()
			path := fmt.Sprintf("/api/queues/work/messages?wait=%v", tt.wait)
			w.handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", path, nil))
			if got, want := strings.Join(w.counter.calls, "; "), "receive work 1 "+tt.want; got != want {
				t.Errorf("wait=%v with %v left: reported %q, want %q", tt.wait, tt.left, got, want)
			}
		})
	}
}

// A brokenWriter fails once more than room bytes were written.
type brokenWriter struct {
	http.ResponseWriter
	room int
}

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.room -= len(p); w.room < 0 {
		return 0, errors.New("broken pipe")
	}
	return w.ResponseWriter.Write(p)
}

func TestMessagesThatWereNotHandedOver(t *testing.T) {
	const back = "receive work 3 0s; return work 3"
	for _, tt := range []struct {
		name   string
		writer func(http.ResponseWriter) http.ResponseWriter
		wait   func(ctx context.Context, hangUp func()) error
		want   string
		status int // of the reply, if there is one
	}{
		{name: "all is well", want: "receive work 3 0s", status: 200},
		{name: "the reply breaks off", writer: func(w http.ResponseWriter) http.ResponseWriter { return &brokenWriter{w, 300} }, want: "receive work 3 0s"},
		{name: "the consumer hangs up, and messages come", wait: func(_ context.Context, hangUp func()) error {
			hangUp()
			return nil
		}, want: back},
		{name: "the consumer hangs up before", wait: func(ctx context.Context, hangUp func()) error {
			hangUp()
			return fmt.Errorf("take: %w", ctx.Err())
		}, want: "receive work 3 0s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			ctx, hangUp := context.WithCancel(t.Context())
			defer hangUp()
			if tt.wait != nil {
				w.counter.wait = func(ctx context.Context) error { return tt.wait(ctx, hangUp) }
			}
			recorder := httptest.NewRecorder()
			var writer http.ResponseWriter = recorder
			if tt.writer != nil {
				writer = tt.writer(recorder)
			}
			w.handler().ServeHTTP(writer, httptest.NewRequestWithContext(ctx, "GET", "/api/queues/work/messages?batch=3", nil))
			if got := strings.Join(w.counter.calls, "; "); got != tt.want {
				t.Errorf("reported %q, want %q", got, tt.want)
			}
			if tt.status != 0 && recorder.Code != tt.status {
				t.Errorf("status %d, want %d", recorder.Code, tt.status)
			}
			if log := w.log.String(); log != "" {
				t.Errorf("that a consumer hung up was logged: %s", log)
			}
		})
	}
}

// The same over a connection: the server notices while the consumer waits.
func TestConsumerThatClosesItsConnection(t *testing.T) {
	w := newWorld(t)
	arrived, ended := make(chan struct{}), make(chan error)
	w.counter.wait = func(ctx context.Context) error {
		close(arrived)
		<-ctx.Done()
		ended <- ctx.Err()
		return nil
	}
	c := dial(t, w.serve())
	fmt.Fprintf(c, "GET /api/queues/work/messages?wait=30s HTTP/1.1\r\nHost: gateway\r\n\r\n")
	<-arrived
	c.Close()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the wait ended with %v, want context.Canceled", err)
	}
}

// A poll that ends by its deadline gets a reply: the consumer did not disconnect.
func TestPollOverItsDeadline(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	recorder := httptest.NewRecorder()
	w.handler().ServeHTTP(recorder, httptest.NewRequestWithContext(ctx, "GET", "/api/queues/work/messages", nil))
	got := []string{fmt.Sprint(recorder.Code), recorder.Body.String(), strings.Join(w.counter.calls, "; ")}
	want := []string{"503", `{"error":"Service unavailable"}`, "receive work 1 0s; return work 1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reply, and what the queue was told (-want +got):\n%s", diff)
	}
}

// Any body is either executed as a JSON object of known fields, or refused in JSON.
func FuzzBodies(f *testing.F) {
	for _, seed := range []string{`{"ids": ["a"], "delay": "1s"}`, `{"ids": [], "delay": 1}`, `{"ids":[],}`, `{1:2}`, `{[]:2}`, `{"ids":[]}}`, "{", "", `{"id\u0073":[]}`} {
		f.Add(seed)
	}
	h := newWorld(nil).handler()
	f.Fuzz(func(t *testing.T, body string) {
		got := ask(h, "POST", "/api/queues/work/nack", body)
		var sent struct {
			IDs   []string
			Delay any
		}
		d := json.NewDecoder(strings.NewReader(body))
		d.DisallowUnknownFields()
		if err := d.Decode(&sent); got.Code == 200 && err != nil {
			t.Errorf("%q was carried out, though it is no request: %v", body, err)
		}
		if got.Code != 200 && got.Code != 400 || !json.Valid(got.Body.Bytes()) {
			t.Errorf("%q: %d %s", body, got.Code, got.Body)
		}
	})
}

// TestMessagesThatDoNotFit: messages beyond the bound of a reply go back and keep their attempt. A
// message that fits into no reply becomes dead, so it does not block the others.
func TestMessagesThatDoNotFit(t *testing.T) {
	body := ask(newWorld(t).handler(), "GET", "/api/queues/work/messages?batch=4", "").Body.String()
	first := ask(newWorld(t).handler(), "GET", "/api/queues/work/messages", "").Body.String()
	for _, tt := range []struct {
		room    int
		want    int // messages
		returns string
	}{
		{0, 4, ""},
		{10_000, 4, ""},
		{quotedLength(body) - 1, 3, "; return work 1"},
		{quotedLength(body) / 2, 1, "; return work 3"},
		{quotedLength(first), 1, "; return work 2; bury work 1 too large"},
		{100, 0, "; bury work 4 too large; receive work 4 0s"},
	} {
		w := newWorld(t)
		w.maxReply = tt.room
		reply := ask(w.handler(), "GET", "/api/queues/work/messages?batch=4", "")
		if n := strings.Count(reply.Body.String(), `"receipt"`); n != tt.want || tt.room > 0 && quotedLength(reply.Body.String()) > max(tt.room, 200) {
			t.Errorf("with room for %d: %d messages in %d bytes, want %d: %s", tt.room, n, quotedLength(reply.Body.String()), tt.want, reply.Body)
		}
		if got, want := strings.Join(w.counter.calls, "; "), "receive work 4 0s"+tt.returns; got != want {
			t.Errorf("with room for %d: reported %q, want %q", tt.room, got, want)
		}
		if reply.Code != 200 {
			t.Errorf("with room for %d: %d %s, want 200", tt.room, reply.Code, reply.Body)
		}
	}
}

// quotedLength is how long a text is as one in JSON.
func quotedLength(text string) int {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text)
	return b.Len() - 3 // quotes and a line's end
}
