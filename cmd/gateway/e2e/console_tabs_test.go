//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
)

// A tabCall is a call that a page of the console makes again and again while it is visible.
// TestConsoleOfManyJobs looks whether a browser makes it.
type tabCall struct {
	path  string
	every time.Duration
}

// tabs are the calls of pages: the overview, the live events, the jobs and the failures. The frame around
// each page reads the statistics.
var tabs = func() [][]tabCall {
	frame := tabCall{"api/stats", 5 * time.Second}
	return [][]tabCall{
		{frame, {"api/series?window=hour", 5 * time.Second}},
		{frame, {"api/events?limit=50", 3 * time.Second}},
		{frame, {"api/jobs?limit=50", 3 * time.Second}},
		{frame, {"api/jobs/errors", 10 * time.Second}},
	}
}()

// manyTabs is how many tabs are open, all of them visible, which takes as many screens.
const manyTabs = 20

// intakeRate is the live load beside the tabs, in events a second.
const intakeRate = 200

// TestTabsBesideIntake: while many tabs of the console are open, each event is accepted and each call of a
// tab is answered. It reports until when events were accepted, the gateway's CPU, with the tabs and
// without, windows in turns, and the calls of the tabs by route. GATEWAY_TORTURE_TABS is the number of
// jobs of a run whose figures count, of which three in ten are dead; without it a short run has a few.
func TestTabsBesideIntake(t *testing.T) {
	t.Parallel()
	jobs, turns, window := 2000, 1, 1500*time.Millisecond
	if text := os.Getenv("GATEWAY_TORTURE_TABS"); text != "" {
		var err error
		if jobs, err = strconv.Atoi(text); err != nil {
			t.Fatalf("GATEWAY_TORTURE_TABS=%q, want a number", text)
		}
		turns, window = 5, 30*time.Second
	}
	r := receiver.New(t)
	g := newGateway(t, manyConfig, r)
	g.env = append(g.env, "GATEWAY_LOG=warn")
	seedDelivered(g, jobs)
	db := g.ledger()
	_, err := db.db.Exec(`UPDATE jobs SET status = 'dead', last_error = 'status: 503 Service Unavailable, request ' || id WHERE substr(id, -1) IN ('1', '4', '7')`)
	db.close()
	if err != nil {
		t.Fatal(err)
	}
	g.start()
	<-time.After(window / 4) // after the chores of a start
	var accepted [2]windows
	calls := tabCalls{}
	for range turns {
		for with := range 2 {
			end := func() {}
			if with == 1 {
				end = openTabs(t, g, calls)
			}
			before, began := g.ticks(), time.Now()
			took := acceptTimes(t, g, window)
			accepted[with].add(took, float64(g.ticks()-before)/time.Since(began).Seconds())
			end()
		}
	}
	if n := calls.number(); n < turns*manyTabs*2 {
		t.Errorf("the tabs made %d calls in %d windows of %s, want %d at least", n, turns, window, turns*manyTabs*2)
	}
	load, _ := os.ReadFile("/proc/loadavg")
	without, with := accepted[0].p99(), accepted[1].p99()
	t.Logf("%d jobs, %d tabs, %d events/s, load of the machine %s: p99 until accepted without tabs %v, with %v, ratio %.2f\nwithout: %s\nwith:    %s\n%s",
		jobs, manyTabs, intakeRate, strings.TrimSpace(string(load)), without, with, float64(with)/float64(without), accepted[0], accepted[1], calls)
	g.stop()
}

// windows has the figures of some windows of time: how long events took until they were accepted, and the CPU of
// the gateway in percent of a core.
type windows struct {
	p50s, p99s, longest []time.Duration
	cpu                 []float64
}

func (w *windows) add(took []time.Duration, cpu float64) {
	w.p50s, w.p99s, w.longest = append(w.p50s, exactly(took, 50)), append(w.p99s, exactly(took, 99)), append(w.longest, slices.Max(took))
	w.cpu = append(w.cpu, cpu)
}

// p99 is the median of the windows.
func (w windows) p99() time.Duration { return exactly(w.p99s, 50) }

func (w windows) String() string {
	return fmt.Sprintf("median %v, p99 %v, longest %v, CPU %.1f %%", w.p50s, w.p99s, w.longest, w.cpu)
}

// A tabCalls has the durations of the calls that tabs made, by path.
type tabCalls map[string][]time.Duration

func (c tabCalls) number() (n int) {
	for _, took := range c {
		n += len(took)
	}
	return n
}

func (c tabCalls) String() string {
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(c)) {
		took := c[path]
		fmt.Fprintf(&b, "%5d of %-24s median %v, longest %v\n", len(took), path, exactly(took, 50), slices.Max(took))
	}
	return b.String()
}

// tabsOf is the environment variable that makes the test binary be the browsers of openTabs: the address of
// a gateway and the cookie of a session.
const tabsOf = "GATEWAY_TEST_TABS_OF"

// openTabs has tabs make their calls until the returned function is called. It adds the calls to calls. As
// browsers are on other machines, the tabs are another process, which gets the processor time that the
// gateway and the sender leave.
func openTabs(t *testing.T, g *gateway, calls tabCalls) (end func()) {
	t.Helper()
	a := g.post("/console/session", `{"token": "admin-admin-admin-admin-admin"}`)
	cookie, _, _ := strings.Cut(a.header.Get("Set-Cookie"), ";")
	if a.status != http.StatusOK || cookie == "" {
		t.Fatalf("sign in = %d %s", a.status, a.body)
	}
	browsers := exec.Command("nice", "-n", "19", os.Args[0])
	browsers.Env = append(os.Environ(), tabsOf+"="+g.url("/console/")+" "+cookie, "GOMAXPROCS=1")
	browsers.Stderr = os.Stderr
	quit, err := browsers.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var told bytes.Buffer
	browsers.Stdout = &told
	if err := browsers.Start(); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		quit.Close()
		var made tabCalls
		if err := errors.Join(browsers.Wait(), json.Unmarshal(told.Bytes(), &made)); err != nil {
			t.Fatalf("tabs: %v", err)
		}
		for path, took := range made {
			calls[path] = append(calls[path], took...)
		}
	}
}

// beTabs makes the calls of tabs until standard input ends, each of them once at least, however late the
// process gets to it, and prints them. It returns the exit code.
func beTabs(given string) int {
	address, cookie, _ := strings.Cut(given, " ")
	calls := tabCalls{}
	var mu sync.Mutex
	var open sync.WaitGroup
	closed, failed := make(chan struct{}), make(chan error, 1)
	for i := range manyTabs {
		browser := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 6}}
		for _, call := range tabs[i%len(tabs)] {
			open.Go(func() {
				defer browser.CloseIdleConnections()
				next := time.NewTimer(time.Duration(i) * 50 * time.Millisecond) // tabs are not opened at once
				defer next.Stop()
				for made := 0; ; made++ {
					select {
					case <-next.C:
					case <-closed:
						if made > 0 {
							return
						}
					}
					began := time.Now()
					if err := askAs(browser, address+call.path, cookie); err != nil {
						select {
						case failed <- err:
						default:
						}
						return
					}
					mu.Lock()
					calls[call.path] = append(calls[call.path], time.Since(began))
					mu.Unlock()
					next.Reset(call.every)
				}
			})
		}
	}
	io.Copy(io.Discard, os.Stdin)
	close(closed)
	open.Wait()
	select {
	case err := <-failed:
		fmt.Fprintln(os.Stderr, err)
		return 1
	default:
	}
	if err := json.NewEncoder(os.Stdout).Encode(calls); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// askAs makes a call with the cookie of a session, and reads the reply.
func askAs(c *http.Client, url, cookie string) error {
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Cookie", cookie)
	reply, err := c.Do(r)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if _, err := io.Copy(io.Discard, reply.Body); err != nil || reply.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s, %v", url, reply.Status, err)
	}
	return nil
}

// acceptTimes sends events at a fixed rate for a window, and returns how long each took until it was accepted.
func acceptTimes(t *testing.T, g *gateway, window time.Duration) []time.Duration {
	t.Helper()
	var mu sync.Mutex
	var took []time.Duration
	var senders sync.WaitGroup
	body := fmt.Sprintf(`{"text": "%01000d"}`, 1)
	tick := time.NewTicker(time.Second / intakeRate)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < window; {
		at := <-tick.C
		senders.Go(func() {
			a, err := fetch(pooled, request{method: http.MethodPost, url: g.url("/events/shop/order.created"), body: body, headers: []string{"Authorization", "Bearer admin-admin-admin-admin-admin"}})
			end := time.Since(at)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || a.status != http.StatusAccepted {
				t.Errorf("POST = %d %s, %v", a.status, a.body, err)
			}
			took = append(took, end)
		})
	}
	senders.Wait()
	return took
}
