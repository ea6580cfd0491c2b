package manage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// A fake store holds jobs in the order of their ids, and counts its calls.
type fake struct {
	jobs       []core.Job
	calls      int
	err        error
	counted    []core.Lane
	panicEnded any    // of Ended
	errEnded   error  // of Ended
	sender     func() // stores messages during a drain, if set

	rushed     []Rush
	unfinished bool // operations go on after Do
}

func (f *fake) Job(_ context.Context, id core.ID) (core.Job, error) {
	for _, j := range f.jobs {
		if j.ID == id {
			return j, f.err
		}
	}
	return core.Job{}, errors.Join(f.err, core.Refuse(core.NotFound, "row not found"))
}

func (f *fake) Tallies(_ context.Context, now time.Time, lanes []core.Lane) (map[core.Lane]core.Tally, error) {
	f.calls++
	f.counted = lanes
	tallies := map[core.Lane]core.Tally{}
	for _, j := range f.jobs {
		t := tallies[j.Lane]
		switch {
		case j.Status == core.Dead:
		case j.Status == core.Running && j.DueAt.After(now):
			t.Processing++
		default:
			t.Pending++
		}
		tallies[j.Lane] = t
	}
	return tallies, f.err
}

func (f *fake) Ended(_ context.Context, lanes []core.Lane) (map[core.Lane]core.Ended, error) {
	ended := map[core.Lane]core.Ended{}
	for _, j := range f.jobs {
		if e := ended[j.Lane]; j.Status == core.Dead && slices.Contains(lanes, j.Lane) {
			e.Dead++
			ended[j.Lane] = e
		}
	}
	if f.panicEnded != nil {
		panic(f.panicEnded)
	}
	return ended, f.errEnded
}

func (f *fake) Peek(_ context.Context, now time.Time, lane core.Lane, limit int) ([]core.TakenJob, error) {
	return f.some(lane, limit, func(j core.Job) bool { return j.Status == core.Available && !j.DueAt.After(now) }), f.err
}

func (f *fake) DeadLetters(_ context.Context, lane core.Lane, after core.ID, limit int) (core.Page[core.TakenJob], error) {
	dead := f.some(lane, limit, func(j core.Job) bool { return j.Status == core.Dead && (after == "" || j.ID < after) })
	return core.Page[core.TakenJob]{Items: dead}, f.err
}

func (f *fake) some(lane core.Lane, limit int, want func(core.Job) bool) (found []core.TakenJob) {
	for _, j := range f.jobs {
		if j.Lane == lane && want(j) && len(found) < limit {
			found = append(found, core.TakenJob{Job: j})
		}
	}
	return found
}

func (f *fake) Retry(_ context.Context, now time.Time, id core.ID, lane core.Lane) (n int, _ error) {
	for i, j := range f.jobs {
		if early := waiting(j) && j.DueAt.After(now) && j.ID == id; early {
			f.jobs[i].DueAt = now
			n++
		} else if j.ID == id && j.Status == core.Canceled || j.Status == core.Dead && (j.ID == id || id == "" && j.Lane == lane) {
			f.jobs[i].Status, f.jobs[i].DueAt = core.Available, now
			n++
		}
	}
	return n, f.err
}

// Do does a retry of a lane at once, as an operation with the id 99.
func (f *fake) Do(ctx context.Context, r Rush) (core.Operation, error) {
	f.rushed = append(f.rushed, r)
	n, err := f.Retry(ctx, noon, "", r.Operation.Filter.Lane)
	op := core.Operation{ID: id(99), State: core.OperationFinished, Acted: n}
	if f.unfinished {
		op.State = core.OperationRunning
	}
	if n == 0 || err != nil {
		op = core.Operation{}
	}
	return op, err
}

func (f *fake) Drain(_ context.Context, lane core.Lane, below core.ID, limit int) (n int, _ error) {
	f.calls++
	var kept []core.Job
	for _, j := range f.jobs {
		if j.Lane == lane && j.ID < below && n < limit {
			n++
			continue
		}
		kept = append(kept, j)
	}
	f.jobs = kept
	if f.sender != nil {
		f.sender()
	}
	return n, f.err
}

func id(n int) core.ID { return core.ID(fmt.Sprintf("01J%023d", n)) }

func shop() (*Queues, *fake) {
	f := &fake{jobs: []core.Job{
		{ID: id(1), Lane: "queue/work", Status: core.Available},
		{ID: id(2), Lane: "queue/work", Status: core.Dead},
		{ID: id(3), Lane: "queue/work", Status: core.Running, DueAt: noon.Add(time.Second)},
		{ID: id(4), Lane: "queue/mail", Status: core.Dead},
		{ID: id(5), Lane: "handler/work", Status: core.Dead},
		{ID: id(6), Lane: "queue/work", Status: core.Dead},
	}}
	q := NewQueues(f, func() time.Time { return noon }, []Queue{
		{Name: "work", Source: "shop", Events: []string{"order.*"}, Visibility: time.Minute, MaxAttempts: 3},
		{Name: "mail", Source: "desk"},
		{Name: "idle", Source: "desk"},
	})
	q.Bulk = f
	return q, f
}

func TestList(t *testing.T) {
	q, f := shop()
	got, err := q.List(t.Context())
	want := []Listed{
		{Queue: Queue{Name: "idle", Source: "desk"}},
		{Queue: Queue{Name: "mail", Source: "desk"}, Ended: core.Ended{Dead: 1}},
		{Queue{"work", "shop", []string{"order.*"}, time.Minute, 3}, core.Tally{Pending: 1, Processing: 1}, core.Ended{Dead: 2}},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("List: %v, (-want +got):\n%s", err, diff)
	}
	if depth := got[2].Depth(); depth != 2 {
		t.Errorf("Depth = %d, want 2", depth)
	}
	f.calls = 0
	none, err := NewQueues(f, core.SystemClock, nil).List(t.Context())
	if none == nil || len(none) != 0 || err != nil || f.calls != 0 {
		t.Errorf("List without queues = %v, %v after %d questions, want an empty list after none", none, err, f.calls)
	}
}

// The counts of one queue need no counts of the others.
func TestQueue(t *testing.T) {
	q, f := shop()
	got, err := q.Queue(t.Context(), "work")
	want := Listed{Queue{"work", "shop", []string{"order.*"}, time.Minute, 3}, core.Tally{Pending: 1, Processing: 1}, core.Ended{Dead: 2}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Queue: %v, (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff([]core.Lane{"queue/work"}, f.counted); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
	if _, err := q.Queue(t.Context(), "nobody"); err != error(ErrQueue) {
		t.Errorf("Queue of one that is not configured = %v, want ErrQueue", err)
	}
	f.err = errors.New("disk full")
	if _, err := q.Queue(t.Context(), "work"); err != f.err {
		t.Errorf("Queue of a store that fails = %v, want its error", err)
	}
	f.err, f.errEnded = nil, errors.New("disk empty")
	if _, err := q.Queue(t.Context(), "work"); err != f.errEnded {
		t.Errorf("Queue of a store that cannot count dead messages = %v, want its error", err)
	}
	var panicked *core.Panic
	f.panicEnded = "nil map"
	if _, err := q.Queue(t.Context(), "work"); !errors.As(err, &panicked) {
		t.Errorf("Queue of a store that panics = %v, want an error of its caller alone", err)
	}
}

// A removed queue is there as long as it has messages, in any status.
func TestQueueThatIsGone(t *testing.T) {
	q, f := shop()
	f.jobs = append(f.jobs, core.Job{ID: id(7), Lane: "queue/gone", Status: core.Dead}, core.Job{ID: id(8), Lane: "queue/gone", Status: core.Available})
	gone, err := q.Queue(t.Context(), "gone")
	if err != nil || !gone.Gone() || gone.Tally != (core.Tally{Pending: 1}) || gone.Ended != (core.Ended{Dead: 1}) {
		t.Errorf("Queue = %+v, %v", gone, err)
	}
	if work, err := q.Queue(t.Context(), "work"); err != nil || work.Gone() {
		t.Errorf("Queue of a configured one = %+v, %v", work, err)
	}
	if peeked, err := q.Peek(t.Context(), "gone", 9); err != nil || len(peeked) != 1 {
		t.Errorf("Peek = %v, %v, want one message", peeked, err)
	}
	if dead, err := q.DeadLetters(t.Context(), "gone", "", 9); err != nil || len(dead.Items) != 1 {
		t.Errorf("DeadLetters = %v, %v, want one message", dead, err)
	}
	if got, err := q.Retry(t.Context(), "gone", id(7)); got != (Retried{Jobs: 1}) || err != nil {
		t.Errorf("Retry = %+v, %v, want 1", got, err)
	}
	if n, err := q.Drain(t.Context(), "gone"); n != 2 || err != nil {
		t.Errorf("Drain = %d, %v, want 2", n, err)
	}
	if _, err := q.Drain(t.Context(), "gone"); err != error(ErrQueue) {
		t.Errorf("Drain of what is not there any more = %v, want ErrQueue", err)
	}
	if all, err := q.List(t.Context()); err != nil || len(all) != 3 {
		t.Errorf("List = %v, %v, want the configured ones", all, err)
	}
}

func TestUnknownQueue(t *testing.T) {
	q, f := shop()
	for _, name := range []string{"", "nobody", "Work", "queue/work", "\x00", "é"} {
		var errs [4]error
		_, errs[0] = q.Peek(t.Context(), name, 1)
		_, errs[1] = q.DeadLetters(t.Context(), name, "", 1)
		_, errs[2] = q.Retry(t.Context(), name, "")
		_, errs[3] = q.Drain(t.Context(), name)
		if want := [4]error{ErrQueue, ErrQueue, ErrQueue, ErrQueue}; errs != want {
			t.Errorf("calls about queue %q = %v, want ErrQueue each", name, errs)
		}
	}
	if len(f.jobs) != 6 {
		t.Errorf("%d jobs are left, want 6", len(f.jobs))
	}
}

func TestPeekAndDeadLetters(t *testing.T) {
	q, _ := shop()
	if got, err := q.Peek(t.Context(), "work", 5); err != nil || len(got) != 1 || got[0].ID != id(1) {
		t.Errorf("Peek = %v, %v, want the one that is visible", got, err)
	}
	for _, tt := range []struct {
		after core.ID
		limit int
		want  []core.ID
	}{{"", 5, []core.ID{id(2), id(6)}}, {"", 1, []core.ID{id(2)}}, {id(6), 5, []core.ID{id(2)}}} {
		var got []core.ID
		page, err := q.DeadLetters(t.Context(), "work", tt.after, tt.limit)
		for _, j := range page.Items {
			got = append(got, j.ID)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("DeadLetters(%q, %d): %v, (-want +got):\n%s", tt.after, tt.limit, err, diff)
		}
	}
}

func TestRetry(t *testing.T) {
	for _, tt := range []struct {
		name string
		id   core.ID
		want int
		err  string
	}{
		{"all", "", 2, ""},
		{"one", id(2), 1, ""},
		{"one that is not dead", id(1), 0, ""},
		{"one of another queue", id(4), 0, "job not found"},
		{"one of a handler", id(5), 0, "job not found"},
		{"one that is not there", id(9), 0, "job not found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q, f := shop()
			q.Bell = &core.Bell{}
			heard := q.Bell.Listen("queue/work")
			var told []core.Fact
			q.Observe = func(f core.Fact) { told = append(told, f) }
			n, err := q.Retry(t.Context(), "work", tt.id)
			if n != (Retried{Jobs: tt.want}) || (err == nil) != (tt.err == "") || err != nil && (err.Error() != tt.err || !core.IsKind(err, core.NotFound)) {
				t.Errorf("Retry = %+v, %v, want %d, %q", n, err, tt.want, tt.err)
			}
			// An operation rings itself.
			if rung := len(heard.Rung()); rung != len(tt.id[:min(1, len(tt.id))])*tt.want {
				t.Errorf("the bell was rung for %d lanes after %+v came back", rung, n)
			}
			if len(told) != min(1, tt.want) || tt.want > 0 && told[0] != (core.Revived{ID: tt.id, Lane: "queue/work", Jobs: tt.want}) {
				t.Errorf("reported %+v after %+v came back", told, n)
			}
			if f.jobs[3].Status != core.Dead || f.jobs[4].Status != core.Dead {
				t.Error("a job of another lane came back")
			}
		})
	}
	q, f := shop()
	f.err = errors.New("disk full")
	for _, id := range []core.ID{"", id(2), id(1)} {
		if _, err := q.Retry(t.Context(), "work", id); !errors.Is(err, f.err) {
			t.Errorf("Retry(%q) with a broken store = %v", id, err)
		}
	}
}

// Drain deletes all messages in chunks, also messages with ids of a clock that is ahead.
// Messages that arrive meanwhile do not keep it from ending.
func TestDrain(t *testing.T) {
	f := &fake{}
	now := noon.Add(time.Hour)
	ids := core.NewIDs(func() time.Time { return now })
	send := func(lane core.Lane) { f.jobs = append(f.jobs, core.Job{ID: ids.Next(), Lane: lane}) }
	for range 2*drainChunk + 1 {
		send("queue/work")
	}
	send("queue/mail")
	f.sender = func() { send("queue/work") }
	q := NewQueues(f, func() time.Time { return noon }, []Queue{{Name: "work"}})
	var told []core.Fact
	q.Observe = func(f core.Fact) { told = append(told, f) }
	q.Bell = &core.Bell{}
	heard := q.Bell.Listen("queue/work")
	n, err := q.Drain(t.Context(), "work")
	if rung := len(heard.Rung()); rung != 1 {
		t.Errorf("the bell was rung for %d lanes, want the drained one", rung)
	}
	if !slices.Equal(told, []core.Fact{core.Drained{Queue: "work", Messages: n}}) {
		t.Errorf("Drain of %d reported %+v", n, told)
	}
	if n < 2*drainChunk+1 || n > 2*drainChunk+4 || err != nil || f.calls != 3 {
		t.Errorf("Drain = %d, %v after %d calls, want some %d after 3", n, err, f.calls, 2*drainChunk+1)
	}
	if left := len(f.jobs); left != 2*drainChunk+2+3-n {
		t.Errorf("%d jobs are left beside %d that were drained", left, n)
	}
	for range drainChunk {
		send("queue/work")
	}
	f.err = errors.New("disk full")
	if n, err := q.Drain(t.Context(), "work"); n != drainChunk || !errors.Is(err, f.err) {
		t.Errorf("Drain of a store that fails = %d, %v, want %d and its error", n, err, drainChunk)
	}
}
