package manage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// stack is a store of jobs, the newest first, whose events have the ids of their jobs. It counts
// the events whose kinds it is asked for.
type stack struct {
	*drawer
	kinds   map[core.ID]core.EventKind
	asked   []core.JobFilter
	read    int
	sources []string
	broken  string
}

func (s *stack) Jobs(_ context.Context, f core.JobFilter) (page core.Page[core.Job], err error) {
	s.asked = append(s.asked, f)
	if s.broken == "Jobs" {
		return page, errDisk
	}
	for _, j := range s.jobs {
		if f.Status != "" && f.Status != j.Status || f.Lane != "" && f.Lane != j.Lane || f.After != "" && f.After <= j.ID || j.ID < core.FirstID(f.Since) {
			continue
		}
		if len(page.Items) == f.Limit {
			page.More = true
			break
		}
		page.Items = append(page.Items, j)
	}
	return page, nil
}

func (s *stack) KindsOf(_ context.Context, events []core.ID) (map[core.ID]core.EventKind, error) {
	s.read += len(events)
	if s.broken == "KindsOf" {
		return nil, errDisk
	}
	of := map[core.ID]core.EventKind{}
	for _, id := range events {
		of[id] = s.kinds[id]
	}
	return of, nil
}

func (s *stack) Events(_ context.Context, f core.EventFilter) (page core.Page[core.Event], err error) {
	if slices.Contains(s.sources, f.Source) {
		page.Items = []core.Event{{Source: f.Source}}
	}
	return page, nil
}

// stacked makes a service over n jobs with numbers from 0. Each third has a timeout, and the others
// "status: 500". Each second is dead. The events of the first half are of the source "shop", the others
// of "crm", and of the types "a" and "b" in turn.
func stacked(n int) (*Jobs, *stack) {
	s := &stack{drawer: &drawer{fake: &fake{}}, kinds: map[core.ID]core.EventKind{}, sources: []string{"gone"}}
	for i := n - 1; i >= 0; i-- {
		j := core.Job{ID: numbered(i), EventID: numbered(i), Lane: "handler/h", Status: []core.Status{core.Dead, core.Completed}[i%2], LastError: "status: 500"}
		if i%3 == 0 {
			j.LastError = fmt.Sprintf("timeout: no answer in %ds", i)
		}
		s.jobs = append(s.jobs, j)
		s.kinds[j.EventID] = core.EventKind{Source: []string{"shop", "crm"}[2*i/n], Type: []string{"a", "b"}[i%2]}
	}
	j := NewJobs(s, func() time.Time { return noon.Add(time.Hour) })
	j.Names = &Names{Sources: []string{"shop", "crm", "idle"}, Handlers: []string{"h"}, Unknown: func(kind, name string, _ []string) error {
		return core.Refuse(core.NotFound, "no %s %q", kind, name)
	}}
	return j, s
}

func jobIDs(jobs []core.Job) (ids []core.ID) {
	for _, j := range jobs {
		ids = append(ids, j.ID)
	}
	return ids
}

func TestJobSearch(t *testing.T) {
	filter := func(f core.JobFilter) JobSearch { return JobSearch{JobFilter: f, Error: "timeout"} }
	for _, tt := range []struct {
		name    string
		jobs    int
		search  JobSearch
		want    []core.ID
		scanned int
		next    core.ID
		kinds   int // events whose kinds were read
	}{
		{"by the error", 8, JobSearch{Error: "timeout"}, []core.ID{numbered(6), numbered(3), numbered(0)}, 8, "", 0},
		{"cases differ", 8, JobSearch{Error: "Timeout"}, nil, 8, "", 0},
		{"a part of the error", 8, JobSearch{Error: "in 3s"}, []core.ID{numbered(3)}, 8, "", 0},
		{"by the source", 4, JobSearch{Source: "crm"}, []core.ID{numbered(3), numbered(2)}, 4, "", 4},
		{"by the type", 4, JobSearch{Type: "b"}, []core.ID{numbered(3), numbered(1)}, 4, "", 4},
		{"by all, asking only for events of jobs with the error", 8, JobSearch{Source: "shop", Type: "b", Error: "timeout"}, []core.ID{numbered(3)}, 8, "", 3},
		{"stops at the limit", 9, filter(core.JobFilter{Limit: 2}), []core.ID{numbered(6), numbered(3)}, 6, numbered(3), 0},
		{"the last match is the oldest job", 4, filter(core.JobFilter{Limit: 2}), []core.ID{numbered(3), numbered(0)}, 4, "", 0},
		{"goes on below an id", 9, filter(core.JobFilter{After: numbered(3)}), []core.ID{numbered(0)}, 3, "", 0},
		{"scans only what the filter selects", 12, filter(core.JobFilter{Status: core.Dead}), []core.ID{numbered(6), numbered(0)}, 6, "", 0},
		{"of a time", 12, filter(core.JobFilter{Since: noon.Add(4 * time.Second)}), []core.ID{numbered(9), numbered(6)}, 8, "", 0},
		{"none", 0, JobSearch{Error: "timeout"}, nil, 0, "", 0},
		{"fifty unless told", 200, JobSearch{Error: "timeout"}, nil, 149, numbered(51), 0},
		{"more than a chunk", 2*jobChunk + 1, filter(core.JobFilter{Limit: core.MaxPage}), nil, 2*jobChunk + 1, "", 0},
		{"a source that has no events", 3, JobSearch{Source: "idle"}, nil, 3, "", 3},
		{"a source that was removed", 3, JobSearch{Source: "gone"}, nil, 3, "", 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j, s := stacked(tt.jobs)
			got, err := j.Search(t.Context(), tt.search)
			if err != nil {
				t.Fatalf("Search(%+v) failed: %v", tt.search, err)
			}
			if ids := jobIDs(got.Items); tt.jobs < 100 && !slices.Equal(ids, tt.want) {
				t.Errorf("found %v, want %v", ids, tt.want)
			}
			if got.Scanned != tt.scanned || got.Next != tt.next || got.More != (tt.next != "") {
				t.Errorf("scanned %d, next %q, more %v; want %d and %q", got.Scanned, got.Next, got.More, tt.scanned, tt.next)
			}
			if s.read != tt.kinds {
				t.Errorf("it asked for the kinds of %d events, want %d", s.read, tt.kinds)
			}
		})
	}
}

// The pages of a search have each match once, for small and large limits.
func TestJobSearchPageByPage(t *testing.T) {
	for _, limit := range []int{1, 2, 7, 1000} {
		j, _ := stacked(50)
		var got []core.ID
		scanned := 0
		for search := (JobSearch{JobFilter: core.JobFilter{Limit: limit}, Error: "timeout"}); ; {
			found, err := j.Search(t.Context(), search)
			if err != nil {
				t.Fatal(err)
			}
			got, scanned = append(got, jobIDs(found.Items)...), scanned+found.Scanned
			if search.After = found.Next; search.After == "" {
				break
			}
		}
		var want []core.ID
		for i := 48; i >= 0; i -= 3 {
			want = append(want, numbered(i))
		}
		if !slices.Equal(got, want) || scanned != 50 {
			t.Errorf("pages of %d have %v of %d jobs, want %v of 50", limit, got, scanned, want)
		}
	}
}

// A page ends after MaxSearch jobs, and no further jobs are read after SearchTime.
func TestJobSearchIsBounded(t *testing.T) {
	j, _ := stacked(MaxSearch + 1)
	found, err := j.Search(t.Context(), JobSearch{Error: "none of them"})
	if err != nil || found.Scanned != MaxSearch || found.Next != numbered(1) || !found.More {
		t.Errorf("Search = %d scanned, next %q, more %v, %v; want %d and the job before the last", found.Scanned, found.Next, found.More, err, MaxSearch)
	}
	j, s := stacked(3 * jobChunk)
	var ticks int
	j.clock = func() time.Time { ticks++; return noon.Add(time.Duration(ticks) * SearchTime / 2) }
	found, err = j.Search(t.Context(), JobSearch{Error: "none of them"})
	if err != nil || found.Scanned != 2*jobChunk || found.Next != numbered(jobChunk) || len(s.asked) != 2 {
		t.Errorf("a late Search = %d scanned, next %q, %v, in %d reads; want two chunks", found.Scanned, found.Next, err, len(s.asked))
	}
}

func TestJobSearchRefuses(t *testing.T) {
	for search, name := range map[JobSearch]string{
		{Source: "shpo"}: `no source "shpo"`,
		{JobFilter: core.JobFilter{Lane: "handler/k"}, Error: "timeout"}: `no handler "k"`,
	} {
		j, _ := stacked(3)
		if _, err := j.Search(t.Context(), search); !core.IsKind(err, core.NotFound) || err.Error() != name {
			t.Errorf("Search(%+v) = %v, want NotFound: %s", search, err, name)
		}
	}
	for _, broken := range []string{"Jobs", "KindsOf"} {
		j, s := stacked(3)
		s.broken = broken
		if _, err := j.Search(t.Context(), JobSearch{Source: "shop"}); !errors.Is(err, errDisk) {
			t.Errorf("Search = %v, want %v of %s", err, errDisk, broken)
		}
	}
}

// The lane of a place for alerts is stored under another name than the one it is shown with.
func TestJobSearchOfAPlace(t *testing.T) {
	j, s := stacked(1)
	s.jobs[0].Lane = "alert/3f9a"
	j.Names.Places = core.Places{"alert/3f9a": {Lane: "alert/1", Host: "hooks.example.com"}}
	found, err := j.Search(t.Context(), JobSearch{JobFilter: core.JobFilter{Lane: "alert/1"}, Error: "timeout"})
	if err != nil || len(found.Items) != 1 || found.Items[0].Lane != "alert/1" || s.asked[0].Lane != "alert/3f9a" {
		t.Errorf("Search = %+v, %v, asked for %+v; want the job of alert/1", found.Items, err, s.asked)
	}
}
