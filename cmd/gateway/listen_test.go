package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/intake"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/worker"
)

// A drawer inspects events. It fails as often as faults says, each time for another reason.
type drawer struct {
	eventService
	faults map[core.ID][]error
	jobs   map[core.ID][]core.Job
	asked  []core.ID
}

func (s *drawer) List(context.Context, core.EventFilter) (core.Page[core.Event], error) {
	return core.Page[core.Event]{}, nil
}

func (s *drawer) Inspect(_ context.Context, id core.ID) (manage.Told, error) {
	s.asked = append(s.asked, id)
	if left := s.faults[id]; len(left) > 0 {
		s.faults[id] = left[1:]
		return manage.Told{}, left[0]
	}
	e := core.Event{ID: id, Source: "shop", Type: "order.created", Payload: fmt.Appendf(nil, `{"n": %d}`, numberOf(id)), CreatedAt: id.Time()}
	return manage.Told{Event: e, Jobs: s.jobs[id]}, nil
}

func numberOf(id core.ID) int {
	return slices.IndexFunc(firstIDs(), func(x core.ID) bool { return x == id })
}

func firstIDs() (ids []core.ID) {
	for n := range 20 {
		ids = append(ids, tailID(n))
	}
	return ids
}

// A workshop answers deliveries: each with the next reply, or the last one again.
type workshop struct {
	replies []worker.Reply
	takes   time.Duration
	got     []core.TakenJob
	at      []time.Duration
	began   time.Time
}

func (w *workshop) Send(ctx context.Context, job core.TakenJob) worker.Reply {
	w.got, w.at = append(w.got, job), append(w.at, time.Since(w.began))
	if err := pause(ctx, w.takes); err != nil {
		return worker.Reply{Error: "timeout: no answer"}
	}
	if len(w.replies) == 0 {
		return worker.Reply{OK: true, StatusCode: 200, Response: "ok"}
	}
	r := w.replies[0]
	w.replies = w.replies[min(1, len(w.replies)-1):]
	return r
}

// events returns the numbers of the delivered events.
func (w *workshop) events() (numbers []int) {
	for _, job := range w.got {
		numbers = append(numbers, numberOf(job.EventID))
	}
	return numbers
}

// listenFor listens for the duration d.
func listenFor(t *testing.T, d time.Duration, l *looks, s *drawer, w *workshop, dress func(*listening)) (stdout, stderr string, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var out, errs strings.Builder
	l.began, w.began = time.Now(), time.Now()
	a := newApp(session{}.system(&out, &errs))
	a.urlFlag = "https://events.example.com"
	listener := &listening{
		app: a, tail: l, events: s, seen: map[core.ID]bool{}, at: manage.Cursor{Finished: never},
		drop:  drop{to: "http://localhost:3000/hooks", sender: w, signed: true, lane: "handler/listen", timeout: 30 * time.Second, wait: 30 * time.Second},
		again: func(last core.ID) string { return "gateway listen --after " + string(last) },
	}
	if dress != nil {
		dress(listener)
	}
	err = listener.listen(ctx)
	return out.String(), errs.String(), err
}

// newsOf returns news with events of these numbers. The cursor stays before the first one, as while
// events of the last seconds are repeated.
func newsOf(numbers ...int) manage.News {
	news := manage.News{Next: manage.Cursor{Event: tailID(0), Finished: never}}
	for _, n := range numbers {
		news.Events = append(news.Events, tailEvent(n, "shop"))
	}
	return news
}

// Events that looks repeat are posted once, an event that appears late is posted, and an event that
// the gateway did not give is posted once it does.
func TestListenPostsEachEventOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &looks{found: []any{newsOf(), newsOf(1, 3), newsOf(1, 2, 3), errors.New("the gateway restarts"), newsOf(2, 3, 4, 5)}}
		s := &drawer{faults: map[core.ID][]error{
			tailID(4): {errors.New("the gateway restarts"), errors.New("it still does")},
			tailID(2): {manage.ErrEvent},
			tailID(3): {core.Refuse(core.Invalid, "the reply would be larger than 6 MB")},
		}}
		w := &workshop{}
		stdout, stderr, err := listenFor(t, 30*time.Second, l, s, w, nil)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it ends with %v", err)
		}
		if diff := cmp.Diff([]int{1, 4, 5}, w.events()); diff != "" {
			t.Errorf("posted (-want +got):\n%s", diff)
		}
		for _, want := range []string{string(tailID(2)) + "  order.created  ->  not posted: event not found\n", "not posted: the reply would be larger than 6 MB\n", string(tailID(5)) + "  order.created  ->  200  <1ms  ok\n"} {
			if !strings.Contains(stdout, want) {
				t.Errorf("printed\n%s\nwant %q", stdout, want)
			}
		}
		if want := "posted 3 events: 3 delivered, 0 failed; 2 could not be read; nothing was settled\ngo on with: gateway listen --after " + string(tailID(5)) + "\n"; !strings.HasSuffix(stderr, want) || strings.Count(stderr, "the gateway restarts; trying again\nconnected again\n") != 1 {
			t.Errorf("said\n%s\nwant %q at its end", stderr, want)
		}
		if !strings.HasPrefix(stderr, "listening to https://events.example.com, posting to http://localhost:3000/hooks; this is no tunnel, and nothing is settled") {
			t.Errorf("said\n%s", stderr)
		}
	})
}

// Only chosen events are read in full, and only wanted ones are posted.
func TestListenChooses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		news := newsOf(1, 2, 3, 4, 5)
		news.Events[0].Source, news.Events[1].Type = "other", "refund"
		for _, c := range []struct {
			name   string
			choice choice
			asked  int
			posted []int
		}{
			{"all", choice{}, 5, []int{1, 2, 3, 4, 5}},
			{"of a source", choice{source: "other"}, 1, []int{1}},
			{"of a prefix of types", choice{eventType: "order.*"}, 4, []int{1, 3, 4, 5}},
			{"of a type", choice{eventType: "refund", source: "shop"}, 1, []int{2}},
			{"that match", choice{match: mustSelect(t, `$.n > 4`)}, 5, []int{5}},
			{"of a handler", choice{source: "shop", declined: func(e core.Event) []core.Declined {
				return slices.Repeat([]core.Declined{{}}, numberOf(e.ID)%2)
			}}, 4, []int{2, 4}},
		} {
			s, w := &drawer{}, &workshop{}
			_, stderr, _ := listenFor(t, 3*time.Second, &looks{found: []any{newsOf(), news}}, s, w, func(l *listening) { l.choice = c.choice })
			if diff := cmp.Diff(c.posted, w.events()); diff != "" || len(s.asked) != c.asked {
				t.Errorf("%s: %d events were read, want %d; posted (-want +got):\n%s", c.name, len(s.asked), c.asked, diff)
			}
			if passed := c.asked - len(c.posted); passed > 0 != strings.Contains(stderr, fmt.Sprintf("; %d not wanted", passed)) {
				t.Errorf("%s: said\n%s", c.name, stderr)
			}
		}
	})
}

func mustSelect(t *testing.T, filter string) func(core.Event) bool {
	t.Helper()
	match, err := intake.Select(filter)
	if err != nil {
		t.Fatal(err)
	}
	return match
}

// While no connection comes about, the same event is tried again. After --wait each event is tried
// once, until the server is back. Other failures are never tried again.
func TestListenWaitsForTheServer(t *testing.T) {
	refused := worker.Reply{Error: "connect: connection refused"}
	fine := worker.Reply{OK: true, StatusCode: 200}
	for _, c := range []struct {
		name     string
		wait     time.Duration
		replies  []worker.Reply
		tried    []int
		at       []time.Duration
		delivers int
		said     int
	}{
		{"restarts", 30 * time.Second, []worker.Reply{refused, refused, refused, fine}, []int{1, 1, 1, 1, 2, 3},
			[]time.Duration{1000, 1500, 2000, 2500, 2500, 2500}, 3, 1},
		{"gone", time.Second, []worker.Reply{refused}, []int{1, 1, 1, 2, 3}, []time.Duration{1000, 1500, 2000, 2000, 2000}, 0, 1},
		{"back later", time.Second, []worker.Reply{refused, refused, refused, fine, refused, fine}, []int{1, 1, 1, 2, 3, 3},
			[]time.Duration{1000, 1500, 2000, 2000, 2000, 2500}, 2, 2},
		{"without a wait", 0, []worker.Reply{refused}, []int{1, 2, 3}, []time.Duration{1000, 1000, 1000}, 0, 0},
		{"failing", 30 * time.Second, []worker.Reply{{StatusCode: 503, Error: "status: 503 Service Unavailable"}, {Error: "protocol: connection closed before there was an answer"}, {Error: "timeout: no answer within 30s"}},
			[]int{1, 2, 3}, []time.Duration{1000, 1000, 1000}, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &workshop{replies: c.replies}
				stdout, stderr, _ := listenFor(t, 20*time.Second, &looks{found: []any{newsOf(), newsOf(1, 2, 3)}}, &drawer{}, w, func(l *listening) { l.wait = c.wait })
				if diff := cmp.Diff(c.tried, w.events()); diff != "" {
					t.Errorf("tried (-want +got):\n%s", diff)
				}
				for i := range c.at {
					c.at[i] *= time.Millisecond
				}
				if diff := cmp.Diff(c.at, w.at); diff != "" {
					t.Errorf("tried at (-want +got):\n%s", diff)
				}
				if want := fmt.Sprintf("posted 3 events: %d delivered, %d failed;", c.delivers, 3-c.delivers); !strings.Contains(stderr, want) || strings.Count(stdout, "\n") != 3 {
					t.Errorf("printed\n%s\nsaid\n%s\nwant a line for each event, and %q", stdout, stderr, want)
				}
				if n := strings.Count(stderr, "nothing answers at http://localhost:3000/hooks (connect: connection refused); trying again for"); n != c.said {
					t.Errorf("said %d times that nothing answers, want %d:\n%s", n, c.said, stderr)
				}
			})
		})
	}
}

// A slow server holds up the reading of further events, and listen says how far it is behind. An
// interruption leaves the event that was under way for the next time.
func TestListenIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &looks{found: []any{newsOf(), newsOf(1, 2, 3, 4, 5, 6), newsOf(7)}}
		w := &workshop{takes: 7 * time.Second}
		_, stderr, _ := listenFor(t, 25*time.Second, l, &drawer{}, w, nil)
		if len(l.at) != 2 {
			t.Errorf("looked at %v, want no look while events wait", l.at)
		}
		if n := strings.Count(stderr, "\nbehind: 4 or more events wait; the next one came in "); n != 1 || strings.Count(stderr, "behind: ") != 1 {
			t.Errorf("said\n%s", stderr)
		}
		if want := "posted 3 events: 3 delivered, 0 failed; 3 or more wait; nothing was settled\ngo on with: gateway listen --after " + string(tailID(3)) + "\n"; !strings.HasSuffix(stderr, want) {
			t.Errorf("said\n%s\nwant %q", stderr, want)
		}
	})
}

// While the gateway does not give an event in full, no further events are read.
func TestListenReadsOnePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := slices.Repeat([]error{errors.New("the gateway restarts")}, 10)
		l := &looks{found: []any{newsOf(), newsOf(1, 2), newsOf(1, 2, 3)}}
		listenFor(t, 30*time.Second, l, &drawer{faults: map[core.ID][]error{tailID(1): broken}}, &workshop{}, nil)
		if len(l.at) != 2 {
			t.Errorf("looked at %v, want no look while events wait", l.at)
		}
	})
}

// The ids that a look cannot repeat are forgotten.
func TestListenForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		news := newsOf(1, 2, 3)
		news.Next.Event = tailID(2)
		listenFor(t, 2500*time.Millisecond, &looks{found: []any{newsOf(), news}}, &drawer{}, &workshop{}, func(l *listening) {
			t.Cleanup(func() {
				if len(l.seen) != 1 || !l.seen[tailID(3)] {
					t.Errorf("remembers %v, want event 3 alone", l.seen)
				}
			})
		})
	})
}

// A look is rarer after ten minutes without an event, and as frequent as before after the next one.
func TestListenRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &looks{}
		listenFor(t, 20*time.Minute, l, &drawer{}, &workshop{}, nil)
		if n := len(l.at); n < 795 || n > 805 {
			t.Errorf("%d looks in 20 minutes, want 600 in the first ten and 200 in the others", n)
		}
		l = &looks{found: append(slices.Repeat([]any{newsOf()}, 700), newsOf(1))}
		listenFor(t, 20*time.Minute, l, &drawer{}, &workshop{}, nil)
		if n := len(l.at); n < 995 || n > 1005 {
			t.Errorf("%d looks in 20 minutes, want 600 in the first ten, 100 in the five until an event, and 300 in the others", n)
		}
		for _, from := range l.from {
			if !from.Finished.Equal(never) {
				t.Fatalf("a look asked for finished jobs: %+v", from)
			}
		}
	})
}

// The gateway's own delivery has the same id, by which a receiver finds repeats.
func TestListenIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &drawer{jobs: map[core.ID][]core.Job{tailID(1): {{ID: "J1", Lane: "handler/other"}, {ID: "J2", Lane: "handler/listen"}}}}
		w := &workshop{}
		_, stderr, _ := listenFor(t, 5*time.Second, &looks{found: []any{newsOf(), newsOf(1, 3), newsOf(1, 2, 3)}}, s, w, nil)
		// Going on after an event that was stored late would repeat those with higher ids.
		if want := "gateway listen --after " + string(tailID(3)) + "\n"; !strings.HasSuffix(stderr, want) {
			t.Errorf("said\n%s\nwant %s", stderr, want)
		}
		if len(w.got) != 3 || w.got[0].ID != "J2" || w.got[1].ID != tailID(3) || w.got[0].Number() != 1 || w.got[0].Lane != "handler/listen" {
			t.Errorf("posted %+v", w.got)
		}
	})
}

// Mistakes in the command line are refused before anything is asked.
func TestListenFlags(t *testing.T) {
	t.Chdir(t.TempDir())
	const url, to = "--url=https://events.example.com", "--to=http://localhost:3000/hooks"
	for _, c := range []struct {
		args string
		want string
	}{
		{to, "--url is missing: the address of the gateway whose events are posted, such as https://events.example.com"},
		{url, "--to is missing: the address to which the events are posted, such as http://localhost:3000/hooks"},
		{"--url=events.example.com " + to, "--url must be an address such as http://127.0.0.1:8888"},
		{url + " --to=localhost:3000/hooks", "--to must start with http:// or https://"},
		{url + " --to=ftp://localhost/hooks", "--to must start with http:// or https://"},
		{url + " --to=http://me:secret@localhost/", "--to must not hold a user name or password; send them as a header"},
		{url + " " + to + " --since=1h --after=01J90000000000000000000001", "give --since or --after, not both"},
		{url + " " + to + " --since=soon", `--since must be a time such as 2006-01-02T15:04:05 (UTC) or 2006-01-02T15:04:05+09:00, a date, or how long ago, such as 90s, 30m, 2h or 1d; not "soon"`},
		{url + " " + to + " --after=x", `"x" is not an id: `},
		{url + " " + to + " --match=", "--match is empty; give a value, or leave it out"},
		{url + " " + to + " --match=$.a=1", `--match: `},
		{url + " " + to + " --timeout=2h", "--timeout must be 1ms to 1h, not 2h"},
		{url + " " + to + " --timeout=soon", `--timeout `},
		{url + " " + to + " --wait=-1s", `--wait `},
		{url + " " + to + " --secret=whsec_%", "the secret is not base64 after whsec_"},
		{url + " " + to + " --source=_alerts", "--source _alerts is not followed: alerts are for people, and no handler gets them"},
		{url + " " + to + " --handler=billing --source=shop", "give --handler or --source, not both: the events of a handler are those of its source"},
	} {
		code, stdout, stderr := session{}.run(t.Context(), append([]string{"listen"}, strings.Fields(c.args)...)...)
		if code != exitUsage || stdout != "" || !strings.HasPrefix(stderr, "gateway: "+c.want) || strings.Contains(stderr, "secret@") {
			t.Errorf("%s: ends with %d and says %s, want %s", c.args, code, stderr, c.want)
		}
	}
}
