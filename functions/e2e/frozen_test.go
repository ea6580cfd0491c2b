//go:build linux

package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/lambda"
	"github.com/eventgateway/gateway/infra/test/receiver"
)

// TestThawed: copies are frozen between invocations, and their connections die meanwhile. The
// next request is served, or refused with Retry-After. Accepted events are delivered.
func TestThawed(t *testing.T) {
	everywhere(t, func(t *testing.T, db *database) {
		d, r := newStory(t, db)
		accepted, refused := 0, 0
		for range 6 {
			db.wire.Sever()
			a, err := ask("POST", d.api.URL+"/events/order.created", `{}`)
			switch {
			case err != nil:
				t.Fatal(err)
			case a.status == http.StatusAccepted:
				accepted++
			case a.status == http.StatusServiceUnavailable && a.header.Get("Retry-After") != "":
				refused++
				d.send("/events/order.created", `{}`) // the sender tries again
				accepted++
			default:
				t.Errorf("event = %d %q, want 202, or 503 with Retry-After", a.status, a.body)
			}
			if got := d.receiveAnswer(); got != 200 && got != 503 {
				t.Errorf("receive = %d, want 200 or 503", got)
			}
			r.Await(t, 20*time.Second, "/orders", accepted)
		}
		t.Logf("accepted %d, of which %d at the second try", accepted, refused)
		d.awaitIdle(20 * time.Second)
		if n := len(d.intake.Copies()); n != 1 {
			t.Errorf("copies of intake = %d, want one, which was frozen and woken", n)
		}
		d.stop()
		db.sound()
	})
}

func (d *deployment) receiveAnswer() int {
	a, err := ask("GET", d.api.URL+"/api/queues/inbox/messages?wait=0s", "")
	if err != nil {
		d.t.Error(err)
	}
	return a.status
}

// TestForgotten: a network drops idle connections without notice. The first request over such
// a connection may be refused; the next request has a new connection.
func TestForgotten(t *testing.T) {
	onEach(t, func(t *testing.T, db *database) {
		d, _ := newStory(t, db)
		d.intake.SetTimeout(15 * time.Second)
		d.send("/events/order.created", `{}`)
		d.awaitIdle(20 * time.Second)
		db.wire.Forget()
		began := time.Now()
		a, err := ask("POST", d.api.URL+"/events/order.created", `{}`)
		if err != nil || a.status != 202 && a.status != 503 {
			t.Errorf("event = %d %q, %v, want 202 or 503", a.status, a.body, err)
		}
		t.Logf("%d after %v", a.status, time.Since(began).Round(time.Millisecond))
		d.send("/events/order.created", `{}`)
	})
}

// TestNothingRunsAfterwards: a copy that is not frozen sends nothing to the database between
// its invocations.
func TestNothingRunsAfterwards(t *testing.T) {
	onEach(t, func(t *testing.T, db *database) {
		r := receiver.New(t)
		d := deploy{config: storyConfig, receiver: r, change: func(o *lambda.Options) { o.Awake = true }}.new(t, db)
		d.send("/events/order.created", `{}`)
		d.send("/events/message.sent", `{}`)
		d.ack(d.receive("2s"))
		d.must(200, "GET", "/health", "")
		d.tick(d.worker)
		d.tick(d.cron)
		r.Await(t, 20*time.Second, "/orders", 1)
		d.awaitIdle(20 * time.Second)
		before, invocations := db.wire.Bytes(), d.invocations()
		goesBy(t, 1500*time.Millisecond)
		if after := db.wire.Bytes(); after != before || d.invocations() != invocations {
			t.Errorf("%d bytes went to or from the database, with %d invocations, want none", after-before, d.invocations()-invocations)
		}
		for _, f := range d.functions() {
			if len(f.Copies()) == 0 {
				t.Errorf("no copy of %s is there", f.Name)
			}
		}
	})
}

// invocations counts the invocations that have ended.
func (d *deployment) invocations() (n int) {
	for _, f := range d.functions() {
		n += len(f.Results())
	}
	return n
}
