package storetest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// RunSeveral runs checks over several stores of one database, each with its own connection, as
// several processes would be. The checks are about gates, queues and transitions. A store must not
// rely on anything in its own memory, such as a lock or a cache, for correctness.
func RunSeveral(t *testing.T, stores ...core.Store) {
	for name, run := range map[string]func(*rig){
		"probes": raceProbes, "starts": raceStarts, "failures": raceFailures,
		"acks": raceAckMany, "acks and takes": raceAckTake, "drains": raceDrains,
		"transitions": raceTransit, "transitions of several runs": raceTransits, "joins": raceJoin, "callbacks": raceCallback,
		"held sources":          heldElsewhere,
		"transitions and takes": raceTransitTake, "situations": raceSituations,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, &several{Store: stores[0], all: stores}, Options{})
			r.lane, r.workflow = core.HandlerLane(name), name
			run(r)
		})
	}
}

// several spreads calls over many stores in turn: Take, Settle, Ack, Drain, Situations and
// Transit.
type several struct {
	core.Store
	all  []core.Store
	next atomic.Int64
}

// one returns the stores in turn.
func (s *several) one() core.Store { return s.all[int(s.next.Add(1))%len(s.all)] }

// Take asks the next store.
func (s *several) Take(ctx context.Context, now time.Time, quotas []core.Quota) ([]core.TakenJob, error) {
	return s.one().Take(ctx, now, quotas)
}

// Settle asks the next store.
func (s *several) Settle(ctx context.Context, outcomes ...core.Outcome) (core.Settlement, error) {
	return s.one().Settle(ctx, outcomes...)
}

// Ack asks the next store.
func (s *several) Ack(ctx context.Context, now time.Time, lane core.Lane, refs []core.Ref) (int, error) {
	return s.one().Ack(ctx, now, lane, refs)
}

// Situations asks the next store.
func (s *several) Situations(ctx context.Context, steps []core.ID) (map[core.ID]core.Situation, error) {
	return s.one().Situations(ctx, steps)
}

// Transit asks the next store.
func (s *several) Transit(ctx context.Context, ts ...core.Transition) ([]core.Transited, error) {
	return s.one().Transit(ctx, ts...)
}

// Drain asks the next store.
func (s *several) Drain(ctx context.Context, lane core.Lane, below core.ID, limit int) (int, error) {
	return s.one().Drain(ctx, lane, below, limit)
}

// UnusedProbe checks that a Take of a probe leaves the gate unchanged while every job of the lane
// is locked, so that the next Take may have the probe. It is for databases that skip locked rows,
// and only their own tests can lock a row. lock locks the row of a job.
func UnusedProbe(t *testing.T, s core.Store, lock func(job core.ID) (letGo func())) {
	r := newRig(t, s, Options{})
	open := r.openBreaker()
	r.now = open.OpenUntil
	for _, j := range r.jobs(core.JobFilter{Lane: r.lane}).Items {
		defer lock(j.ID)()
	}
	r.takeCount("while all jobs are locked", 0, r.probe())
	r.wantGate("of a probe that found no job", open)
}
