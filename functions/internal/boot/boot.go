// Package boot makes functions of the gateway: environments of AWS Lambda that serve a
// part of it over HTTP, or a tick of it on a schedule. The mains under functions say
// which; everything else is here.
//
// The one idea to know: an environment is stopped between two invocations, for a
// moment or for good, and nobody says when. So nothing is begun that outlives the
// invocation, what only the store can know is asked of the store, and whatever could
// not be had while the environment was made is asked for again by the next invocation:
//
//	init: configuration, secrets ─▶ assembled ─▶ database opened, its schema looked at
//	  invocation ─▶ what is missing? ─▶ served, or a tick ─▶ quiet ─▶ the worker is nudged
//
// What cannot heal by itself, such as a mistake in the configuration or an old schema,
// ends the process while it is made, with the reason in the log. The schema is never
// changed here.
//
// Where to look: config.go reads the configuration, secrets.go the variables it names,
// database.go opens the database, server.go serves requests, tick.go works and fires, nudge.go wakes the worker's function.
//
// It may import everything that a function links: core, store and the drivers of
// databases that are reached over the network. It links neither SQLite nor the clients
// of object stores, and has no command line: an environment is made while somebody waits.
package boot

import (
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"os"
	"sync"
	"time"

	aws "github.com/aws/aws-lambda-go/lambda"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/core/telemetry"
	"github.com/eventgateway/gateway/core/web/lambda"
	"github.com/eventgateway/gateway/store"
)

// A Measure makes the metrics of a function that shows some.
type Measure func(c *config.Config, version string, log *slog.Logger) gateway.Metrics

// initTime is how long making an environment may wait for others: the database, the
// configuration, the secrets. Lambda gives it 10 seconds.
const initTime = 4 * time.Second

// Serve answers HTTP requests with a part of the gateway, as a function behind an HTTP
// API or a function URL. Measure may be nil. It does not return.
func Serve(part gateway.Part, measure Measure) {
	start(part, func(f *function) aws.Handler {
		f.measure, f.wake = measure, f.newNudger
		return &server{f}
	})
}

// Work delivers what is due, as a function that is invoked by a schedule and by nudges.
// It does not return.
func Work() {
	start(gateway.Deliveries, func(f *function) aws.Handler {
		f.wake = f.newNudger
		return &ticking{f, f.work}
	})
}

// Fire fires the schedules of cron sources, as a function that is invoked by a schedule.
// It does not return.
func Fire() {
	start(gateway.Schedules, func(f *function) aws.Handler {
		f.wake = f.newNudger
		return &ticking{f, f.fire}
	})
}

func start(part gateway.Part, kind func(*function) aws.Handler) {
	log.SetOutput(unquoted{os.Stderr})
	f := newFunction(part, system{lookup: os.LookupEnv, clock: time.Now, out: os.Stderr})
	handler := kind(f)
	ctx, cancel := context.WithTimeout(context.Background(), initTime)
	err := f.begin(ctx)
	cancel()
	if err != nil {
		f.log.Error("the function cannot start", "error", err)
		os.Exit(1)
	}
	aws.StartWithOptions(handler, aws.WithEnableSIGTERM(f.terminate))
}

// A system is what the operating system gives a process.
type system struct {
	lookup func(string) (string, bool)
	clock  core.Clock
	out    io.Writer
}

func (s system) env(name string) string {
	v, _ := s.lookup(name)
	return v
}

// A function is one environment. It is safe for concurrent use.
type function struct {
	system
	log     *slog.Logger
	request *requestID
	part    gateway.Part
	measure Measure
	wake    func(*core.Listener) (*nudger, error) // nil for a function that wakes no worker
	drive   func(config.Database) (func(context.Context) (store.Conn, error), store.Dialect, error)
	ticks   *running
	secrets *secrets

	mu        sync.Mutex // held while the gateway is being assembled
	assembled *assembly  // nil until that could be done
}

// An assembly is a function's gateway and what belongs to it.
type assembly struct {
	*gateway.Gateway
	store    *store.Store // without what the gateway has around it
	database *database
	nudger   *nudger // nil if the function wakes no worker
}

func newFunction(part gateway.Part, s system) *function {
	f := &function{system: s, part: part, request: &requestID{}, ticks: newRunning()}
	f.log = newLog(s, f.request)
	f.secrets = newSecrets(s)
	f.drive = f.driver
	return f
}

// begin makes what it can of the environment before the first invocation. An error is
// one that another try would meet too.
func (f *function) begin(ctx context.Context) error {
	a, err := f.ready(ctx)
	if err == nil {
		_, err = a.database.connected(ctx)
	}
	level := slog.LevelWarn
	if f.secrets.patient.Swap(true); errors.Is(err, errLater) {
		level = slog.LevelDebug // as it is to be expected
	}
	if core.IsKind(err, core.Unavailable) {
		f.log.Log(ctx, level, "not ready yet; the next invocation tries again", "error", err)
		return nil
	}
	return err
}

// ready returns the assembled gateway. A refusal of kind Unavailable says that something
// it needs cannot be reached now.
func (f *function) ready(ctx context.Context) (*assembly, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.assembled != nil {
		return f.assembled, nil
	}
	if _, err := f.brief(); err != nil {
		return nil, err
	}
	c, err := f.loadConfig(ctx)
	if err != nil {
		return nil, err
	}
	a, err := f.assemble(c)
	if err != nil {
		return nil, err
	}
	f.assembled = a
	return a, nil
}

func (f *function) assemble(c *config.Config) (*assembly, error) {
	open, dialect, err := f.drive(c.Database)
	if err != nil {
		return nil, err
	}
	db := &database{open: open, dialect: dialect, clock: f.clock, times: core.NewDatabaseClock(f.clock)}
	db.times.Tell(telemetry.Log(f.log))
	s := db.store()
	d := gateway.Deps{
		Store:   s,
		Clock:   db.times.Now,
		Machine: f.clock,
		Ahead:   db.times.Ahead,
		Log:     f.log,
		Version: version(),
		Rest:    gateway.RestOf(c.Database),

		MaxReply: lambda.MaxBody,
	}
	if f.measure != nil {
		d.Metrics = f.measure(c, d.Version, f.log)
	}
	g, err := gateway.NewPart(c, d, f.part)
	if err != nil {
		return nil, err
	}
	a := &assembly{Gateway: g, store: s, database: db}
	if f.wake != nil {
		if a.nudger, err = f.wake(g.Work()); err == nil {
			a.nudger.ahead = db.times.Ahead
		}
	}
	return a, err
}

// terminateTime is how long an environment that is taken away has for what it holds.
// Lambda kills it after half a second.
const terminateTime = 400 * time.Millisecond

// terminate ends the ticks, which give back what they have not begun, and has alerts
// stored that were only counted.
func (f *function) terminate() {
	ctx, cancel := context.WithTimeout(context.Background(), terminateTime)
	defer cancel()
	f.ticks.stop(ctx)
	defer telemetry.Flush(f.log)
	if f.mu.TryLock() { // else it is being made, and holds nothing yet
		defer f.mu.Unlock()
		if f.assembled != nil {
			f.assembled.Alerts.Flush(ctx)
		}
	}
}

// running are the ticks under way.
type running struct {
	base context.Context // done when all are to end
	end  context.CancelFunc
	work sync.WaitGroup
}

func newRunning() *running {
	base, end := context.WithCancel(context.Background())
	return &running{base: base, end: end}
}

// begin is the context of a tick that stop ends. Done is to be called when it has ended.
func (r *running) begin(ctx context.Context) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancel(ctx)
	unhook := context.AfterFunc(r.base, cancel)
	r.work.Add(1)
	return ctx, func() {
		unhook()
		cancel()
		r.work.Done()
	}
}

// stop ends all ticks and waits for them until ctx is done.
func (r *running) stop(ctx context.Context) {
	r.end()
	over := make(chan struct{})
	go func() {
		r.work.Wait()
		close(over)
	}()
	select {
	case <-over:
	case <-ctx.Done():
	}
}
