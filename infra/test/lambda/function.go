//go:build linux

package lambda

import (
	"bytes"
	"cmp"
	"slices"
	"sync"
	"time"
)

// Options describe a function.
type Options struct {
	Name      string
	Bootstrap string   // path of the program
	Root      string   // LAMBDA_TASK_ROOT; default: the folder of the program
	Env       []string // besides Lambda's own variables; nothing is inherited
	Memory    int      // in MiB, in an environment variable only; default 256

	Timeout   time.Duration // of an invocation; default 30 s
	InitLimit time.Duration // until the copy first asks for work; default 10 s, as on Lambda
	MaxCopies int           // concurrent copies; default 10
	// Concurrency is the largest number of concurrent invocations of a copy; default 1. With
	// more than one the copy is never frozen, as on Managed Instances.
	Concurrency int
	// Awake leaves copies running between invocations, so that a test can see their activity.
	// On Lambda they are frozen.
	Awake bool

	// For asynchronous invocations. Retries is the number of retries of a failed invocation,
	// default 2, negative for none. RetryAfter is the first pause, default one minute; each
	// later pause is longer by the same time. MaxAge bounds the wait for a free copy, default
	// 6 hours.
	Retries    int
	RetryAfter time.Duration
	MaxAge     time.Duration

	Secrets *Secrets // nil: without the extension
}

func (o Options) withDefaults() Options {
	o.Memory = cmp.Or(o.Memory, 256)
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	o.InitLimit = cmp.Or(o.InitLimit, 10*time.Second)
	o.MaxCopies = cmp.Or(o.MaxCopies, 10)
	o.Concurrency = cmp.Or(o.Concurrency, 1)
	o.Retries = max(cmp.Or(o.Retries, 2), 0)
	o.RetryAfter = cmp.Or(o.RetryAfter, time.Minute)
	o.MaxAge = cmp.Or(o.MaxAge, 6*time.Hour)
	return o
}

// A Function is a deployed program with its copies. Its methods are safe for concurrent use.
type Function struct {
	Options
	service *Service

	mu      sync.Mutex
	copies  []*Copy
	results []Result
	log     bytes.Buffer
}

// Values of Result.Error that Lambda itself sets.
const (
	Throttled = "TooManyRequestsException" // every copy was busy, and MaxCopies was reached
	TimedOut  = "Sandbox.Timedout"
	Exited    = "Runtime.ExitError"
	TooLarge  = "Function.ResponseSizeTooLarge"
)

// A Result is the result of one invocation.
type Result struct {
	Payload []byte
	Error   string // empty for a success, otherwise the type of the error: Lambda's or the function's
	Copy    int    // number of the copy that ran it, 0 if none did
	ID      string // request id; "" if no copy ran it

	Cold  bool          // the copy was started for this invocation
	Init  time.Duration // of a cold start: time until the copy asked for work
	Began time.Time     // when the event was handed to the copy; zero if it never was
	Took  time.Duration // time from handing the event to the copy until its answer
}

// Invoke runs one event, a JSON value, and waits for the result.
func (f *Function) Invoke(payload []byte) Result {
	r := f.invoke(payload)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.results = append(f.results, r)
	return r
}

func (f *Function) invoke(payload []byte) Result {
	c, cold := f.reserve()
	if c == nil {
		return Result{Error: Throttled}
	}
	if cold {
		if err := c.start(); err != nil {
			f.drop(c)
			return Result{Error: Exited, Payload: []byte(err.Error()), Copy: c.Number, Cold: true}
		}
	}
	r := c.run(payload)
	r.Cold = cold
	if cold {
		r.Init = c.init()
	}
	return r
}

// reserve returns the free copy that was used last, or a new copy. It returns nil if there may
// be no more copies.
func (f *Function) reserve() (c *Copy, cold bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range slices.Backward(f.copies) {
		if c.take(f.Concurrency) {
			return c, false
		}
	}
	select {
	case <-f.service.closing:
		return nil, false
	default:
	}
	if len(f.copies) >= f.MaxCopies {
		return nil, false
	}
	c = newCopy(f)
	f.copies = append(f.copies, c)
	return c, true
}

// drop removes a copy that has ended.
func (f *Function) drop(c *Copy) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.copies = slices.DeleteFunc(f.copies, func(other *Copy) bool { return other == c })
}

// InvokeAsync runs one event in the background. A failed invocation is retried. An event
// without a free copy waits for one.
func (f *Function) InvokeAsync(payload []byte) {
	f.service.async.Go(func() {
		began, failures := time.Now(), 0
		for throttled := time.Second; time.Since(began) < f.MaxAge; {
			r := f.Invoke(payload)
			wait := throttled
			switch {
			case r.Error == "":
				return
			case r.Error == Throttled:
				throttled = min(2*throttled, 5*time.Minute)
			default:
				if failures++; failures > f.Retries {
					return
				}
				wait = time.Duration(failures) * f.RetryAfter
			}
			select {
			case <-time.After(wait):
			case <-f.service.closing:
				return
			}
		}
	})
}

// SetTimeout changes Timeout for invocations that begin from now on.
func (f *Function) SetTimeout(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Timeout = d
}

func (f *Function) timeout() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.Timeout
}

// Copies returns the running and starting copies, oldest first.
func (f *Function) Copies() []*Copy {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.copies)
}

// Results returns the results of all invocations so far, in the order of their ends. It
// includes throttled invocations that were tried again.
func (f *Function) Results() []Result {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.results)
}

// Kill ends all copies at once with SIGKILL.
func (f *Function) Kill() {
	for _, c := range f.Copies() {
		c.Kill()
	}
}

// Stop ends all copies like Lambda when it does not need them any more: see [Copy.Stop].
func (f *Function) Stop() {
	var all sync.WaitGroup
	for _, c := range f.Copies() {
		all.Go(c.Stop)
	}
	all.Wait()
}

// Log returns the output of the copies.
func (f *Function) Log() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.String()
}

// Write appends the output of a copy to the log.
func (f *Function) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.Write(p)
}
