package boot

import (
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/core/worker"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/sqlite"
)

// A model is the functions of one gateway in virtual time. The functions and the database are
// real. Lambda, the network and the handlers are simulated, and take as long as a test says.
// The model records how late each attempt began, how many workers were asked for, and how long
// all of them were awake.
type model struct {
	t      *testing.T
	conn   store.Conn
	life   time.Duration // of an invocation of the worker
	apart  time.Duration // longest pause between bursts of events
	flaky  bool          // some calls of Lambda's API fail for a moment
	mortal bool          // workers die
	quick  bool          // each random duration is the shortest possible
	slow   bool          // workers deliver to the slow handler alone
	limit  time.Duration // of an attempt of the slow handler

	answer func(core.TakenJob) (time.Duration, worker.Reply) // of the handlers; nil for random answers
	broken func(statement string) bool                       // reports whether a batch fails that begins with this statement; may be nil

	invocations sync.WaitGroup

	mu      sync.Mutex
	random  *rand.Rand
	spare   []*process            // frozen environments of the worker
	due     map[core.ID]time.Time // due time of each job whose retry or wait is known, or the begin of its attempt
	late    []time.Duration       // of each attempt
	worst   string                // describes the latest attempt
	asked   int                   // invocations that nudges asked for
	minutes int                   // invocations by the schedule
	awake   time.Duration         // sum over all workers
}

// A process is an environment of a function.
type process struct {
	store.Conn
	m    *model
	fn   *function
	bell core.Bell // the bell of its nudger
	dead atomic.Bool

	refused int // calls of Lambda's API in a row that were refused
}

const modelYAML = minimal + `
handlers:
  fast: {source: app, url: "https://example.com/", events: ["fast"], retry: {max: 100}}
  slow: {source: app, url: "https://example.com/", events: ["slow"], retry: {max: 100}}
`

func newModel(t *testing.T, seed uint64) *model {
	conn, err := sqlite.Open(filepath.Join(t.TempDir(), "gateway.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := store.New(conn, store.SQLite, time.Now).Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &model{
		t: t, conn: conn, life: 300 * time.Second, limit: 30 * time.Second, apart: 90 * time.Second, random: rand.New(rand.NewPCG(seed, 1)),
		due: map[core.ID]time.Time{},
	}
}

// between returns a random duration from least to most.
func (m *model) between(least, most time.Duration) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.quick {
		return least
	}
	return least + time.Duration(m.random.Int64N(int64(most-least)+1))
}

func (m *model) chance(one int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.random.IntN(one) == 0
}

// Batch takes a random time. A batch of a dead process does not end before its context.
func (p *process) Batch(ctx context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	time.Sleep(p.m.between(time.Millisecond, batchTakes/2))
	if p.dead.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if p.m.broken != nil && p.m.broken(stmts[0].Name) {
		return nil, core.Refuse(core.Unavailable, "the database has a bad moment")
	}
	results, err := p.Conn.Batch(ctx, stmts...)
	time.Sleep(p.m.between(time.Millisecond, batchTakes/2))
	return results, err
}

func (p *process) Close() error { return nil }

// start makes an environment of a part of the gateway.
func (m *model) start(part gateway.Part) *process {
	fn, _ := newTest(m.t, part, modelYAML, map[string]string{
		"GATEWAY_NUDGE": "worker", "AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "key", "AWS_SESSION_TOKEN": "session",
	})
	p := &process{Conn: m.conn, m: m, fn: fn}
	fn.drive = func(config.Database) (func(context.Context) (store.Conn, error), store.Dialect, error) {
		return func(context.Context) (store.Conn, error) { return p, nil }, store.SQLite, nil
	}
	fn.wake = fn.newNudger
	a, err := fn.ready(context.Background())
	if err != nil {
		m.t.Fatal(err)
	}
	a.nudger.client.Transport, a.nudger.heard = p, p.bell.Listen("handler/fast", "handler/slow")
	p.bell.Others(a.nudger.heard)
	if a.Worker != nil {
		a.Worker = p.worker(a.Store)
	}
	return p
}

// worker makes a worker whose sender is the process itself.
func (p *process) worker(s core.Store) *worker.Worker {
	target := func(lane core.Lane, timeout time.Duration) worker.Target {
		retry := core.Retry{Max: 100, Interval: time.Millisecond}
		return worker.Target{Lane: lane, Sender: p, Retry: retry, Timeout: timeout, Hold: timeout + 15*time.Second}
	}
	targets := []worker.Target{target("handler/slow", p.m.limit)}
	if !p.m.slow {
		targets = append(targets, target("handler/fast", 5*time.Second))
	}
	return worker.New(
		worker.Deps{Worklist: &noting{s, p}, Bell: &p.bell, Clock: time.Now, Observe: func(core.Fact) {}},
		worker.Limits{Slots: 60, Batch: 20, Drain: time.Minute}, targets)
}

// A noting worklist records when retries are due. It leaves out jobs that ended: if the process
// dies before their end is stored, they count from the begin of their attempt.
type noting struct {
	core.Worklist
	p *process
}

func (n *noting) Settle(ctx context.Context, outcomes ...core.Outcome) (core.Settlement, error) {
	if !n.p.dead.Load() {
		n.p.m.mu.Lock()
		for _, o := range outcomes {
			if !o.DueAt.IsZero() {
				n.p.m.due[o.JobID] = o.DueAt
			}
		}
		n.p.m.mu.Unlock()
	}
	return n.Worklist.Settle(ctx, outcomes...)
}

// Send plays an attempt. Without an answer of the test, one attempt in three fails and asks
// for a retry after a random time.
func (p *process) Send(ctx context.Context, j core.TakenJob) worker.Reply {
	m := p.m
	m.mu.Lock()
	due, ok := m.due[j.ID]
	if !ok {
		due = j.Event.CreatedAt
	}
	if late := time.Since(due); !p.dead.Load() {
		if len(m.late) == 0 || late > slices.Max(m.late) {
			m.worst = j.Lane.Consumer() + " due at " + due.Format("15:04:05.000") + ", attempt " + string(rune('0'+min(j.Attempt, 9)))
		}
		m.late = append(m.late, late)
		m.due[j.ID] = time.Now() // if the process dies in this attempt, the next one counts from here
	}
	m.mu.Unlock()
	took, reply := m.reply(j)
	select {
	case <-time.After(took):
		return reply
	case <-ctx.Done():
		return worker.Reply{Error: "timeout"}
	}
}

func (m *model) reply(j core.TakenJob) (took time.Duration, r worker.Reply) {
	if m.answer != nil {
		return m.answer(j)
	}
	took = m.between(5*time.Millisecond, 60*time.Millisecond)
	if j.Lane == "handler/slow" {
		took = m.between(3*time.Second, 25*time.Second)
	}
	if m.chance(3) {
		return took, again(m.between(200*time.Millisecond, 64*time.Second))
	}
	return took, worker.Reply{OK: true, StatusCode: 200}
}

// again is the answer of a handler that asks for a retry after a time.
func again(after time.Duration) worker.Reply {
	return worker.Reply{StatusCode: 503, Error: "status: 503", RetryAfter: after, Unsent: true}
}

// RoundTrip plays Lambda's API.
func (p *process) RoundTrip(r *http.Request) (*http.Response, error) {
	m := p.m
	payload, _ := io.ReadAll(r.Body)
	time.Sleep(m.between(5*time.Millisecond, callTakes))
	status := 202
	switch {
	case p.dead.Load():
		<-r.Context().Done()
		return nil, r.Context().Err()
	case m.flaky && p.refused < nudgeTries-1 && m.chance(3):
		p.refused++
		status = 429
	default:
		p.refused = 0
		m.mu.Lock()
		m.asked++
		m.mu.Unlock()
		m.invoke(payload)
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
}

// invoke runs the worker's function in the background.
func (m *model) invoke(payload []byte) {
	m.invocations.Go(func() {
		time.Sleep(m.between(20*time.Millisecond, invokeTakes))
		p := m.environment()
		began := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), m.life)
		defer cancel()
		if m.mortal && m.chance(4) {
			time.AfterFunc(m.between(0, 40*time.Second), func() { p.dead.Store(true) })
		}
		_, err := (&ticking{p.fn, p.fn.work}).Invoke(ctx, payload)
		if p.dead.Load() {
			return
		}
		if err != nil {
			m.t.Errorf("Invoke(%s) = %v", payload, err)
		}
		m.mu.Lock()
		m.spare = append(m.spare, p)
		m.awake += time.Since(began)
		m.mu.Unlock()
	})
}

func (m *model) environment() *process {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.spare) > 0 {
		p := m.spare[len(m.spare)-1]
		m.spare = m.spare[:len(m.spare)-1]
		if !p.dead.Load() {
			return p
		}
	}
	m.mu.Unlock()
	p := m.start(gateway.Deliveries)
	m.mu.Lock()
	return p
}

// schedule invokes the worker about once a minute.
func (m *model) schedule(ctx context.Context) {
	m.invocations.Go(func() {
		time.Sleep(m.between(0, time.Minute))
		for next := time.Now(); ctx.Err() == nil; next = next.Add(time.Minute) {
			select {
			case <-time.After(time.Until(next) + m.between(0, 2*time.Second)):
			case <-ctx.Done():
				return
			}
			m.mu.Lock()
			m.minutes++
			m.mu.Unlock()
			m.invoke([]byte(`{}`))
		}
	})
}

// accept sends an event to an environment of intake.
func (m *model) accept(p *process, kind string) {
	text, err := (&server{p.fn}).Invoke(context.Background(), post("/events/app/"+kind, "{}"))
	var r reply
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil || r.StatusCode != 202 {
		m.t.Errorf("event = %+v, %v, want it accepted", r, err)
	}
	p.bell.Ring(core.HandlerLane(kind))
	p.fn.assembled.nudger.flush(context.Background())
}

// postpone stores a job that is due after d, like a callback that resumes a run before a wait
// step.
func (m *model) postpone(p *process, d time.Duration) {
	ctx, a := context.Background(), p.fn.assembled
	now := time.Now()
	event := core.Event{ID: core.NewIDs(time.Now).Next(), Source: "app", Type: "later", Payload: []byte(`{}`), CreatedAt: now}
	job := core.NewIDs(time.Now).Next()
	_, err := a.Store.Accept(ctx, core.Arrival{Event: event, Jobs: []core.NewJob{{ID: job, Lane: "handler/early", MaxAttempts: 100}}})
	if err != nil {
		m.t.Error(err)
		return
	}
	m.mu.Lock()
	m.due[job] = now.Add(d)
	m.mu.Unlock()
	if _, err := m.conn.Batch(ctx, store.Stmt{
		Name: "postpone", SQL: `UPDATE jobs SET lane = 'handler/fast', due_at = ? WHERE id = ?`, Args: []any{now.Add(d).UnixMilli(), string(job)},
	}); err != nil {
		m.t.Error(err)
	}
	p.bell.RingAt("handler/fast", now.Add(d))
	a.nudger.flush(ctx)
}

// finished waits until every job is finished.
func (m *model) finished() {
	s := store.New(m.conn, store.SQLite, time.Now)
	for range 1000 {
		if n, err := s.Depth(context.Background()); err == nil && n == 0 {
			return
		}
		time.Sleep(time.Second)
	}
	m.t.Error("jobs are left a quarter of an hour after the last event")
}

// history sends random events for some minutes.
func (m *model) history(minutes int) {
	intakes := []*process{m.start(gateway.IntakeRoutes), m.start(gateway.IntakeRoutes), m.start(gateway.IntakeRoutes)}
	for end := time.Now().Add(time.Duration(minutes) * time.Minute); time.Now().Before(end); {
		p := intakes[m.between(0, 2)]
		switch m.between(0, 5) {
		case 0:
			m.accept(p, "slow")
		case 1, 2:
			m.postpone(p, m.between(50*time.Millisecond, 64*time.Second))
		default:
			m.accept(p, "fast")
		}
		pause := m.between(0, m.apart)
		if m.chance(2) {
			pause = m.between(0, 1500*time.Millisecond)
		}
		time.Sleep(pause)
	}
}

func (m *model) latest() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	slices.Sort(m.late)
	return m.late[len(m.late)-1]
}

// run plays some minutes of a model and waits until all their jobs and invocations have ended.
func (m *model) run(minutes int) {
	ctx, stop := context.WithCancel(m.t.Context())
	m.schedule(ctx)
	m.history(minutes)
	m.finished()
	m.rest()
	stop()
	m.invocations.Wait()
	latest := m.latest() // latest sorts m.late
	m.t.Logf("%d attempts, half began within %v, all within %v (%s); %d nudges, %d minutes, workers awake for %v",
		len(m.late), m.late[len(m.late)/2].Round(time.Millisecond), latest.Round(time.Millisecond), m.worst,
		m.asked, m.minutes, m.awake.Round(time.Second))
}

// rest requires that functions without work stay idle for ten minutes: no nudge is sent, and
// each scheduled worker ends in less than a second.
func (m *model) rest() {
	time.Sleep(2 * time.Minute) // the leases of dead workers and the workers that were nudged last have ended then
	m.mu.Lock()
	asked, minutes, awake := m.asked, m.minutes, m.awake
	m.mu.Unlock()
	time.Sleep(10 * time.Minute)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.asked != asked {
		m.t.Errorf("%d nudges in ten idle minutes, want none", m.asked-asked)
	}
	n := m.minutes - minutes
	if each := (m.awake - awake) / time.Duration(max(n, 1)); n < 9 || n > 11 || each > time.Second {
		m.t.Errorf("the schedule invoked %d workers in ten idle minutes, awake for %v each, want one a minute for less than a second", n, each)
	}
}

// The longest durations in a model: of a batch of the database, of a call of Lambda's API, and
// from that call until the worker runs.
const (
	batchTakes  = 80 * time.Millisecond
	callTakes   = 50 * time.Millisecond
	invokeTakes = 500 * time.Millisecond
)

// bound is the longest delay of an attempt while no worker dies. A process stores a job and
// nudges a worker. The worker reaches the database, takes its turn, looks, and takes the job.
// A worker that is awake already is faster.
func (m *model) bound() time.Duration {
	bound := callTakes + invokeTakes + 8*batchTakes
	if m.flaky {
		pauses := nudgePause * (1 + 3 + 9)
		bound += pauses + (nudgeTries-1)*callTakes
	}
	if m.life < workFor+m.limit {
		// A fresh worker may just have been nudged for another attempt. Before a worker nudges
		// again, it looks whether the attempt is still due, and asks for the turn.
		bound += freshHold + 3*batchTakes
	}
	return bound
}

// seeds returns the number of seeds of a test: a third of all in a short run.
func seeds(all uint64) uint64 {
	if testing.Short() {
		return all / 3
	}
	return all
}

// The invariant: while no process dies, a worker is awake or is woken for each job that comes
// due within the minute. It holds for jobs stored by any worker, and while other workers are
// busy. No delivery waits for a minute's tick: each begins within two seconds, if Lambda's API
// answers and invocations are long enough for each attempt. Without work no worker is woken.
func TestDueWithinTheMinuteIsInTime(t *testing.T) {
	for seed := range seeds(6) {
		synctest.Test(t, func(t *testing.T) {
			m := newModel(t, seed)
			m.flaky = seed%3 == 2
			if seed%2 == 1 {
				m.life = 75 * time.Second // the shortest timeout that template.yaml allows for the worker
			}
			m.run(25)
			if d, bound := m.latest(), m.bound(); d > bound {
				t.Errorf("seed %d: the latest of %d attempts began %v after it was due (%s), want at most %v", seed, len(m.late), d, m.worst, bound)
			}
		})
	}
}

// If workers die, the tick of the next minute takes over their jobs: no job waits for longer
// than the lease of a dead worker and one minute.
func TestMinuteIsTheFallback(t *testing.T) {
	for seed := range seeds(3) {
		synctest.Test(t, func(t *testing.T) {
			m := newModel(t, seed)
			m.mortal, m.flaky = true, true
			m.run(10)
			if d, bound := m.latest(), 45*time.Second+time.Minute+5*time.Second; d > bound {
				t.Errorf("seed %d: the latest of %d attempts began %v after it was due (%s), want at most %v", seed, len(m.late), d, m.worst, bound)
			}
		})
	}
}
