// Package boot makes the AWS Lambda functions of the gateway. Some serve a part of its HTTP
// routes, others run a tick on a schedule. The mains under functions choose the part;
// everything else is here.
//
// The one idea to know: Lambda stops an environment between two invocations, for a moment or
// for good, without notice. So no work outlives its invocation. State that only the store
// knows is read from the store. Configuration, secrets or a connection that were missing when
// the environment was made are fetched again by the next invocation:
//
//	init: configuration, secrets ─▶ assembled ─▶ database opened, its schema looked at
//	  invocation ─▶ something missing? ─▶ request or tick ─▶ quiet ─▶ the worker is nudged
//
// A problem that cannot heal by itself ends the process while the environment is made, with
// the reason in the log. Examples are a mistake in the configuration and an old schema. This
// package never changes the schema.
//
// Where to look: config.go reads the configuration, secrets.go the variables it names,
// database.go opens the database, server.go serves requests, tick.go delivers and fires,
// nudge.go wakes the worker's function, awake.go decides how long a worker stays awake.
//
// The package may import all that a function links: core, store and the drivers of databases
// that are reached over the network. It links neither SQLite nor the clients of object stores,
// and has no command line: a sender waits while an environment is made, so a function is
// small.
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

// A Measure makes the metrics of a function. The function Serve takes one.
type Measure func(c *config.Config, version string, log *slog.Logger) gateway.Metrics

// initTime is the longest time for the database, the configuration and the secrets while an
// environment is made. Lambda ends an environment that is not made within 10 seconds.
const initTime = 4 * time.Second

// Serve answers HTTP requests with a part of the gateway, behind an HTTP API or a function
// URL. If measure is nil, the function has no metrics. Serve does not return: it exits the
// process with status 1 if the configuration, a secret or the schema makes the function
// useless.
func Serve(part gateway.Part, measure Measure) {
	start(part, func(f *function) aws.Handler {
		f.measure, f.wake = measure, f.newNudger
		return &server{f}
	})
}

// Work delivers due jobs, in a function that a schedule and nudges invoke. It does not return,
// and exits like [Serve].
func Work() {
	start(gateway.Deliveries, func(f *function) aws.Handler {
		f.wake = f.newNudger
		return &ticking{f, f.work}
	})
}

// Fire fires the schedules of cron sources, in a function that a schedule invokes. It does not
// return, and exits like [Serve].
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

// A system is the environment variables, the clock and the error output of a process.
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
	assembled *assembly  // nil until assembling succeeded
}

// An assembly is the gateway of a function, with its store, its database and its nudger.
type assembly struct {
	*gateway.Gateway
	store    *store.Store // the bare store, without the wrappers of the gateway
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

// begin prepares the environment before the first invocation, as far as it can. It returns
// only an error that a later try would meet too.
func (f *function) begin(ctx context.Context) error {
	a, err := f.ready(ctx)
	if err == nil {
		_, err = a.database.connected(ctx)
	}
	level := slog.LevelWarn
	if f.secrets.patient.Swap(true); errors.Is(err, errLater) {
		level = slog.LevelDebug // it is expected before the first invocation
	}
	if core.IsKind(err, core.Unavailable) {
		f.log.Log(ctx, level, "not ready yet; the next invocation tries again", "error", err)
		return nil
	}
	return err
}

// ready returns the assembled gateway. It refuses with kind Unavailable if a service that the
// gateway needs cannot be reached now.
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

// terminateTime bounds terminate. Lambda kills an environment 500 ms after SIGTERM.
const terminateTime = 400 * time.Millisecond

// terminate ends the ticks and stores alerts that were only counted. The ticks release the
// jobs that they have not begun.
func (f *function) terminate() {
	ctx, cancel := context.WithTimeout(context.Background(), terminateTime)
	defer cancel()
	f.ticks.stop(ctx)
	defer telemetry.Flush(f.log)
	if f.mu.TryLock() { // if the lock is taken, the gateway is being assembled and holds nothing yet
		defer f.mu.Unlock()
		if f.assembled != nil {
			f.assembled.Alerts.Flush(ctx)
		}
	}
}

// running are the ticks under way.
type running struct {
	base context.Context // done when all ticks must end
	end  context.CancelFunc
	work sync.WaitGroup
}

func newRunning() *running {
	base, end := context.WithCancel(context.Background())
	return &running{base: base, end: end}
}

// begin returns a context for a tick, which stop cancels. The caller calls done after the
// tick.
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
