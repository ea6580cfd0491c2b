package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/eventgateway/gateway/core"
)

const (
	saysRetry      = "Retry makes dead jobs available at once, with their whole budget of attempts, and returns how many"
	saysRetryAll   = "A zero id means all dead jobs, those of one lane if lane is set"
	saysRetryOther = "Jobs that are not dead stay as they are"
	saysMigrate    = "Migrate brings the schema up to date"
	saysMigrateTwo = "It may run in several processes at once and any number of times"
	saysPing       = "Ping reports whether the database answers"
)

var upkeep = role{name: "Upkeep", checks: []check{
	{saysRetry, "", retryOne},
	{saysRetry, "at once", retryDue},
	{saysRetry, "with their whole budget", retryBudget},
	{saysRetry, "the attempts before stay, oldest first", retryAttempts},
	{saysRetry, "while others take", raceRetry},
	{saysRetryAll, "all", retryAll},
	{saysRetryAll, "of one lane", retryLane},
	{saysRetryOther, "", retryOthers},
	{saysRetryOther, "an unknown job", retryUnknown},
	{saysMigrate, "", migrate},
	{saysMigrateTwo, "", raceMigrate},
	{saysPing, "", ping},
}}

func retryOne(r *rig) {
	want, other := r.settled(core.Dead), r.settled(core.Dead)
	r.now = r.now.Add(time.Hour)
	r.equal("Retry", r.retry(want.ID, ""), 1)
	want.Status, want.Attempt, want.DueAt, want.FinishedAt = core.Available, 0, r.now, time.Time{}
	r.wantJob(want)
	r.wantJob(other)
}

func retryDue(r *rig) {
	j := r.settled(core.Dead)
	r.now = r.now.Add(time.Hour)
	r.retry(j.ID, "")
	r.now = r.now.Add(-time.Millisecond)
	r.nothingDue()
	r.now = r.now.Add(time.Millisecond)
	r.equal("Take", ids(r.take(1)), []core.ID{j.ID})
}

func retryBudget(r *rig) {
	j := r.spent(2)
	o := r.ended(j.Job, core.Dead)
	o.Attempt.Number = j.MaxAttempts
	r.settle(o)
	r.retry(j.ID, "")
	for i := range j.MaxAttempts {
		again := r.take(1)[0]
		r.equal("Take after Retry: attempt", again.Attempt, i+1)
		r.equal("Take after Retry: Spent", again.Spent(), false)
		r.now = again.DueAt
	}
}

// Numbers start anew after a Retry, so they do not give the order.
func retryAttempts(r *rig) {
	var want []core.Attempt
	id := r.put().ID
	for range 2 {
		for _, s := range []core.Status{core.Retryable, core.Retryable, core.Dead} {
			o := r.ended(r.take(1)[0].Job, s)
			want = append(want, o.Attempt)
			r.settle(o)
			r.now = r.now.Add(2 * hold)
		}
		r.equal("Retry", r.retry("", ""), 1)
	}
	r.equal("Attempts", r.attempts(id), want)
}

func retryAll(r *rig) {
	dead := map[core.Lane]core.Job{}
	for _, l := range []core.Lane{"handler/a", "handler/b", "queue/c"} {
		r.lane = l
		dead[l] = r.settled(core.Dead)
	}
	r.equal("Retry", r.retry("", ""), 3)
	for _, j := range dead {
		r.equal("status", r.job(j.ID).Status, core.Available)
	}
}

func retryLane(r *rig) {
	other := r.settled(core.Dead)
	r.lane = "queue/b"
	want := []core.Job{r.settled(core.Dead), r.settled(core.Dead)}
	r.equal("Retry", r.retry("", r.lane), 2)
	r.equal("Take", ids(r.take(2)), ids(want))
	r.wantJob(other)
	r.equal("Retry of an unknown lane", r.retry("", "queue/nobody"), 0)
}

func retryOthers(r *rig) {
	want := []core.Job{r.settled(core.Completed), r.settled(core.Retryable), r.taken().Job, r.put()}
	r.now = r.now.Add(time.Second)
	for _, j := range want {
		r.equal("Retry of a job that is "+string(j.Status), r.retry(j.ID, ""), 0)
	}
	r.equal("Retry of the lane", r.retry("", r.lane), 0)
	r.equal("Retry of all", r.retry("", ""), 0)
	for _, j := range want {
		r.wantJob(j)
	}
}

// Whether an unknown id is refused or simply none is left open; nothing changes.
func retryUnknown(r *rig) {
	dead, id := r.settled(core.Dead), r.ids.Next()
	n, err := r.store.Retry(context.Background(), r.now, id, "")
	if n != 0 || err != nil && !core.IsKind(err, core.NotFound) {
		r.Errorf("Retry(%s) of an unknown job = %d, %v; want 0 and no error, or a refusal of kind NotFound", id, n, err)
	}
	r.wantJob(dead)
}

func migrate(r *rig) {
	want := r.settled(core.Dead)
	if err := r.store.Migrate(context.Background()); err != nil {
		r.Fatalf("Migrate of a migrated store = %v, want none", err)
	}
	r.wantJob(want)
	r.put()
}

// Processes are each driver's own test; here: callers.
func raceMigrate(r *rig) {
	want := r.put()
	r.together(4, func(int) error {
		for range 3 {
			if err := r.store.Migrate(context.Background()); err != nil {
				return fmt.Errorf("Migrate = %w, want none", err)
			}
		}
		return nil
	})
	r.wantJob(want)
}

func ping(r *rig) {
	if err := r.store.Ping(context.Background()); err != nil {
		r.Errorf("Ping = %v, want none", err)
	}
}
