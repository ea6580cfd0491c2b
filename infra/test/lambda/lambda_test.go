//go:build linux

package lambda

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/wait"
)

// TestColdAndWarm: the first invocation starts a copy, and the next one uses it.
func TestColdAndWarm(t *testing.T) {
	t.Parallel()
	f := deploy(t, Options{})
	first, second := do(t, f, "echo", ""), do(t, f, "echo", "")
	if !first.Cold || second.Cold || first.Copy != second.Copy || string(second.Payload) != `{"do":"echo"}` {
		t.Errorf("results %+v and %+v, want one cold, one warm, of the same copy", first, second)
	}
	if first.ID == second.ID || first.Began.IsZero() || second.Began.Before(first.Began.Add(first.Took)) {
		t.Errorf("requests %s and %s began at %v and %v", first.ID, second.ID, first.Began, second.Began)
	}
	if first.Init <= 0 || second.Init != 0 || second.Took <= 0 {
		t.Errorf("init took %v and %v, the second invocation %v", first.Init, second.Init, second.Took)
	}
}

// TestSeveralCopies: concurrent invocations start copies, up to MaxCopies.
func TestSeveralCopies(t *testing.T) {
	t.Parallel()
	f := deploy(t, Options{MaxCopies: 3})
	counts := map[string]int{}
	for _, r := range atOnce(f, 4, `{"do":"rest"}`) {
		counts[r.Error]++
	}
	if counts[""] != 3 || counts[Throttled] != 1 {
		t.Errorf("results of four invocations by error: %v, want 3 that went well and 1 throttled", counts)
	}
	if n := len(f.Copies()); n != 3 {
		t.Errorf("copies = %d, want 3", n)
	}
}

func atOnce(f *Function, n int, payload string) []Result {
	results := make([]Result, n)
	var all sync.WaitGroup
	for i := range results {
		all.Go(func() { results[i] = f.Invoke([]byte(payload)) })
	}
	all.Wait()
	return results
}

// TestConcurrency: with Concurrency above 1, a copy runs several invocations at once.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	f := deploy(t, Options{Concurrency: 4, MaxCopies: 1})
	do(t, f, "echo", "")
	for _, r := range atOnce(f, 4, `{"do":"rest"}`) {
		if r.Error != "" || r.Copy != 1 {
			t.Errorf("result %+v, want all of copy 1", r)
		}
	}
	if copies := f.Copies(); len(copies) != 1 || copies[0].Frozen() {
		t.Errorf("%d copies, want one that is not frozen", len(copies))
	}
}

// TestFailures checks the result of each kind of failure, and whether the copy survives it.
func TestFailures(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		do, want string
		env      []string
		dies     bool
	}{
		{do: "fail", want: "errorString"},
		{do: "panic", want: "string", dies: true},
		{do: "exit", want: Exited, dies: true},
		{do: "hang", want: TimedOut, dies: true},
		{do: "large", want: TooLarge, dies: true},
		{do: "echo", want: Exited, env: []string{"INIT=exit"}, dies: true},
		{do: "echo", want: TimedOut, env: []string{"INIT=hang"}, dies: true},
	} {
		t.Run(tt.do+strings.Join(tt.env, ""), func(t *testing.T) {
			t.Parallel()
			o := Options{Env: tt.env, Timeout: time.Minute, InitLimit: time.Minute}
			if tt.want == TimedOut { // only what hangs gets little time: a start takes long on a busy machine
				limit := &o.Timeout
				if len(tt.env) > 0 {
					limit = &o.InitLimit
				}
				*limit = 300 * time.Millisecond
			}
			f := deploy(t, o)
			do(t, f, tt.do, tt.want)
			if !tt.dies {
				if r := do(t, f, "echo", ""); r.Cold {
					t.Error("its copy is gone")
				}
				return
			}
			wait.For(t, 10*time.Second, "its copy is gone", func() bool { return len(f.Copies()) == 0 })
			if len(tt.env) == 0 {
				f.SetTimeout(time.Minute)
				if r := do(t, f, "echo", ""); !r.Cold || r.Copy != 2 {
					t.Errorf("result %+v, want one of a new copy", r)
				}
			} else if !strings.Contains(f.Log(), "in init") {
				t.Errorf("log %q, want what it said", f.Log())
			}
		})
	}
}

// TestFrozen: a copy does not run between invocations, unless Awake is set.
func TestFrozen(t *testing.T) {
	t.Parallel()
	for _, awake := range []bool{false, true} {
		t.Run(fmt.Sprint("awake=", awake), func(t *testing.T) {
			t.Parallel()
			f := deploy(t, Options{Awake: awake})
			before := counted(t, f)
			c := f.Copies()[0]
			wait.For(t, 10*time.Second, "the copy waits", func() bool { return !c.Busy() && c.Frozen() == !awake })
			wait.For(t, 10*time.Second, "the process is in the state", func() bool { return (state(t, c.Pid()) == "T") != awake })
			if awake {
				return
			}
			for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				// There is no condition to wait for: the time must pass.
			}
			if ran := counted(t, f) - before; ran > 100 {
				t.Errorf("it ran for %d ms of 300", ran)
			}
		})
	}
}

func counted(t *testing.T, f *Function) (n int) {
	t.Helper()
	if err := json.Unmarshal(do(t, f, "count", "").Payload, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// state returns the letter for the state of a process in /proc.
func state(t *testing.T, pid int) string {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	return string(rest[:1])
}

// TestStop: a copy with an extension gets SIGTERM, also if it is frozen. It is killed if it
// does not end.
func TestStop(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		env  []string
		told bool
	}{
		{"not asked", nil, false},
		{"ends", []string{"SIGTERM=end"}, true},
		{"does not end", []string{"SIGTERM=stay"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := deploy(t, Options{Env: tt.env})
			do(t, f, "echo", "")
			c := f.Copies()[0]
			wait.For(t, 10*time.Second, "the copy is frozen", c.Frozen)
			f.Stop()
			if told := strings.Contains(f.Log(), "told to end"); told != tt.told {
				t.Errorf("log %q, want told to end: %v", f.Log(), tt.told)
			}
			if _, err := os.Stat(fmt.Sprint("/proc/", c.Pid())); err == nil {
				t.Error("it runs on")
			}
			if r := do(t, f, "echo", ""); !r.Cold {
				t.Error("the next invocation found it")
			}
		})
	}
}

// TestKill: an invocation fails with its copy.
func TestKill(t *testing.T) {
	t.Parallel()
	f := deploy(t, Options{})
	result := make(chan Result)
	go func() { result <- f.Invoke([]byte(`{"do":"hang"}`)) }()
	wait.For(t, 10*time.Second, "a copy is busy", func() bool { cs := f.Copies(); return len(cs) == 1 && cs[0].Busy() })
	f.Kill()
	if r := <-result; r.Error != Exited {
		t.Errorf("result %+v, want %s", r, Exited)
	}
}

// TestAsync: a failed invocation is tried twice more, and an event without a free copy waits.
func TestAsync(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		options Options
		want    []string
	}{
		{"default", Options{RetryAfter: time.Millisecond}, []string{"errorString", "errorString", "errorString"}},
		{"once more", Options{RetryAfter: time.Millisecond, Retries: 1}, []string{"errorString", "errorString"}},
		{"never again", Options{Retries: -1}, []string{"errorString"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := deploy(t, tt.options)
			f.InvokeAsync([]byte(`{"do":"fail"}`))
			f.service.async.Wait()
			var got []string
			for _, r := range f.Results() {
				got = append(got, r.Error)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("results %v, want %v", got, tt.want)
			}
		})
	}
}

func TestAsyncWaitsForACopy(t *testing.T) {
	t.Parallel()
	f := deploy(t, Options{MaxCopies: 1})
	for range 2 {
		f.InvokeAsync([]byte(`{"do":"rest"}`))
	}
	f.service.async.Wait()
	counts := map[string]int{}
	for _, r := range f.Results() {
		counts[r.Error]++
	}
	if counts[Throttled] == 0 || counts[""] != 2 || len(counts) != 2 {
		t.Errorf("results by error %v, want some throttled and both done", counts)
	}
}

// TestSchedule: a rule sends its event at once and then at its interval.
func TestSchedule(t *testing.T) {
	t.Parallel()
	f := deploy(t, Options{})
	stop := f.service.Schedule(f, 20*time.Millisecond)
	wait.For(t, 10*time.Second, "three events of a rule", func() bool {
		return len(slices.DeleteFunc(f.Results(), func(r Result) bool { return !strings.Contains(string(r.Payload), `"source":"aws.events"`) })) >= 3
	})
	stop()
}

// TestEnvironment: a copy gets the variables of Lambda and of its options, and none of the
// test run.
func TestEnvironment(t *testing.T) {
	t.Setenv("LEAK", "1")
	f := deploy(t, Options{Env: []string{"MINE=yes"}, Memory: 512})
	var env []string
	if err := json.Unmarshal(do(t, f, "environment", "").Payload, &env); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"MINE=yes", "AWS_LAMBDA_FUNCTION_NAME=test", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=512", "AWS_LAMBDA_LOG_STREAM_NAME=2026/01/01/[$LATEST]1"} {
		if !slices.Contains(env, want) {
			t.Errorf("%s is not in %q", want, env)
		}
	}
	if slices.Contains(env, "LEAK=1") {
		t.Error("it has variables of the tests")
	}
}
