package load

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/cmd/bench/internal/event"
)

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return strings.TrimPrefix(srv.URL, "http://")
}

func TestRunPostsEveryEventOnce(t *testing.T) {
	for name, rate := range map[string]float64{"closed loop": 0, "open loop": 2000} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			seen := map[int]int{}
			addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				seq, _ := event.Seq(body)
				mu.Lock()
				seen[seq]++
				mu.Unlock()
				w.WriteHeader(http.StatusAccepted)
				_, _ = io.WriteString(w, "Event accepted")
			})
			res, err := Run(t.Context(), Plan{Addr: addr, Path: "/x", Size: 1024, First: 50, Count: 200, Conns: 8, Rate: rate, Timeout: 3 * time.Second})
			if err != nil || res.Err != nil {
				t.Fatalf("Run() = %v, %v", err, res.Err)
			}
			if res.Accepted != 200 || len(res.Latencies()) != 200 || len(seen) != 200 || seen[50] != 1 || seen[249] != 1 {
				t.Errorf("accepted %d, latencies %d, seen %d, want 200 each from 50 to 249", res.Accepted, len(res.Latencies()), len(seen))
			}
		})
	}
}

// TestRunTakesTypesInTurns: an event has the type of its sequence number, in the path.
func TestRunTakesTypesInTurns(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seq, ok := event.Seq(body)
		if want := TypeOf("/x", seq%3); !ok || r.URL.Path != want {
			t.Errorf("event %d was posted to %s, want %s", seq, r.URL.Path, want)
		}
		mu.Lock()
		defer mu.Unlock()
		seen[r.URL.Path]++
	})
	res, err := Run(t.Context(), Plan{Addr: addr, Path: "/x", Types: 3, Size: 1024, First: 50, Count: 30, Conns: 4, Timeout: 3 * time.Second})
	if err != nil || res.Err != nil || res.Accepted != 30 || len(seen) != 3 || seen["/x.1000000002"] != 10 {
		t.Errorf("Run() = %+v, %v, with paths %v, want ten events of each of three types", res, err, seen)
	}
}

// TestRunPostsBatches: the events of a batch are CloudEvents with ids of their own, and all of
// them are answered with the batch.
func TestRunPostsBatches(t *testing.T) {
	var mu sync.Mutex
	seen, ids := map[int]int{}, map[string]int{}
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var batch []struct {
			ID, Specversion, Source, Type string
			Data                          json.RawMessage
		}
		if err := json.NewDecoder(r.Body).Decode(&batch); err != nil || len(batch) != 10 || r.Header.Get("Content-Type") != "application/cloudevents-batch+json" {
			t.Errorf("a request of %d events, %v, as %q", len(batch), err, r.Header.Get("Content-Type"))
		}
		mu.Lock()
		defer mu.Unlock()
		for _, e := range batch {
			seq, ok := event.Seq(e.Data)
			if !ok || len(e.Data) != 1024 || e.Specversion != "1.0" || e.Source == "" || e.Type == "" {
				t.Errorf("an event that is malformed: %+v", e)
			}
			seen[seq]++
			ids[e.ID]++
		}
	})
	res, err := Run(t.Context(), Plan{Addr: addr, Path: "/x", Size: 1024, First: 50, Count: 200, Batch: 10, Conns: 3, Timeout: 3 * time.Second})
	if err != nil || res.Err != nil {
		t.Fatalf("Run() = %v, %v", err, res.Err)
	}
	if res.Accepted != 200 || len(res.Latencies()) != 200 || len(seen) != 200 || len(ids) != 200 || seen[50] != 1 || seen[249] != 1 {
		t.Errorf("accepted %d, latencies %d, seen %d with %d ids, want 200 each from 50 to 249", res.Accepted, len(res.Latencies()), len(seen), len(ids))
	}
}

func TestRunCountsRefusals(t *testing.T) {
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if seq, _ := event.Seq(body); seq%4 == 0 {
			http.Error(w, "full", http.StatusServiceUnavailable)
		}
	})
	res, err := Run(t.Context(), Plan{Addr: addr, Path: "/x", Count: 40, Conns: 4, Timeout: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if res.Accepted != 30 || res.Refused != 10 || res.Broken != 0 || res.Err == nil || !strings.Contains(res.Err.Error(), "503") {
		t.Errorf("accepted %d, refused %d, broken %d, error %v, want 30, 10, 0 and a 503", res.Accepted, res.Refused, res.Broken, res.Err)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	addr := serve(t, func(http.ResponseWriter, *http.Request) {
		cancel()
		<-release
	})
	// Registered after the server, so it runs before the server waits for its handlers.
	t.Cleanup(func() { close(release) })
	res, err := Run(ctx, Plan{Addr: addr, Path: "/x", Count: 10, Conns: 2, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if res.Accepted != 0 || res.Broken != 10 || res.Err == nil {
		t.Errorf("accepted %d, broken %d, error %v, want ten broken events", res.Accepted, res.Broken, res.Err)
	}
}

func TestRunWithoutSystem(t *testing.T) {
	if _, err := Run(t.Context(), Plan{Addr: "127.0.0.1:1", Count: 1, Conns: 1, Timeout: time.Second}); err == nil {
		t.Error("Run() without a listener = nil, want an error")
	}
}

// TestTails: each window has the p99 of the events that were sent in it, without unanswered ones. A last
// window that is not over is left out.
func TestTails(t *testing.T) {
	const second = int64(time.Second)
	r := Result{Start: 5 * second}
	send := func(at, took int64) {
		r.Sent, r.Answered = append(r.Sent, r.Start+at), append(r.Answered, r.Start+at+took)
	}
	for i := range int64(200) {
		send(i*second/200, 1000+i)
		send(second+i*second/200, 5000-i)
	}
	if got := r.Tails(10 * time.Second); len(got) != 1 {
		t.Errorf("Tails of one window that is not over = %v, want one", got)
	}
	send(2*second, 9)
	r.Sent, r.Answered = append(r.Sent, r.Start), append(r.Answered, 0)
	if got := r.Tails(time.Second); len(got) != 2 || got[0] < 1190 || got[0] > 1199 || got[1] < 4990 || got[1] > 5000 {
		t.Errorf("Tails = %v, want about 1198 and 4999", got)
	}
}
