package mysql

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/infra/test/servers"
	"github.com/eventgateway/gateway/store"
)

// An earlierList is an index of an earlier version. jobs_lists replaced it, or replaced the index that did.
type earlierList struct {
	from, until    int // the schema steps that made and dropped it
	index, columns string
}

// earlierColumns are the generated columns of these indexes, by the steps that made them.
var earlierColumns = map[string]struct {
	from      int
	condition string
}{
	"dead_lane":     {3, "status = 'dead'"},
	"last_lane":     {3, "status = 'running' AND attempt >= max_attempts"},
	"done_lane":     {33, "status = 'completed'"},
	"canceled_lane": {46, "status = 'canceled'"},
}

var earlierLists = []earlierList{
	{7, 62, "jobs_dead", "dead_lane, id"},
	{12, 27, "jobs_last", "last_lane, due_at, id"},
	{26, 62, "jobs_lapsing", "last_lane, due_at, id"},
	{33, 62, "jobs_done", "done_lane, id"},
	{46, 62, "jobs_canceled", "canceled_lane, id"},
}

// TestEarlierLists: a database of a version that had four indexes in place of jobs_lists, or only some of
// them, gets the tables of this one, and its jobs are found by the new index.
func TestEarlierLists(t *testing.T) {
	for _, newest := range []int{61, 45, 30, 23, 12, 5} {
		t.Run(fmt.Sprint("step ", newest), func(t *testing.T) {
			url := servers.MySQL(t)
			c := opened(t, url)
			s := migrated(t, c)
			now := time.Now().Truncate(time.Millisecond)
			want := jobOfEachList(t, s, now)
			back := []string{"ALTER TABLE jobs DROP INDEX jobs_lists, DROP COLUMN list_name, DROP COLUMN lapses_at"}
			for name, c := range earlierColumns {
				if c.from <= newest {
					back = append(back, fmt.Sprintf("ALTER TABLE jobs ADD COLUMN %s VARBINARY(255) GENERATED ALWAYS AS (CASE WHEN %s THEN lane END) STORED", name, c.condition))
				}
			}
			for _, l := range earlierLists {
				if l.from <= newest && newest < l.until {
					back = append(back, fmt.Sprintf("CREATE INDEX %s ON jobs (%s)", l.index, l.columns))
				}
			}
			admin(t, url, append(back, fmt.Sprint("DELETE FROM schema_steps WHERE number > ", newest))...)
			s = migrated(t, c)
			if found, err := store.Compare(t.Context(), c, store.MySQL); err != nil || len(found) > 0 {
				t.Errorf("Compare after the migration = %v, %v, want no difference", found, err)
			}
			for status, job := range want {
				if got := listedJobs(t, s, now, status); !slices.Equal(got, []core.ID{job}) {
					t.Errorf("jobs with the status %s = %v, want %v", status, got, job)
				}
			}
		})
	}
}

// list is the lane of the jobs of jobOfEachList.
const list = core.Lane("queue/list")

// jobOfEachList makes a job for each list, and returns them by status. The running job is on its last
// attempt, and its lease has ended an hour later.
func jobOfEachList(t *testing.T, s core.Store, now time.Time) map[core.Status]core.ID {
	t.Helper()
	ctx, ids := t.Context(), core.NewIDs(core.SystemClock)
	a := arrival(ids, list, 3)
	for i := range a.Jobs {
		a.Jobs[i].MaxAttempts = 1
	}
	if _, err := s.Accept(ctx, a); err != nil {
		t.Fatal(err)
	}
	taken, err := s.Take(ctx, time.Now(), []core.Quota{{Lane: list, N: 3, Hold: time.Minute}})
	if err != nil || len(taken) != 3 {
		t.Fatalf("Take = %d jobs, %v, want 3", len(taken), err)
	}
	over := ended(taken[:2])
	over[1].Status = core.Dead
	if _, err := s.Settle(ctx, over...); err != nil {
		t.Fatal(err)
	}
	waiting := arrival(ids, list, 1)
	if _, err := s.Accept(ctx, waiting); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Cancel(ctx, now, waiting.Event.ID); err != nil {
		t.Fatal(err)
	}
	return map[core.Status]core.ID{core.Completed: taken[0].ID, core.Dead: taken[1].ID, core.Running: taken[2].ID, core.Canceled: waiting.Jobs[0].ID}
}

// listedJobs returns the jobs with a status. It finds the running ones an hour later, by Lapsed.
func listedJobs(t *testing.T, s core.Store, now time.Time, status core.Status) (ids []core.ID) {
	t.Helper()
	if status == core.Running {
		jobs, err := s.Lapsed(t.Context(), now.Add(time.Hour), []core.Lane{list}, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range jobs {
			ids = append(ids, j.ID)
		}
		return ids
	}
	page, err := s.Jobs(t.Context(), core.JobFilter{Status: status, Lane: list})
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range page.Items {
		ids = append(ids, j.ID)
	}
	return ids
}

// TestRetryLocksNoOtherList: a retry of all dead jobs reads to the end of their list. It keeps no lock on the
// job behind it, which is on its last attempt, so that job is settled while the retry is under way.
func TestRetryLocksNoOtherList(t *testing.T) {
	c := opened(t, servers.MySQL(t))
	s := migrated(t, c)
	now := time.Now().Truncate(time.Millisecond)
	running := jobOfEachList(t, s, now)[core.Running]
	job, err := s.Job(t.Context(), running)
	if err != nil {
		t.Fatal(err)
	}
	other, err := c.pool.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.pool.put(other)
	picked, err := other.query(t.Context(), "BEGIN; SELECT id FROM jobs FORCE INDEX (jobs_lists) WHERE list_name = 'dead' AND lapses_at IS NULL"+
		" AND (lane < 'workflow/' OR lane >= 'workflow0') AND line IS NULL LIMIT 100 FOR UPDATE SKIP LOCKED", nil)
	if err != nil || len(picked) == 0 || len(picked[len(picked)-1]) != 1 {
		t.Fatalf("the retry picks %v, %v, want the dead job", picked, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	over := core.Outcome{JobID: running, Lease: job.Lease, Status: core.Completed, At: now, Attempt: core.Attempt{Number: 1, StartedAt: now}}
	if settled, err := s.Settle(ctx, over); err != nil || len(settled.Lost) > 0 {
		t.Errorf("Settle beside the retry = %+v, %v, want no wait", settled, err)
	}
	if _, err := other.query(t.Context(), "ROLLBACK", nil); err != nil {
		t.Fatal(err)
	}
}
