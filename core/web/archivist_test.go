package web_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/curl"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
)

// archivist knows three events, numbered 1 to 3: one of each sort of payload, the first
// with a job of each kind and a run. It records the calls that it gets.
type archivist struct {
	store  *store // both have the same state
	events int    // how many there are to export; 3 unless set
	breaks bool   // exporting fails behind the last of them

	payload []byte         // of each event, instead of its own
	tries   []core.Attempt // of each job, instead of its own

	mu    sync.Mutex
	calls []string
}

func (a *archivist) say(format string, args ...any) error {
	a.mu.Lock()
	a.calls = append(a.calls, fmt.Sprintf(format, args...))
	a.mu.Unlock()
	return a.store.moody(context.Background())
}

func eventNumber(n int) core.ID { return core.ID(fmt.Sprintf("01E%023d", n)) }

func jobNumber(n int) core.ID { return core.ID(fmt.Sprintf("01J%023d", n)) }

const hostile = "\x1b]0;title\x07\u202e\u2028<script>\x00\n\"\\"

func eventsStored() []core.Event {
	return []core.Event{
		{
			ID: eventNumber(1), Source: "shop", Type: "order.created", Payload: []byte("{\"b\": 1.0,\n \"a\":\"<&>\", \"a\":12345678901234567890}"),
			ContentType: "application/json", Headers: map[string]string{"ce-id": "<7>"}, DeliveryID: "delivery-1", CreatedAt: noon,
		},
		{ID: eventNumber(2), Source: "shop", Type: "form", Payload: []byte("a=1&b=\"<\"\n"), ContentType: "application/x-www-form-urlencoded", CreatedAt: noon.Add(time.Second)},
		{ID: eventNumber(3), Source: hostile, Type: hostile, Payload: []byte("\xff\x1b[2J"), ContentType: hostile, Headers: map[string]string{hostile: hostile}, DeliveryID: hostile, CreatedAt: noon},
	}
}

func jobsStored() []core.Job {
	job := func(n int, lane core.Lane, s core.Status) core.Job {
		return core.Job{ID: jobNumber(n), EventID: eventNumber(1), Lane: lane, Key: "k", Status: s, Attempt: n, MaxAttempts: 5, Lease: "l3ase", CreatedAt: noon, DueAt: noon.Add(time.Minute)}
	}
	dead, message, step := job(1, "handler/billing", core.Dead), job(2, "queue/work", core.Available), job(3, "workflow/fulfil-order", core.Running)
	dead.DueAt, dead.ScheduledAt, dead.FinishedAt, dead.LastError = time.Time{}, noon.Add(59*time.Minute), noon.Add(time.Hour), hostile
	message.MaxAttempts = core.Unlimited
	step.RunID, step.Step, step.ScheduledAt = runNumber(2), "check-stock", noon.Add(30*time.Second)
	return []core.Job{dead, message, step}
}

func attempts() []core.Attempt {
	return []core.Attempt{
		{Number: 1, Error: "connect: refused", Duration: 1500 * time.Microsecond, StartedAt: noon},
		{Number: 2, StatusCode: 503, Error: `status: 503 "away"`, Response: hostile, Duration: 2 * time.Second, StartedAt: noon.Add(time.Minute)},
		{Number: 3, StatusCode: 200, Response: "ok", StartedAt: noon.Add(time.Hour), Exchange: &core.Exchange{
			Method: "POST", URL: "https://billing.example/in?key=***", Headers: map[string]string{"Authorization": core.Masked, "X-Gateway-Attempt": "3"},
			ReplyHeaders: map[string]string{"Server": hostile}, Cut: true, BodySize: 12, BodySHA256: "0a0b", KeptBody: 7, Unmasked: []string{"X-Gateway-Attempt"},
		}},
	}
}

func filterText(f core.EventFilter) string {
	text := fmt.Sprintf("%q %q %s %s %q %d", f.Source, f.Type, core.FormatTime(f.Since), core.FormatTime(f.Until), f.After, f.Limit)
	if f.DeliveryID != "" {
		text += fmt.Sprintf(" delivery %q", f.DeliveryID)
	}
	return text
}

// Reset closes the breaker of billing, which is open.
func (a *archivist) Reset(_ context.Context, handler string) (bool, error) {
	if handler != "billing" && handler != "crm" {
		return false, manage.ErrHandler
	}
	return handler == "billing", a.say("reset the breaker of %s", handler)
}

// Fire fires the sources nightly, and held, which is held.
func (a *archivist) Fire(_ context.Context, source string) (manage.Fired, error) {
	switch source {
	case "nightly", "held":
		return manage.Fired{Source: source, Event: eventNumber(1), Jobs: 2, At: noon, Held: source == "held"}, a.say("fire %s", source)
	case "shop":
		return manage.Fired{}, core.Refuse(core.NotFound, "source %q has no schedule; only sources of type cron can be fired", source)
	}
	return manage.Fired{}, core.Refuse(core.NotFound, "no source %q is configured; there are held, nightly, shop", source)
}

// LastReload is of a configuration that is ignored.
func (a *archivist) LastReload() *wire.Reload {
	return wire.ReloadOf(noon, core.Reloaded{By: core.BySignal, From: "gateway.yaml", Result: core.ReloadInvalid, Err: errors.New("gateway.yaml:1:1: " + hostile)})
}

// holder knows one hold, of queue/work. It is a type of its own, since its List is not that of events.
type holder struct{ *archivist }

func (h holder) List(context.Context) ([]core.Hold, error) {
	return []core.Hold{{Lane: "queue/work", Since: noon, Reason: hostile}}, h.say("list holds")
}

func (h holder) Hold(_ context.Context, lane core.Lane, until time.Time, reason string) (core.Hold, error) {
	if lane.Source() == "nothing" {
		return core.Hold{}, core.Refuse(core.NotFound, `no source "nothing" is configured; there are github, shop`)
	}
	if lane.Handler() == "nobody" {
		return core.Hold{}, core.Refuse(core.NotFound, `no handler "nobody" is configured; there is billing`)
	}
	return core.Hold{Lane: lane, Since: noon, Until: until, Reason: reason}, h.say("hold %s %s %q", lane, core.FormatTime(until), reason)
}

func (h holder) Release(_ context.Context, lane core.Lane) (bool, error) {
	return lane == "queue/work", h.say("release %s", lane)
}

// liner knows two lines of billing. It is a type of its own, since its List is not that of events.
type liner struct{ *archivist }

func (l liner) List(_ context.Context, lane core.Lane, after string, limit int) (core.Page[core.LineState], error) {
	if lane.Handler() == "nobody" {
		return core.Page[core.LineState]{}, core.Refuse(core.NotFound, `no handler "nobody" is configured; there is billing`)
	}
	return core.Page[core.LineState]{Items: []core.LineState{{Key: "7", Admitted: 1, Waiting: 2, StoppedAt: noon, StoppedBy: jobNumber(1)}, {Key: hostile, Admitted: 1}}, More: true},
		l.say("list lines %s %q %d", lane, after, limit)
}

func (l liner) Inspect(_ context.Context, lane core.Lane, key string) (manage.LineStory, error) {
	dead, next := jobsStored()[0], jobsStored()[0]
	next.ID, next.Status, next.LastError, next.Attempt = jobNumber(9), core.Waiting, "", 0
	next.ScheduledAt, next.FinishedAt = time.Time{}, time.Time{}
	dead.Line, next.Line = key, key
	return manage.LineStory{LineState: core.LineState{Key: key, Admitted: 1, Waiting: 2, StoppedAt: noon, StoppedBy: dead.ID}, Holders: []core.Job{dead}, Next: []core.Job{next}},
		l.say("inspect the line %s %q", lane, key)
}

func (l liner) Skip(ctx context.Context, id core.ID) error {
	job, err := registrar(l).Job(ctx, id)
	switch {
	case err != nil:
		return err
	case job.Status != core.Dead:
		return core.Refuse(core.Invalid, "job %s is %s; only a dead job that stops its line can be skipped", id, job.Status)
	}
	return l.say("skip %s", id)
}

func (a *archivist) List(_ context.Context, f core.EventFilter) (core.Page[core.Event], error) {
	page := core.Page[core.Event]{Items: eventsStored(), More: f.After == ""}
	if f.Source == "idle" {
		page = core.Page[core.Event]{}
	}
	return page, a.say("list %s", filterText(f))
}

// Search finds the first event, unless the filter is "nothing". The filter "$.total >" has a mistake.
func (a *archivist) Search(_ context.Context, f core.EventFilter, filter string) (manage.Found, error) {
	if filter == "$.total >" {
		return manage.Found{}, core.Refuse(core.Invalid, "match: at column 10: expected a path or a value")
	}
	found := manage.Found{Page: core.Page[core.Event]{Items: eventsStored()[:1], More: true}, Scanned: 10_000, Next: eventNumber(3)}
	if filter == "nothing" {
		found = manage.Found{Scanned: 3}
	}
	return found, a.say("search %s %q", filterText(f), filter)
}

func (a *archivist) full(id core.ID) (manage.Told, error) {
	for i, e := range eventsStored() {
		if a.payload != nil {
			e.Payload = a.payload
		}
		switch {
		case e.ID == id && i == 0:
			return manage.Told{Event: e, Jobs: jobsStored(), Runs: runs()[:1]}, nil
		case e.ID == id:
			return manage.Told{Event: e}, nil
		}
	}
	return manage.Told{}, manage.ErrEvent
}

func (a *archivist) Inspect(_ context.Context, id core.ID) (manage.Told, error) {
	full, err := a.full(id)
	full.Waits = map[core.ID]manage.Wait{jobNumber(2): {For: manage.NotDue, Until: noon.Add(time.Minute)}}
	return full, errors.Join(err, a.say("inspect %s", id))
}

func (a *archivist) Jobs(_ context.Context, id core.ID) ([]core.Job, error) {
	full, err := a.full(id)
	return full.Jobs, errors.Join(err, a.say("jobs %s", id))
}

func (a *archivist) ReplayOne(_ context.Context, id core.ID, to ...core.Lane) (manage.Replayed, error) {
	_, err := a.full(id)
	jobs, asked := 2, "replay "+string(id)
	if len(to) > 0 {
		jobs, asked = len(to), fmt.Sprintf("%s to %v", asked, to)
	}
	return manage.Replayed{Looked: 1, Events: 1, Jobs: jobs, Span: manage.Span{First: id, Last: id}}, errors.Join(err, a.say("%s", asked))
}

func (a *archivist) Cancel(_ context.Context, id core.ID) (manage.Canceled, error) {
	if _, err := a.full(id); err != nil {
		return manage.Canceled{}, err
	}
	c := manage.Canceled{Event: id, Cancellation: core.Cancellation{Canceled: 2, Running: 1, Finished: 1}}
	if id == eventNumber(1) {
		c.CanceledRuns, c.RunningRuns = []core.ID{runNumber(1)}, []core.ID{runNumber(2)}
	}
	return c, a.say("cancel %s", id)
}

func (a *archivist) Replay(_ context.Context, f core.EventFilter, s manage.Span, dry bool) (manage.Replayed, error) {
	done := manage.Replayed{Looked: 15, Events: 12, Jobs: 14, Span: s, Next: s.Last}
	switch {
	case f.Source == "idle":
		done = manage.Replayed{}
	case f.Source == "long":
		done.Next, done.Going = "", "01J00000000000000000000008"
	case s == (manage.Span{}):
		done.Span, done.Next = manage.Span{First: eventNumber(1), Last: eventNumber(3)}, ""
	}
	return done, a.say("replay %s %q to %q %v", filterText(f), s.First, s.Last, dry)
}

func (a *archivist) Export(_ context.Context, f core.EventFilter, n int, bare bool) iter.Seq2[manage.Told, error] {
	return func(yield func(manage.Told, error) bool) {
		if err := a.say("export %s %d", filterText(f), n); err != nil {
			yield(manage.Told{}, err)
			return
		}
		if f.Source == "idle" {
			return
		}
		many := max(a.events, 3)
		if n > 0 {
			many = min(many, n)
		}
		for i := range many {
			full, _ := a.full(eventNumber(i%3 + 1))
			if bare {
				full = manage.Told{Event: full.Event}
			}
			if !yield(full, nil) {
				_ = a.say("stopped at %d", i+1)
				return
			}
		}
		if a.breaks {
			yield(manage.Told{}, errors.New(`syntax error at "SELECT"`))
		}
	}
}

// A registrar knows the jobs of the archivist.
type registrar struct{ *archivist }

func (a registrar) List(_ context.Context, f core.JobFilter) (manage.JobPage, error) {
	page := manage.JobPage{Page: core.Page[core.Job]{Items: jobsStored(), More: f.After == ""}, Waits: map[core.ID]manage.Wait{}}
	if f.Lane == "handler/idle" {
		page = manage.JobPage{}
	}
	for _, j := range page.Items {
		if j.Status == core.Available {
			page.Waits[j.ID] = manage.Wait{For: manage.NoConsumerYet}
		}
	}
	return page, a.say("list jobs %q %q %q %d", f.Status, f.Lane, f.After, f.Limit)
}

// Search finds the first job of billing, among 10,000 jobs; none of "idle".
func (a registrar) Search(_ context.Context, s manage.JobSearch) (manage.FoundJobs, error) {
	found := manage.FoundJobs{JobPage: manage.JobPage{Page: core.Page[core.Job]{Items: jobsStored()[:1], More: true}}, Scanned: manage.MaxSearch, Next: jobNumber(3)}
	if s.Source == "idle" {
		found = manage.FoundJobs{Scanned: 3}
	}
	return found, a.say("search jobs %q %q %q %d of %q %q %q", s.Status, s.Lane, s.After, s.Limit, s.Source, s.Type, s.Error)
}

func (a registrar) Errors(_ context.Context, f core.FailureFilter) (manage.Errors, error) {
	errs := manage.Errors{Scanned: 4, More: true, Groups: []manage.ErrorGroup{
		{Lane: "handler/billing", Kind: "status: 503 \u001b[31m<id>", Dead: 2, Retrying: 1, Newest: noon.Add(time.Hour), Oldest: noon, Example: jobNumber(1), Error: "status: 503 \u001b[31m4bf92f3577b34da6"},
		{Lane: "queue/work", Retrying: 1, Newest: noon, Oldest: noon, Example: jobNumber(2)},
	}}
	if f.Lane == "handler/idle" {
		errs = manage.Errors{}
	}
	return errs, a.say("errors %q %s %s", f.Lane, core.FormatTime(f.Since), core.FormatTime(f.Until))
}

func (a registrar) Job(_ context.Context, id core.ID) (core.Job, error) {
	for _, j := range jobsStored() {
		if j.ID == id {
			return j, a.say("job %s", id)
		}
	}
	return core.Job{}, manage.ErrJob
}

func (a registrar) Wait(_ context.Context, job core.Job) (manage.Wait, error) {
	if job.Status != core.Available {
		return manage.Wait{}, nil
	}
	return manage.Wait{For: manage.NoConsumerYet}, a.say("what %s waits for", job.ID)
}

// Attempts returns the attempts of the dead job, which has one more behind them.
func (a registrar) Attempts(ctx context.Context, id core.ID, skip int) (page core.Page[core.Attempt], err error) {
	job, err := a.Job(ctx, id)
	switch {
	case err != nil || job.Status != core.Dead:
	case a.tries != nil:
		page.Items = a.tries
	case skip == 0:
		page = core.Page[core.Attempt]{Items: attempts(), More: true}
	default:
		page.Items = []core.Attempt{{Number: skip + 1, StatusCode: 200, StartedAt: noon}}
	}
	return page, err
}

func (a registrar) SentBody(ctx context.Context, id core.ID, number int) (string, error) {
	if _, err := a.Job(ctx, id); err != nil {
		return "", err
	}
	if number != 3 {
		return "", core.Refuse(core.NotFound, "no body is kept of attempt %d", number)
	}
	return `{"n":1}`, a.say("body of attempt %d of %s", number, id)
}

func (a registrar) Curl(ctx context.Context, id core.ID, number int) (*curl.Command, error) {
	page, err := a.Attempts(ctx, id, 0)
	if err != nil {
		return nil, err
	}
	attempt, err := manage.Numbered(id, page.Items, number)
	if err != nil {
		return nil, err
	}
	if attempt.Exchange != nil {
		attempt.Exchange.KeptBody = attempt.Exchange.BodySize // all of it
	}
	return manage.CurlOf(ctx, core.Job{ID: id}, attempt, func(context.Context, core.ID, int) (string, error) {
		return `{"n":1}`, a.say("body of attempt %d of %s", number, id)
	}, func(context.Context, core.ID) (core.Event, error) { return core.Event{}, a.say("event of %s", id) })
}

func (a registrar) Retry(ctx context.Context, id core.ID) (int, error) {
	job, err := a.Job(ctx, id)
	switch {
	case err != nil:
		return 0, err
	case job.Status != core.Dead:
		return 0, core.Refuse(core.Invalid, "job %s is %s; only jobs that are dead or canceled, or wait for a later attempt, can be retried", id, job.Status)
	}
	return 1, a.say("retry %s", id)
}

func (a registrar) RetryAll(_ context.Context, lane core.Lane) (manage.Retried, error) {
	if lane == "handler/long" {
		return manage.Retried{Jobs: 7, Going: "01J00000000000000000000008"}, nil
	}
	return manage.Retried{Jobs: 7}, a.say("retry all %q", lane)
}

func (a *archivist) Stats(context.Context) (manage.Stats, error) {
	open := core.Gate{Failures: core.BreakerThreshold, OpenUntil: noon.Add(time.Minute)}
	return manage.Stats{At: noon, Completed: 100_000, Lanes: []manage.LaneStats{
		{Lane: "handler/billing", Tally: core.Tally{Pending: 9, Waiting: 2, Stopped: 1, Retryable: 5, Processing: 1, OldestDue: noon.Add(-90 * time.Second)}, Ended: core.Ended{Dead: 3, Canceled: 4}, Gate: open},
		{Lane: "handler/idle"},
		{Lane: "queue/work", Tally: core.Tally{Pending: 3, Processing: 2, OldestDue: noon}, Ended: core.Ended{Dead: 1, Canceled: 2}, Gate: core.Gate{HeldSince: noon.Add(-time.Hour), HeldUntil: core.NoEnd}},
		{Lane: "workflow/fulfil-order", Tally: core.Tally{Pending: 2, Scheduled: 2, Processing: 1}},
		{Lane: "alert/0123456789ab"},
	}, Sources: []manage.SourceStats{
		{Name: "github", Gate: core.Gate{HeldSince: noon.Add(-time.Hour), HeldUntil: noon.Add(time.Hour)}}, {Name: "shop"},
	}}, a.say("stats")
}

func (a *archivist) Curves(_ context.Context, w manage.Window, lanes ...core.Lane) (manage.Curves, error) {
	step, n := w.Steps()
	c := manage.Curves{Window: w, From: noon.Add(-time.Duration(n) * step), Until: noon.Add(-time.Second), Step: step}
	for _, lane := range append(lanes, "source/github", "handler/billing")[:2] {
		curve := manage.Curve{Lane: lane, Steps: make([]core.Counts, 3)} // a window has more
		if curve.Steps[1] = (core.Counts{Completed: 1200, Failed: 3, Dead: 1}); lane.Source() != "" {
			curve.Steps[2] = core.Counts{Accepted: 7}
			c.Sources = append(c.Sources, curve)
			continue
		}
		c.Consumers = append(c.Consumers, curve)
	}
	return c, a.say("series %s %q", w, lanes)
}

func (a *archivist) Look(_ context.Context, c manage.Cursor, follow []core.ID) (manage.News, error) {
	next := manage.Cursor{Event: eventNumber(2), Finished: noon.Add(time.Hour)}
	news := manage.News{Next: next, Followed: len(follow)}
	if c.Event != "" {
		news.Events, news.Jobs, news.More, news.Next.Job = eventsStored()[:2], jobsStored(), true, c.Job
	}
	calls := fmt.Sprintf("look %q %s", c.Event, core.FormatTime(c.Finished))
	if c.Job != "" || follow != nil {
		calls += fmt.Sprintf(" %q %q", c.Job, follow)
	}
	return news, a.say("%s", calls)
}
