package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/core/intake"
	"github.com/eventgateway/gateway/core/preview"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/sqlite"
)

// TestPreviewIsTrue: a preview predicts the work of a gateway with the new file. For random pairs of
// configurations a gateway with the first file takes random events. A gateway with the second file
// takes the events that the first one stored. The jobs of the two gateways, and their deliveries,
// differ exactly where the preview says so.
//
// PREVIEW_PAIRS and PREVIEW_EVENTS make it larger, and PREVIEW_SEED repeats a run from that pair on.
func TestPreviewIsTrue(t *testing.T) {
	pairs, events := number(t, "PREVIEW_PAIRS", 7), number(t, "PREVIEW_EVENTS", 40)
	var total preview.Tally
	for seed := number(t, "PREVIEW_SEED", 1); pairs > 0; seed, pairs = seed+1, pairs-1 {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			r := comparePair(t, rand.New(rand.NewPCG(uint64(seed), 7)), events)
			for _, c := range r.Consumers {
				total.Won, total.Lost, total.Changed = total.Won+c.Won, total.Lost+c.Lost, total.Changed+c.Changed
				for i := range 2 {
					total.Jobs[i], total.Unmade[i], total.Repeats[i], total.Unlined[i] = total.Jobs[i]+c.Jobs[i], total.Unmade[i]+c.Unmade[i], total.Repeats[i]+c.Repeats[i], total.Unlined[i]+c.Unlined[i]
				}
			}
		})
	}
	t.Logf("all pairs together: %+v", total)
	if total.Won == 0 || total.Lost == 0 || total.Changed == 0 || total.Unmade == [2]int{} || total.Repeats == [2]int{} {
		t.Errorf("the random configurations show too little: %+v", total)
	}
}

// number returns a number of the environment.
func number(t *testing.T, name string, usual int) int {
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s=%s: %v", name, text, err)
	}
	return n
}

// comparePair makes a pair of configurations, and compares the preview with the work of two
// gateways.
func comparePair(t *testing.T, r *rand.Rand, events int) preview.Report {
	got := newCatcher(t)
	older := randomConfig(r, got.URL)
	newer := mutated(r, older, got.URL)
	first, second := newTrial(t, older, got), newTrial(t, newer, got)
	began := first.now
	for range events {
		first.send(randomLetter(r, first.sources))
		if len(first.jobs) == tried && first.now.Before(began.Add(time.Hour)) { // once
			first.deliver()
		}
	}
	if len(first.jobs) == 0 {
		t.Fatal("no event was stored, so the pair shows nothing")
	}
	// The second gateway gets the events that the first one stored, by the route of the first one.
	compared := preview.New(side(t, first.config), side(t, second.config), preview.Options{Examples: events})
	for told, err := range first.gateway.Events.Export(t.Context(), core.EventFilter{}, 0, false) {
		if err != nil {
			t.Fatal(err)
		}
		compared.Add(told.Event)
		second.send(letter{source: told.Source, kind: first.config.Sources[told.Source].Type, eventType: told.Type, contentType: told.ContentType, body: told.Payload})
		if len(second.ids) == tried {
			second.deliver()
		}
	}
	verdict := compared.Report()
	truth := newTruth(first, second)
	if mistakes := truth.compare(verdict); len(mistakes) > 0 {
		t.Errorf("%d mistakes, the first of them\n%s\nbefore: %s\nafter: %s", len(mistakes), strings.Join(mistakes[:min(10, len(mistakes))], "\n"), older, newer)
	}
	return verdict
}

func side(t *testing.T, c *config.Config) preview.Side {
	t.Helper()
	s, err := gateway.Preview(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A seen has the parts of a delivery that a receiver saw.
type seen struct{ method, path, own, contentType, body string }

// A catcher is a receiver that keeps the deliveries, by event and handler.
type catcher struct {
	*httptest.Server
	mu  sync.Mutex
	got map[string]seen
}

func newCatcher(t *testing.T) *catcher {
	c := &catcher{got: map[string]seen{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.got[r.Header.Get("X-Gateway-Event-Id")+" "+r.Header.Get("X-Gateway-Handler")] = seen{r.Method, r.URL.Path, r.Header.Get("X-Own"), r.Header.Get("Content-Type"), string(body)}
	}))
	t.Cleanup(c.Close)
	return c
}

// A letter is an event as a sender sends it.
type letter struct {
	source, kind, eventType, contentType string
	body                                 []byte
}

// tried is how many events of a trial are delivered too: a delivery takes longer than all
// the rest of an event.
const tried = 100

// repeat stands for the id of an event that was not stored, since it repeats earlier keys.
const repeat = "repeat"

// A trial is a gateway that takes events.
type trial struct {
	t       *testing.T
	config  *config.Config
	gateway *gateway.Gateway
	store   core.Store
	got     *catcher
	sources []letter // source and kind alone
	now     time.Time

	ids  []core.ID // of the events in their order; "" for one that was refused, or repeat
	jobs map[core.ID]map[core.Lane]core.Job
	dead map[core.ID]string // errors of jobs that were tried, by their ids
}

func newTrial(t *testing.T, yaml string, got *catcher) *trial {
	x := &trial{t: t, config: load(t, yaml), got: got, now: time.Now(), jobs: map[core.ID]map[core.Lane]core.Job{}, dead: map[core.ID]string{}}
	conn, err := sqlite.Open(filepath.Join(t.TempDir(), "gateway.db"))
	if err != nil {
		t.Fatal(err)
	}
	clock := func() time.Time { return x.now }
	s := store.New(conn, store.SQLite, clock)
	t.Cleanup(func() { s.Close() })
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.store = s
	if x.gateway, err = gateway.New(x.config, gateway.Deps{Store: s, Clock: clock, Log: slog.New(slog.DiscardHandler), SoleTaker: true}); err != nil {
		t.Fatal(err)
	}
	for _, source := range x.config.SortedSources() {
		x.sources = append(x.sources, letter{source: source.Name, kind: source.Type})
	}
	return x
}

// send posts an event, and reads the jobs that were stored.
func (x *trial) send(l letter) {
	x.t.Helper()
	r := intake.Request{Kind: intake.Event, Source: l.source, Type: l.eventType, Header: intake.Header{"Content-Type": {l.contentType}}, Body: l.body, At: x.now}
	if l.kind == "webhook" {
		r.Kind, r.Type, r.Header["Ce-Type"] = intake.Webhook, "", []string{l.eventType}
	}
	result, err := x.gateway.Intake.Receive(x.t.Context(), r)
	id := result.EventID
	switch {
	case core.IsKind(err, core.Invalid), core.IsKind(err, core.NotFound):
		id = ""
	case err != nil:
		x.t.Fatal(err)
	case result.Duplicate: // all its consumers have seen its keys
		id = repeat
	default:
		x.read(id)
	}
	x.ids = append(x.ids, id)
}

// stored are the ids of the events that were stored.
func (x *trial) stored() []core.ID {
	return slices.DeleteFunc(slices.Clone(x.ids), func(id core.ID) bool { return id == "" || id == repeat })
}

func (x *trial) read(id core.ID) {
	jobs, err := x.store.JobsOf(x.t.Context(), []core.ID{id})
	if err != nil {
		x.t.Fatal(err)
	}
	x.jobs[id] = map[core.Lane]core.Job{}
	for _, j := range jobs[id] {
		x.jobs[id][j.Lane] = j
	}
}

// deliver delivers all jobs, delayed ones as well.
func (x *trial) deliver() {
	x.now = x.now.Add(24 * time.Hour)
	if _, err := x.gateway.Worker.Tick(context.Background(), core.Budget{}); err != nil {
		x.t.Fatal(err)
	}
	jobs, err := x.store.JobsOf(x.t.Context(), slices.Collect(maps.Keys(x.jobs)))
	if err != nil {
		x.t.Fatal(err)
	}
	for _, of := range jobs {
		for _, j := range of {
			switch {
			case j.Lane.Handler() == "":
			case j.Status == core.Dead:
				x.dead[j.ID] = j.LastError
			case j.Status != core.Completed:
				x.t.Errorf("a job of %s is %s", j.Lane, j.Status)
			}
		}
	}
}

// A truth is two gateways that have taken the same events.
type truth struct{ first, second *trial }

func newTruth(first, second *trial) truth {
	for _, x := range []*trial{first, second} {
		if len(first.jobs) < tried {
			x.deliver()
		}
	}
	return truth{first, second}
}

// compare returns the differences between a verdict and the work of the gateways. Events are
// named by their ids in the first trial.
func (x truth) compare(r preview.Report) (mistakes []string) {
	stored := x.first.stored()
	said := map[string]string{}
	for _, e := range r.Examples {
		if e.Kind == preview.Changed {
			e.Kind += " " + strings.Join(e.Changes, " ")
		}
		said[string(e.Event)+" "+string(e.Lane)] = e.Kind
	}
	if len(stored) != len(x.second.ids) {
		return []string{fmt.Sprintf("%d events were stored, and %d read", len(stored), len(x.second.ids))}
	}
	refused, affected, total := 0, 0, map[core.Lane]*preview.Tally{}
	for _, t := range r.Consumers {
		total[t.Lane] = &preview.Tally{}
	}
	for i, id := range stored {
		other := x.second.ids[i]
		if other == "" {
			refused++
		}
		differs := other == ""
		lanes := maps.Clone(x.first.jobs[id])
		if lanes == nil {
			lanes = map[core.Lane]core.Job{}
		}
		maps.Copy(lanes, x.second.jobs[other])
		for lane := range lanes {
			kind := x.kind(id, other, lane, i < tried, total[lane])
			differs = differs || kind != ""
			if key := string(id) + " " + string(lane); x.both(lane) && !agree(kind, said[key], i < tried) {
				mistakes = append(mistakes, fmt.Sprintf("event %s of %s for %s: %q happened, %q was said", id, x.first.jobs[id][lane].CreatedAt, lane, kind, said[key]))
			}
		}
		if differs {
			affected++
		}
	}
	for _, t := range r.Consumers {
		is := total[t.Lane]
		if is.Jobs != t.Jobs || is.Won != t.Won || is.Lost != t.Lost {
			mistakes = append(mistakes, fmt.Sprintf("%s: jobs, won and lost are %v %d %d, and %v %d %d were said", t.Lane, is.Jobs, is.Won, is.Lost, t.Jobs, t.Won, t.Lost))
		}
	}
	saidRefused := 0
	for _, f := range r.Refusals {
		saidRefused += f.Refused[preview.After]
		if f.Refused[preview.Before] > 0 {
			mistakes = append(mistakes, fmt.Sprintf("%s: stored events are refused: %s", f.Source, f.Why[preview.Before]))
		}
	}
	if saidRefused != refused || r.Events != len(stored) || len(stored) <= tried && r.Affected != affected {
		mistakes = append(mistakes, fmt.Sprintf("of %d events %d are refused and %d differ; said: %d, %d and %d", len(stored), refused, affected, r.Events, saidRefused, r.Affected))
	}
	return mistakes
}

// both reports whether both configurations have a consumer.
func (x truth) both(l core.Lane) bool {
	has := func(c *config.Config) bool {
		_, handler := c.Handlers[l.Handler()]
		_, queue := c.Queues[l.Queue()]
		_, workflow := c.Workflows[l.Workflow()]
		return handler || queue || workflow
	}
	return has(x.first.config) && has(x.second.config)
}

// agree reports whether the gateway's work is as the preview says. Only a delivery shows
// settings of the delivery.
func agree(happened, said string, delivered bool) bool {
	if delivered || happened == said {
		return happened == said
	}
	var kept []string
	words := strings.Fields(said)
	for _, w := range words {
		if !slices.Contains([]string{"changed", "body", "url", "method", "headers"}, w) {
			kept = append(kept, w)
		}
	}
	return len(words) > 0 && words[0] == "changed" && strings.TrimPrefix(happened, "changed ") == strings.Join(kept, " ")
}

// kind returns how the jobs of a consumer for an event differ, in the words of a preview.
func (x truth) kind(id, other core.ID, lane core.Lane, delivered bool, count *preview.Tally) string {
	was, had := x.first.jobs[id][lane]
	is, has := x.second.jobs[other][lane]
	if had {
		count.Jobs[preview.Before]++
	}
	if has {
		count.Jobs[preview.After]++
	}
	switch {
	case !has:
		count.Lost++
		return preview.Lost
	case !had:
		count.Won++
		return preview.Won
	}
	var changes []string
	add := func(name string, differs bool) {
		if differs {
			changes = append(changes, name)
		}
	}
	before, after := x.first.got.got[string(id)+" "+lane.Handler()], x.second.got.got[string(other)+" "+lane.Handler()]
	dead := [2]string{x.first.dead[was.ID], x.second.dead[is.ID]}
	add(preview.InBody, delivered && (before.body != after.body || before.contentType != after.contentType || dead[0] != dead[1]))
	add(preview.InLine, was.Line != is.Line)
	add(preview.InDelay, delayed(was) != delayed(is))
	add(preview.InAttempts, was.MaxAttempts != is.MaxAttempts)
	add(preview.InKey, was.Key != is.Key)
	if lane.Workflow() != "" {
		add("definition", x.first.config.Definition(lane.Workflow()).Hash != x.second.config.Definition(lane.Workflow()).Hash)
	}
	if delivered && lane.Handler() != "" {
		// A delivery that fails shows no settings.
		a, b := x.first.config.Handlers[lane.Handler()], x.second.config.Handlers[lane.Handler()]
		if dead[0] != "" || dead[1] != "" {
			before, after = seen{method: a.Method, path: a.URL, own: a.Headers["x-own"].Reveal()}, seen{method: b.Method, path: b.URL, own: b.Headers["x-own"].Reveal()}
		}
		add("headers", before.own != after.own)
		add("method", before.method != after.method)
		add("url", before.path != after.path)
	}
	if len(changes) == 0 {
		return ""
	}
	return "changed " + strings.Join(changes, " ")
}

// delayed returns how long a job waits for its time.
func delayed(j core.Job) time.Duration {
	if j.Status == core.Waiting {
		return max(0, j.ScheduledAt.Sub(j.CreatedAt))
	}
	return max(0, j.DueAt.Sub(j.CreatedAt))
}

// The texts of random configurations and events.
var (
	previewTypes      = []string{"order.created", "order.paid", "refund.created", "user.added"}
	previewEvents     = [][]string{nil, {"*"}, {"order.*"}, {"*.created", "user.added"}, {"order.paid"}, {"refund.created", "order.*"}}
	previewFilters    = []string{"$.a > 5", "$.a > 5 and $.b == \"x\"", "$.list[*] == 3", "$$.event.type == \"order.paid\"", "$.deep.k", "$.b in [\"x\", \"y\"] or $.a < 3", "$.a"}
	previewTransforms = []string{`{"a": {{ $.a }}}`, `{"n": {{ $.a | number }}}`, `{"n": {{ $.b | number }}}`, `{"t": "{{ $$.event.type }} of {{ $.b }}"}`, `{"b": {{ $.b ?? "none" }}, "all": {{ $ }}}`, `{{ $.list[*] }}`}
	previewKeys       = []string{"$.id", "$.b", "$.deep.k"}
	previewSchemas    = []string{`{"type":"object","required":["a"]}`, `{"type":"object","properties":{"a":{"type":"number"}}}`}
	previewDelays     = []string{"30s", "10m", "1h"}
)

func pick[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

type tree = map[string]any

// randomConfig writes a configuration. JSON is YAML too.
func randomConfig(r *rand.Rand, url string) string {
	c := tree{
		"server": tree{"allow_private_urls": true}, "worker": tree{"max_concurrency": 20, "batch_size": 100},
		"sources": tree{}, "handlers": tree{}, "queues": tree{}, "workflows": tree{},
	}
	for i := range 2 + r.IntN(2) {
		c["sources"].(tree)["s"+strconv.Itoa(i)] = randomSource(r)
	}
	for i := range 1 + r.IntN(4) {
		c["handlers"].(tree)["h"+strconv.Itoa(i)] = randomHandler(r, c, url)
	}
	for i := range r.IntN(3) {
		c["queues"].(tree)["q"+strconv.Itoa(i)] = randomQueue(r, c)
	}
	for i := range r.IntN(2) {
		c["workflows"].(tree)["w"+strconv.Itoa(i)] = randomWorkflow(r, c)
	}
	return written(c)
}

func written(c tree) string {
	text, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func randomSource(r *rand.Rand) tree {
	s := tree{"type": "event"}
	if r.IntN(4) == 0 {
		s["type"] = "webhook"
	}
	if r.IntN(4) == 0 {
		s["schema"] = pick(r, previewSchemas)
	}
	return s
}

// consumer returns the fields that all consumers have.
func consumer(r *rand.Rand, c tree) tree {
	x := tree{"source": pick(r, slices.Sorted(maps.Keys(c["sources"].(tree))))}
	if events := pick(r, previewEvents); events != nil {
		x["events"] = events
	}
	return x
}

// maybe sets a field in one of n cases.
func maybe(r *rand.Rand, n int, x tree, field string, value func() any) {
	if r.IntN(n) == 0 {
		x[field] = value()
	}
}

func randomQueue(r *rand.Rand, c tree) tree {
	x := consumer(r, c)
	maybe(r, 2, x, "filter", func() any { return pick(r, previewFilters) })
	maybe(r, 4, x, "idempotency_key", func() any { return pick(r, previewKeys) })
	maybe(r, 4, x, "delay", func() any { return pick(r, previewDelays) })
	maybe(r, 4, x, "lines", func() any { return tree{"key": pick(r, previewKeys), "on_dead": "skip"} })
	return x
}

func randomHandler(r *rand.Rand, c tree, url string) tree {
	x := randomQueue(r, c)
	x["url"], x["circuit_breaker"] = url+"/"+strconv.Itoa(r.IntN(2)), "off"
	maybe(r, 2, x, "transform", func() any { return pick(r, previewTransforms) })
	maybe(r, 3, x, "method", func() any { return pick(r, []string{"PUT", "GET", "POST"}) })
	maybe(r, 3, x, "headers", func() any { return tree{"x-own": pick(r, []string{"one", "two"})} })
	maybe(r, 3, x, "retry", func() any { return tree{"max": 1 + r.IntN(3)} })
	return x
}

func randomWorkflow(r *rand.Rand, c tree) tree {
	x := consumer(r, c)
	maybe(r, 2, x, "params", func() any { return []tree{{"name": "a", "type": pick(r, []string{"number", "string"})}} })
	x["steps"] = []tree{{"name": "later", "type": "wait", "seconds": 1 + r.IntN(2)}}
	return x
}

// mutated returns a configuration with some changes, seldom none.
func mutated(r *rand.Rand, text, url string) string {
	var c tree
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		panic(err)
	}
	if r.IntN(10) == 0 {
		return text
	}
	change(r, c["handlers"].(tree), "h", func() tree { return randomHandler(r, c, url) })
	change(r, c["queues"].(tree), "q", func() tree { return randomQueue(r, c) })
	change(r, c["workflows"].(tree), "w", func() tree { return randomWorkflow(r, c) })
	sources := c["sources"].(tree)
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		switch r.IntN(10) {
		case 0:
			sources[name] = randomSource(r)
		case 1: // with its consumers
			if len(sources) == 1 {
				continue
			}
			delete(sources, name)
			for _, section := range []string{"handlers", "queues", "workflows"} {
				maps.DeleteFunc(c[section].(tree), func(_ string, x any) bool { return x.(tree)["source"] == name })
			}
		}
	}
	return written(c)
}

// change changes the entries of a section.
func change(r *rand.Rand, entries tree, prefix string, random func() tree) {
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		was := entries[name].(tree)
		switch r.IntN(9) {
		case 0:
			delete(entries, name)
		case 1, 2, 3, 4, 5: // one or two fields come from another entry
			other := random()
			fields := slices.Sorted(maps.Keys(other))
			for range 1 + r.IntN(2) {
				field := pick(r, fields)
				was[field] = other[field]
			}
			if field := pick(r, slices.Sorted(maps.Keys(was))); !slices.Contains([]string{"source", "url", "steps", "circuit_breaker"}, field) && r.IntN(2) == 0 {
				delete(was, field)
			}
		}
	}
	if r.IntN(3) == 0 {
		entries[prefix+"9"] = random()
	}
}

// randomLetter makes an event for one of the sources.
func randomLetter(r *rand.Rand, sources []letter) letter {
	l := pick(r, sources)
	l.eventType, l.contentType = pick(r, previewTypes), "application/json"
	switch r.IntN(20) {
	case 0:
		l.contentType, l.body = "text/plain", []byte("no JSON "+strconv.Itoa(r.IntN(9)))
		return l
	case 1:
		l.body = []byte(strings.Repeat("[", 2000) + strings.Repeat("]", 2000)) // JSON without a view
		return l
	}
	x := tree{"id": r.IntN(40), "list": []int{r.IntN(5), r.IntN(5)}}
	maybe(r, 4, x, "a", func() any { return "7" })
	if x["a"] == nil {
		maybe(r, 2, x, "a", func() any { return r.IntN(12) })
	}
	maybe(r, 2, x, "b", func() any { return pick(r, []string{"x", "y", "z", ""}) })
	maybe(r, 2, x, "deep", func() any { return tree{"k": pick(r, []any{"c1", "c2", 3, nil})} })
	l.body, _ = json.Marshal(x)
	return l
}
