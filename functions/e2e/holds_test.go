//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/wait"
)

// TestHold: a handler that is held gets nothing. A worker ends as soon as without the backlog,
// and none is nudged for it. After a release, which the pull function serves, ticks deliver the
// backlog; another hold stops them.
func TestHold(t *testing.T) { testHold(t, "orders") }

// TestHeldSource: the same if the source of its events is held.
func TestHeldSource(t *testing.T) { testHold(t, "source/app") }

func testHold(t *testing.T, target string) {
	onEach(t, func(t *testing.T, db *database) {
		d, r := newStory(t, db)
		d.worker.SetTimeout(time.Minute)
		idle := d.tick(d.worker).Took
		d.must(200, "POST", "/api/holds", fmt.Sprintf(`{"target": %q, "reason": "maintenance"}`, target))
		const events = 60 // the ramp after a release needs four seconds for them
		for range events {
			d.send("/events/order.created", `{}`)
		}
		free := []string{"X-Hub-Signature-256", "sha256=" + hexHMAC(githubSecret, `{}`), "X-GitHub-Event", "issues", "X-GitHub-Delivery", "0001"}
		d.must(200, "POST", "/webhooks/github", `{}`, free...)
		r.Await(t, 10*time.Second, "/issues", 1)
		wait.For(t, 30*time.Second, "all workers have ended", func() bool { return !busy(d.worker) })
		nudges := len(d.service.Calls())
		held := d.tick(d.worker).Took
		t.Logf("a tick took %v without a backlog, %v with one that is held", idle.Round(time.Millisecond), held.Round(time.Millisecond))
		// An idle worker that was invoked by the schedule ends after two looks, and one that was
		// nudged stays for 2 s, and longer if the machine is busy. A worker that waited for the backlog
		// would stay for most of its minute.
		for i, res := range d.worker.Results() {
			if res.Took > 20*time.Second || res.Error != "" {
				t.Errorf("invocation %d of the worker took %v, error %q, want at most 20s", i+1, res.Took, res.Error)
			}
		}
		if n := len(d.service.Calls()) - nudges; n != 0 {
			t.Errorf("nudges while all that is left is held: %d, want none", n)
		}
		if n := len(r.At("/orders")); n != 0 {
			t.Errorf("deliveries to the handler that is held = %d, want 0", n)
		}
		waiting := func(want int) {
			t.Helper()
			if n := db.count(`SELECT COUNT(*) FROM jobs WHERE lane = 'handler/orders' AND status = 'available' AND attempt = 0`); n != want {
				t.Errorf("jobs that wait untried = %d, want %d", n, want)
			}
		}
		waiting(events)

		// Held again while a worker delivers the backlog, slowly as after each release.
		d.release(target)
		d.worker.InvokeAsync([]byte(`{}`))
		r.Await(t, 20*time.Second, "/orders", 3)
		d.must(200, "POST", "/api/holds", fmt.Sprintf(`{"target": %q}`, target))
		again, before := time.Now(), len(r.At("/orders"))
		wait.For(t, 20*time.Second, "the worker has ended", func() bool { return !busy(d.worker) })
		ended, after := time.Since(again), len(r.At("/orders"))
		t.Logf("%d deliveries until the second hold, %d after it; the worker ended after %v", before, after-before, ended.Round(time.Millisecond))
		if after == events { // a worker that waited is not seen to end above
			t.Errorf("the worker ended %v after the second hold, with all %d events delivered, want an early end", ended, events)
		}
		waiting(events - after)

		d.release(target)
		d.tick(d.worker)
		d.awaitIdle(20 * time.Second)
		d.wantAudit(4)
		d.stop()
		db.sound()
		if n := len(r.At("/orders")); n != events {
			t.Errorf("deliveries after the release = %d, want %d", n, events)
		}
		for _, got := range r.At("/orders") {
			if got.Attempt() != 1 {
				t.Errorf("a delivery after the release is attempt %d, want 1", got.Attempt())
			}
		}
	})
}

// wantAudit requires that the audit has an entry for each of the holds and releases, by a client
// whose address the function's caller stated.
func (d *deployment) wantAudit(n int) {
	d.t.Helper()
	var page struct {
		Entries []struct{ Actor, Address, Action, Via string }
	}
	a := d.must(200, "GET", "/api/audit", "")
	if err := json.Unmarshal([]byte(a.body), &page); err != nil || len(page.Entries) != n {
		d.t.Fatalf("audit = %s, %v; want %d entries", a.body, err, n)
	}
	for i, e := range page.Entries { // newest first
		if want := []string{"holds.release", "holds.hold"}[i%2]; e.Action != want || e.Actor != "anonymous" || e.Via != "api" || e.Address == "" {
			d.t.Errorf("entry %d of the audit = %+v, want %s by anonymous", i, e, want)
		}
	}
}

// release ends a hold, and requires that there was one.
func (d *deployment) release(target string) {
	d.t.Helper()
	if a := d.must(200, "DELETE", "/api/holds?target="+target, ""); a.body != `{"released":true}` {
		d.t.Errorf("release of %s = %s, want that it was held", target, a.body)
	}
}
