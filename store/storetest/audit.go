package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// Checks of the audit. A failure means that an operator's change leaves no entry, that an entry
// names a change that was not made, or that entries are lost.

const (
	saysRecord      = "Record stores the entry of the context's [Change] in a commit of its own"
	saysRecordNone  = "It stores nothing if the context has no Change"
	saysAudit       = "The other methods that change something for an operator store the entry in the commit of the change: the methods of Operations and Holds, Accept, BeginOperation, EndOperation, CloseBreakers, Skip and Transit"
	saysAuditNone   = "A call that finds nothing to change stores no entry"
	saysAuditOne    = "A change of several calls or commits has one entry, in the first of the commits"
	saysAuditAgain  = "Sending a change again stores no second entry"
	saysAudited     = "Audited lists entries, newest first"
	saysAuditPages  = "A caller that follows After from page to page sees every entry that existed at the first page exactly once"
	saysAuditPurged = "PurgeAudit deletes entries that were made before the given time, the oldest first, and returns their number: at most limit, and fewer only if no more are left"
)

// audits are the checks of the role Audit.
var audits = role{name: "Audit", checks: []check{
	{saysRecord, "", recordsChange},
	{saysRecordNone, "", recordsNone},
	{saysAudit, "", auditsEach},
	{saysAuditNone, "", auditsNothing},
	{saysAuditOne, "", auditsOnce},
	{saysAuditAgain, "", auditsAgain},
	{saysAudited, "", listAudits},
	{saysAudited, "with each filter", filterAudits},
	{saysAuditPages, "", pageAudits},
	{saysAuditPurged, "", purgeAudits},
}}

// anyActor is an actor with all fields.
var anyActor = core.Actor{Name: "alice", Role: core.RoleOperate, Address: "192.0.2.7", Via: core.ViaAPI}

// changing returns a context for a new change of a target, by anyActor.
func changing(action core.AuditAction, target string) context.Context {
	return core.WithChange(core.WithActor(context.Background(), anyActor),
		core.Change{Action: action, Target: target, Detail: map[string]string{"reason": "it's \"due\" \\ 火", "until": "2026-01-02"}})
}

// asked returns the context for a change by an operator.
func (r *rig) asked() context.Context {
	if r.auditing {
		return changing(core.AuditRetry, "each statement")
	}
	return context.Background()
}

// unstored is the id of an entry that a store did not write.
func unstored() core.ID { return "unstored" }

// audited returns the entries that a filter selects.
func (r *rig) audited(f core.AuditFilter) core.Page[core.AuditEntry] {
	r.Helper()
	p, err := r.store.Audited(context.Background(), f)
	if err != nil {
		r.Fatalf("Audited(%+v) failed: %v", f, err)
	}
	return p
}

// entries returns the entries about a target.
func (r *rig) entries(target string) []core.AuditEntry {
	r.Helper()
	return r.audited(core.AuditFilter{Target: target}).Items
}

// record stores an entry, and returns it.
func (r *rig) record(ctx context.Context) core.AuditEntry {
	r.Helper()
	if err := r.store.Record(ctx); err != nil {
		r.Fatalf("Record failed: %v", err)
	}
	e, _ := core.EntryOf(ctx, unstored)
	return e
}

// recordMany stores n entries about targets "n0", "n1" and so on, and returns them, newest first.
func (r *rig) recordMany(n int) (all []core.AuditEntry) {
	r.Helper()
	for i := range n {
		all = append(all, r.record(changing(core.AuditReload, fmt.Sprint("n", i))))
	}
	slices.Reverse(all)
	return all
}

// purgeAudit deletes entries, and returns their number.
func (r *rig) purgeAudit(before time.Time, limit int) int {
	r.Helper()
	n, err := r.store.PurgeAudit(context.Background(), before, limit)
	if err != nil {
		r.Fatalf("PurgeAudit failed: %v", err)
	}
	return n
}

// An auditedCall is a call that an operator's change makes.
type auditedCall struct {
	name string

	// set prepares rows, in a lane of its own, and returns the call. The call reports whether it
	// changed something. Made again a moment later, it finds nothing to change.
	set func(r *rig) func(ctx context.Context) (bool, error)

	always bool // it changes something each time
}

// auditedCalls are the calls of all methods that store entries, in each case with other statements.
var auditedCalls = []auditedCall{
	{name: "Retry of a dead job", set: func(r *rig) func(context.Context) (bool, error) {
		id := r.settled(core.Dead).ID
		return func(ctx context.Context) (bool, error) { return some(r.store.Retry(ctx, r.now, id, "")) }
	}},
	{name: "Retry of a waiting job", set: func(r *rig) func(context.Context) (bool, error) {
		id := r.settled(core.Retryable).ID
		return func(ctx context.Context) (bool, error) { return some(r.store.Retry(ctx, r.now, id, "")) }
	}},
	{name: "Retry of a dead job of a line", set: func(r *rig) func(context.Context) (bool, error) {
		id := r.stopped()
		return func(ctx context.Context) (bool, error) { return some(r.store.Retry(ctx, r.now, id, "")) }
	}},
	{name: "Retry of a lane", set: func(r *rig) func(context.Context) (bool, error) {
		r.settled(core.Dead)
		return func(ctx context.Context) (bool, error) { return some(r.store.Retry(ctx, r.now, "", r.lane)) }
	}},
	{name: "Retry of a lane with lines", set: func(r *rig) func(context.Context) (bool, error) {
		r.stopped()
		return func(ctx context.Context) (bool, error) { return some(r.store.Retry(ctx, r.now, "", r.lane)) }
	}},
	{name: "Retry of all dead jobs", set: func(r *rig) func(context.Context) (bool, error) {
		r.retry("", "") // those of other calls
		r.settled(core.Dead)
		return func(ctx context.Context) (bool, error) { return some(r.store.Retry(ctx, r.now, "", "")) }
	}},
	{name: "Cancel", set: func(r *rig) func(context.Context) (bool, error) {
		j := r.put()
		return func(ctx context.Context) (bool, error) {
			c, err := r.store.Cancel(ctx, r.now, j.EventID)
			return c.Canceled > 0, err
		}
	}},
	{name: "Replay", always: true, set: func(r *rig) func(context.Context) (bool, error) {
		gone, there := r.replayOf(r.ids.Next(), lanes(r.lane, 1)), r.replayOf(r.put().EventID, lanes(r.lane, 2), r.workflow)
		return func(ctx context.Context) (bool, error) { return some(r.store.Replay(ctx, r.now, gone, there)) }
	}},
	{name: "Drain", set: func(r *rig) func(context.Context) (bool, error) {
		r.put()
		return func(ctx context.Context) (bool, error) { return some(r.store.Drain(ctx, r.lane, newestID, 10)) }
	}},
	{name: "Hold", set: func(r *rig) func(context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			held, err := r.store.Holding(ctx, r.now)
			if err != nil {
				return false, err
			}
			was := slices.ContainsFunc(held, func(h core.Hold) bool { return h.Lane == r.lane })
			return !was, r.store.Hold(ctx, r.now, r.lane, time.Time{}, "why")
		}
	}},
	{name: "Unhold", set: func(r *rig) func(context.Context) (bool, error) {
		r.hold(time.Time{}, "why")
		return func(ctx context.Context) (bool, error) {
			released, err := r.store.Unhold(ctx, r.now, r.lane, "handler/free")
			return len(released) > 0, err
		}
	}},
	{name: "CloseBreakers", set: func(r *rig) func(context.Context) (bool, error) {
		r.openBreaker()
		return func(ctx context.Context) (bool, error) {
			closed, err := r.store.CloseBreakers(ctx, r.now, r.lane, "handler/free")
			return len(closed) > 0, err
		}
	}},
	{name: "Skip", set: func(r *rig) func(context.Context) (bool, error) {
		id := r.stopped()
		return func(ctx context.Context) (bool, error) { return r.store.Skip(ctx, r.now, id) }
	}},
	{name: "Accept", always: true, set: func(r *rig) func(context.Context) (bool, error) {
		a := r.delivered("accepted-" + string(r.ids.Next()))
		return func(ctx context.Context) (bool, error) {
			got, err := r.store.Accept(ctx, a)
			return !got.Duplicate, err
		}
	}},
	{name: "BeginOperation", always: true, set: func(r *rig) func(context.Context) (bool, error) {
		op, a := r.newOperation(core.RetryAction)
		return func(ctx context.Context) (bool, error) { return true, r.store.BeginOperation(ctx, op, a) }
	}},
	{name: "EndOperation", set: func(r *rig) func(context.Context) (bool, error) {
		op := r.begun(core.RetryAction)
		return func(ctx context.Context) (bool, error) {
			was, err := r.store.Operation(ctx, op.ID)
			if err != nil {
				return false, err
			}
			is, err := r.store.EndOperation(ctx, r.now, op.ID, "")
			return was.State != is.State, err
		}
	}},
	{name: "Transit", set: func(r *rig) func(context.Context) (bool, error) {
		run := r.newRun().Run
		return func(ctx context.Context) (bool, error) {
			made, err := r.store.Transit(ctx, r.finished(run, core.RunCanceled))
			return len(made) == 1 && made[0].Made, err
		}
	}},
}

// some reports whether a number is more than zero.
func some(n int, err error) (bool, error) { return n > 0, err }

// stopped returns a dead job that stops its line.
func (r *rig) stopped() core.ID {
	r.Helper()
	ids := r.putLined("x", 1, 2)
	r.endLined(r.takeLined(1, ids[0])[0], core.Dead, 1)
	return ids[0]
}

// apart returns the rig with a lane of its own, also in a store that had the same calls before.
func (r *rig) apart(name string) *rig {
	of := *r
	of.lane = core.HandlerLane(strings.ReplaceAll(name, " ", "-") + "-" + string(r.ids.Next()))
	return &of
}

// eachAudited does something with each audited call, in lanes of their own.
func (r *rig) eachAudited(do func(r *rig, name string, c auditedCall, call func(context.Context) (bool, error))) {
	for _, c := range auditedCalls {
		of := r.apart(c.name)
		do(of, c.name, c, c.set(of))
	}
}

// must makes a call, and fails unless it changes something, or nothing.
func (r *rig) must(name string, want bool, changed bool, err error) {
	r.Helper()
	if err != nil || changed != want {
		r.Fatalf("%s changed something: %t, %v; want %t", name, changed, err, want)
	}
}

// Each call stores the entry, with all fields, and no call without a change stores one.
func auditsEach(r *rig) {
	r.eachAudited(func(r *rig, name string, _ auditedCall, call func(context.Context) (bool, error)) {
		ctx := changing(core.AuditRetry, name)
		changed, err := call(ctx)
		r.must(name, true, changed, err)
		want, _ := core.EntryOf(ctx, unstored)
		r.equal("entries of "+name, r.entries(name), []core.AuditEntry{want})
	})
	before := len(r.audited(core.AuditFilter{}).Items)
	r.lane = "handler/unaudited"
	id := r.settled(core.Dead).ID
	r.equal("Retry without a change", r.retry(id, ""), 1)
	r.equal("entries", len(r.audited(core.AuditFilter{}).Items), before)
}

// A call that was made already finds nothing to change a moment later.
func auditsNothing(r *rig) {
	r.eachAudited(func(r *rig, name string, c auditedCall, call func(context.Context) (bool, error)) {
		if c.always {
			return
		}
		changed, err := call(context.Background())
		r.must(name, true, changed, err)
		r.now = r.now.Add(time.Millisecond)
		changed, err = call(changing(core.AuditRetry, name))
		r.must(name+" again", false, changed, err)
		r.equal("entries of "+name, len(r.entries(name)), 0)
	})
	nothing := changing(core.AuditReplay, "gone")
	if n, err := r.store.Replay(nothing, r.now, r.replayOf(r.ids.Next(), lanes(r.lane, 1))); n != 0 || err != nil {
		r.Errorf("Replay of an event that is gone = %d, %v", n, err)
	}
	if _, err := r.store.Cancel(nothing, r.now, r.ids.Next()); !core.IsKind(err, core.NotFound) {
		r.Errorf("Cancel of an event that is gone = %v", err)
	}
	r.accept(r.delivered("seen-before"))
	if got, err := r.store.Accept(nothing, r.delivered("seen-before")); !got.Duplicate || err != nil {
		r.Errorf("Accept of a duplicate = %+v, %v", got, err)
	}
	r.equal("entries of what is gone", len(r.entries("gone")), 0)
}

// One change may cancel jobs and runs, or retry jobs with and without lines.
func auditsOnce(r *rig) {
	ctx := changing(core.AuditCancel, "much")
	r.eachAudited(func(r *rig, name string, _ auditedCall, call func(context.Context) (bool, error)) {
		changed, err := call(ctx)
		r.must(name, true, changed, err)
		want, _ := core.EntryOf(ctx, unstored)
		r.equal("entries after "+name, r.entries("much"), []core.AuditEntry{want})
	})
}

// The same change in the same millisecond, as a caller sends it whose answer was lost.
func auditsAgain(r *rig) {
	r.eachAudited(func(r *rig, name string, _ auditedCall, call func(context.Context) (bool, error)) {
		ctx := changing(core.AuditHold, name)
		for range 2 {
			if _, err := call(ctx); err != nil {
				r.Fatalf("%s failed: %v", name, err)
			}
		}
		r.equal("entries of "+name, len(r.entries(name)), 1)
	})
}

func recordsChange(r *rig) {
	e := r.record(changing(core.AuditReload, "gateway.yaml"))
	r.equal("entry", r.entries("gateway.yaml"), []core.AuditEntry{e})
	r.record(changing(core.AuditReload, "plain"))
	bare := core.WithActor(context.Background(), core.Actor{Name: "os:bob", Via: core.ViaCommand})
	want := r.record(core.WithChange(bare, core.Change{Action: core.AuditReload, Target: "bare"}))
	r.equal("entry without a role, an address and a detail", r.entries("bare"), []core.AuditEntry{want})
}

func recordsNone(r *rig) {
	if err := r.store.Record(core.WithActor(context.Background(), anyActor)); err != nil {
		r.Errorf("Record without a change = %v", err)
	}
	if err := r.store.Record(core.WithChange(context.Background(), core.Change{Action: core.AuditReload})); err != nil {
		r.Errorf("Record without an actor = %v", err)
	}
	r.equal("entries", len(r.audited(core.AuditFilter{}).Items), 0)
}

func listAudits(r *rig) {
	want := r.recordMany(5)
	r.equal("Audited", r.audited(core.AuditFilter{}), core.Page[core.AuditEntry]{Items: want})
	r.equal("Audited: 2", r.audited(core.AuditFilter{Limit: 2}), core.Page[core.AuditEntry]{Items: want[:2], More: true})
}

func filterAudits(r *rig) {
	all := r.recordMany(3)
	other := core.Actor{Name: "os:bob", Via: core.ViaCommand}
	mine := r.record(core.WithChange(core.WithActor(context.Background(), other), core.Change{Action: core.AuditDrain, Target: "n1"}))
	all = append([]core.AuditEntry{mine}, all...)
	ms := time.Millisecond
	for _, f := range []core.AuditFilter{
		{Actor: "alice"}, {Actor: "os:bob"}, {Actor: "os:"}, {Action: core.AuditDrain}, {Action: core.AuditReload}, {Target: "n1"},
		{Target: "n1", Actor: "alice"}, {Target: "n1", Action: core.AuditDrain, Actor: "os:bob"},
		{Since: mine.ID.Time()}, {Since: mine.ID.Time().Add(ms)}, {Until: all[3].ID.Time()}, {Until: mine.ID.Time().Add(ms)},
		{Since: all[2].ID.Time(), Until: mine.ID.Time()}, {After: all[1].ID}, {After: all[0].ID, Until: all[1].ID.Time().Add(ms)},
	} {
		var want []core.AuditEntry
		for _, e := range all {
			if (f.Actor == "" || e.Name == f.Actor) && (f.Action == "" || e.Action == f.Action) && (f.Target == "" || e.Target == f.Target) &&
				!e.ID.Time().Before(f.Since) && (f.Until.IsZero() || e.ID.Time().Before(f.Until)) && (f.After == "" || e.ID < f.After) {
				want = append(want, e)
			}
		}
		r.equal(fmt.Sprintf("Audited(%+v)", f), r.audited(f).Items, want)
	}
}

// Entries that are stored between the pages are newer than the first page.
func pageAudits(r *rig) {
	want := r.recordMany(7)
	var got []core.AuditEntry
	for f := (core.AuditFilter{Limit: 2}); ; {
		p := r.audited(f)
		got = append(got, p.Items...)
		if !p.More {
			break
		}
		f.After = got[len(got)-1].ID
		r.record(changing(core.AuditReload, "meanwhile"))
	}
	r.equal("entries of all pages", got, want)
}

func purgeAudits(r *rig) {
	all := r.recordMany(9)
	end := all[0].ID.Time().Add(time.Millisecond)
	r.equal("PurgeAudit before all", r.purgeAudit(all[8].ID.Time(), 10), 0)
	r.equal("PurgeAudit, no limit left", r.purgeAudit(end, 0), 0)
	r.equal("PurgeAudit", r.purgeAudit(end, 2), 2)
	r.equal("entries", r.audited(core.AuditFilter{}).Items, all[:7])
	r.equal("PurgeAudit of the rest", r.purgeAudit(end, 10), 7)
	r.equal("PurgeAudit of none", r.purgeAudit(end, 10), 0)
	r.equal("entries", len(r.audited(core.AuditFilter{}).Items), 0)
}

// faultyAudits fails each statement of each audited call in turn, and loses each answer. After a
// failed statement there is neither the change nor the entry; after a lost answer there are both.
func faultyAudits(r *rig, f *Fault) {
	for _, how := range []faultKind{refuseStmt, loseAnswer} {
		struck := 0
		for n := 1; n == 1 || struck > 0; n++ {
			struck = 0
			for _, c := range auditedCalls {
				of := r.apart(fmt.Sprint(c.name, "-", how, "-", n))
				if of.failOnce(f, how, n, string(of.lane), c, c.set(of)) {
					struck++
				}
			}
		}
	}
}

// failOnce makes a call whose n-th statement or batch fails, and then makes it again. It reports
// whether the call came so far.
func (r *rig) failOnce(f *Fault, how faultKind, n int, name string, c auditedCall, call func(context.Context) (bool, error)) bool {
	ctx := changing(core.AuditRetry, name)
	f.arm(how, n)
	_, err := call(ctx)
	struck := f.hasStruck()
	f.disarm()
	if !struck {
		r.equal("entries of "+name+" without a fault", len(r.entries(name)), 1)
		return false
	}
	r.now = r.now.Add(time.Millisecond)
	entries := len(r.entries(name))
	if err == nil && entries == 0 { // a Retry goes on if it cannot read the job
		r.Errorf("%s reports no fault and leaves no entry", name)
	}
	changed, err := call(context.Background())
	switch {
	case err != nil:
		r.Errorf("%s after a fault failed: %v", name, err)
	case c.always: // it changes something each time
	case changed != (entries == 0):
		r.Errorf("%s: %d entries after a fault, and the change was left to be made: %t", name, entries, changed)
	}
	return true
}
