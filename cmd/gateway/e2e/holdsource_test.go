//go:build linux

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// holdSourceConfig has two sources with a handler each. Events of the first also have messages and
// runs. A schedule fires each second.
const holdSourceConfig = `
server: {host: 127.0.0.1, port: "${PORT}", allow_private_urls: true}
delivery: {timeout: 5s, default_retry: {max: 50, backoff: fixed, interval: 100ms}}
sources:
  app: {type: event}
  other: {type: event}
  second: {type: cron, schedule: "* * * * * *"}
handlers:
  billing: {source: app, url: "${RECEIVER}/billing"}
  notes: {source: other, url: "${RECEIVER}/notes"}
  ticks: {source: second, url: "${RECEIVER}/ticks"}
queues: {line: {source: app, visibility_timeout: 60s}}
workflows: {flow: {source: app, steps: [{name: pack, url: "${RECEIVER}/pack"}]}}
`

// heldEvents is how many events the held source accepts.
const heldEvents = 40

// TestHeldSource: while a source is held, its events are accepted, and no job of them is taken.
// Another source goes on. A held schedule makes no events, and does not make up for them. A kill and
// reloads, one of which leaves the source out, do not end the holds. After the release each job is
// tried once.
func TestHeldSource(t *testing.T) {
	t.Parallel()
	for _, p := range append([]place{{"SQLite", ownFile}}, everyServer()...) {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			s := &heldSource{t: t, r: receiver.New(t)}
			s.g = newGatewayOn(t, p.on(t), holdSourceConfig, s.r)
			s.g.start()
			s.r.Await(t, 20*time.Second, "/ticks", 1)
			s.hold("source/app", "source/second")
			held := time.Now()
			s.send()
			s.goesOn("while a source is held")
			s.g.kill()
			s.g.start()
			s.goesOn("after a kill")
			without := strings.NewReplacer("  app: {type: event}\n", "", "source: app", "source: other").Replace(holdSourceConfig)
			for n, config := range []string{without, holdSourceConfig} {
				reloadAll(t, []*gateway{s.g}, config, n+1)
			}
			s.goesOn("after reloads")
			wait.For(t, 20*time.Second, "slots of the held schedule are counted", func() bool {
				n := s.g.series(`gateway_cron_slots_held_total{source="second"}`)
				return n != "" && n != "0" && n != "1"
			})
			s.untouched(held)
			s.finish(s.release("source/app", "source/second"))
		})
	}
}

// A heldSource is a gateway with the events that were sent to it.
type heldSource struct {
	t    *testing.T
	r    *receiver.Receiver
	g    *gateway
	sent []string // events of the held source
	free int      // events of the other source
}

// hold holds sources over the API.
func (s *heldSource) hold(targets ...string) {
	s.t.Helper()
	for _, target := range targets {
		if a := s.g.post("/api/holds", fmt.Sprintf(`{"target": %q, "reason": "wrong prices"}`, target)); a.status != http.StatusOK {
			s.t.Fatalf("hold %s = %d %q, want 200", target, a.status, a.body)
		}
	}
}

// release releases sources over the API, and returns when it began to.
func (s *heldSource) release(targets ...string) time.Time {
	s.t.Helper()
	began := time.Now()
	for _, target := range targets {
		a, err := fetch(pooled, request{method: http.MethodDelete, url: s.g.url("/api/holds?target=" + target)})
		if err != nil || a.body != `{"released":true}` {
			s.t.Fatalf("release %s = %d %q, %v, want that it was held", target, a.status, a.body, err)
		}
	}
	return began
}

// send sends the events of the held source.
func (s *heldSource) send() {
	s.t.Helper()
	for range heldEvents {
		s.sent = append(s.sent, s.g.send("/events/app/order.created", `{}`))
	}
}

// goesOn sends an event of the other source and waits for its delivery: so the process has looked
// for work.
func (s *heldSource) goesOn(when string) {
	s.t.Helper()
	s.g.send("/events/other/note.added", `{}`)
	s.free++
	s.r.Await(s.t, 20*time.Second, "/notes", s.free)
	if n := len(s.r.At("/billing")) + len(s.r.At("/pack")); n > 0 {
		s.t.Errorf("%d deliveries of the held source %s, want none", n, when)
	}
}

// untouched checks the jobs during the hold: none is under way or has an attempt, a consumer
// gets no message, and each job says for which source it waits. The schedule has stood still.
func (s *heldSource) untouched(held time.Time) {
	s.t.Helper()
	db := s.g.ledger()
	defer db.close()
	const lanes = `lane IN ('handler/billing', 'queue/line', 'workflow/flow')`
	if n := db.count(`SELECT COUNT(*) FROM jobs WHERE ` + lanes + ` AND status = 'available' AND attempt = 0`); n != 3*heldEvents {
		s.t.Errorf("%d jobs of the held source are available and untried, want all %d", n, 3*heldEvents)
	}
	if got := (queue{g: s.g, name: "line"}).receive(10, "0s"); len(got) > 0 {
		s.t.Errorf("a consumer received %d messages of the held source, want none", len(got))
	}
	var list struct {
		Jobs []struct {
			Status  string
			Waiting struct{ For, Source, Reason string }
		}
	}
	s.g.runJSON(&list, "jobs", "list", "--handler", "billing", "--limit", "1000")
	for _, j := range list.Jobs {
		if j.Status != "available" || j.Waiting.For != "hold" || j.Waiting.Source != "app" || j.Waiting.Reason != "wrong prices" {
			s.t.Fatalf("a job of the held source is shown as %+v, want available, and that it waits for the hold of app", j)
		}
	}
	for _, d := range s.r.At("/ticks") {
		if slot := slotOf(s.t, d); slot.After(held) {
			s.t.Errorf("slot %v was fired after the hold at %v", slot, held)
		}
	}
}

// finish checks that each job is tried once after the release, the first ones slowly, and that the
// schedule goes on with the slots after it.
func (s *heldSource) finish(released time.Time) {
	s.t.Helper()
	deliveries := s.r.Await(s.t, 30*time.Second, "/billing", heldEvents)
	s.r.Await(s.t, 30*time.Second, "/pack", heldEvents)
	if early := counted(deliveries, released, 0, 900*time.Millisecond); early > 10 {
		s.t.Errorf("%d deliveries in the first 0.9 s after the release, want that they begin slowly", early)
	}
	for _, d := range deliveries {
		if d.Attempt() != 1 || !slices.Contains(s.sent, d.Event()) {
			s.t.Errorf("delivery of %s at attempt %d, want a sent event at its first attempt", d.Event(), d.Attempt())
		}
	}
	var events []string
	wait.For(s.t, 20*time.Second, "all messages are received", func() bool {
		for _, m := range (queue{g: s.g, name: "line"}).receive(10, "0s") {
			events = append(events, m.EventID)
		}
		return len(events) >= heldEvents
	})
	if slices.Sort(events); !slices.Equal(events, slices.Sorted(slices.Values(s.sent))) {
		s.t.Errorf("received messages of %d events, want each of the %d sent once", len(events), heldEvents)
	}
	var first time.Time
	wait.For(s.t, 20*time.Second, "the schedule goes on", func() bool {
		for _, d := range s.r.At("/ticks") {
			if slot := slotOf(s.t, d); slot.After(released) {
				first = slot
			}
		}
		return !first.IsZero()
	})
	for _, d := range s.r.At("/ticks") {
		if slot := slotOf(s.t, d); slot.After(released.Add(-time.Second)) && slot.Before(released.Truncate(time.Second)) {
			s.t.Errorf("slot %v before the release at %v was made up for", slot, released)
		}
	}
	if out := s.g.run("holds"); strings.TrimSpace(out) != "" {
		s.t.Errorf("gateway holds = %q after the release, want none", out)
	}
}

// TestSourceHeldAtLoad: while senders push, a source is held and released. From one look of each
// process at the database on, none of them delivers anything of it, and the other source goes on.
// After the release each event is delivered once, at its first attempt.
func TestSourceHeldAtLoad(t *testing.T) {
	t.Parallel()
	for _, p := range []holdPlace{
		{place{"SQLite", ownFile}, 1, holdLook, 2 * time.Millisecond, 50 * time.Millisecond},
		{place{"PostgreSQL", onPostgres}, 2, holdLook, 2 * time.Millisecond, 50 * time.Millisecond},
		{place{"MySQL", onMySQL}, 2, holdLook, 2 * time.Millisecond, 50 * time.Millisecond},
		{place{"D1", onProxy}, 2, holdLookD1, 100 * time.Millisecond, 200 * time.Millisecond},
	} {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			testSourceHeldAtLoad(t, p)
		})
	}
}

func testSourceHeldAtLoad(t *testing.T, p holdPlace) {
	r, st := receiver.New(t), p.on(t)
	var fleet []*gateway
	for range p.processes {
		g := newGatewayOn(t, st, holdSourceConfig, r)
		g.start()
		fleet = append(fleet, g)
	}
	s := &heldSource{t: t, r: r, g: fleet[0]}
	load := pushTo(t, fleet, p.fast)
	r.Await(t, 20*time.Second, "/billing", 30)
	s.hold("source/app")
	silent := time.Now().Add(p.look + holdGrace)
	load.pause.Store(int64(p.slowly))
	<-time.After(time.Until(silent))
	before := len(r.At("/notes"))
	r.Await(t, 20*time.Second, "/notes", before+3*len(fleet))
	released := s.release("source/app")
	if n := counted(r.At("/billing"), silent, 0, released.Sub(silent)); n > 0 {
		t.Errorf("%d deliveries of the held source, want none", n)
	}
	load.end()
	want := load.accepted
	for _, path := range []string{"/billing", "/pack"} {
		for _, d := range r.Await(t, 60*time.Second, path, len(want)) {
			if d.Attempt() != 1 || !want[d.Event()] {
				t.Errorf("delivery of %s to %s at attempt %d, want an accepted event at its first attempt", d.Event(), path, d.Attempt())
			}
		}
	}
	if len(load.refused) > 0 {
		t.Errorf("%d answers other than 202, such as %s", len(load.refused), load.refused[0])
	}
	if n, all := len(r.At("/billing")), len(want); n != all {
		t.Errorf("%d deliveries of %d events", n, all)
	}
}

// A push is senders of events of both sources of holdSourceConfig.
type push struct {
	pause    atomic.Int64 // between two events, in nanoseconds
	end      func()       // stops the senders
	accepted map[string]bool
	refused  []string // answers other than 202, and errors
}

// pushTo starts a sender that sends to each process in turn.
func pushTo(t *testing.T, fleet []*gateway, every time.Duration) *push {
	p := &push{accepted: map[string]bool{}}
	p.pause.Store(int64(every))
	ctx, stop := context.WithCancel(context.Background())
	var sender sync.WaitGroup
	sender.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			source := []string{"app", "other"}[i/len(fleet)%2]
			a, err := fetch(pooled, request{method: http.MethodPost, url: fleet[i%len(fleet)].url("/events/" + source + "/order.created"), body: `{}`})
			switch {
			case err != nil || a.status != http.StatusAccepted:
				p.refused = append(p.refused, fmt.Sprint(a.status, a.body, err))
			case source == "app":
				p.accepted[a.eventID()] = true
			}
			pause(ctx, time.Duration(p.pause.Load()))
		}
	})
	p.end = func() {
		stop()
		sender.Wait()
	}
	t.Cleanup(p.end)
	return p
}
