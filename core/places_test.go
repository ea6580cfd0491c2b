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
		settled, isSettled := p.Fact(Settled{Job: job, Event: Event{ID: "E"}}).(Settled)
		if !isSettled || settled.Job != want || settled.Event.ID != "E" {
			t.Errorf("Fact(Settled of %+v) = %+v, want its job as %+v", job, settled, want)
		}
		if got := p.Fact(Superseded{Job: job, Why: "late"}); got != (Superseded{Job: want, Why: "late"}) {
			t.Errorf("Fact(Superseded of %+v) = %+v, want its job as %+v", job, got, want)
		}
	}
	var fact Fact = Settled{Job: Job{Lane: "handler/a"}}
	if n := testing.AllocsPerRun(100, func() { p.Fact(fact) }); n != 0 {
		t.Errorf("Fact of a handler's job makes %v allocations, want none", n)
	}
}
