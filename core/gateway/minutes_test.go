package gateway_test

import (
	"context"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
	record "github.com/eventgateway/gateway/core/wire"
)

// sums returns the sum of each list of a series.
func sums(s record.Series) map[string]int {
	all := map[string]int{}
	add := func(name string, numbers []int) {
		if len(numbers) != s.Steps {
			all[name+" has the wrong number of steps"] = len(numbers)
		}
		for _, n := range numbers {
			all[name] += n
		}
	}
	for _, source := range s.Sources {
		add(source.Name+" accepted", source.Accepted)
	}
	for _, c := range s.Consumers {
		add(c.Name+" completed", c.Completed)
		add(c.Name+" failed", c.Failed)
		add(c.Name+" dead", c.Dead)
	}
	return all
}

// TestSeries: the curves have the counts of this process at once, and the counts of an earlier
// process since its end. A reload changes nothing.
func TestSeries(t *testing.T) {
	hook, got := receiver(t, 500, 200)
	yaml := `
server: {allow_private_urls: true}
sources: {shop: {type: event}, idle: {type: event}}
handlers:
  billing: {source: shop, url: "` + hook + `", retry: {max: 3, backoff: fixed, interval: 10ms}}
queues:
  mail: {source: shop}
`
	c := load(t, yaml)
	path := filepath.Join(t.TempDir(), "gateway.db")
	store := openStore(t, path)
	g := newGateway(t, c, store)
	base, stop := serve(t, g)
	for range 2 {
		if r := post(t, base+"/events/shop/order", `{}`); r.StatusCode != http.StatusAccepted {
			t.Fatalf("status %d", r.StatusCode)
		}
	}
	for range 3 {
		next(t, got)
	}
	want := map[string]int{
		"shop accepted": 2, "idle accepted": 0, "billing completed": 2, "billing failed": 1, "billing dead": 0,
		"queue/mail completed": 0, "queue/mail failed": 0, "queue/mail dead": 0,
	}
	for _, route := range []string{"GET /api/series", "GET /api/series?window=day"} {
		var had map[string]int
		// An answer is used for a second, and the last outcome may be under way.
		for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); <-time.After(50 * time.Millisecond) {
			if had = sums(told[record.Series](t, g.Handler(), route, "")); cmp.Equal(had, want) {
				break
			}
		}
		if diff := cmp.Diff(want, had); diff != "" {
			t.Errorf("%s (-want +got):\n%s", route, diff)
		}
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	// All is stored, in rows of one process.
	now := time.Now()
	stored, err := store.SumMinutes(context.Background(), now.Add(-time.Hour), now.Add(time.Hour), 2*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	all := map[core.Lane]core.Counts{}
	for _, s := range stored {
		all[s.Lane] = all[s.Lane].Add(s.Counts)
	}
	if diff := cmp.Diff(map[core.Lane]core.Counts{"source/shop": {Accepted: 2}, "handler/billing": {Completed: 2, Failed: 1}}, all); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	later := newGateway(t, c, store)
	if diff := cmp.Diff(want, sums(told[record.Series](t, later.Handler(), "GET /api/series", ""))); diff != "" {
		t.Errorf("curves of the next process (-want +got):\n%s", diff)
	}
	some := sums(told[record.Series](t, later.Handler(), "GET /api/series?consumer=queue/mail&source=shop", ""))
	if diff := cmp.Diff(map[string]int{"shop accepted": 2, "queue/mail completed": 0, "queue/mail failed": 0, "queue/mail dead": 0}, some); diff != "" {
		t.Errorf("curves of two names (-want +got):\n%s", diff)
	}
	if r := httpAsk(later.Handler(), "GET /api/series?consumer=bilings", ""); r.Code != http.StatusNotFound {
		t.Errorf("curves of an unknown consumer: %d %s, want 404", r.Code, r.Body)
	}
}

// TestSeriesOfGenerations: counting goes on after a reload, and the program stores the counts of all
// generations at its end.
func TestSeriesOfGenerations(t *testing.T) {
	const yaml = "sources: {app: {type: event}}\nqueues: {work: {source: app}}\n"
	p := newProgram(t, yaml)
	t.Run("serve", func(t *testing.T) {
		p.t = t
		p.start()
		for _, next := range []string{"queues: {work: {source: app}, more: {source: app}}\nsources: {app: {type: event}}\n", yaml + "# again\nhandlers: {}\n"} {
			if r := p.ask("POST /events/order", "{}"); r.Code != http.StatusAccepted {
				t.Fatalf("%d %s", r.Code, r.Body)
			}
			p.reload(next)
		}
		if r := p.ask("POST /events/order", "{}"); r.Code != http.StatusAccepted {
			t.Fatalf("%d %s", r.Code, r.Body)
		}
		if got := sums(told[record.Series](t, p.Handler(), "GET /api/series?source=app", "")); got["app accepted"] != 3 {
			t.Errorf("curves = %v, want 3 events", got)
		}
	})
	now := time.Now()
	stored, err := p.store.SumMinutes(context.Background(), now.Add(-time.Hour), now.Add(time.Hour), 2*time.Hour)
	n := 0
	for _, s := range stored {
		n += s.Accepted
	}
	if err != nil || n != 3 {
		t.Errorf("stored = %v, %v; want 3 events", stored, err)
	}
}
