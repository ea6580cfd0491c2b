//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
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
	"github.com/eventgateway/gateway/infra/test/wait"
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
	redriven map[string][]time.Time // times at which each run was redriven
}

func newBook(seed uint64) *book {
	return &book{random: rand.New(rand.NewPCG(seed, 0)), shelf: map[string]string{}, accepted: map[string][]time.Time{}, redriven: map[string][]time.Time{}}
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
	gone := false
	select { // the service works this long
	case <-time.After(pause):
	case <-r.Context().Done():
		gone = true
	}
	b.mu.Lock()
	c.ended = time.Now()
	if gone {
		c.status = 0 // the caller is gone and gets no answer
	}
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
			b.redriven[run] = append(b.redriven[run], time.Now())
		}
		b.mu.Unlock()
		if begin {
			d.must(http.StatusOK, http.MethodPost, "/api/workflow-runs/"+run+"/redrive", `{"from": "failed"}`)
		}
	}
}

// A tick is an invocation of the worker, as far as it explains calls that are made again.
type tick struct {
	copy         int
	began, ended time.Time
	fate         string
	cut          bool            // it was ended before it had stored all answers
	stored       map[string]bool // visits to steps whose success it has stored
}

// ticksOf returns the ticks of a worker from its results and its log. A tick stores the answers of
// all its calls before it ends, and logs each stored answer. It is cut if its copy was killed in
// it, or if it logs that it had no time left to store an answer.
func ticksOf(results []lambda.Result, log string, killed map[int]bool) []*tick {
	var ticks []*tick
	byID := map[string]*tick{}
	for _, r := range results {
		if r.Began.IsZero() {
			continue
		}
		t := &tick{copy: r.Copy, began: r.Began, ended: r.Began.Add(r.Took), fate: "ended", stored: map[string]bool{}}
		if r.Error != "" {
			t.fate += " with " + r.Error
		}
		if killed[r.Copy] && r.Error == lambda.Exited {
			t.fate, t.cut = "was killed", true
		}
		ticks, byID[r.ID] = append(ticks, t), t
	}
	for line := range strings.Lines(log) {
		var said struct {
			Msg, Run, Step, Doing, Error string
			Request                      string `json:"request_id"`
		}
		if json.Unmarshal([]byte(line), &said) != nil || byID[said.Request] == nil {
			continue
		}
		switch t := byID[said.Request]; {
		case said.Msg == "step succeeded":
			t.stored[said.Run+" "+said.Step] = true
		case said.Doing == "settle steps" && strings.Contains(said.Error, "context canceled") && !t.cut:
			t.fate, t.cut = "ended without the time to settle", true
		}
	}
	return ticks
}

// tickOf returns the tick that made a call. The service may see the call of a copy that was killed
// later than the end of the tick.
func tickOf(ticks []*tick, c *call) *tick {
	of := &tick{fate: "is unknown"}
	for _, t := range ticks {
		if t.copy == c.copy && !t.began.After(c.began) && !t.began.Before(of.began) {
			of = t
		}
	}
	return of
}

// judge lists the violations. Each of these is one: a call that was answered 200 and made
// again, although its tick has stored the answer or had the time for that; two idempotency keys
// for one call; one key for two calls; a callback step that was called again after its callback
// was accepted.
func (b *book) judge(ticks []*tick) (wrong []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	visits, owners := map[string][]*call{}, map[string]string{}
	for _, c := range b.calls {
		if of, known := owners[c.key]; known && of != c.visit() {
			wrong = append(wrong, fmt.Sprintf("%s and %s are called with the key %s", of, c.visit(), c.key))
		}
		owners[c.key] = c.visit()
		wrong = append(wrong, b.wrongAfter(visits[c.visit()], c, ticks)...)
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
func (b *book) wrongAfter(earlier []*call, c *call, ticks []*tick) (wrong []string) {
	keys := map[string]bool{c.key: true}
	for _, old := range earlier {
		keys[old.key] = true
		answered := old.status == http.StatusOK && !old.tells && !old.ended.IsZero() && old.ended.Before(c.began)
		if t := tickOf(ticks, old); answered && (!t.cut || t.stored[c.visit()]) {
			wrong = append(wrong, b.tellRepeated(old, c, t))
		}
	}
	most := 1
	if c.tells { // the step has another token after each redrive
		most += len(b.redriven[c.run])
	}
	if len(keys) > most {
		wrong = append(wrong, fmt.Sprintf("%s is called with %d keys, want at most %d", c.visit(), len(keys), most))
	}
	if times := b.accepted[c.visit()]; len(times) > 0 && c.began.Sub(times[0]) > settleReach {
		wrong = append(wrong, fmt.Sprintf("%s is called by copy %d after its callback was accepted", c.visit(), c.copy))
	}
	return wrong
}

// tellRepeated describes the repetition of an answered call. Its times are counted from the first
// call.
func (b *book) tellRepeated(old, c *call, t *tick) string {
	at := func(when time.Time) time.Duration { return when.Sub(b.calls[0].began).Round(time.Millisecond) }
	text := fmt.Sprintf("%s was answered 200 to copy %d at %v and is called by copy %d at %v; the first tick",
		c.visit(), old.copy, at(old.ended), c.copy, at(c.began))
	if t.stored[c.visit()] {
		text += " has stored the answer and"
	}
	text += " " + t.fate
	if !t.began.IsZero() {
		text += fmt.Sprintf(" at %v, begun at %v", at(t.ended), at(t.began))
	}
	for _, when := range b.redriven[c.run] {
		text += fmt.Sprintf("; redriven at %v", at(when))
	}
	return text
}

// trouble kills copies of the worker, sends callbacks and redrives runs, a few times.
func (b *book) trouble(d *deployment, killed map[int]bool, times int) {
	for range times {
		goesBy(d.t, 50*time.Millisecond+rand.N(200*time.Millisecond))
		if c := working(d.worker); c != nil && rand.IntN(4) == 0 {
			c.Kill()
			killed[c.Number] = true
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
		killed := map[int]bool{}
		for n := range runs {
			d.send(fmt.Sprintf("/events/order%d", n), `{"items": [1, 2, 3]}`)
			b.trouble(d, killed, 6)
		}
		b.mu.Lock()
		b.quiet = true
		b.mu.Unlock()
		wait.For(t, 120*time.Second, "all runs are completed", func() bool {
			b.callBack(true)
			b.redrive(d, 1)
			return db.count(`SELECT COUNT(*) FROM runs WHERE status = 'completed'`) == runs
		})
		d.awaitIdle(30 * time.Second)
		d.stop()
		wrong := b.judge(ticksOf(d.worker.Results(), d.worker.Log(), killed))
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
	at := func(seconds int) time.Time { return zero.Add(time.Duration(seconds) * time.Second) }
	ticks := []*tick{
		{copy: 1, ended: at(100)},
		{copy: 3, ended: at(3), cut: true, stored: map[string]bool{"r b": true}},
		{copy: 4, began: at(-1), ended: at(3)},
		{copy: 4, began: at(4), ended: at(7), cut: true},
	}
	for _, tt := range []struct {
		name  string
		calls []*call
		want  int
	}{
		{"one call", []*call{made("a", "k", 1, 0, 200)}, 0},
		{"again after a failure", []*call{made("a", "k", 1, 0, 503), made("a", "k", 1, 5, 200)}, 0},
		{"again after a success", []*call{made("a", "k", 1, 0, 200), made("a", "k", 1, 5, 200)}, 1},
		{"again after a success that no tick stored", []*call{made("a", "k", 3, 0, 200), made("a", "k", 1, 5, 200)}, 0},
		{"again after a success that a tick stored before its copy was killed", []*call{made("b", "k", 3, 0, 200), made("b", "k", 1, 5, 200)}, 1},
		{"again after a success that is seen after the kill", []*call{made("a", "k", 3, 4, 200), made("a", "k", 1, 9, 200)}, 0},
		{"again after a success in the tick before a kill", []*call{made("a", "k", 4, 0, 200), made("a", "k", 1, 9, 200)}, 1},
		{"again after a success in the tick of a kill", []*call{made("a", "k", 4, 5, 200), made("a", "k", 1, 9, 200)}, 0},
		{"again after a success in an unknown tick", []*call{made("a", "k", 9, 0, 200), made("a", "k", 1, 5, 200)}, 1},
		{"while it is under way", []*call{made("a", "k", 1, 0, 200), made("a", "k", 2, 0, 200)}, 0},
		{"two keys", []*call{made("a", "k", 1, 0, 503), made("a", "l", 1, 5, 200)}, 1},
		{"one key of two steps", []*call{made("a", "k", 1, 0, 200), made("b", "k", 1, 5, 200)}, 1},
		{"another token after a redrive", []*call{made("c", "k", 1, 0, 200), made("c", "l", 1, 5, 200)}, 0},
		{"three tokens after one redrive", []*call{made("c", "k", 1, 0, 200), made("c", "l", 1, 5, 200), made("c", "m", 1, 9, 200)}, 1},
		{"after its callback", []*call{made("c", "k", 1, 0, 200), made("c", "k", 1, 90, 200)}, 1},
	} {
		b := newBook(0)
		b.calls, b.redriven["r"] = tt.calls, []time.Time{zero}
		b.accepted["r c"] = []time.Time{zero.Add(time.Minute)}
		if got := b.judge(ticks); len(got) != tt.want {
			t.Errorf("%s: %q, want %d that are wrong", tt.name, got, tt.want)
		}
	}
}

// TestTicksOf: the results and the log of a worker show which ticks were cut.
func TestTicksOf(t *testing.T) {
	t.Parallel()
	zero := time.Now()
	result := func(copy int, id, problem string) lambda.Result {
		return lambda.Result{Copy: copy, ID: id, Error: problem, Began: zero, Took: time.Second}
	}
	log := `{"msg":"step succeeded","run":"r","step":"a","request_id":"killed"}
{"msg":"trying again","doing":"settle steps","error":"situations: context canceled","request_id":"late"}
{"msg":"trying again","doing":"settle steps","error":"overloaded","request_id":"good"}
{"msg":"trying again","doing":"look","error":"context canceled","request_id":"good"}
no JSON
`
	got := map[string]string{}
	for _, k := range ticksOf([]lambda.Result{
		result(1, "good", ""), result(1, "killed", lambda.Exited), result(2, "late", ""),
		result(2, "crashed", lambda.Exited), result(2, "hung", lambda.TimedOut), {Error: lambda.Throttled},
	}, log, map[int]bool{1: true}) {
		got[k.fate] = fmt.Sprint(k.copy, k.ended.Sub(k.began), k.cut, k.stored)
	}
	want := map[string]string{
		"ended":                            "1 1s false map[]",
		"was killed":                       "1 1s true map[r a:true]",
		"ended without the time to settle": "2 1s true map[]",
		"ended with Runtime.ExitError":     "2 1s false map[]",
		"ended with Sandbox.Timedout":      "2 1s false map[]",
	}
	if !maps.Equal(got, want) {
		t.Errorf("ticks = %q, want %q", got, want)
	}
}
