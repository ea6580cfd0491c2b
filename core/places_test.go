package core

import (
	"slices"
	"testing"
)

func TestPlaces(t *testing.T) {
	p := Places{"alert/aaaaaaaaaaaa": {"alert/2", "a.example"}, "alert/bbbbbbbbbbbb": {"alert/1", "b.example"}}
	for _, tt := range []struct {
		stored, shown Lane
		host          string
	}{
		{"alert/aaaaaaaaaaaa", "alert/2", "a.example"},
		{"alert/bbbbbbbbbbbb", "alert/1", "b.example"},
		{"alert/cccccccccccc", "alert/cccccccccccc", ""}, // it left the configuration
		{"handler/a", "handler/a", ""},
		{"", "", ""},
	} {
		if shown, stored := p.Shown(tt.stored), p.Stored(tt.shown); shown != tt.shown || stored != tt.stored {
			t.Errorf("%q is shown as %q and back %q, want %q", tt.stored, shown, stored, tt.shown)
		}
		job := Job{ID: "J", Lane: tt.stored}
		want := Job{ID: "J", Lane: tt.shown, Host: tt.host}
		given := []Job{job}
		if got := p.Jobs(given); !slices.Equal(got, []Job{want}) || given[0] != job {
			t.Errorf("Jobs = %+v, want %+v, and the given one as it was", got, want)
		}
		if got := Places(nil).Job(job); got != job {
			t.Errorf("without places Job = %+v, want it as it is stored", got)
		}
		for fact, want := range map[Fact]Fact{
			Revived{Lane: tt.stored}:                     Revived{Lane: tt.shown},
			BreakerMoved{Lane: tt.stored}:                BreakerMoved{Lane: tt.shown},
			Released{Jobs: 1, Why: "alert/aaaaaaaaaaaa"}: Released{Jobs: 1, Why: "alert/aaaaaaaaaaaa"},
		} {
			if got := p.Fact(fact); got != want {
				t.Errorf("Fact(%+v) = %+v, want %+v", fact, got, want)
			}
		}
	}
}
