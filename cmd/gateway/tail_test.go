package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/cmd/gateway/internal/remote"
	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
)

// looks scripts the results of a tail's looks. Later looks find nothing.
type looks struct {
	found []any // manage.News or error
	at    []time.Duration
	from  []manage.Cursor
	began time.Time

	follow [][]core.ID
}

func (l *looks) Look(_ context.Context, from manage.Cursor, follow []core.ID) (manage.News, error) {
	l.at, l.from, l.follow = append(l.at, time.Since(l.began)), append(l.from, from), append(l.follow, follow)
	if len(l.found) == 0 {
		return manage.News{Next: from}, nil
	}
	next := l.found[0]
	l.found = l.found[1:]
	if err, failed := next.(error); failed {
		return manage.News{}, err
	}
	return next.(manage.News), nil
}

// stored are events, newest first.
type stored struct {
	eventService
	list  []core.Event
	asked int
}

func (s *stored) List(_ context.Context, f core.EventFilter) (core.Page[core.Event], error) {
	s.asked++
	i := slices.IndexFunc(s.list, func(e core.Event) bool { return e.ID < f.After })
	if i < 0 {
		return core.Page[core.Event]{}, nil
	}
	return core.Page[core.Event]{Items: s.list[i:]}, nil
}

// tailFor follows looks for the duration d, and returns the output.
func tailFor(t *testing.T, d time.Duration, l *looks, dress func(*tailing)) (stdout, stderr string, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var out, errs strings.Builder
	l.began = time.Now()
	follower := &tailing{app: newApp(session{}.system(&out, &errs)), tail: l}
	if dress != nil {
		dress(follower)
	}
	err = follower.follow(ctx)
	return out.String(), errs.String(), err
}

func tailEvent(n int, source string) core.Event {
	at := time.UnixMilli(1727776800000 + int64(n))
	return core.Event{ID: tailID(n), Source: source, Type: "order.created", CreatedAt: at}
}

// tailID returns the id of an event that came in n milliseconds after event 0.
func tailID(n int) core.ID {
	return core.FirstID(time.UnixMilli(1727776800000 + int64(n)))[:10] + "0000000000000001"
}

func tailJob(n, event int, status core.Status, attempt int) core.Job {
	j := core.Job{ID: core.ID(fmt.Sprintf("01J9000000000000000000%04d", n)), EventID: tailID(event), Lane: core.HandlerLane("mail"),
		Status: status, Attempt: attempt, MaxAttempts: 3, CreatedAt: time.UnixMilli(1727776800001)}
	if status.Finished() {
		j.FinishedAt = time.UnixMilli(1727776800000 + int64(n))
	}
	return j
}

func withError(j core.Job, why string) core.Job { j.LastError = why; return j }

// TestTailTellsChanges: each event is shown once, and a job each time its state has changed.
func TestTailTellsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		event := tailEvent(0, "shop")
		available, running := tailJob(1, 0, core.Available, 0), tailJob(1, 0, core.Running, 1)
		retryable := withError(tailJob(1, 0, core.Retryable, 1), "status: 500 \x1b[2J\n\u202e")
		dead := withError(tailJob(2, 0, core.Dead, 3), "timeout")
		l := &looks{found: []any{
			manage.News{},
			manage.News{Events: []core.Event{event}, Jobs: []core.Job{available}},
			manage.News{Events: []core.Event{event}, Jobs: []core.Job{running, dead}},
			manage.News{Events: []core.Event{event}, Jobs: []core.Job{running, dead}},
			manage.News{Jobs: []core.Job{retryable, dead}},
			manage.News{Jobs: []core.Job{withError(tailJob(1, 0, core.Completed, 2), "status: 500")}},
		}}
		stdout, stderr, err := tailFor(t, 9500*time.Millisecond, l, nil)
		const now = "2000-01-01T00:00:0" // the start of time in synctest
		if diff := cmp.Diff(`2024-10-01T10:00:00.000  event  `+string(event.ID)+`  shop  order.created
2024-10-01T10:00:00.001  job    01J90000000000000000000001  mail  available  0/3
`+now+`2.000  job    01J90000000000000000000001  mail  running  1/3
2024-10-01T10:00:00.002  job    01J90000000000000000000002  mail  dead  3/3  timeout
`+now+`4.000  job    01J90000000000000000000001  mail  retryable  1/3  status: 500 \x1b[2J\n\u202e
2024-10-01T10:00:00.001  job    01J90000000000000000000001  mail  completed  2/3
`, stdout); diff != "" {
			t.Errorf("printed (-want +got):\n%s", diff)
		}
		if stderr != "" || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ends with %v, and says %s", err, stderr)
		}
		if want := 10; len(l.at) != want {
			t.Errorf("%d looks in 9.5 seconds, want %d", len(l.at), want)
		}
	})
}

// TestTailGoesOn: a look begins where the last one ended, and follows at once if there is
// more.
func TestTailGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := manage.Cursor{Event: tailID(1)}, manage.Cursor{Event: tailID(2)}
		l := &looks{found: []any{manage.News{Next: a, More: true}, errors.New("lost"), manage.News{Next: b}}}
		_, _, _ = tailFor(t, 3500*time.Millisecond, l, nil)
		if diff := cmp.Diff([]manage.Cursor{{}, a, a, b}, l.from); diff != "" {
			t.Errorf("looks from (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]time.Duration{0, 0, 2 * time.Second, 3 * time.Second}, l.at); diff != "" {
			t.Errorf("looks at (-want +got):\n%s", diff)
		}
	})
}

// TestTailSurvives: the first failed look and the next successful one are reported once each.
// The pauses between the tries grow.
func TestTailSurvives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &looks{found: []any{manage.News{}}}
		for range 7 {
			l.found = append(l.found, core.Refuse(core.Unavailable, "no gateway answers \x1b[2J"))
		}
		l.found = append(l.found, manage.News{}, errors.New("again"), manage.News{})
		_, stderr, _ := tailFor(t, 130*time.Second, l, nil)
		if want := "gateway: no gateway answers \\x1b[2J; trying again\nconnected again\ngateway: again; trying again\nconnected again\n"; stderr != want {
			t.Errorf("says\n%s\nwant\n%s", stderr, want)
		}
		s := time.Second
		want := []time.Duration{0, 1 * s, 3 * s, 7 * s, 15 * s, 31 * s, 61 * s, 91 * s, 121 * s, 122 * s, 124 * s}
		if diff := cmp.Diff(want, l.at[:len(want)]); diff != "" {
			t.Errorf("looks at (-want +got):\n%s", diff)
		}
	})
}

// TestTailEnds: an error that does not pass ends the tail.
func TestTailEnds(t *testing.T) {
	token := core.Refuse(core.Unauthorized, "the gateway refused the token")
	for _, c := range []struct {
		name  string
		found []any
		want  error
	}{
		{"nobody there at first", []any{syscall.ECONNREFUSED}, syscall.ECONNREFUSED},
		{"a token that is refused later", []any{manage.News{}, token}, token},
	} {
		synctest.Test(t, func(t *testing.T) {
			if _, stderr, err := tailFor(t, time.Minute, &looks{found: c.found}, nil); !errors.Is(err, c.want) || stderr != "" {
				t.Errorf("%s: ends with %v, and says %s", c.name, err, stderr)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		l := &looks{found: []any{manage.News{Events: []core.Event{tailEvent(0, "shop")}}}}
		_, stderr, err := tailFor(t, time.Minute, l, func(f *tailing) { *f.out = *terminal.NewWriter(closedPipe{}) })
		if !errors.Is(err, syscall.EPIPE) || len(l.at) != 1 || stderr != "" {
			t.Errorf("nobody reads: ends with %v after %d looks, and says %s", err, len(l.at), stderr)
		}
	})
}

// TestTailInterrupted: Ctrl-C ends a tail, with exit code 130.
func TestTailInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Api-Version", "1")
		fmt.Fprint(w, `{"events":[],"jobs":[],"has_more":false,"cursor":{"event":"01J90000000000000000000001","finished":"2024-10-01T10:00:00.000"}}`)
		if r.URL.Query().Has("event") {
			cancel()
		}
	}))
	defer server.Close()
	code, stdout, stderr := session{}.run(ctx, "tail", "--url", server.URL)
	if code != exitInterrupted || stdout != "" || stderr != "gateway: interrupted\n" {
		t.Errorf("ends with %d, prints %q and says %q", code, stdout, stderr)
	}
}

// A closedPipe is a pipe without a reader.
type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// TestTailSelects: with --status only jobs are shown. With --source, jobs of events from
// before the tail are shown too; each such event is looked up once.
func TestTailSelects(t *testing.T) {
	old := &stored{list: []core.Event{tailEvent(40, "blog"), tailEvent(30, "shop"), tailEvent(20, "blog"), tailEvent(10, "shop")}}
	news := []any{
		manage.News{Events: []core.Event{tailEvent(50, "shop"), tailEvent(60, "blog")}, Jobs: []core.Job{
			tailJob(5, 50, core.Completed, 1), tailJob(6, 60, core.Completed, 1), tailJob(1, 10, core.Dead, 3),
			tailJob(2, 20, core.Dead, 3), tailJob(3, 30, core.Completed, 1), tailJob(9, 15, core.Dead, 3)}},
		manage.News{Jobs: []core.Job{tailJob(7, 30, core.Dead, 3), tailJob(8, 15, core.Dead, 3)}},
	}
	for _, c := range []struct {
		source string
		status core.Status
		want   string
		asked  int
	}{
		{"", "", "e50 e60 j5 j6 j1 j2 j3 j9 j7 j8", 0},
		{"", core.Dead, "j1 j2 j9 j7 j8", 0},
		{"shop", "", "e50 j5 j1 j3 j7", 1},
		{"shop", core.Dead, "j1 j7", 1},
		{"none", "", "", 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			old.asked = 0
			stdout, _, _ := tailFor(t, 5*time.Second, &looks{found: slices.Clone(news)}, func(f *tailing) {
				f.source, f.status, f.events, f.json = c.source, c.status, old, true
			})
			if got := kinds(t, stdout); got != c.want {
				t.Errorf("--source %q --status %q prints %s, want %s", c.source, c.status, got, c.want)
			}
			looks := old.asked
			if c.source != "" {
				looks-- // one look checks that the source exists
			}
			// The event of job 9 does not exist: it is looked for once more, below the others.
			if looks > 2*c.asked || looks < c.asked {
				t.Errorf("--source %q --status %q looks %d times for events", c.source, c.status, looks)
			}
		})
	}
}

// kinds returns the kinds of the records of a tail, in short.
func kinds(t *testing.T, stdout string) string {
	var got []string
	for line := range strings.Lines(stdout) {
		var r struct {
			Kind       string
			Event, Job *struct{ ID core.ID }
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		switch {
		case r.Kind == "event" && r.Event != nil && r.Job == nil:
			got = append(got, fmt.Sprintf("e%d", r.Event.ID.Time().UnixMilli()-1727776800000))
		case r.Kind == "job" && r.Job != nil && r.Event == nil:
			got = append(got, "j"+strings.TrimLeft(string(r.Job.ID[22:]), "0"))
		default:
			t.Errorf("record %s", line)
		}
	}
	return strings.Join(got, " ")
}

// TestMemory: a memory knows the last values, and its size is bounded.
func TestMemory(t *testing.T) {
	var m memory[int]
	for n := range 5 * remembered {
		if !m.put(tailID(n), n) || m.put(tailID(n), n) {
			t.Fatalf("%d is not news the first time only", n)
		}
		if last, known := m.get(tailID(max(0, n-remembered+1))); !known || last != max(0, n-remembered+1) {
			t.Fatalf("%d is forgotten after %d others", last, remembered)
		}
	}
	if size := len(m.now) + len(m.before); size > 2*remembered {
		t.Errorf("%d are remembered, want at most %d", size, 2*remembered)
	}
	if _, known := m.get(tailID(0)); known {
		t.Error("the first one is known for ever")
	}
}

// TestTailFollows: a tail looks at events in turn until their jobs finish, and drops the
// oldest events if there are too many.
func TestTailFollows(t *testing.T) {
	seen := func(jobs ...core.Job) manage.News {
		return manage.News{Next: manage.Cursor{Event: tailID(90)}, Jobs: jobs}
	}
	looked := func(n int, jobs ...core.Job) manage.News { news := seen(jobs...); news.Followed = n; return news }
	one, two, new := tailJob(1, 10, core.Available, 0), tailJob(2, 20, core.Retryable, 1), tailJob(3, 95, core.Running, 1)
	synctest.Test(t, func(t *testing.T) {
		l := &looks{found: []any{
			seen(one, two, new, tailJob(4, 30, core.Dead, 1)),
			looked(1, tailJob(1, 10, core.Running, 1)),
			looked(2, tailJob(1, 10, core.Retryable, 1)),
			looked(1),
		}}
		stdout, _, _ := tailFor(t, 4500*time.Millisecond, l, func(f *tailing) { f.json = true })
		want := [][]core.ID{nil, {tailID(10), tailID(20)}, {tailID(20), tailID(10)}, {tailID(10)}, nil}
		if diff := cmp.Diff(want, l.follow); diff != "" {
			t.Errorf("follows (-want +got):\n%s", diff)
		}
		if got, want := kinds(t, stdout), "j1 j2 j3 j4 j1 j1"; got != want {
			t.Errorf("printed %s, want %s", got, want)
		}
	})
}

// TestTailFollowsFew: the number of followed events is bounded, and events that are not shown
// are not followed.
func TestTailFollowsFew(t *testing.T) {
	var jobs []core.Job
	for n := range 2 * followed {
		jobs = append(jobs, tailJob(n, n, core.Retryable, 1))
	}
	all := &tailing{at: manage.Cursor{Event: tailID(len(jobs))}}
	all.remember(manage.News{Jobs: jobs}, nil)
	if len(all.open) != followed || slices.Min(all.open) != tailID(followed) || len(all.toFollow()) != manage.MaxFollowed {
		t.Errorf("follows %d events from %s on, and asks for %d", len(all.open), slices.Min(all.open), len(all.toFollow()))
	}
	met := map[core.ID]bool{}
	for range followed / manage.MaxFollowed {
		asked := all.toFollow()
		for _, id := range asked {
			met[id] = true
		}
		all.remember(manage.News{Jobs: jobs}, asked)
	}
	if len(met) != followed {
		t.Errorf("%d events are asked for in turn, want %d", len(met), followed)
	}
	for _, few := range []*tailing{{status: core.Dead}, {source: "other"}} {
		if few.remember(manage.News{Jobs: jobs}, nil); len(few.open) > 0 {
			t.Errorf("follows %d events whose jobs are not shown", len(few.open))
		}
	}
}

// TestTailAsksAServer: the cursor and the followed events are sent to the server.
func TestTailAsksAServer(t *testing.T) {
	var asked url.Values
	calls := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		asked = r.URL.Query()
		body := `{"events":[],"jobs":[],"has_more":false,"followed":2,"cursor":{"event":"` + string(tailID(1)) + `","finished":"2024-10-01T10:00:00.000","job":"` + someID + `"}}`
		return &http.Response{StatusCode: 200, Header: http.Header{"X-Api-Version": {"1"}}, Request: r, Body: io.NopCloser(strings.NewReader(body))}, nil
	})}
	tail := remote.New(remote.Options{Base: &url.URL{Scheme: "http", Host: "h"}, HTTP: calls}).Tail()
	at := manage.Cursor{Event: tailID(1), Finished: time.UnixMilli(1727776800000).UTC(), Job: someID}
	news, err := tail.Look(t.Context(), at, []core.ID{tailID(5), tailID(6)})
	if diff := cmp.Diff(at, news.Next); diff != "" || news.Followed != 2 || err != nil {
		t.Errorf("follows %d, %v, goes on (-want +got):\n%s", news.Followed, err, diff)
	}
	want := url.Values{"event": {string(tailID(1))}, "finished": {"2024-10-01T10:00:00.000"}, "job": {someID}, "follow": {string(tailID(5) + "," + tailID(6))}}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}
