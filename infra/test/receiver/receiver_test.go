package receiver_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
)

// post posts a body, with attempt 7 of job j in the headers.
func post(t *testing.T, url, body string) (int, error) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("X-Gateway-Attempt", "7")
	q.Header.Set("X-Gateway-Job-Id", "j")
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, errors.Join(err, resp.Body.Close())
}

// TestRecord: every delivery is recorded once, with its parts, and answered by the script of
// its path. Otherwise the end-to-end tests would miss lost and repeated deliveries.
func TestRecord(t *testing.T) {
	t.Parallel()
	r := receiver.New(t)
	r.On("/a", receiver.Failing(1))
	for i, want := range []int{500, 200, 200} {
		if got, err := post(t, r.URL()+"/a?q=1", strconv.Itoa(i)); got != want || err != nil {
			t.Errorf("answer %d = %d, %v, want %d", i+1, got, err, want)
		}
	}
	ds := r.At("/a")
	if len(ds) != 3 {
		t.Fatalf("deliveries = %+v, want three", ds)
	}
	if d := ds[1]; d.Body != "1" || d.Attempt() != 7 || d.Job() != "j" || d.Query != "q=1" || d.Method != "POST" || d.Number("X-None") != 0 {
		t.Errorf("second delivery = %+v, want all parts of the request", d)
	}
	if ds := r.At("/b"); len(ds) != 0 {
		t.Errorf("deliveries to another path = %+v, want none", ds)
	}
	r.On("/a", receiver.Failing(1)) // counts from 1 again
	if got, err := post(t, r.URL()+"/a", ""); got != 500 || err != nil {
		t.Errorf("answer of a new script = %d, %v, want 500", got, err)
	}
	var tapped []string
	r.Tap(func(d receiver.Delivery) { tapped = append(tapped, d.Path) })
	if _, err := post(t, r.URL()+"/c", ""); err != nil {
		t.Error(err)
	}
	if len(tapped) != 1 || len(r.All()) != 4 {
		t.Errorf("deliveries passed on = %v, recorded = %d, want one to /c, and the four before", tapped, len(r.All()))
	}
}

// TestAwait: Await returns once the delivery is there, long before its limit.
func TestAwait(t *testing.T) {
	t.Parallel()
	r := receiver.New(t)
	go func() {
		for range 2 {
			_, _ = post(t, r.URL()+"/a", "")
		}
	}()
	began := time.Now()
	if ds := r.Await(t, time.Minute, "/a", 2); len(ds) != 2 || time.Since(began) > 30*time.Second {
		t.Errorf("deliveries = %d after %v, want 2 at once", len(ds), time.Since(began))
	}
}

// TestHalfRequest: a request that breaks off is not recorded. A gateway that is killed during
// a delivery leaves such requests, and they are no repeats.
func TestHalfRequest(t *testing.T) {
	t.Parallel()
	r := receiver.New(t)
	c, err := net.Dial("tcp", strings.TrimPrefix(r.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhalf"); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if _, err := post(t, r.URL()+"/a", "whole"); err != nil {
		t.Fatal(err)
	}
	if ds := r.At("/a"); len(ds) != 1 || ds[0].Body != "whole" {
		t.Errorf("deliveries = %+v, want the whole request alone", ds)
	}
}

// TestNoAnswer: a hanging delivery is recorded, and ends with the test. A reset connection is
// a reset for the client, not an answer.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	t.Run("hangs", func(t *testing.T) {
		r := receiver.New(t)
		r.On("/a", r.Hanging())
		go func() { _, _ = post(t, r.URL()+"/a", "") }()
		r.Await(t, 10*time.Second, "/a", 1)
	})
	url := receiver.Serve(t, func(_ receiver.Delivery, w http.ResponseWriter, _ *http.Request) { receiver.Reset(w) })
	if status, err := post(t, url, ""); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("answer = %d, %v, want a reset connection", status, err)
	}
}
