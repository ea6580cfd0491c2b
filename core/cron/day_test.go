package cron

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/sqlite"
	"github.com/eventgateway/gateway/store/storetest"
)

// TestDay: ten processes tick over a hundred schedules for a day, at random times and with
// random crashes. Every slot has one event, and no other event exists. A short run simulates
// three hours.
func TestDay(t *testing.T) {
	day := 24 * time.Hour
	if testing.Short() {
		day /= 8
	}
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewModel(core.SystemClock)
		simulate(t, &simulation{processes: 10, schedules: 100, lasts: day, open: func() core.Store { return s }})
	})
}

// TestHoursOnSQLite is TestDay for a shorter time, on a SQLite file.
func TestHoursOnSQLite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.db")
	synctest.Test(t, func(t *testing.T) {
		conn, err := sqlite.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		s := store.New(conn, store.SQLite, core.SystemClock)
		defer s.Close()
		if err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		simulate(t, &simulation{processes: 5, schedules: 30, lasts: 4 * time.Hour, open: func() core.Store { return s }})
	})
}

// A simulation is a number of processes that tick over random schedules.
type simulation struct {
	processes, schedules int
	lasts                time.Duration
	open                 func() core.Store

	t       *testing.T
	sources []Source
	end     time.Time

	ticks, crashes, fires atomic.Int64
}

func simulate(t *testing.T, s *simulation) {
	seed := uint64(s.schedules) // each process acts alike in every run; only their order differs
	random := rand.New(rand.NewPCG(seed, 1))
	s.t, s.end = t, time.Now().Add(s.lasts)
	want, marks := s.plan(random)
	st := s.open()
	if err := st.Mark(t.Context(), marks...); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	for i := range s.processes {
		own := rand.New(rand.NewPCG(seed, uint64(i)+2))
		running.Go(func() { s.live(i, own) })
	}
	running.Wait()
	s.compare(st, want)
	t.Logf("%d slots, fired %d times in %d ticks with %d crashes", len(want), s.fires.Load(), s.ticks.Load(), s.crashes.Load())
	if int(s.crashes.Load()) < s.processes || int(s.fires.Load()) <= len(want) {
		t.Errorf("too few crashes or overlaps to show anything")
	}
}

// A slotName names a slot as its event does.
type slotName struct{ source, delivery string }

// plan makes random sources and finds their slots second by second.
func (s *simulation) plan(random *rand.Rand) (want map[slotName]bool, marks []core.Mark) {
	want = map[slotName]bool{}
	now := time.Now()
	for len(s.sources) < s.schedules {
		text, zone := randomSchedule(random), randomZone(random)
		schedule, err := Parse(text, zone)
		if err != nil {
			continue // no year has such a date
		}
		o, ok := newOracle(text, schedule.zone)
		if !ok {
			s.t.Fatalf("the oracle cannot read %q", text)
		}
		slots := o.slots(now, s.end)
		if len(slots) > int(s.lasts/(15*time.Second)) || len(slots) == 0 && len(s.sources)%10 > 0 {
			continue
		}
		name := fmt.Sprint("cron-", len(s.sources))
		for _, slot := range slots {
			want[slotName{name, strconv.FormatInt(slot.Unix(), 10)}] = true
		}
		s.sources = append(s.sources, Source{Name: name, Text: text + " " + zone, Schedule: schedule})
		marks = append(marks, core.Mark{Source: name, Schedule: text + " " + zone, Until: now})
	}
	return want, marks
}

func randomSchedule(random *rand.Rand) string {
	columns := make([]string, 0, 6)
	for i := range 6 {
		if i == 0 && random.IntN(3) > 0 {
			continue // five fields
		}
		low, high := bounds[i][0], bounds[i][1]
		pick := func() int { return low + random.IntN(high-low+1) }
		a, b := pick(), pick()
		column := "*"
		switch random.IntN(6) {
		case 0:
			column = fmt.Sprint(a)
		case 1:
			column = fmt.Sprintf("%d-%d", min(a, b), max(a, b))
		case 2:
			column = fmt.Sprintf("*/%d", 1+random.IntN(high))
		case 3:
			column = fmt.Sprintf("%d,%d,%d", a, b, pick())
		case 4:
			column = fmt.Sprintf("%d-%d/%d", min(a, b), max(a, b), 1+random.IntN(5))
		}
		if i >= 3 && random.IntN(3) > 0 {
			column = "*" // else most days would have no slot
		}
		columns = append(columns, column)
	}
	return strings.Join(columns, " ")
}

func randomZone(random *rand.Rand) string {
	if random.IntN(2) == 0 {
		return "UTC"
	}
	return fmt.Sprintf("%c%02d:%02d", "+-"[random.IntN(2)], random.IntN(14), 15*random.IntN(4))
}

// live runs one process. It ticks at random offsets, for a moment or for minutes, with a clock
// that is off by up to 2 s. The first process never crashes and ticks every minute, so no slot
// grows too old. Every process ticks once at the end.
func (s *simulation) live(number int, random *rand.Rand) {
	skew := time.Duration(random.IntN(4000)-2000) * time.Millisecond
	for time.Now().Before(s.end) {
		pause := 180_000
		p := &process{simulation: s, Store: s.open(), skew: skew, left: 1 + random.IntN(200), after: random.IntN(2) == 0}
		if number == 0 {
			pause, p.left = 60_000, -1
		}
		sleep(time.Duration(random.IntN(pause)) * time.Millisecond)
		b := core.Budget{}
		if random.IntN(3) > 0 {
			b = core.Budget{Until: p.now().Add(time.Duration(random.IntN(200)) * time.Second), Rest: time.Duration(5+random.IntN(60)) * time.Second}
		}
		p.tick(b)
	}
	sleep(2*time.Second - skew)
	p := &process{simulation: s, Store: s.open(), skew: skew, left: -1}
	p.tick(core.Budget{})
}

// A process is one process from its start to its crash. It crashes before or after a call of
// its store. Its later calls do nothing.
type process struct {
	core.Store
	*simulation
	skew time.Duration
	stop context.CancelFunc

	mu      sync.Mutex
	left    int  // calls until it crashes; never, if below zero
	after   bool // it crashes after that call, not before
	crashed bool
}

var errCrashed = errors.New("the process is gone")

func (p *process) now() time.Time { return time.Now().Add(p.skew) }

func (p *process) tick(b core.Budget) {
	ctx, stop := context.WithCancel(p.t.Context())
	defer stop()
	p.stop = stop
	ids := core.NewIDs(core.SystemClock)
	t := New(Deps{Calendar: p, Clock: p.now, Observe: p.observe, Fire: func(ctx context.Context, source string, slot time.Time) error {
		return p.call(func() error {
			p.fires.Add(1)
			return accept(ctx, p.Store, ids, source, slot)
		})
	}}, p.sources)
	err := t.Tick(ctx, b)
	p.ticks.Add(1)
	if p.crashed {
		p.crashes.Add(1)
	} else if err != nil {
		p.t.Errorf("Tick = %v, want none", err)
	}
}

// call makes a call, unless the process crashed before. The process may crash after the call.
func (p *process) call(do func() error) error {
	if last, gone := p.count(); gone || last && !p.after {
		return p.crash()
	} else if last {
		_ = do()
		return p.crash()
	}
	return do()
}

// count counts a call. It returns whether the call is the last one, and whether the process
// crashed before.
func (p *process) count() (last, gone bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left--
	return p.left == 0, p.crashed
}

func (p *process) crash() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.crashed = true
	p.stop()
	return errCrashed
}

func (p *process) Mark(ctx context.Context, marks ...core.Mark) error {
	return p.call(func() error { return p.Store.Mark(ctx, marks...) })
}

func (p *process) observe(f core.Fact) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.crashed {
		p.t.Errorf("fact %T %v, want none", f, f)
	}
}

// compare requires exactly one event for each slot. A process with a clock ahead of time may
// have fired slots of the first seconds after the end.
func (s *simulation) compare(st core.Store, want map[slotName]bool) {
	got := map[slotName]int{}
	f := core.EventFilter{Limit: core.MaxPage}
	for more := true; more; {
		page, err := st.Events(s.t.Context(), f)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, e := range page.Items {
			at, err := strconv.ParseInt(e.DeliveryID, 10, 64)
			if err != nil || e.Type != core.CronTick {
				s.t.Fatalf("event %+v is of no slot", e)
			}
			if at <= s.end.Unix() {
				got[slotName{e.Source, e.DeliveryID}]++
			}
			f.After = e.ID
		}
		more = page.More
	}
	missing, extra := 0, 0
	for slot := range want {
		if got[slot] == 0 {
			missing++
		}
	}
	for slot, n := range got {
		if !want[slot] || n != 1 {
			extra++
		}
	}
	if missing+extra > 0 {
		sources := map[string]bool{}
		for slot := range want {
			if got[slot] == 0 {
				sources[slot.source] = true
			}
		}
		s.t.Errorf("of %d slots %d have no event, and %d are too many; missing of %v", len(want), missing, extra, slices.Sorted(maps.Keys(sources)))
	}
}
