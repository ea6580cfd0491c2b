package intake

import (
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/expr"
)

func pathOf(t *testing.T, s string) *expr.Path {
	t.Helper()
	p, err := expr.ParsePath(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestKeys(t *testing.T) {
	long := strings.Repeat("x", 300)
	for name, tt := range map[string]struct{ key, body, contentType, want string }{
		"string":          {"$.id", `{"id":"a"}`, "application/json", `"a"`},
		"number":          {"$.id", `{"id":1.0}`, "", `1`},
		"number, spelled": {"$.id", `{"id":1e0}`, "", `1`},
		"beyond a float":  {"$.id", `{"id":9007199254740993}`, "", `9007199254740993`},
		"object":          {"$.id", `{"id":{"b":1,"a":2}}`, "", `{"a":2,"b":1}`},
		"absent":          {"$.id", `{}`, "", ``},
		"null":            {"$.id", `{"id":null}`, "", ``},
		"empty text":      {"$.id", `{"id":""}`, "", ``},
		"no characters":   {"$.id", `{"id":"\ud801"}`, "", ``},
		"blank":           {"$.id", `{"id":" "}`, "", `" "`},
		"form":            {"$.id", `id=7&x=y`, "application/x-www-form-urlencoded", `"7"`},
		"not JSON":        {"$.id", `id`, "", ``},
		"not JSON, whole": {"$", `id`, "", `"id"`},
		"long":            {"$.id", `{"id":"` + long + `"}`, "", bounded(`"` + long + `"`)},
		"newline":         {"$.id", `{"id":"a\nb"}`, "", `"a\nb"`},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDoor(testSources, Consumer{Lane: "handler/a", Source: "plain", MaxAttempts: 1, Key: pathOf(t, tt.key)},
				Consumer{Lane: "handler/b", Source: "plain", MaxAttempts: 1})
			if _, err := d.Receive(t.Context(), request(Webhook, "plain", tt.body, "Content-Type", tt.contentType)); err != nil {
				t.Fatal(err)
			}
			jobs := d.inbox.got[0].Jobs
			if len(jobs) != 2 || jobs[0].Key != tt.want || jobs[1].Key != "" || len(jobs[0].Key) > maxDeliveryID {
				t.Errorf("jobs = %+v, want two, the first with key %s", jobs, tt.want)
			}
		})
	}
}

func TestSchema(t *testing.T) {
	schema, err := expr.ParseSchema([]byte(`{"type":"object","required":["id"],"properties":{"id":{"type":"integer"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for body, good := range map[string]bool{`{"id":1}`: true, `{"id":"1"}`: false, `{}`: false, `x`: false, ``: false} {
		d := newDoor([]Source{{Name: "s", Kind: Webhook, Schema: schema}})
		_, err := d.Receive(t.Context(), request(Webhook, "s", body))
		if good != (err == nil) || !good && (!core.IsKind(err, core.Invalid) || !strings.Contains(err.Error(), "$")) || good != (len(d.inbox.got) == 1) {
			t.Errorf("Receive(%s) = %v, %d stored", body, err, len(d.inbox.got))
		}
	}
}

func TestFire(t *testing.T) {
	sources := append(testSources, Source{Name: "nightly", Kind: Tick, Schedule: "0 3 * * *"})
	d := newDoor(sources, Consumer{Lane: "handler/a", Source: "nightly", Events: []string{core.CronTick}, MaxAttempts: 2})
	slot := time.Date(2026, 3, 4, 3, 0, 0, 0, time.FixedZone("", 9*3600))
	if err := d.Fire(t.Context(), "nightly", slot); err != nil {
		t.Fatal(err)
	}
	e, jobs := d.inbox.got[0].Event, d.inbox.got[0].Jobs
	want := `{"scheduled_at":"2026-03-03T18:00:00.000","schedule":"0 3 * * *","source":"nightly"}`
	if string(e.Payload) != want || e.Type != "cron.tick" || e.DeliveryID != "1772560800" || e.Source != "nightly" || len(jobs) != 1 {
		t.Errorf("event %+v with payload %s and %d jobs, want payload %s", e, e.Payload, len(jobs), want)
	}
	if len(d.facts) != 1 {
		t.Errorf("facts = %+v, want one", d.facts)
	}
	d.inbox.answer = core.Receipt{EventID: "FIRST", Duplicate: true}
	if err := d.Fire(t.Context(), "nightly", slot); err != nil || len(d.facts) != 1 {
		t.Errorf("Fire again = %v, facts %+v, want that nobody hears of it", err, d.facts)
	}
	if err := d.Fire(t.Context(), "plain", slot); err == nil {
		t.Error("a source without schedule fired")
	}
}

// An event that an operator fires is like that of a slot, and takes the place of none.
func TestFireNow(t *testing.T) {
	sources := append(testSources, Source{Name: "nightly", Kind: Tick, Schedule: "0 3 * * *"})
	d := newDoor(sources, Consumer{Lane: "handler/a", Source: "nightly", Events: []string{core.CronTick}, MaxAttempts: 2})
	seen := map[string]bool{}
	for range 2 { // both in one millisecond
		receipt, at, err := d.FireNow(t.Context(), "nightly")
		if err != nil {
			t.Fatal(err)
		}
		got := d.inbox.got[len(d.inbox.got)-1]
		e, jobs := got.Event, got.Jobs
		now := core.FormatTime(at)
		want := `{"scheduled_at":"` + now + `","schedule":"0 3 * * *","source":"nightly","fired_at":"` + now + `"}`
		if string(e.Payload) != want || e.Type != core.CronTick || e.Source != "nightly" || e.DeliveryID != "fired-"+string(e.ID) || !e.CreatedAt.Equal(at) || receipt.EventID != e.ID || len(jobs) != 1 {
			t.Errorf("event %+v with payload %s and %d jobs, %+v at %v, want payload %s", e, e.Payload, len(jobs), receipt, at, want)
		}
		seen[e.DeliveryID] = true
	}
	if len(seen) != 2 || len(d.facts) != 2 {
		t.Errorf("delivery ids %v, facts %+v, want two of each", seen, d.facts)
	}
	for _, name := range []string{"plain", "nobody"} {
		if _, _, err := d.FireNow(t.Context(), name); err == nil {
			t.Errorf("source %s without a schedule fired", name)
		}
	}
}
