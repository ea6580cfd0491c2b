package worker

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A paced flow ends its attempts when the test says so, and does not answer calls of Settle until then.
type paced struct {
	*flow
	run     map[core.ID]core.ID // of each job
	goes    map[core.ID]chan struct{}
	answer  chan struct{} // closed when Settle may answer
	storing []core.ID     // jobs whose ends have come to Settle
}

func (p *paced) Attempt(ctx context.Context, job core.TakenJob) (core.StepEnd, bool, error) {
	<-p.goes[job.ID]
	end, wanted, err := p.flow.Attempt(ctx, job)
	end.Job.Situation.Run.ID = p.run[job.ID]
	return end, wanted, err
}

func (p *paced) Settle(ctx context.Context, ends ...core.StepEnd) ([]core.StepSettled, error) {
	p.calls.Lock()
	for _, e := range ends {
		p.storing = append(p.storing, e.Job.ID)
	}
	p.calls.Unlock()
	<-p.answer
	return p.flow.Settle(ctx, ends...)
}

// TestEndsOfARunWaitForEachOther: the end of another run is stored beside the first one, and the next end
// of the same run only after it.
func TestEndsOfARunWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			name   string
			second core.ID // the run of the second job; that of the first is "one"
			beside bool
		}{
			{"of another run", "two", true},
			{"of the same run", "one", false},
		} {
			p := &paced{flow: &flow{}, run: map[core.ID]core.ID{}, goes: map[core.ID]chan struct{}{}, answer: make(chan struct{})}
			b := newBench(Limits{Slots: 4, Batch: 4, Drain: time.Minute}, Target{Lane: flowLane, Steps: p})
			p.pile = b.pile
			b.add(flowLane, 2, core.Unlimited)
			var ids []core.ID
			for id := range b.jobs {
				ids, p.goes[id] = append(ids, id), make(chan struct{})
			}
			slices.Sort(ids)
			p.run[ids[0]], p.run[ids[1]] = "one", tt.second
			stop := b.serve(t)
			for _, id := range ids {
				close(p.goes[id])
				synctest.Wait()
			}
			want := ids[:1]
			if tt.beside {
				want = ids
			}
			if !slices.Equal(p.storing, want) {
				t.Errorf("%s: being stored %v, want %v", tt.name, p.storing, want)
			}
			close(p.answer)
			synctest.Wait()
			if tt.beside {
				slices.Sort(p.settled) // either may be first
			}
			if !slices.Equal(p.settled, ids) {
				t.Errorf("%s: stored %v, want %v", tt.name, p.settled, ids)
			}
			stop()
		}
	})
}
