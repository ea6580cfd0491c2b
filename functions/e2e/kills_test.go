//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/lambda"
	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// killConfig has enough attempts for a job whose copy is killed many times.
const killConfig = `
server: {allow_private_urls: true}
delivery: {timeout: 1s, default_retry: {max: 100, backoff: fixed, interval: 200ms}}
worker: {max_concurrency: 10, batch_size: 10}
sources: {app: {type: event}}
handlers: {load: {source: app, url: "${RECEIVER}/load", headers: {x-copy: "${AWS_LAMBDA_LOG_STREAM_NAME}"}}}
`

// kills is the number of copies that TestKills kills.
const kills = 24

// TestKills checks the main promise: each event answered with 202 is delivered. An event is
// delivered twice only if the copy that delivered it was killed before it stored the outcome.
// Several copies of each function run at once, nudged and by schedule.
func TestKills(t *testing.T) {
	everywhere(t, func(t *testing.T, db *database) {
		r := receiver.New(t)
		r.On("/load", r.Taking(5*time.Millisecond))
		w := newWitness(r)
		d := deploy{config: killConfig, receiver: r, change: func(o *lambda.Options) { o.MaxCopies, o.Timeout = 4, min(o.Timeout, 8*time.Second) }}.new(t, db)
		unschedule := d.service.Schedule(d.worker, 2*time.Second)

		ctx, cancel := context.WithCancel(t.Context())
		ended := w.load(ctx, d.api.URL, 4, 10*time.Millisecond)
		most := 0
		for n := 0; n < kills; {
			before := w.yes()
			goesBy(t, 50*time.Millisecond+rand.N(150*time.Millisecond))
			wait.For(t, 30*time.Second, "some more events are accepted", func() bool { return w.yes() > before+3 })
			most = max(most, len(d.worker.Copies())+len(d.intake.Copies()))
			if killOne(d, w) {
				n++
			}
		}
		cancel()
		ended()
		wait.For(t, 40*time.Second, "all accepted events are delivered", func() bool { return w.missing() == 0 })
		d.awaitIdle(30 * time.Second)
		unschedule()
		d.stop()

		v := w.judge()
		t.Logf("%v; at most %d copies at once", v, most)
		v.check(t)
		for _, r := range d.worker.Results() {
			if r.Error == lambda.TimedOut {
				t.Errorf("a tick of copy %d went on until its timeout", r.Copy)
			}
		}
		db.sound()
		if n := db.count(`SELECT COUNT(*) FROM jobs WHERE status <> 'completed'`); n != 0 {
			t.Errorf("jobs that are not completed: %d, want 0", n)
		}
	})
}

// TestRunsOutliveKills: workflow runs complete and take each callback once, although copies of
// the worker are killed.
func TestRunsOutliveKills(t *testing.T) {
	onEach(t, func(t *testing.T, db *database) {
		r := receiver.New(t)
		d := deploy{config: storyConfig, receiver: r, change: func(o *lambda.Options) { o.MaxCopies = 3 }}.new(t, db)
		d.worker.SetTimeout(10 * time.Second)
		d.service.Schedule(d.worker, 2*time.Second)
		waiting := make(chan string, 1000)
		r.On("/ask", asking(waiting))
		completed := func() int { return db.count(`SELECT COUNT(*) FROM runs WHERE status = 'completed'`) }
		w := newWitness(receiver.New(t)) // records the kills only
		runs := 0
		for n := 0; n < 10; {
			for ; runs < completed()+5; runs++ {
				d.send("/events/approval.wanted", `{}`)
			}
			goesBy(t, 50*time.Millisecond+rand.N(100*time.Millisecond))
			d.callBack(waiting)
			if killOne(d, w) {
				n++
			}
		}
		wait.For(t, 60*time.Second, "all runs are completed", func() bool {
			d.callBack(waiting)
			return completed() == runs
		})
		d.awaitIdle(30 * time.Second)
		d.stop()
		t.Logf("%d runs outlived %d kills", runs, len(w.killed))
		db.sound()
		if n := db.count(`SELECT COUNT(*) FROM callbacks WHERE step_id <> ''`); n != 0 {
			t.Errorf("tokens that are left: %d, want 0", n)
		}
	})
}

// callBack sends the callbacks of the waiting steps. A callback that is refused for now stays
// in waiting.
func (d *deployment) callBack(waiting chan string) {
	for range len(waiting) {
		url := <-waiting
		a, err := ask("POST", url, `{"by": "desk"}`)
		// 404 is the answer to a second token of a step that the first token resumed.
		if err != nil || a.status != 200 && a.status != 404 {
			waiting <- url
		}
	}
}

// TestQueueOutlivesKills: no message is lost if the copy that handed it out is killed, and
// each message is acknowledged in the end.
func TestQueueOutlivesKills(t *testing.T) {
	onEach(t, func(t *testing.T, db *database) {
		d := deploy{config: storyConfig, receiver: receiver.New(t)}.new(t, db)
		var consumers sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		for range 3 {
			consumers.Go(func() {
				for ctx.Err() == nil {
					d.consume()
				}
			})
		}
		messages := 0
		for n := 0; n < 10; {
			for range 4 {
				d.send("/events/message.sent", `{}`)
				messages++
			}
			goesBy(t, 20*time.Millisecond+rand.N(50*time.Millisecond))
			if c := working(d.pull); c != nil {
				c.Kill()
				n++
			}
		}
		wait.For(t, 30*time.Second, "all messages are acknowledged", db.finished)
		cancel()
		consumers.Wait()
		d.stop()
		if n := db.count(`SELECT COUNT(*) FROM jobs WHERE status = 'completed'`); n != messages {
			t.Errorf("acknowledged messages = %d, want %d", n, messages)
		}
		db.sound()
	})
}

// consume receives some messages and acknowledges them. It ignores errors.
func (d *deployment) consume() {
	a, err := ask("GET", d.api.URL+"/api/queues/inbox/messages?batch=3&wait=1s", "")
	var got struct{ Messages []message }
	if err != nil || a.status != 200 || json.Unmarshal([]byte(a.body), &got) != nil || len(got.Messages) == 0 {
		return
	}
	ids := make([]string, len(got.Messages))
	for i, m := range got.Messages {
		ids[i] = m.Receipt
	}
	body, _ := json.Marshal(map[string]any{"ids": ids}) // cannot fail
	_, _ = ask("POST", d.api.URL+"/api/queues/inbox/ack", string(body))
}

// killOne kills a busy copy: of the worker with probability 2/3, otherwise of intake.
func killOne(d *deployment, w *witness) bool {
	f := d.worker
	if rand.N(3) == 0 {
		f = d.intake
	}
	c := working(f)
	if c == nil {
		return false
	}
	c.Kill()
	w.kill(c.Number, time.Now())
	return true
}

// working returns a random busy copy, or nil.
func working(f *lambda.Function) *lambda.Copy {
	all := slices.DeleteFunc(f.Copies(), func(c *lambda.Copy) bool { return !c.Busy() })
	if len(all) == 0 {
		return nil
	}
	return all[rand.N(len(all))]
}

// TestTermination: a worker that gets SIGTERM finishes the attempts it has begun, as far as
// its time goes, and releases the other jobs: no job waits for the end of a lease.
func TestTermination(t *testing.T) {
	onEach(t, func(t *testing.T, db *database) {
		r := receiver.New(t)
		r.On("/load", r.Taking(100*time.Millisecond))
		d := deploy{config: killConfig, receiver: r, env: []string{"GATEWAY_NUDGE="}}.new(t, db)
		const events = 100 // the worker needs a second for them
		var senders sync.WaitGroup
		for range 4 {
			senders.Go(func() {
				for range events / 4 {
					d.send("/events/load", `{}`)
				}
			})
		}
		senders.Wait()
		d.worker.InvokeAsync([]byte(`{}`))
		r.Await(t, 10*time.Second, "/load", 12) // some jobs are settled, others are running
		began := time.Now()
		if !d.worker.Copies()[0].Tell() {
			t.Fatal("the worker has not asked to be told")
		}
		wait.For(t, 20*time.Second, "the tick ends", func() bool { return !busy(d.worker) })
		t.Logf("the tick ended %v after it was told to", time.Since(began).Round(time.Millisecond))
		d.worker.Kill()
		if n := db.count(`SELECT COUNT(*) FROM jobs WHERE status = 'running'`); n != 0 {
			t.Errorf("jobs left under way: %d, want 0", n)
		}
		if n := len(r.At("/load")); n == events {
			t.Error("it has delivered everything")
		}
		d.tick(d.worker)
		d.awaitIdle(10 * time.Second)
		if n := len(r.At("/load")); n != events {
			t.Errorf("deliveries = %d, want %d, each once", n, events)
		}
		db.sound()
	})
}
