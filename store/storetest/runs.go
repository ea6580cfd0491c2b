package storetest

import (
	"context"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Checks of the calls by which workers read workflow runs: definitions, situations, steps, tokens
// and receipts. A worker decides the next change of a run by these answers alone. transit.go has
// the checks of transitions, and raceruns.go the races.

const (
	saysDefinition   = "Definition returns the definition that was stored with the first run that follows it"
	saysSituations   = "Situations returns the situations of steps, each read at one moment together with the situations of the same run"
	saysNoStep       = "Steps that do not exist are absent"
	saysSurvey       = "Survey returns the wanted steps of an epoch of a run, each once, in the order of their ids"
	saysUnwanted     = "A wanted step that does not exist is absent"
	saysAwaited      = "Awaited returns the step for which a token is valid, by the token's hash"
	saysRecorded     = "Awaited also returns the run that recorded a callback with this receipt, as long as the run is stored"
	saysInvalidToken = "For a token that has expired or expires now, for a disarmed token and for an unknown token alike, the step is \"\""
)

// The sentences about transitions are in transit.go.
var runs = role{name: "Runs", checks: []check{
	{saysDefinition, "", showDefinition},
	{saysDefinition, "of none", showNoDefinition},
	{saysSituations, "", situationsFirst},
	{saysSituations, "later", situationsLater},
	{saysSituations, "enclosing steps, innermost first", situationsAbove},
	{saysSituations, "of several runs", situationsSeveral},
	{saysSituations, "consistent under concurrent transitions", raceSituations},
	{saysNoStep, "", situationsNone},
	{saysSurvey, "each field of Wanted", surveyEach},
	{saysSurvey, "each once, in order", surveyOrder},
	{saysSurvey, "of the epoch and run", surveyEpoch},
	{saysUnwanted, "", surveyNone},
	// Transitions: each part, the number of a run as their fence, and repetitions.
	{saysTransit, "", transitTells},
	{saysTransit, "none", transitNone},
	{saysAllOrNothing, "", transitAll},
	{saysAllOrNothing, "in sequence", transitSequence},
	{saysAllOrNothing, "steps whose output is their state", transitPassing},
	{saysAllOrNothing, "with large states", transitLarge},
	{saysAllOrNothing, "with large states, after a transition that stored them within the steps", transitLargeLater},
	{saysAllOrNothing, "stale, no large state is stored", transitLargeBehind},
	{saysAllOrNothing, "with an entry only", transitBare},
	{saysAllOrNothing, "into another epoch", transitEpoch},
	{saysAllOrNothing, "with another definition", transitDefinition},
	{saysAllOrNothing, "HeldUntil of the steps that it ends", transitHolds},
	{saysAllOrNothing, "stale, HeldUntil stays empty", transitHoldsBehind},
	{saysAllOrNothing, "stale, nothing changes", transitBehind},
	{saysAllOrNothing, "ahead, nothing changes", transitAhead},
	{saysAllOrNothing, "unknown run, nothing changes", transitUnknown},
	{saysAllOrNothing, "one of two is stale", transitSome},
	{saysAllOrNothing, "a map of many items", transitMany},
	{saysTransitAgain, "immediately", transitAgain},
	{saysTransitAgain, "beside others", transitAgainBeside},
	{saysTransitAgain, "later", transitAgainLater},
	{saysTransitAgain, "concurrent callers", raceSameMark},
	{saysOneForSeq, "concurrently", raceTransit},
	{saysOneForSeq, "in one call", transitTogether},
	{saysOneForSeq, "concurrently, several runs in each call", raceTransits},
	{saysOneForSeq, "reply and callback", raceCallback},
	{saysOneForSeq, "items of a map join", raceJoin},
	// The jobs of a run, held or not.
	{saysAnyLease, "job not taken", transitUnheld},
	{saysAnyLease, "job held by another worker", transitHeld},
	{saysAnyLease, "then an outcome", transitThenSettle},
	{saysAnyLease, "then a release", transitThenRelease},
	{saysAnyLease, "retryable is due again", transitRetryable},
	{saysAnyLease, "scheduled is due later", transitScheduled},
	{saysAnyLease, "new jobs of each status", transitNewScheduled},
	{saysAnyLease, "scheduled, ended before its time", transitEnded},
	{saysAnyLease, "dead", transitDead},
	{saysAnyLease, "settled at the same time", raceTransitSettle},
	{saysAnyLease, "released at the same time", raceTransitRelease},
	{saysAnyLease, "taken at the same time", raceTransitTake},
	{saysNewJobs, "", transitNewJobs},
	{saysTakeNext, "", takesNext},
	{saysTakeNext, "and goes on to the next ones", takesOn},
	{saysTakeNext, "beside another job", takesOneNext},
	{saysTakeNext, "sent again", takesNextAgain},
	{saysTakeNext, "stale, nothing is leased", takesNextBehind},
	{saysTakeNext, "the lane is held or was", takesNextHeld},
	{saysTakeNext, "the source is held", takesNextOfSource},
	{saysTakeNext, "several runs at once", takesNextOfMany},
	{saysTakeNext, "twice in one call", takesNextTogether},
	{saysTakeNext, "concurrent callers", raceTakeNext},
	// Tokens and receipts of callbacks.
	{saysAwaited, "", awaitedStep},
	{saysAwaited, "several of a step", awaitedSeveral},
	{saysInvalidToken, "expired", awaitedExpired},
	{saysInvalidToken, "disarmed", awaitedDisarmed},
	{saysInvalidToken, "never", awaitedNever},
	{saysRecorded, "", recordedCallback},
	{saysRecorded, "only if its transition is made", recordedBehind},
	{saysRecorded, "until its run is purged", recordedUntilPurged},
}}

// Each run's definition is read by its hash, also after other runs were started.
func showDefinition(r *rig) {
	a := r.runArrival(defaultWorkflow, "billing")
	r.accept(a)
	for _, n := range a.Runs {
		r.wantDefinition(n.Definition)
	}
	again := r.runArrival(defaultWorkflow)
	r.accept(again)
	r.wantDefinition(definition(defaultWorkflow))
}

// wantDefinition fails unless the definition is stored with exactly this text.
func (r *rig) wantDefinition(want core.Definition) {
	r.Helper()
	got, err := r.store.Definition(context.Background(), want.Hash)
	r.equal("Definition: error", err, nil)
	r.equal("Definition", got, want)
}

// A worker must not mistake a missing definition for an empty workflow.
func showNoDefinition(r *rig) {
	r.newRun()
	if _, err := r.store.Definition(context.Background(), definition("another").Hash); !core.IsKind(err, core.NotFound) {
		r.Errorf("Definition of none = %v, want a refusal of kind NotFound", err)
	}
}

// The situation of a first step, alone and beside another run.
func situationsFirst(r *rig) {
	want := r.newRun()
	r.equal("Situation", r.situation(want.Step.ID), want)
	r.newRun()
	r.equal("Situation, with another run", r.situation(want.Step.ID), want)
}

// After a transition, the first step and a new one have the new state of the run.
func situationsLater(r *rig) {
	j := r.takeNewRun()
	t := r.fullTransition(j)
	r.mustTransit(t)
	want := core.Situation{Run: t.Run, Step: r.firstStepAfter(j, t)}
	r.equal("Situation of the first step", r.situation(j.ID), want)
	fan := t.New[0]
	r.equal("Situation of a new step", r.situation(fan.ID), core.Situation{Run: t.Run, Step: fan})
}

// Six steps are nested, the deepest nesting that there is. The enclosing steps come without state
// and output, which may be large, and with all other fields.
func situationsAbove(r *rig) {
	run := r.newRun().Run
	t := r.transitionOf(run, core.EntryFanned)
	const nesting = 5
	for depth := range nesting + 1 {
		s := r.step(run, "nested-"+string(rune('a'+depth)), core.StepRunning)
		if depth > 0 {
			s.ParentID, s.Branch = t.New[depth-1].ID, "in"
		}
		s.Output, s.Fan, s.Carry = []byte(`1`), core.Fan{Total: depth, Started: depth, Bytes: 1<<20 - depth}, "{}"
		t.New = append(t.New, s)
	}
	r.mustTransit(t)
	got := r.situation(t.New[nesting].ID)
	r.equal("Situation: Step", got.Step, t.New[nesting])
	var above []core.Step
	for _, s := range slices.Backward(t.New[:nesting]) {
		s.State, s.Output = nil, nil
		above = append(above, s)
	}
	r.equal("Situation: Above", got.Above, above)
}

// One call names the steps of three runs, each step twice.
func situationsSeveral(r *rig) {
	a := r.runArrival(defaultWorkflow, defaultWorkflow, "billing")
	r.accept(a)
	want := map[core.ID]core.Situation{}
	var ids []core.ID
	for _, s := range pending(a) {
		want[s.Step.ID] = s
		ids = append(ids, s.Step.ID, s.Step.ID)
	}
	r.equal("Situations", r.situations(ids...), want)
}

// Unknown steps, jobs without steps and ids of runs are absent from the answer. A stored step of
// the same call is present.
func situationsNone(r *rig) {
	s, bare := r.newRun(), r.put()
	want := map[core.ID]core.Situation{s.Step.ID: s}
	r.equal("Situations", r.situations(r.ids.Next(), s.Step.ID, bare.ID, s.Run.ID), want)
	r.equal("Situations of none", r.situations(), map[core.ID]core.Situation{})
}

// Each field of Wanted selects its steps, alone and combined.
func surveyEach(r *rig) {
	j := r.takeNewRun()
	t := r.fullTransition(j)
	failed := ended(r.step(j.Situation.Run, "failed", core.StepRunning), r, core.StepFailed)
	t.New = append(t.New, failed)
	r.mustTransit(t)
	first, fan, call, over := r.firstStepAfter(j, t), t.New[0], t.New[1], t.New[2]
	for what, tc := range map[string]struct {
		want core.Wanted
		is   []core.Step
	}{
		"all":               {core.Wanted{All: true}, []core.Step{first, fan, call, over, failed}},
		"open":              {core.Wanted{Open: true}, []core.Step{fan, call}},
		"failed":            {core.Wanted{Failed: true}, []core.Step{failed}},
		"ids":               {core.Wanted{IDs: []core.ID{over.ID, first.ID}}, []core.Step{first, over}},
		"paths":             {core.Wanted{Paths: []string{"first", "fan/a/call"}}, []core.Step{first, call}},
		"leaves":            {core.Wanted{Leaves: []core.ID{fan.ID}}, []core.Step{over}},
		"several at a time": {core.Wanted{Failed: true, Paths: []string{"first"}, Leaves: []core.ID{fan.ID}}, []core.Step{first, over, failed}},
		"nothing":           {core.Wanted{}, nil},
	} {
		r.equal("Survey: "+what, r.survey(t.Run.ID, 1, tc.want), tc.is)
	}
}

// The steps are stored in reverse order. The call selects each of them by several fields at once,
// and each appears once.
func surveyOrder(r *rig) {
	j := r.takeNewRun()
	t := r.fullTransition(j)
	slices.Reverse(t.New)
	r.mustTransit(t)
	fan, call, over := t.New[2].ID, t.New[1].ID, t.New[0].ID
	var got []core.ID
	for _, s := range r.survey(t.Run.ID, 1, core.Wanted{
		Open: true, IDs: []core.ID{over, call, call}, Paths: []string{"fan", "fan/b/over", "fan"}, Leaves: []core.ID{fan, fan},
	}) {
		got = append(got, s.ID)
	}
	r.equal("Survey", got, []core.ID{fan, call, over})
}

// Steps of an earlier epoch have the same paths. A worker that got one would repeat old work.
func surveyEpoch(r *rig) {
	run, other := r.newRun().Run, r.newRun()
	t := r.transitionOf(run, core.EntryRedriven)
	t.Run.Epoch = 2
	again := r.step(t.Run, "first", core.StepFailed)
	again.Last, again.ParentID = true, other.Step.ID
	t.New = []core.Step{again}
	r.mustTransit(t)
	for _, w := range []core.Wanted{
		{All: true}, {Failed: true}, {IDs: []core.ID{again.ID, other.Step.ID}}, {Paths: []string{"first"}}, {Leaves: []core.ID{other.Step.ID}},
	} {
		r.equal("Survey of the second epoch", r.survey(run.ID, 2, w), []core.Step{again})
		r.equal("Survey of another run", r.survey(other.Run.ID, 2, w), []core.Step{})
	}
	r.equal("Survey of the first epoch", len(r.survey(run.ID, 1, core.Wanted{All: true})), 1)
}

// Names that differ in case, empty ones, and ids of other rows select nothing.
func surveyNone(r *rig) {
	s := r.newRun()
	none := core.Wanted{Failed: true, IDs: []core.ID{r.ids.Next(), s.Run.ID}, Paths: []string{"second", "First", ""}, Leaves: []core.ID{s.Step.ID}}
	r.equal("Survey of what does not exist", r.survey(s.Run.ID, 1, none), []core.Step{})
	none.Open = true
	r.equal("Survey of what exists in part", r.survey(s.Run.ID, 1, none), []core.Step{s.Step})
	r.equal("Survey of no run", r.survey(r.ids.Next(), 1, core.Wanted{All: true}), []core.Step{})
}

// A token is valid until its expiry, exclusively.
func awaitedStep(r *rig) {
	t := r.fullTransition(r.takeNewRun())
	r.mustTransit(t)
	r.equal("Awaited", r.awaited(t.Tokens[0].Hash), t.New[1].ID)
	r.now = t.Tokens[0].ExpiresAt.Add(-time.Millisecond)
	r.equal("Awaited at last", r.awaited(t.Tokens[0].Hash), t.New[1].ID)
}

// A step that is armed again has two valid tokens, since a sender may still use the first one.
func awaitedSeveral(r *rig) {
	t := r.fullTransition(r.takeNewRun())
	r.mustTransit(t)
	next := r.transitionOf(t.Run, core.EntryArmed)
	next.Tokens = []core.Token{{Hash: "another", StepID: t.New[1].ID, ExpiresAt: r.now.Add(leaseTime)}}
	r.mustTransit(next)
	r.equal("Awaited by the first token", r.awaited(t.Tokens[0].Hash), t.New[1].ID)
	r.equal("Awaited by the second token", r.awaited("another"), t.New[1].ID)
}

// From its expiry on, a token means nothing.
func awaitedExpired(r *rig) {
	t := r.fullTransition(r.takeNewRun())
	r.mustTransit(t)
	r.now = t.Tokens[0].ExpiresAt
	r.equal("Awaited at the token's end", r.awaited(t.Tokens[0].Hash), core.ID(""))
	r.now = r.now.Add(time.Hour)
	r.equal("Awaited after it", r.awaited(t.Tokens[0].Hash), core.ID(""))
}

// awaitedDisarmed removes all tokens of a step. Tokens of other steps stay.
func awaitedDisarmed(r *rig) {
	t := r.fullTransition(r.takeNewRun())
	call, fan := t.New[1].ID, t.New[0].ID
	end := t.Tokens[0].ExpiresAt
	t.Tokens = append(t.Tokens, core.Token{Hash: "another", StepID: call, ExpiresAt: end}, core.Token{Hash: "other's", StepID: fan, ExpiresAt: end})
	r.mustTransit(t)
	next := r.transitionOf(t.Run, core.EntrySucceeded)
	next.Disarm = []core.ID{call}
	r.mustTransit(next)
	r.equal("Awaited once disarmed", r.awaited(t.Tokens[0].Hash), core.ID(""))
	r.equal("Awaited once disarmed, by another token", r.awaited("another"), core.ID(""))
	r.equal("Awaited by the token of another step", r.awaited("other's"), fan)
}

// Texts that resemble a token, or its hash in another case, mean nothing.
func awaitedNever(r *rig) {
	r.mustTransit(r.fullTransition(r.takeNewRun()))
	for _, hash := range []string{"", "token of", "TOKEN"} {
		r.equal("Awaited by a token that never was", r.awaited(hash), core.ID(""))
	}
}

// recordedCallback checks that receipts stay when tokens are removed and when the run goes on, and
// that another run's receipts do not mix with them. A sender that repeats a callback must be
// answered with success as long as its run exists.
func recordedCallback(r *rig) {
	t, other := r.fullTransition(r.takeNewRun()), r.fullTransition(r.takeNewRun())
	r.mustTransit(t, other)
	answered, beside := r.recording(t, "a receipt", "its second"), r.recording(other, "another's")
	r.mustTransit(answered, beside)
	r.mustTransit(r.recording(answered, "a later one"))
	for receipt, want := range map[string]core.ID{
		"a receipt": t.Run.ID, "its second": t.Run.ID, "a later one": t.Run.ID, "another's": other.Run.ID,
		"": "", "A receipt": "", "a receip": "", t.Tokens[0].Hash: "",
	} {
		r.equal("recorded "+receipt, r.recorded("", receipt), core.Awaiting{RunID: want})
	}
	last := r.transitionOf(beside.Run, core.EntryArmed)
	last.Tokens = []core.Token{{Hash: "good", StepID: other.New[1].ID, ExpiresAt: r.now.Add(leaseTime)}}
	r.mustTransit(last)
	r.equal("token and receipt", r.recorded("good", "a receipt"), core.Awaiting{StepID: other.New[1].ID, RunID: t.Run.ID})
	r.now = r.now.Add(leaseTime)
	r.equal("the same once the token expired", r.recorded("good", "a receipt"), core.Awaiting{RunID: t.Run.ID})
}

// recording returns a transition after t that records callbacks.
func (r *rig) recording(t core.Transition, receipts ...string) core.Transition {
	next := r.transitionOf(t.Run, core.EntrySucceeded)
	next.Receipts = receipts
	if len(t.New) > 0 {
		next.Disarm = []core.ID{t.New[1].ID}
	}
	return next
}

// The callback of a transition that is not made was not processed, and must be processable again.
func recordedBehind(r *rig) {
	t := r.fullTransition(r.takeNewRun())
	r.mustTransit(t)
	lost := r.recording(t, "a receipt")
	r.mustTransit(r.recording(t, "the first"))
	r.wantNotMade(lost)
	r.equal("receipt of the lost transition", r.recorded("", "a receipt"), core.Awaiting{})
	r.equal("receipt of the transition that is made", r.recorded("", "the first"), core.Awaiting{RunID: t.Run.ID})
}

// Receipts go with their run. Otherwise the table would grow for ever.
func recordedUntilPurged(r *rig) {
	t := r.fullTransition(r.takeNewRun())
	r.mustTransit(t)
	end := r.recording(t, "a receipt")
	end.Run.Status, end.Run.FinishedAt = core.RunCompleted, r.now
	r.mustTransit(end)
	r.purge(10)
	r.equal("receipt of a finished run", r.recorded("", "a receipt"), core.Awaiting{RunID: t.Run.ID})
	r.now = r.now.Add(time.Second)
	for range 2 {
		r.purge(10)
	}
	r.equal("receipt of a purged run", r.recorded("", "a receipt"), core.Awaiting{})
}
