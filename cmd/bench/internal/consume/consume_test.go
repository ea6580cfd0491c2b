package consume

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/cmd/bench/internal/event"
)

// shelf is a queue in memory, and the consumer of that queue.
type shelf struct {
	mu      sync.Mutex
	waiting []Message
	held    map[string]bool
	again   int // messages that are handed out twice
	forgets int // acks that count nothing
}

func newShelf(first, count int) *shelf {
	s := &shelf{held: map[string]bool{}}
	for seq := range count {
		s.waiting = append(s.waiting, Message{first + seq, fmt.Sprintf("m%d:lease", first+seq)})
	}
	return s
}

func (s *shelf) Receive(_ context.Context, n int) ([]Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	given := slices.Clone(s.waiting[:min(n, len(s.waiting))])
	s.waiting = s.waiting[len(given):]
	for _, m := range given {
		s.held[m.Receipt] = true
	}
	if s.again > 0 && len(given) > 0 {
		s.again--
		s.waiting = slices.Insert(s.waiting, 0, given[0])
	}
	return given, nil
}

func (s *shelf) Ack(_ context.Context, messages []Message) (acked int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range messages {
		if s.held[m.Receipt] {
			delete(s.held, m.Receipt)
			acked++
		}
	}
	if s.forgets > 0 {
		s.forgets--
		return 0, nil
	}
	return acked, nil
}

func TestRunConsumesEverythingOnce(t *testing.T) {
	s, p := newShelf(7, 95), Plan{First: 7, Count: 95, Batch: 10, Stall: time.Minute}
	res := Run(t.Context(), slices.Repeat([]Consumer{s}, 3), p)
	if res.Err != nil || res.Acked != 95 || res.Duplicated+res.Strange > 0 || slices.Contains(res.Received, 0) {
		t.Errorf("Run() = %+v, want all 95 acked and nothing else", res)
	}
	if res.Rate() <= 0 || res.End < res.Received[0] {
		t.Errorf("Rate() = %v, from %d to %d", res.Rate(), res.Start, res.End)
	}
}

func TestRunSeesWhatIsWrong(t *testing.T) {
	twice, strange, forgotten := newShelf(0, 20), newShelf(0, 20), newShelf(0, 20)
	twice.again, forgotten.forgets = 2, 1
	strange.waiting[3].Seq, strange.waiting[4].Seq = 20, -1
	cases := map[string]struct {
		queue *shelf
		count int
		want  Result
	}{
		"twice":     {twice, 20, Result{Acked: 22, Duplicated: 2}},
		"strange":   {strange, 18, Result{Acked: 20, Strange: 2}},
		"forgotten": {forgotten, 20, Result{Acked: 10}},
	}
	for name, c := range cases {
		synctest.Test(t, func(t *testing.T) {
			res := Run(t.Context(), []Consumer{c.queue}, Plan{Count: 20, Batch: 10, Stall: time.Second})
			if got := (Result{Acked: res.Acked, Duplicated: res.Duplicated, Strange: res.Strange}); got.Acked != c.want.Acked || got.Duplicated != c.want.Duplicated || got.Strange != c.want.Strange {
				t.Errorf("%s: Run() = %+v, want %+v", name, got, c.want)
			}
			if n := len(slices.DeleteFunc(res.Received, func(at int64) bool { return at == 0 })); n != c.count {
				t.Errorf("%s: received %d, want %d", name, n, c.count)
			}
		})
	}
}

// A consumer waits at most Plan.Stall for a message that does not come.
func TestRunEndsWithoutTheLastMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		res := Run(t.Context(), []Consumer{newShelf(0, 9)}, Plan{Count: 10, Batch: 10, Stall: time.Minute})
		if res.Acked != 9 || res.Err != nil {
			t.Errorf("Run() = %+v, want 9 acked", res)
		}
		if took := time.Since(began); took < time.Minute || took > 2*time.Minute {
			t.Errorf("Run() took %v, want a minute", took)
		}
	})
}

func TestRunTellsTheFirstFailure(t *testing.T) {
	broken := errors.New("broken")
	res := Run(t.Context(), []Consumer{failing{broken}}, Plan{Count: 1, Batch: 1, Stall: time.Minute})
	if !errors.Is(res.Err, broken) {
		t.Errorf("Err = %v, want %v", res.Err, broken)
	}
}

type failing struct{ err error }

func (f failing) Receive(context.Context, int) ([]Message, error) { return nil, f.err }
func (f failing) Ack(context.Context, []Message) (int, error)     { return 0, f.err }

// api serves a shelf as the gateway does a queue: field by field in another order in
// every second reply.
func api(t *testing.T, s *shelf) string {
	t.Helper()
	turn := 0
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/queues/some%20queue/messages", func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.Query(); got.Get("batch") != "3" || got.Get("wait") != "1500ms" {
			t.Errorf("query = %v", got)
		}
		given, _ := s.Receive(r.Context(), 3)
		var out []string
		for _, m := range given {
			payload := event.Body(2000)
			event.Stamp(payload, m.Seq, 1)
			fields := []string{fmt.Sprintf(`"receipt":%q`, m.Receipt), `"payload":` + string(payload), `"headers":{"content-type":"application/json"}`}
			if turn++; turn%2 == 0 {
				slices.Reverse(fields)
			}
			out = append(out, "{"+strings.Join(fields, ",")+"}")
		}
		body := fmt.Sprintf(`{"messages":[%s]}`, strings.Join(out, ","))
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = io.WriteString(w, body)
	})
	mux.HandleFunc("POST /api/queues/some%20queue/ack", func(w http.ResponseWriter, r *http.Request) {
		var body struct{ IDs []string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Errorf("body: %v", err)
		}
		var all []Message
		for _, id := range body.IDs {
			all = append(all, Message{Receipt: id})
		}
		n, _ := s.Ack(r.Context(), all)
		fmt.Fprintf(w, `{"acked":%d}`, n)
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return strings.TrimPrefix(srv.URL, "http://")
}

func TestClientSpeaksWithTheAPI(t *testing.T) {
	s := newShelf(0, 11)
	c, err := Dial(t.Context(), api(t, s), "some queue", 1500*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	res := Run(t.Context(), []Consumer{c}, Plan{Count: 11, Batch: 3, Stall: time.Minute})
	if res.Err != nil || res.Acked != 11 || slices.Contains(res.Received, 0) {
		t.Errorf("Run() = %+v, want all 11 acked", res)
	}
	if got, err := c.Receive(t.Context(), 3); len(got) > 0 || err != nil {
		t.Errorf("Receive() of an empty queue = %v, %v", got, err)
	}
}

func TestClientTellsARefusal(t *testing.T) {
	c, err := Dial(t.Context(), api(t, newShelf(0, 1)), "other", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Receive(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "status 404") {
		t.Errorf("Receive() = %v, want status 404", err)
	}
	if _, err := c.Ack(t.Context(), []Message{{}}); err == nil || !strings.Contains(err.Error(), "status 404") {
		t.Errorf("Ack() = %v, want status 404", err)
	}
}

func TestMessagesAreWhole(t *testing.T) {
	if got, err := messages([]byte(`{"messages":[{"payload":{"other":1},"receipt":"r"}]}`)); err != nil || len(got) != 1 || got[0] != (Message{-1, "r"}) {
		t.Errorf("messages() = %v, %v, want a strange one", got, err)
	}
	for _, body := range []string{`{"messages":[{"payload":1}]}`, `{"messages":[{"receipt":"r"}]}`} {
		if got, err := messages([]byte(body)); err == nil {
			t.Errorf("messages(%s) = %v, want an error", body, got)
		}
	}
}

func TestEndOfContextEndsAReceive(t *testing.T) {
	asked := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	}))
	defer srv.Close()
	ctx, cancel := context.WithCancel(t.Context())
	c, err := Dial(ctx, strings.TrimPrefix(srv.URL, "http://"), "q", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	done := make(chan *Result)
	go func() { done <- Run(ctx, []Consumer{c}, Plan{Count: 1, Batch: 1, Stall: time.Minute}) }()
	<-asked
	cancel()
	if res := <-done; res.Err == nil {
		t.Error("Run() of an ended context: no error")
	}
	_ = c.Close() // or the server waits for it
}
