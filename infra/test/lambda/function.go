//go:build linux

package lambda

import (
	"bytes"
	"cmp"
	"slices"
	"sync"
	"time"
)

// Options are how a function is deployed.
type Options struct {
	Name      string
	Bootstrap string   // path of the program
	Root      string   // its folder, LAMBDA_TASK_ROOT; default: the program's
	Env       []string // beside what Lambda sets; nothing is inherited
	Memory    int      // in MiB, for it to know; default 256

	Timeout   time.Duration // of an invocation; default 30 s
	InitLimit time.Duration // until it first asks for work; default 10 s, as on Lambda
	MaxCopies int           // at once; default 10
	// Concurrency is how many invocations a copy may have at once; default 1. With more
	// than one it is never frozen, as on Managed Instances.
	Concurrency int
	// Awake leaves copies running between invocations, for a test to see what they do
	// then. On Lambda they are frozen.
	Awake bool

	// Of invocations that nobody waits for: how often a failed one is tried again, default
	// 2, negative for never; after how long, default a minute, and longer by as much each
	// time; how long one that finds no copy free is kept, default 6 hours.
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

// A Function is a program that is deployed, and its copies. Its methods are safe for
// concurrent use.
type Function struct {
	Options
	service *Service

	mu      sync.Mutex
	copies  []*Copy
	results []Result
	log     bytes.Buffer
}

// Result.Error of what Lambda itself had to say.
const (
	Throttled = "TooManyRequestsException" // every copy was busy and there may be no more
	TimedOut  = "Sandbox.Timedout"
	Exited    = "Runtime.ExitError"
	TooLarge  = "Function.ResponseSizeTooLarge"
)

// A Result is what one invocation came to.
type Result struct {
	Payload []byte
	Error   string // empty if it went well, else a type: Lambda's or the function's
	Copy    int    // that ran it, 0 if none did

	Cold bool          // the copy was started for it
	Init time.Duration // of a cold one: from its start until it asked for work
	Took time.Duration // from being handed to the copy until its answer
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

// reserve finds a copy that is free, the one last used first, or makes a new one. It is
// nil if there may be no more.
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

// drop forgets a copy that has ended.
func (f *Function) drop(c *Copy) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.copies = slices.DeleteFunc(f.copies, func(other *Copy) bool { return other == c })
}

// InvokeAsync runs one event when nobody waits: one that fails is tried again, and one
// for which no copy is free waits until there is one.
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

// Copies are those that run, or are about to, oldest first.
func (f *Function) Copies() []*Copy {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.copies)
}

// Results are those of all invocations so far, in the order in which they ended, those
// that were throttled and tried again among them.
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

// Stop ends all copies as Lambda does when they are not needed any more: see [Copy.Stop].
func (f *Function) Stop() {
	var all sync.WaitGroup
	for _, c := range f.Copies() {
		all.Go(c.Stop)
	}
	all.Wait()
}

// Log is what the copies have printed.
func (f *Function) Log() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.String()
}

// Write takes what a copy prints.
func (f *Function) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.Write(p)
}
