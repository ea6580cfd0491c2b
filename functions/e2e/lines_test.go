//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/lambda"
	"github.com/eventgateway/gateway/infra/test/lines"
	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// linesConfig has a handler that keeps the order of each key, and one that takes three events of a
// key at a time.
const linesConfig = `
server: {allow_private_urls: true}
delivery: {timeout: 3s, default_retry: {max: 1000, backoff: fixed, interval: 50ms}}
worker: {max_concurrency: 10, batch_size: 10}
sources: {app: {type: event}}
handlers:
  strict: {source: app, events: [strict], url: "${RECEIVER}/strict", circuit_breaker: off, headers: {x-copy: "${AWS_LAMBDA_LOG_STREAM_NAME}"}, lines: {key: $.key}}
  wide: {source: app, events: [wide], url: "${RECEIVER}/wide", circuit_breaker: off, headers: {x-copy: "${AWS_LAMBDA_LOG_STREAM_NAME}"}, lines: {key: $.key, limit: 3}}
`

// lineLimits are the limits of the handlers, by path.
var lineLimits = map[string]int{"/strict": 1, "/wide": 3}

const (
	lineKeys   = 4
	lineWindow = 8 // jobs of a line that are not completed, at which its sender waits
	lineKills  = 3

	// caughtFor bounds a delivery that waits for the end of its worker. It is shorter than the
	// timeout of deliveries: after the timeout the gateway may repeat the delivery.
	caughtFor = 2 * time.Second
)

// TestLines: senders send events of a few keys, while up to four workers deliver side by side. Each
// seventh delivery fails. One worker freezes in mid-delivery until Lambda ends it at its timeout,
// others are killed in mid-delivery, and copies of intake are killed too. The deliveries of each
// line keep their order, or their limit. Every event arrives, and no line keeps a slot or a place.
func TestLines(t *testing.T) {
	onEach(t, func(t *testing.T, db *database) {
		s := newLineStory(t, db)
		unschedule := s.d.service.Schedule(s.d.worker, 2*time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		var senders sync.WaitGroup
		defer senders.Wait()
		defer cancel()
		for path := range lineLimits {
			for k := range lineKeys {
				senders.Go(func() { s.send(ctx, path, keyName(k)) })
			}
		}
		s.progress()
		frozen := s.freeze()
		for range lineKills {
			s.progress()
			if c := working(s.d.intake); c != nil {
				c.Kill()
			}
			s.catch().Kill()
		}
		wait.For(t, 60*time.Second, "two copies deliver at the same time, and the wide lines reach their limit", func() bool {
			copies, widest := s.seen()
			return copies > 1 && widest >= lineLimits["/wide"]
		})
		cancel()
		senders.Wait()
		wait.For(t, 90*time.Second, "all jobs are finished", db.finished)
		unschedule() // on a slow machine the next tick begins before the last one ends
		s.d.awaitIdle(60 * time.Second)
		s.d.stop()
		s.judge(frozen)
	})
}

// judge checks the history and the tables, once all functions have stopped.
func (s *lineStory) judge(frozen *lambda.Copy) {
	s.db.sound()
	s.db.empty()
	if n := s.db.count(`SELECT COUNT(*) FROM jobs WHERE status = 'completed'`); n != s.stored {
		s.t.Errorf("completed jobs = %d, want %d", n, s.stored)
	}
	for path, limit := range lineLimits {
		wrong := lines.Check(lines.Rules{Limit: limit, Repeats: true}, s.logs[path].Entries())
		if len(wrong) > 0 {
			s.t.Errorf("%s: %d problems:\n%s", path, len(wrong), strings.Join(wrong[:min(5, len(wrong))], "\n"))
		}
	}
	var late []int
	for _, r := range s.d.worker.Results() {
		if r.Error == lambda.TimedOut {
			late = append(late, r.Copy)
		}
	}
	if !slices.Contains(late, frozen.Number) {
		s.t.Errorf("copies that Lambda ended at their timeout = %v, want copy %d, which was frozen", late, frozen.Number)
	}
	copies, _ := s.seen()
	s.t.Logf("%d events; at most %d copies delivered at the same time", s.stored, copies)
}

// empty requires that no line has a slot or a place.
func (db *database) empty() {
	db.t.Helper()
	if n := db.count(`SELECT (SELECT COUNT(*) FROM line_slots) + (SELECT COUNT(*) FROM line_places)`); n != 0 {
		db.t.Errorf("slots and places that are left = %d, want 0", n)
	}
}

// A lineStory is a deployment with the history that its receiver recorded.
type lineStory struct {
	t      *testing.T
	d      *deployment
	db     *database
	logs   map[string]*lines.Log // by path
	caught chan int              // numbers of copies with a delivery that waits for their end
	open   map[string]chan bool  // by path and key, an entry for each job that is not completed

	mu        sync.Mutex
	stored    int            // accepted events
	completed int            // deliveries
	lines     map[string]int // deliveries under way, by path and key
	running   map[int]int    // deliveries under way, by copy
	copies    int            // most copies that delivered at the same time
	widest    int            // most deliveries of a line at the same time
}

func newLineStory(t *testing.T, db *database) *lineStory {
	s := &lineStory{t: t, db: db, logs: map[string]*lines.Log{}, caught: make(chan int),
		open: map[string]chan bool{}, lines: map[string]int{}, running: map[int]int{}}
	r := receiver.New(t)
	for path := range lineLimits {
		s.logs[path] = &lines.Log{}
		for k := range lineKeys {
			s.open[path+keyName(k)] = make(chan bool, lineWindow)
		}
		r.On(path, s.answer)
	}
	s.d = deploy{config: linesConfig, receiver: r, change: func(o *lambda.Options) {
		if o.Name == "worker" {
			o.MaxCopies, o.Timeout = 4, 9*time.Second // so that leases of a killed worker end soon
		}
	}}.new(t, db)
	return s
}

// answer records a delivery and answers it, each seventh with 500. It records the end before it
// answers, since the gateway may begin the next delivery of the line after the answer. A delivery
// whose worker was killed has failed. One that succeeds, but whose worker is killed or frozen before
// it stores that, is made again.
func (s *lineStory) answer(n int, w http.ResponseWriter, r *http.Request) {
	var body struct {
		Key string
		N   int
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		s.t.Errorf("a delivery has no key: %v", err)
	}
	path, copy := r.URL.Path, copyOf(receiver.Delivery{Header: r.Header})
	e := lines.Entry{Kind: lines.Begun, Key: body.Key, Job: jobName(body.Key, body.N)}
	s.logs[path].Add(e)
	s.begin(path+body.Key, copy)
	takes := 10 * time.Millisecond
	select {
	case s.caught <- copy:
		takes = caughtFor
	default:
	}
	e.Kind, e.Outcome = lines.Ended, lines.Completed
	select {
	case <-time.After(takes):
	case <-r.Context().Done(): // the worker was killed
		e.Outcome = lines.Failed
	}
	if n%7 == 0 {
		e.Outcome = lines.Failed
	}
	s.end(path+body.Key, copy, e.Outcome)
	s.logs[path].Add(e)
	if e.Outcome == lines.Failed {
		w.WriteHeader(http.StatusInternalServerError)
	}
}

// keyName names a key by its number.
func keyName(k int) string { return fmt.Sprint("key-", k) }

// jobName names the jobs of event n of a key.
func jobName(key string, n int) string { return fmt.Sprintf("%s-%d", key, n) }

// begin counts a delivery that begins.
func (s *lineStory) begin(line string, copy int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[copy]++
	s.copies = max(s.copies, len(s.running))
	s.lines[line]++
	s.widest = max(s.widest, s.lines[line])
}

// end counts a delivery that ends.
func (s *lineStory) end(line string, copy int, o lines.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[copy]--; s.running[copy] == 0 {
		delete(s.running, copy)
	}
	s.lines[line]--
	if o == lines.Completed {
		s.completed++
		select {
		case <-s.open[line]:
		default: // a repeat
		}
	}
}

// seen returns how many copies delivered at the same time, and how many deliveries of a line were
// made at the same time, at most.
func (s *lineStory) seen() (copies, widest int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.copies, s.widest
}

// progress waits until some more jobs are completed.
func (s *lineStory) progress() {
	s.t.Helper()
	done := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.completed
	}
	before := done()
	wait.For(s.t, 60*time.Second, "some more jobs are completed", func() bool { return done() >= before+4*lineKeys })
}

// catch waits for the next delivery, keeps it from ending, and returns its worker.
func (s *lineStory) catch() (c *lambda.Copy) {
	s.t.Helper()
	wait.For(s.t, 60*time.Second, "a delivery begins, and its worker is there", func() bool {
		select {
		case number := <-s.caught:
			for _, c = range s.d.worker.Copies() {
				if c.Number == number {
					return true
				}
			}
		case <-time.After(5 * time.Second):
		}
		return false
	})
	return c
}

// freeze stops the process of a worker in mid-delivery, and returns the worker. It tries again if
// the worker had no work any more.
func (s *lineStory) freeze() (c *lambda.Copy) {
	s.t.Helper()
	wait.For(s.t, 60*time.Second, "a worker freezes that has work", func() bool {
		c = s.catch()
		if err := syscall.Kill(c.Pid(), syscall.SIGSTOP); err != nil {
			s.t.Fatal(err)
		}
		return c.Busy()
	})
	return c
}

// send sends the events of a line one after the other. It keeps some of them waiting.
func (s *lineStory) send(ctx context.Context, path, key string) {
	for n := 0; ; n++ {
		select {
		case s.open[path+key] <- true:
		case <-ctx.Done():
			return
		}
		if ctx.Err() != nil || !s.post(path, key, n) {
			return
		}
	}
}

// post sends event n of a line. It repeats a request that was not accepted under the same key, so
// that the event is stored once.
func (s *lineStory) post(path, key string, n int) bool {
	job := jobName(key, n)
	for end := time.Now().Add(60 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		a, err := ask(http.MethodPost, s.d.api.URL+"/events"+path, fmt.Sprintf(`{"key": %q, "n": %d}`, key, n), "Idempotency-Key", path+job)
		if err == nil && (a.status == http.StatusAccepted || a.status == http.StatusOK) { // 200 is for a duplicate
			break
		}
		if time.Now().After(end) {
			s.t.Errorf("%s of %s was not accepted: %d %q, %v", job, path, a.status, a.body, err)
			return false
		}
	}
	s.logs[path].Add(lines.Entry{Kind: lines.Stored, Key: key, Job: job})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stored++
	return true
}

// stopConfig has a handler whose dead jobs stop their lines, and a queue with lines.
const stopConfig = `
server: {allow_private_urls: true}
delivery: {timeout: 2s, default_retry: {max: 2, backoff: fixed, interval: 50ms}}
sources: {app: {type: event}}
handlers:
  orders: {source: app, events: ["order.*"], url: "${RECEIVER}/orders", circuit_breaker: off, lines: {key: $.key, on_dead: hold}}
queues:
  inbox: {source: app, events: ["message.*"], visibility_timeout: 5m, max_attempts: 5, lines: {key: $.key}}
`

// TestLinesStopAtDeadJobs: the first and the third job of a key fail until they are dead. Each
// stops the line of its key, also for a later tick, and no other line. Once an operator skips or
// retries the dead job, through the pull function, the jobs behind it are delivered in their order.
// No schedule is there: the pull function nudges the worker.
func TestLinesStopAtDeadJobs(t *testing.T) {
	onEach(t, func(t *testing.T, db *database) {
		r := receiver.New(t)
		failing := func(_ int, w http.ResponseWriter, q *http.Request) {
			if body, _ := io.ReadAll(q.Body); strings.Contains(string(body), "bad") {
				w.WriteHeader(http.StatusInternalServerError)
			}
		}
		r.On("/orders", failing)
		d := deploy{config: stopConfig, receiver: r}.new(t, db)
		for _, body := range []string{`{"key": "a", "n": 1, "is": "bad"}`, `{"key": "a", "n": 2}`, `{"key": "b", "n": 1}`,
			`{"key": "a", "n": 3, "is": "bad"}`, `{"key": "a", "n": 4}`, `{"key": "b", "n": 2}`} {
			d.send("/events/order.created", body)
		}
		stopped := func(want string) (job string) {
			t.Helper()
			wait.For(t, 30*time.Second, "a dead job stops the line, after the deliveries "+want, func() bool {
				ids := db.column(`SELECT job_id FROM line_slots WHERE stopped_at <> 0`)
				job = strings.Join(ids, " ")
				return len(ids) == 1 && delivered(r, "a") == want
			})
			return job
		}
		first := stopped("a1 a1")
		wait.For(t, 30*time.Second, "the other line is empty", func() bool { return delivered(r, "b") == "b1 b2" })
		wait.For(t, 30*time.Second, "the worker has ended", func() bool { return !busy(d.worker) })
		d.tick(d.worker)
		if got := delivered(r, "a"); got != "a1 a1" {
			t.Errorf("deliveries while the line is stopped = %s, want a1 a1", got)
		}
		if a := d.must(200, "GET", "/api/lines?consumer=orders", ""); !strings.Contains(a.body, `"waiting":3`) || !strings.Contains(a.body, first) {
			t.Errorf("lines = %s, want 3 jobs that wait, and the dead job %s", a.body, first)
		}

		nudges := len(d.service.Calls())
		d.must(200, "POST", "/api/jobs/"+first+"/skip", "")
		second := stopped("a1 a1 a2 a3 a3")
		if len(d.service.Calls()) == nudges {
			t.Error("the pull function did not nudge the worker for the skipped job")
		}
		d.must(400, "POST", "/api/jobs/"+first+"/skip", "") // its line went on
		r.On("/orders", nil)
		d.must(200, "POST", "/api/jobs/"+second+"/retry", "")
		d.awaitIdle(30 * time.Second)
		d.stop()
		if got := delivered(r, "a"); got != "a1 a1 a2 a3 a3 a3 a4" {
			t.Errorf("deliveries of the stopped line = %s, want a1 a1 a2 a3 a3 a3 a4", got)
		}
		if dead := db.column(`SELECT id FROM jobs WHERE status = 'dead'`); len(dead) != 1 || dead[0] != first {
			t.Errorf("dead jobs = %v, want %s, which was skipped", dead, first)
		}
		db.sound()
		db.empty()
	})
}

// delivered returns the names of the events of a key in the order of their deliveries.
func delivered(r *receiver.Receiver, key string) string {
	var names []string
	for _, d := range r.At("/orders") {
		if name := eventName([]byte(d.Body)); strings.HasPrefix(name, key) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// eventName returns the key and the number in the body of an event, such as a1.
func eventName(body []byte) string {
	var e struct {
		Key string
		N   int
	}
	_ = json.Unmarshal(body, &e) // a name that no event has fails the test
	return fmt.Sprint(e.Key, e.N)
}

// TestLinesOfQueues: a receive gets one message of each key. While that message is in flight, the
// next message of its key is not given to any consumer, also after the copy that gave it is killed,
// and the messages of another key are. A nacked message comes before those behind it. An ack lets
// the next message of the key go to a consumer that waits in another copy.
func TestLinesOfQueues(t *testing.T) {
	onEach(t, func(t *testing.T, db *database) {
		d := deploy{config: stopConfig, receiver: receiver.New(t)}.new(t, db)
		for _, body := range []string{`{"key": "a", "n": 1}`, `{"key": "a", "n": 2}`, `{"key": "b", "n": 1}`, `{"key": "b", "n": 2}`} {
			d.send("/events/message.sent", body)
		}
		receive := func(wait, want string) []message {
			t.Helper()
			got := d.receive(wait)
			slices.SortFunc(got, func(a, b message) int { return strings.Compare(eventName(a.Payload), eventName(b.Payload)) })
			var names []string
			for _, m := range got {
				names = append(names, fmt.Sprint(eventName(m.Payload), " attempt ", m.Attempt))
			}
			if list := strings.Join(names, ", "); list != want {
				t.Fatalf("received %q, want %q", list, want)
			}
			return got
		}
		first := receive("10s", "a1 attempt 1, b1 attempt 1")
		d.pull.Kill()
		receive("1s", "")
		d.ack(first[1:])
		b2 := receive("10s", "b2 attempt 1")
		d.must(200, "POST", "/api/queues/inbox/nack", fmt.Sprintf(`{"ids": [%q]}`, first[0].Receipt))
		a1 := receive("10s", "a1 attempt 2")

		waiting := make(chan []message, 1)
		go func() { waiting <- d.receive("20s") }()
		wait.For(t, 20*time.Second, "a consumer waits", func() bool { return busy(d.pull) })
		d.ack(a1)
		a2 := <-waiting
		if len(a2) != 1 || eventName(a2[0].Payload) != "a2" {
			t.Fatalf("received %v after the ack, want a2", a2)
		}
		d.ack(a2)
		d.ack(b2)
		receive("0s", "")
		d.stop()
		if n := db.count(`SELECT COUNT(*) FROM jobs WHERE status = 'completed'`); n != 4 {
			t.Errorf("acknowledged messages = %d, want 4", n)
		}
		db.sound()
		db.empty()
	})
}
