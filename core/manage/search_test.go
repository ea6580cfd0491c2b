package manage

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
)

func (w *watched) ReadNewest(ctx context.Context, f core.EventFilter) (core.Page[core.Event], error) {
	if err := w.ask("ReadNewest"); err != nil {
		return core.Page[core.Event]{}, err
	}
	return w.Model.ReadNewest(ctx, f)
}

// ofType is a Select whose filters are types. It refuses an empty filter.
func ofType(filter string) (func(core.Event) bool, error) {
	if filter == "" {
		return nil, errors.New("the filter is empty")
	}
	return func(e core.Event) bool { return len(e.Payload) > 0 && strings.Contains(filter, e.Type) }, nil
}

func searched(t *testing.T, e *Events, f core.EventFilter, filter string) Found {
	t.Helper()
	found, err := e.Search(t.Context(), f, filter)
	if err != nil {
		t.Fatalf("Search(%+v, %q) failed: %v", f, filter, err)
	}
	return found
}

// An event has type "a" if its number is divisible by 3.
func TestSearch(t *testing.T) {
	at := func(i int) time.Time { return noon.Add(time.Duration(i) * time.Second) }
	for _, tt := range []struct {
		name    string
		events  int
		filter  core.EventFilter
		want    []core.ID
		scanned int
		next    core.ID
	}{
		{"all", 7, core.EventFilter{}, []core.ID{numbered(6), numbered(3), numbered(0)}, 7, ""},
		{"stops at the limit", 9, core.EventFilter{Limit: 2}, []core.ID{numbered(6), numbered(3)}, 6, numbered(3)},
		{"the last match is the oldest event", 4, core.EventFilter{Limit: 2}, []core.ID{numbered(3), numbered(0)}, 4, ""},
		{"goes on below an id", 9, core.EventFilter{Limit: 2, After: numbered(3)}, []core.ID{numbered(0)}, 3, ""},
		{"scans only what the filter selects", 12, core.EventFilter{Type: "b"}, nil, 4, ""},
		{"of a time", 12, core.EventFilter{Since: at(2), Until: at(7)}, []core.ID{numbered(6), numbered(3)}, 5, ""},
		{"none", 0, core.EventFilter{}, nil, 0, ""},
		{"fifty unless told", 200, core.EventFilter{}, nil, 149, numbered(51)},
		{"more than a chunk", 2*searchChunk + 1, core.EventFilter{Limit: core.MaxPage}, nil, 2*searchChunk + 1, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, _ := desk(t, tt.events)
			e.Select = ofType
			got := searched(t, e, tt.filter, "a")
			if ids := idsOf(got.Items); tt.events < 100 && !slices.Equal(ids, tt.want) {
				t.Errorf("found %v, want %v", ids, tt.want)
			}
			if got.Scanned != tt.scanned || got.Next != tt.next || got.More != (tt.next != "") {
				t.Errorf("scanned %d, next %q, more %v; want %d and %q", got.Scanned, got.Next, got.More, tt.scanned, tt.next)
			}
			for _, event := range got.Items {
				if event.Payload != nil || event.Headers != nil {
					t.Errorf("event %s has its payload or headers, want a summary", event.ID)
				}
			}
		})
	}
}

// The pages of a search have each match once, for small and large limits.
func TestSearchPageByPage(t *testing.T) {
	for _, limit := range []int{1, 2, 7, 1000} {
		e, _ := desk(t, 50)
		e.Select = ofType
		var got []core.ID
		scanned := 0
		for f := (core.EventFilter{Limit: limit}); ; {
			found := searched(t, e, f, "a")
			got, scanned = append(got, idsOf(found.Items)...), scanned+found.Scanned
			if f.After = found.Next; f.After == "" {
				break
			}
		}
		var want []core.ID
		for i := 48; i >= 0; i -= 3 {
			want = append(want, numbered(i))
		}
		if !slices.Equal(got, want) || scanned != 50 {
			t.Errorf("pages of %d have %v of %d events, want %v of 50", limit, got, scanned, want)
		}
	}
}

// A page ends after SearchTime, also in the middle of a chunk, and the next one begins there. A
// page without a match has a cursor all the same.
func TestSearchIsLate(t *testing.T) {
	e, w := desk(t, 10)
	e.Select = ofType
	var ticks int
	e.clock = func() time.Time { ticks++; return noon.Add(time.Duration(ticks) * SearchTime / 4) }
	got := searched(t, e, core.EventFilter{}, "none of them")
	if want := (Found{Page: core.Page[core.Event]{More: true}, Scanned: 4, Next: numbered(6)}); cmp.Diff(want, got) != "" {
		t.Errorf("a late Search = %+v, want %+v", got, want)
	}
	if !slices.Equal(w.asked, []string{"ReadNewest"}) {
		t.Errorf("it asked %v, want one page", w.asked)
	}
	if got := searched(t, e, core.EventFilter{After: got.Next}, "none of them"); got.Scanned != 4 || got.Next != numbered(2) {
		t.Errorf("the next page = %+v, want the 4 events above number 1", got)
	}
}

// A page ends after MaxSearch events.
func TestSearchScansAtMost(t *testing.T) {
	e, _ := desk(t, MaxSearch+1)
	e.Select = ofType
	got := searched(t, e, core.EventFilter{}, "none of them")
	if got.Scanned != MaxSearch || got.Next != numbered(1) || !got.More {
		t.Errorf("Search = %d scanned, next %q, more %v; want %d and the event before the last", got.Scanned, got.Next, got.More, MaxSearch)
	}
}

func TestSearchRefuses(t *testing.T) {
	e, w := desk(t, 3)
	e.Select = ofType
	e.Names = &Names{Sources: []string{"shop"}, Unknown: func(kind, name string, _ []string) error {
		return core.Refuse(core.NotFound, "no %s %q", kind, name)
	}}
	if _, err := e.Search(t.Context(), core.EventFilter{}, ""); !core.IsKind(err, core.Invalid) || err.Error() != "match: the filter is empty" {
		t.Errorf("Search for a wrong filter = %v, want a refusal that names match", err)
	}
	if len(w.asked) > 0 {
		t.Errorf("a wrong filter asked the store for %v", w.asked)
	}
	if _, err := e.Search(t.Context(), core.EventFilter{Source: "shpo"}, "a"); !core.IsKind(err, core.NotFound) {
		t.Errorf("Search of an unknown source = %v, want NotFound", err)
	}
	w.broken = "ReadNewest 2"
	if _, err := e.Search(t.Context(), core.EventFilter{}, "a"); !errors.Is(err, errDisk) {
		t.Errorf("Search = %v, want %v", err, errDisk)
	}
}
