package manage

import (
	"cmp"
	"context"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/order"
)

// MaxErrorGroups is how many groups of errors an answer has at most.
const MaxErrorGroups = 100

// An ErrorGroup is the failed jobs of one consumer whose errors are of one kind. The consumer is
// part of the group, since the same text seldom has the same cause at two consumers.
type ErrorGroup struct {
	Lane core.Lane // as it is shown
	Host string    // of a place of alerts
	Kind string    // see [ErrorKind]; empty for jobs without an error, such as jobs whose worker vanished

	Dead, Retrying int

	// Newest and Oldest are when the newest and the oldest job of the group were made.
	Newest, Oldest time.Time

	Example core.ID // the newest job of the group
	Error   string  // the error of Example, up to core.MaxFailureText bytes
}

// Errors are the errors of the newest failed jobs, the most frequent ones first.
type Errors struct {
	Groups  []ErrorGroup
	Scanned int  // the jobs that were looked at
	More    bool // whether there are further jobs, or further groups
}

// How long an answer with errors is used for each job that was looked at, at least and at most; see restFor.
// On SQLite with a million jobs, looking at 8,000 takes 80 to 110 ms.
const (
	errorsLeast  = time.Millisecond
	errorsMost   = 4 * time.Millisecond
	errorsWithin = 20 * time.Second // the time limit of a query
	errorsKept   = 16               // selections whose answers are kept
)

// newErrors makes the query that groups errors, for each selection.
func newErrors(j *Jobs) *keptBy[core.FailureFilter, Errors] {
	return &keptBy[core.FailureFilter, Errors]{most: errorsKept, of: func(f core.FailureFilter) *kept[Errors] {
		return &kept[Errors]{
			clock: j.clock, within: errorsWithin, exact: true,
			lasts: func(e Errors) (least, most time.Duration) {
				return time.Duration(e.Scanned) * errorsLeast, time.Duration(e.Scanned) * errorsMost
			},
			ask: func(ctx context.Context) (Errors, error) { return j.findErrors(ctx, f) },
		}
	}}
}

// Errors groups the errors of the jobs that are dead or wait for another attempt. It looks at no
// more than core.MaxFailures jobs, the newest ones. A lane that is neither configured nor has
// jobs is refused with [core.NotFound].
//
// An answer is up to a millisecond old for each job that was looked at, or up to four if that takes
// long: at most 32 seconds. It shows all changes before the last call of Forget. Simultaneous
// callers share one query. The caller must not change the groups.
func (j *Jobs) Errors(ctx context.Context, f core.FailureFilter) (Errors, error) {
	f.Since, f.Until = f.Since.UTC(), f.Until.UTC() // the same times are the same key
	return j.errors.by(f).answer(ctx)
}

// Forget says that an operator changed something. Later calls of Errors show it.
func (j *Jobs) Forget() { j.errors.each((*kept[Errors]).forget) }

// Quiet returns when no query of Errors is under way. See [Statistics.Quiet].
func (j *Jobs) Quiet(ctx context.Context) {
	j.errors.each(func(k *kept[Errors]) { k.quiet(ctx) })
}

// findErrors reads the failed jobs, and groups their errors.
func (j *Jobs) findErrors(ctx context.Context, f core.FailureFilter) (Errors, error) {
	places, asked := j.Names.places(), f.Lane
	f.Lane = places.Stored(asked)
	page, err := j.store.Failures(ctx, f)
	if err == nil && len(page.Items) == 0 {
		err = j.knownLane(ctx, asked)
	}
	if err != nil {
		return Errors{}, err
	}
	groups := grouped(page.Items)
	errs := Errors{Groups: groups[:min(len(groups), MaxErrorGroups)], Scanned: len(page.Items), More: page.More || len(groups) > MaxErrorGroups}
	for i, g := range errs.Groups {
		shown := places.Job(core.Job{Lane: g.Lane})
		errs.Groups[i].Lane, errs.Groups[i].Host = shown.Lane, shown.Host
	}
	return errs, nil
}

// grouped returns the groups of jobs, which are in order, newest first. The largest group is the
// first, and of groups of the same size the one with the newest job.
func grouped(jobs []core.FailedJob) []ErrorGroup {
	type key struct {
		lane core.Lane
		kind string
	}
	kinds, places := map[string]string{}, map[key]int{}
	var groups []ErrorGroup
	for _, job := range jobs {
		kind, known := kinds[job.Error]
		if !known {
			kind = ErrorKind(job.Error)
			kinds[job.Error] = kind
		}
		at, known := places[key{job.Lane, kind}]
		if !known {
			at = len(groups)
			places[key{job.Lane, kind}] = at
			groups = append(groups, ErrorGroup{Lane: job.Lane, Kind: kind, Newest: job.ID.Time(), Example: job.ID, Error: job.Error})
		}
		g := &groups[at]
		g.Oldest = job.ID.Time()
		if job.Status == core.Dead {
			g.Dead++
		} else {
			g.Retrying++
		}
	}
	order.Stable(groups, func(a, b ErrorGroup) int { return cmp.Compare(b.Dead+b.Retrying, a.Dead+a.Retrying) })
	return groups
}
