package manage

import (
	"cmp"
	"context"
	"strings"

	"github.com/eventgateway/gateway/core"
)

// jobChunk is how many jobs a search reads in one step.
const jobChunk = 500

// A JobSearch selects jobs also by texts that no index has. Zero fields select everything.
type JobSearch struct {
	core.JobFilter

	Source, Type string // of the event of the job
	Error        string // text that the last error of the job contains, upper and lower case told apart
}

// Scans reports whether the search has to read each job to see whether it matches. Otherwise List
// serves it.
func (s JobSearch) Scans() bool { return s.Source != "" || s.Type != "" || s.Error != "" }

// FoundJobs is a page of a search: the jobs that match, newest first.
type FoundJobs struct {
	JobPage // More says whether there are older jobs, which may match or not

	// Scanned is how many jobs the search looked at.
	Scanned int

	// Next is the id below which the search continues, "" if there are no older jobs. It is the id of
	// the last scanned job, which need not match.
	Next core.ID
}

// Search returns the jobs that s selects. It scans the jobs that the filter in s selects, newest
// first, and ends with the s.Limit-th match. One call scans at most [MaxSearch] jobs, and reads no
// further ones after [SearchTime]. So a page may have fewer matches than the limit, or none, and
// more jobs to scan. A source or a lane that is neither configured nor has events or jobs is refused
// with [core.NotFound].
//
// Nothing of the search is stored between two calls: Next is all that the next call needs. On SQLite
// with a million jobs, of which 10,000 are dead, a search of the dead ones by their error is one call of
// 0.23 s. A search of all jobs is a hundred calls of 0.11 s.
func (j *Jobs) Search(ctx context.Context, s JobSearch) (FoundJobs, error) {
	places := j.Names.places()
	shown, stop, limit := s.Lane, j.clock().Add(SearchTime), cmp.Or(s.Limit, core.DefaultPage)
	s.Lane = places.Stored(shown)
	found := FoundJobs{}
	for ended := false; !ended; s.After = found.Next {
		s.Limit = min(jobChunk, MaxSearch-found.Scanned)
		page, err := j.store.Jobs(ctx, s.JobFilter)
		if err != nil {
			return FoundJobs{}, err
		}
		kinds, err := j.kinds(ctx, s, page.Items)
		if err != nil {
			return FoundJobs{}, err
		}
		n := found.scan(page.Items, func(job core.Job) bool { return s.matches(job, kinds[job.EventID]) }, limit)
		found.More, found.Next = page.More || n < len(page.Items), ""
		if found.More {
			found.Next = page.Items[n-1].ID
		}
		ended = !found.More || len(found.Items) == limit || found.Scanned == MaxSearch || !j.clock().Before(stop)
	}
	return j.finish(ctx, found, s.Source, shown)
}

// finish completes a page as List does: it refuses unknown names, and says why jobs wait.
func (j *Jobs) finish(ctx context.Context, found FoundJobs, source string, lane core.Lane) (_ FoundJobs, err error) {
	if found.Scanned == 0 {
		err = j.knownLane(ctx, lane)
	}
	if err == nil && len(found.Items) == 0 {
		err = j.knownSource(ctx, source)
	}
	if err != nil {
		return FoundJobs{}, err
	}
	found.Waits, err = j.Waits.Of(ctx, found.Items...)
	found.Items = j.Names.places().Jobs(found.Items)
	return found, err
}

// kinds reads the sources and types of events, for jobs with a matching error. It reads nothing if
// the search has no source and no type.
func (j *Jobs) kinds(ctx context.Context, s JobSearch, jobs []core.Job) (map[core.ID]core.EventKind, error) {
	if s.Source == "" && s.Type == "" {
		return nil, nil
	}
	var events []core.ID
	for _, job := range jobs {
		if strings.Contains(job.LastError, s.Error) {
			events = append(events, job.EventID)
		}
	}
	if len(events) == 0 {
		return nil, nil
	}
	return j.store.KindsOf(ctx, events)
}

// matches reports whether the search selects a job whose event has a kind.
func (s JobSearch) matches(job core.Job, kind core.EventKind) bool {
	return strings.Contains(job.LastError, s.Error) && (s.Source == "" || s.Source == kind.Source) && (s.Type == "" || s.Type == kind.Type)
}

// scan adds the matches among jobs until the page is full. It returns how many jobs it scanned, at
// least one if there are any.
func (f *FoundJobs) scan(jobs []core.Job, matches func(core.Job) bool, limit int) int {
	for i, job := range jobs {
		f.Scanned++
		if matches(job) {
			f.Items = append(f.Items, job)
		}
		if len(f.Items) == limit {
			return i + 1
		}
	}
	return len(jobs)
}
