package storetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Checks of what attempts keep: replies and recorded exchanges. Most deliveries record none, so a batch of outcomes may have some
// with an exchange and some without.

const (
	saysExchanges  = "The exchanges that were recorded come with them, without the kept parts of bodies"
	saysSentBody   = "SentBody returns the kept part of the body that an attempt of a job sent"
	saysNoBody     = `It is "" if none was kept, or if there is no such attempt`
	saysNewestBody = "Of several attempts with the number, the newest one counts"
)

// exchange returns an exchange with a value in each field and the given body.
func exchange(body string) *core.Exchange {
	return &core.Exchange{
		Method: "POST", URL: "https://example.com/a?token=***",
		Headers:      map[string]string{"Authorization": core.Masked, "X-Text": "caf\u00e9 \"quoted\" \u2028 <a>"},
		ReplyHeaders: map[string]string{"Retry-After": "7"},
		Cut:          true, BodySize: len(body) + 1, BodySHA256: strings.Repeat("0a", 32), KeptBody: len(body), Body: body,
		Unmasked: []string{"X-Stars", core.UnmaskedURL},
	}
}

// bodiless returns an exchange as it is listed.
func bodiless(x *core.Exchange) *core.Exchange {
	if x == nil {
		return nil
	}
	shown := *x
	shown.Body = ""
	return &shown
}

// sentBody returns the kept part of a body.
func (r *rig) sentBody(job core.ID, number int) string {
	r.Helper()
	body, err := r.store.SentBody(context.Background(), job, number)
	if err != nil {
		r.Fatalf("SentBody(%s, %d) failed: %v", job, number, err)
	}
	return body
}

// One call settles outcomes with and without an exchange. None may be mixed up.
func showExchanges(r *rig) {
	bare := &core.Exchange{Method: "GET", URL: "https://example.com/"}
	exchanges := []*core.Exchange{nil, exchange(""), exchange(`{"a": 1}`), bare}
	r.accepted(r.arrival(lanes(r.lane, len(exchanges))...))
	var outcomes []core.Outcome
	for i, j := range r.take(len(exchanges)) {
		o := r.ended(j.Job, core.Dead)
		o.Attempt.Exchange = exchanges[i]
		outcomes = append(outcomes, o)
	}
	r.settle(outcomes...)
	r.wantIdempotent("Settle", func() { r.settle(outcomes...) })
	for i, o := range outcomes {
		o.Attempt.Exchange = bodiless(exchanges[i])
		r.equal("Attempts", r.attempts(o.JobID), []core.Attempt{o.Attempt})
	}
}

// The last attempt of a completed job is listed like the others, whatever its reply, and in its place
// among the parts of the list.
func showSuccesses(r *rig) {
	replies := []string{"", "ok", " 1 2 ", "caf\u00e9 \"quoted\" \u2028", strings.Repeat("a", 512), strings.Repeat("a", 513), strings.Repeat("a", core.MaxResponse)}
	for failed := range 3 {
		a := r.arrival(lanes(r.lane, len(replies))...)
		for i := range a.Jobs {
			a.Jobs[i].MaxAttempts = failed + 1
		}
		r.accepted(a)
		want := map[core.ID][]core.Attempt{}
		for n := range failed + 1 {
			var outcomes []core.Outcome
			for i, j := range r.take(len(replies)) {
				o := r.ended(j.Job, core.Retryable)
				if o.DueAt = r.now.Add(time.Second); n == failed {
					o = r.ended(j.Job, core.Completed)
					o.Attempt.Response = replies[i]
				}
				o.Attempt.Duration += time.Duration(i) * time.Millisecond
				outcomes = append(outcomes, o)
				want[j.ID] = append(want[j.ID], o.Attempt)
			}
			r.settle(outcomes...)
			r.wantIdempotent("Settle", func() { r.settle(outcomes...) })
			r.now = r.now.Add(time.Second)
		}
		summaries := map[core.ID][]core.Attempt{}
		for id, all := range want {
			summaries[id] = replyless(slices.Clone(all))
			for skip := range len(all) + 2 {
				for limit := 1; limit <= len(all)+1; limit++ {
					r.equal(fmt.Sprintf("Attempts, %d behind %d", limit, skip), r.someAttempts(id, skip, limit), all[min(skip, len(all)):min(skip+limit, len(all))])
				}
			}
		}
		r.equal("AttemptsOf", r.attemptsOf(slices.Collect(maps.Keys(want))...), summaries)
	}
}

// The outcome of a worker that lost its lease leaves no attempt, also if it has an exchange.
func loseExchange(r *rig) {
	late := r.taken().Job
	r.now = late.DueAt
	holder := r.take(1)[0].Job
	o := r.ended(late, core.Dead)
	o.Attempt.Exchange = exchange("")
	r.wantLost(o, holder)
}

// A run stores the exchange of a call with the end of its step. The exchange of a second worker,
// whose transition is not made, is not stored.
func showStepExchanges(r *rig) {
	for _, x := range []*core.Exchange{nil, exchange("kept")} {
		j := r.takeNewRun()
		t, second := r.fullTransition(j), r.fullTransition(j)
		t.Attempts[0].Exchange, second.Attempts[0].Exchange = x, x
		second.Attempts[0].Lease = "of the second"
		r.equal("Transit: made", r.transit(t, second), []bool{true, false})
		r.mustTransit(t) // again
		want := t.Attempts[0].Attempt
		want.Exchange = bodiless(x)
		r.equal("Attempts", r.attempts(j.ID), []core.Attempt{want})
		if x != nil {
			r.equal("SentBody", r.sentBody(j.ID, want.Number), "kept")
		}
	}
}

// An export leaves the machine. So it has no exchanges.
func attemptsWithoutExchanges(r *rig) {
	j := r.taken()
	o := r.ended(j.Job, core.Completed)
	o.Attempt.Exchange = exchange("kept")
	r.settle(o)
	r.equal("Attempts: exchange", r.attempts(j.ID)[0].Exchange, bodiless(o.Attempt.Exchange))
	if x := r.attemptsOf(j.ID)[j.ID][0].Exchange; x != nil {
		r.Errorf("AttemptsOf: exchange = %+v, want none", *x)
	}
}

// The largest body comes back byte for byte.
func showSentBody(r *rig) {
	largest := strings.Repeat("\u00e9\"\\\n", core.MaxSentBody)[:core.MaxSentBody-1]
	largest = strings.ToValidUTF8(largest, "")
	j := r.taken()
	o := r.ended(j.Job, core.Completed)
	o.Attempt.Exchange = exchange(largest)
	r.settle(o)
	if got := r.sentBody(j.ID, 1); got != largest {
		r.Errorf("SentBody = %d bytes, want %d, or others", len(got), len(largest))
	}
}

// A body that was not kept is no error: an operator asks for any attempt.
func showNoSentBody(r *rig) {
	plain, bodyless := r.settled(core.Completed), r.taken()
	o := r.ended(bodyless.Job, core.Completed)
	o.Attempt.Exchange = exchange("")
	r.settle(o)
	for what, got := range map[string]string{
		"no exchange": r.sentBody(plain.ID, 1), "no body": r.sentBody(bodyless.ID, 1),
		"no such attempt": r.sentBody(plain.ID, 2), "no such job": r.sentBody(r.ids.Next(), 1),
	} {
		r.equal("SentBody: "+what, got, "")
	}
}

// A gateway of an earlier version numbered the attempts after a retry from 1 again.
func showNewestSentBody(r *rig) {
	j := r.taken()
	for _, body := range []string{"first", "second"} {
		o := r.ended(j.Job, core.Retryable)
		o.Attempt.Number, o.Attempt.Exchange = 1, exchange(body)
		r.settle(o)
		r.now = o.DueAt
		j = r.takeOnly(j.ID, r.quota(1))
	}
	r.equal("SentBody", r.sentBody(j.ID, 1), "second")
}
