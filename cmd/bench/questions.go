package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/eventgateway/gateway/cmd/bench/internal/event"
	"github.com/eventgateway/gateway/cmd/bench/internal/server"
	"github.com/eventgateway/gateway/cmd/bench/internal/stats"
)

// askTimeout bounds one request. A query that scanned the table would take seconds, and be seen
// in the figure.
const askTimeout = time.Minute

// A question is a GET of an operator.
type question struct {
	label, path string
	pause       time.Duration // before each, for answers that are kept for so long
	whole       bool          // a query of thousands of records, for which there is no aim
}

// questions measures the management API.
func (b *bench) questions(ctx context.Context, r *running) error {
	return b.askAll(ctx, r, questionsAt(time.Now()))
}

// askAll asks each question many times, one after the other on one connection, and adds the
// median and the 99th percentile.
func (b *bench) askAll(ctx context.Context, r *running, list []question) error {
	client := &http.Client{Timeout: askTimeout}
	defer client.CloseIdleConnections()
	for _, q := range list {
		n := b.opts.asks
		// An answer that the server keeps for a second is asked less often, or the questions
		// would take minutes.
		if q.pause > 0 {
			n = max(1, n/5)
		}
		took := make([]int64, n)
		for i := range took {
			if err := pause(ctx, q.pause); err != nil {
				return err
			}
			began := event.Nanos()
			if _, err := ask(ctx, client, "http://"+r.child.Addr+q.path); err != nil {
				return err
			}
			took[i] = event.Nanos() - began
		}
		b.operated(q.label+" p50", "ms", none, ms(stats.Percentile(took, 0.50)))
		b.operated(q.label+" p99", "ms", q.aim(), ms(stats.Percentile(took, 0.99)))
	}
	return nil
}

// The aim holds for the 99th percentile: an operator looks at a page a few times, and remembers
// the slow one.
func (q question) aim() aim {
	if q.whole {
		return none
	}
	return atMost(answerAim)
}

// ask returns the body of a reply. A status other than 200 is an error, so that the time of a
// refusal is never measured.
func ask(ctx context.Context, client *http.Client, address string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: status %d %.200q", address, res.StatusCode, body)
	}
	return body, err
}

// questionsAt returns the requests. A deep one asks for events of two days ago, and a rare
// one for the rare events of [server.Database.Fill].
func questionsAt(now time.Time) []question {
	const form = "2006-01-02T15:04:05"
	ago := func(d time.Duration) string { return now.Add(-d).UTC().Format(form) }
	deep := server.FilledID(now.Add(-48 * time.Hour))
	list := []question{
		{label: "events", path: "/api/events"},
		{label: "events, 1000 of them", path: "/api/events?limit=1000"},
		{label: "events, deep", path: "/api/events?after=" + deep},
		{label: "events of a source", path: "/api/events?source=app"},
		{label: "events of a rare source", path: "/api/events?source=seldom"},
		{label: "events of a source without any", path: "/api/events?source=bench"},
		{label: "events of a rare type", path: "/api/events?event_type=order.refunded"},
		{label: "events of a rare source and type", path: "/api/events?source=seldom&event_type=order.refunded"},
		{label: "events of a rare source and a common type", path: "/api/events?source=seldom&event_type=order.created"},
		{label: "events of a common source and a rare type", path: "/api/events?source=app&event_type=order.refunded"},
		// Both are common and no event has both: a listing through one index alone would read
		// most of it.
		{label: "events of a common source and type that never meet", path: "/api/events?source=app&event_type=item.sold"},
		{label: "events of a common type, 1000 of them", path: "/api/events?event_type=order.created&limit=1000"},
		{label: "events of the last hour", path: "/api/events?since=" + ago(time.Hour)},
		{label: "events of a minute, deep", path: "/api/events?since=" + ago(48*time.Hour) + "&until=" + ago(48*time.Hour-time.Minute)},
		{label: "jobs", path: "/api/jobs"},
		{label: "jobs, deep", path: "/api/jobs?after=" + deep},
		{label: "jobs of a handler", path: "/api/jobs?handler=h3"},
		{label: "jobs of a rare handler", path: "/api/jobs?handler=seldom"},
		{label: "jobs of a rare handler, completed", path: "/api/jobs?handler=seldom&status=completed"},
		{label: "jobs of a handler without any", path: "/api/jobs?handler=sink"},
	}
	for _, status := range []string{"available", "scheduled", "running", "completed", "retryable", "dead"} {
		list = append(list, question{label: "jobs, " + status, path: "/api/jobs?status=" + status},
			question{label: "jobs of a handler, " + status, path: "/api/jobs?handler=h3&status=" + status})
	}
	tail := func(since time.Time) string {
		return "/api/tail?" + url.Values{"event": {server.FilledID(since)}, "finished": {since.UTC().Format(form)}}.Encode()
	}
	return append(list,
		question{label: "runs", path: "/api/workflow-runs"},
		question{label: "tail, a look", path: tail(now.Add(-time.Second))},
		question{label: "tail, a look at thousands, deep", path: tail(now.Add(-48 * time.Hour)), whole: true},
		question{label: "stats", path: "/api/stats", pause: 1050 * time.Millisecond},
		question{label: "metrics", path: "/metrics", pause: 1050 * time.Millisecond},
		question{label: "health", path: "/health"})
}

// pileQuestions returns the requests to a database with a million waiting jobs, see
// [server.Database.Pile].
func pileQuestions() []question {
	list := []question{{label: "jobs", path: "/api/jobs"}, {label: "jobs of a handler", path: "/api/jobs?handler=h3"}}
	for _, status := range []string{"available", "running", "completed", "dead"} {
		list = append(list, question{label: "jobs, " + status, path: "/api/jobs?status=" + status})
	}
	return append(list,
		question{label: "jobs, retryable, a look at all that wait", path: "/api/jobs?status=retryable", whole: true},
		question{label: "jobs, scheduled, a look at all that wait", path: "/api/jobs?status=scheduled", whole: true},
		question{label: "stats", path: "/api/stats", pause: 1050 * time.Millisecond},
		question{label: "metrics", path: "/metrics", pause: 1050 * time.Millisecond},
		question{label: "health", path: "/health"})
}
