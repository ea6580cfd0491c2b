//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/lambda"
	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/trees"
)

// A call is a request that a step made.
type call struct {
	run, step, key string
	copy           int
	tells          bool // carries a callback URL with a token
	began, ended   time.Time
	status         int // 0 if the connection was reset
}

// A book records the calls of workflow runs, and decides the answers of the services.
type book struct {
	mu       sync.Mutex
	random   *rand.Rand
	quiet    bool // every call is answered 200
	calls    []*call
	shelf    map[string]string      // URLs of callbacks that may still be accepted, with the run and step of each
	accepted map[string][]time.Time // times at which callbacks of a step were accepted
	redriven map[string]int         // number of redrives of each run
}

func newBook(seed uint64) *book {
	return &book{random: rand.New(rand.NewPCG(seed, 0)), shelf: map[string]string{}, accepted: map[string][]time.Time{}, redriven: map[string]int{}}
}

func (c *call) visit() string { return c.run + " " + c.step }

// serve answers a call. Some answers are late, some are errors.
func (b *book) serve(_ int, w http.ResponseWriter, r *http.Request) {
	var notice struct {
		CallbackURL string `json:"callback_url"`
	}
	_ = json.NewDecoder(r.Body).Decode(&notice) // other calls have any body
	d := receiver.Delivery{Header: r.Header}
	c := &call{run: r.Header.Get("X-Gateway-Run-Id"), step: r.Header.Get("X-Gateway-Step"), key: r.Header.Get("Idempotency-Key"),
		copy: copyOf(d), tells: notice.CallbackURL != "", began: time.Now()}
	pause := b.note(c, notice.CallbackURL)
	select { // the service works this long
	case <-time.After(pause):
	case <-r.Context().Done():
	}
	b.mu.Lock()
	c.ended = time.Now()
	b.mu.Unlock()
	if c.status == 0 {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(c.status)
	fmt.Fprintf(w, `{"items": [%d, 5]}`, len(c.step))
}

// note records a call, and decides its answer and the time until the answer.
func (b *book) note(c *call, callback string) (pause time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, c)
	if callback != "" {
		b.shelf[callback] = c.visit()
	}
	c.status = http.StatusOK
	if b.quiet {
		return 0
	}
	switch n := b.random.IntN(20); {
	case n < 2:
		c.status = http.StatusServiceUnavailable
	case n < 4:
		c.status = http.StatusNotFound
	case n == 4:
		c.status = 0
	}
	return time.Duration(b.random.IntN(300)) * time.Millisecond
}

// callBack sends a random quarter of the callbacks that may be accepted, or all of them.
func (b *book) callBack(all bool) {
	b.mu.Lock()
	var urls []string
	for url := range b.shelf {
		if all || b.random.IntN(4) == 0 {
			urls = append(urls, url)
		}
	}
	b.mu.Unlock()
	for _, url := range urls {
		a, err := ask(http.MethodPost, url, `{"items": [7, 5]}`)
		b.mu.Lock()
		if err == nil && a.status == http.StatusOK {
			b.accepted[b.shelf[url]] = append(b.accepted[b.shelf[url]], time.Now())
		}
		if err == nil && (a.status == http.StatusOK || a.status == http.StatusNotFound) {
			delete(b.shelf, url)
		}
		b.mu.Unlock()
	}
}

// redrive redrives failed runs from the failed step, each with probability 1/n.
func (b *book) redrive(d *deployment, n int) {
	for _, run := range d.db.column(`SELECT id FROM runs WHERE status = 'failed'`) {
		b.mu.Lock()
		begin := b.random.IntN(n) == 0
		if begin {
			b.redriven[run]++
		}
		b.mu.Unlock()
		if begin {
			d.must(http.StatusOK, http.MethodPost, "/api/workflow-runs/"+run+"/redrive", `{"from": "failed"}`)
		}
	}
}

// judge lists the violations. Each of these is one: a call that was answered 200 and made
// again, although its copy had the time to settle it; two idempotency keys for one call; one
// key for two calls; a callback step that was called again after its callback was accepted.
func (b *book) judge(killed map[int]time.Time) (wrong []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	visits, owners := map[string][]*call{}, map[string]string{}
	for _, c := range b.calls {
		if of, known := owners[c.key]; known && of != c.visit() {
			wrong = append(wrong, fmt.Sprintf("%s and %s are called with the key %s", of, c.visit(), c.key))
		}
		owners[c.key] = c.visit()
		wrong = append(wrong, b.wrongAfter(visits[c.visit()], c, killed)...)
		visits[c.visit()] = append(visits[c.visit()], c)
	}
	for visit, times := range b.accepted {
		if len(times) > 1 {
			wrong = append(wrong, fmt.Sprintf("%d callbacks of %s were accepted", len(times), visit))
		}
	}
	return wrong
}

// wrongAfter lists the violations of a call after earlier calls of the same step.
func (b *book) wrongAfter(earlier []*call, c *call, killed map[int]time.Time) (wrong []string) {
	keys := map[string]bool{c.key: true}
	for _, old := range earlier {
		keys[old.key] = true
		at, dead := killed[old.copy]
		told := !dead || at.Sub(old.ended) > settleReach
		if old.status == http.StatusOK && !old.tells && !old.ended.IsZero() && old.ended.Before(c.began) && told {
			wrong = append(wrong, fmt.Sprintf("%s was answered 200 to copy %d and is called by copy %d", c.visit(), old.copy, c.copy))
		}
	}
	most := 1
	if c.tells { // the step has another token after each redrive
		most += b.redriven[c.run]
	}
	if len(keys) > most {
		wrong = append(wrong, fmt.Sprintf("%s is called with %d keys, want at most %d", c.visit(), len(keys), most))
	}
	if times := b.accepted[c.visit()]; len(times) > 0 && c.began.Sub(times[0]) > settleReach {
		wrong = append(wrong, fmt.Sprintf("%s is called by copy %d after its callback was accepted", c.visit(), c.copy))
	}
	return wrong
}

// trouble kills copies of the worker, sends callbacks and redrives runs, a few times.
func (b *book) trouble(d *deployment, killed map[int]time.Time, times int) {
	for range times {
		goesBy(d.t, 50*time.Millisecond+rand.N(200*time.Millisecond))
		if c := working(d.worker); c != nil && rand.IntN(4) == 0 {
			c.Kill()
			killed[c.Number] = time.Now()
		}
		b.callBack(false)
		b.redrive(d, 2)
	}
}

// ledgerRuns is the number of runs of TestLedger on each database: 4, or the number in
// GATEWAY_TORTURE_LEDGER.
func ledgerRuns(t *testing.T) int {
	text := os.Getenv("GATEWAY_TORTURE_LEDGER")
	if text == "" {
		return 4
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("GATEWAY_TORTURE_LEDGER=%q, want a number of runs", text)
	}
	return n
}

// ledgerConfig has a workflow for each run, with a random tree of steps.
func ledgerConfig(seed uint64, runs int) string {
	var out strings.Builder
	out.WriteString(`
server: {public_url: "${PUBLIC_URL}", allow_private_urls: true}
delivery: {timeout: 2s, default_retry: {max: 100, backoff: fixed, interval: 200ms}}
worker: {max_concurrency: 10, batch_size: 10}
sources: {app: {type: event}}
workflows:
`)
	for n := range runs {
		fmt.Fprintf(&out, "  tree%d:\n    source: app\n    events: [order%d]\n    steps:\n", n, n)
		out.WriteString(trees.Steps(rand.New(rand.NewPCG(seed, uint64(n))), "      ",
			`url: "${RECEIVER}/x"`, `headers: {x-copy: "${AWS_LAMBDA_LOG_STREAM_NAME}"}`))
	}
	return out.String()
}

// TestLedger: runs of random trees have parallel steps, map steps, callbacks and waits. Steps
// fail, copies of the worker are killed, and runs are redriven from the failed step until they
// are completed. The recorded calls must show two facts: an answered call is not made again,
// and each call has one idempotency key over its life.
func TestLedger(t *testing.T) {
	everywhere(t, func(t *testing.T, db *database) {
		seed := rand.Uint64() >> 16
		if text := os.Getenv("GATEWAY_TEST_SEED"); text != "" {
			var err error
			if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
				t.Fatalf("GATEWAY_TEST_SEED: %v", err)
			}
		}
		runs := ledgerRuns(t)
		r, b := receiver.New(t), newBook(seed)
		r.On("/x", b.serve)
		config := ledgerConfig(seed, runs)
		d := deploy{config: config, receiver: r, change: func(o *lambda.Options) { o.MaxCopies = 3 }}.new(t, db)
		d.worker.SetTimeout(10 * time.Second)
		d.service.Schedule(d.worker, 2*time.Second)
		killed := map[int]time.Time{}
		for n := range runs {
			d.send(fmt.Sprintf("/events/order%d", n), `{"items": [1, 2, 3]}`)
			b.trouble(d, killed, 6)
		}
		b.mu.Lock()
		b.quiet = true
		b.mu.Unlock()
		eventually(t, 120*time.Second, "all runs are completed", func() bool {
			b.callBack(true)
			b.redrive(d, 1)
			return db.count(`SELECT COUNT(*) FROM runs WHERE status = 'completed'`) == runs
		})
		d.awaitIdle(30 * time.Second)
		d.stop()
		wrong := b.judge(killed)
		t.Logf("%d runs, %d calls, %d kills, redriven %d", runs, len(b.calls), len(killed), len(b.redriven))
		for _, w := range slices.Compact(wrong) {
			t.Error(w)
		}
		if len(wrong) > 0 {
			t.Logf("GATEWAY_TEST_SEED=%d had\n%s", seed, config)
		}
		db.sound()
	})
}

// TestJudge: judge finds each kind of violation.
func TestJudge(t *testing.T) {
	t.Parallel()
	zero := time.Now()
	made := func(step, key string, copy, at, status int) *call {
		began := zero.Add(time.Duration(at) * time.Second)
		return &call{run: "r", step: step, key: key, copy: copy, began: began, ended: began.Add(time.Second), status: status, tells: step == "c"}
	}
	killed := map[int]time.Time{3: zero.Add(2 * time.Second)}
	for _, tt := range []struct {
		name  string
		calls []*call
		want  int
	}{
		{"one call", []*call{made("a", "k", 1, 0, 200)}, 0},
		{"again after a failure", []*call{made("a", "k", 1, 0, 503), made("a", "k", 1, 5, 200)}, 0},
		{"again after a success", []*call{made("a", "k", 1, 0, 200), made("a", "k", 1, 5, 200)}, 1},
		{"again after a success that no copy told", []*call{made("a", "k", 3, 0, 200), made("a", "k", 1, 5, 200)}, 0},
		{"while it is under way", []*call{made("a", "k", 1, 0, 200), made("a", "k", 2, 0, 200)}, 0},
		{"two keys", []*call{made("a", "k", 1, 0, 503), made("a", "l", 1, 5, 200)}, 1},
		{"one key of two steps", []*call{made("a", "k", 1, 0, 200), made("b", "k", 1, 5, 200)}, 1},
		{"another token after a redrive", []*call{made("c", "k", 1, 0, 200), made("c", "l", 1, 5, 200)}, 0},
		{"three tokens after one redrive", []*call{made("c", "k", 1, 0, 200), made("c", "l", 1, 5, 200), made("c", "m", 1, 9, 200)}, 1},
		{"after its callback", []*call{made("c", "k", 1, 0, 200), made("c", "k", 1, 90, 200)}, 1},
	} {
		b := newBook(0)
		b.calls, b.redriven["r"] = tt.calls, 1
		b.accepted["r c"] = []time.Time{zero.Add(time.Minute)}
		if got := b.judge(killed); len(got) != tt.want {
			t.Errorf("%s: %q, want %d that are wrong", tt.name, got, tt.want)
		}
	}
}
