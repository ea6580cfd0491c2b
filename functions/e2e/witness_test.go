//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
)

// A witness records which events were sent, accepted and delivered, and when copies were
// killed. It does not rely on any answer of the gateway about itself.
type witness struct {
	mu         sync.Mutex
	sent       map[int]bool
	accepted   map[int]string              // event id in the answer
	deliveries map[int][]receiver.Delivery // deliveries of each event, in order of arrival
	killed     map[int]time.Time           // time of the kill, by number of the copy
	misses     map[string]int              // posts that were not accepted, by status or error
}

// newWitness makes a witness that gets the deliveries of r.
func newWitness(r *receiver.Receiver) *witness {
	w := &witness{sent: map[int]bool{}, accepted: map[int]string{}, deliveries: map[int][]receiver.Delivery{}, killed: map[int]time.Time{}, misses: map[string]int{}}
	r.Tap(w.delivered)
	return w
}

// copyOf returns the number of the copy that made a delivery. The handler's configuration must
// have the header "x-copy: ${AWS_LAMBDA_LOG_STREAM_NAME}".
func copyOf(d receiver.Delivery) int {
	name := d.Header.Get("X-Copy")
	n, _ := strconv.Atoi(name[strings.LastIndexByte(name, ']')+1:]) // no copy has the number 0
	return n
}

type loadBody struct {
	Serial int `json:"serial"`
}

func (w *witness) delivered(d receiver.Delivery) {
	var body loadBody
	_ = json.Unmarshal([]byte(d.Body), &body) // serial 0 is never sent, so judge reports it as unexpected
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deliveries[body.Serial] = append(w.deliveries[body.Serial], d)
}

// post sends one event. If it is not accepted, it may or may not have been stored.
func (w *witness) post(url string, serial int) {
	w.mu.Lock()
	w.sent[serial] = true
	w.mu.Unlock()
	body, _ := json.Marshal(loadBody{serial}) // cannot fail
	a, err := ask(http.MethodPost, url+"/events/load", string(body))
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err != nil:
		w.misses[err.Error()]++
	case a.status != http.StatusAccepted:
		w.misses[fmt.Sprint(a.status)]++
	default:
		w.accepted[serial] = a.eventID()
	}
}

// load starts n senders. Each posts unique events until ctx is done, with a pause after each
// event.
func (w *witness) load(ctx context.Context, url string, n int, pause time.Duration) (wait func()) {
	var senders sync.WaitGroup
	for i := range n {
		senders.Go(func() {
			for serial := i + 1; ctx.Err() == nil; serial += n {
				w.post(url, serial)
				select {
				case <-time.After(pause):
				case <-ctx.Done():
				}
			}
		})
	}
	return senders.Wait
}

func (w *witness) kill(copy int, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.killed[copy] = at
}

// yes counts the accepted events.
func (w *witness) yes() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.accepted)
}

// missing counts accepted events that are not delivered yet.
func (w *witness) missing() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for serial := range w.accepted {
		if len(w.deliveries[serial]) == 0 {
			n++
		}
	}
	return n
}

// settleReach bounds the time from a delivery until its outcome is stored, on a busy machine.
const settleReach = 2 * time.Second

// A verdict is the result of judging a witness.
type verdict struct {
	accepted, delivered, repeated, kills int

	lost        []int    // accepted and never delivered
	unexpected  []int    // delivered and never sent
	unexplained []string // delivered again, not because of a kill
	misses      map[string]int
}

func (w *witness) judge() verdict {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := verdict{accepted: len(w.accepted), delivered: len(w.deliveries), kills: len(w.killed), misses: w.misses}
	for serial := range w.accepted {
		if len(w.deliveries[serial]) == 0 {
			v.lost = append(v.lost, serial)
		}
	}
	for serial, all := range w.deliveries {
		if !w.sent[serial] {
			v.unexpected = append(v.unexpected, serial)
		}
		for i := 1; i < len(all); i++ {
			v.repeated++
			if why := w.unexplained(all[i-1], all[i]); why != "" {
				v.unexplained = append(v.unexplained, fmt.Sprintf("event %d: %s", serial, why))
			}
		}
	}
	slices.Sort(v.lost)
	slices.Sort(v.unexplained)
	return v
}

// unexplained describes a second delivery that is not explained by a kill of the copy that
// made the first. It returns "" if the kill explains it.
func (w *witness) unexplained(first, second receiver.Delivery) string {
	killed, ok := w.killed[copyOf(first)]
	switch {
	case first.Job() != second.Job():
		return fmt.Sprintf("delivered under two jobs, %s and %s", first.Job(), second.Job())
	case second.Attempt() <= first.Attempt():
		return fmt.Sprintf("attempt %d came after attempt %d", second.Attempt(), first.Attempt())
	case !ok:
		return fmt.Sprintf("delivered again although copy %d was not killed", copyOf(first))
	case killed.Sub(first.At) > settleReach:
		return fmt.Sprintf("delivered again although copy %d lived on for %v", copyOf(first), killed.Sub(first.At))
	}
	return ""
}

// check fails the test for each kind of violation and names up to 5 examples.
func (v verdict) check(t *testing.T) {
	t.Helper()
	if v.accepted == 0 {
		t.Error("nothing was accepted, so nothing was tested")
	}
	if n := len(v.lost); n > 0 {
		t.Errorf("lost %d accepted events, such as %v, want 0", n, v.lost[:min(n, 5)])
	}
	if n := len(v.unexpected); n > 0 {
		t.Errorf("%d deliveries of what was never sent, such as %v, want 0", n, v.unexpected[:min(n, 5)])
	}
	if n := len(v.unexplained); n > 0 {
		t.Errorf("%d deliveries again without a reason, such as %q, want 0", n, v.unexplained[:min(n, 5)])
	}
}

func (v verdict) String() string {
	return fmt.Sprintf("%d kills, accepted %d, delivered %d, lost %d, unexpected %d, delivered again %d, unexplained %d; posts without 202: %v",
		v.kills, v.accepted, v.delivered, len(v.lost), len(v.unexpected), v.repeated, len(v.unexplained), v.misses)
}

// TestVerdict: judge finds each kind of violation.
func TestVerdict(t *testing.T) {
	t.Parallel()
	zero := time.Now()
	seen := func(job, attempt string, copy, ms int) receiver.Delivery {
		h := http.Header{"X-Gateway-Job-Id": {job}, "X-Gateway-Attempt": {attempt}, "X-Copy": {fmt.Sprintf("2026/01/01/[$LATEST]%d", copy)}}
		return receiver.Delivery{Header: h, At: zero.Add(time.Duration(ms) * time.Millisecond)}
	}
	killed := map[int]time.Time{3: zero.Add(2500 * time.Millisecond)}
	for _, tt := range []struct {
		name       string
		deliveries []receiver.Delivery
		want       [3]int // lost, unexpected, unexplained
	}{
		{"once", []receiver.Delivery{seen("a", "1", 2, 0)}, [3]int{}},
		{"never", nil, [3]int{1, 0, 0}},
		{"again after a kill", []receiver.Delivery{seen("a", "1", 3, 2000), seen("a", "2", 4, 4000)}, [3]int{}},
		{"again without a kill", []receiver.Delivery{seen("a", "1", 2, 2000), seen("a", "2", 4, 4000)}, [3]int{0, 0, 1}},
		{"again long before a kill", []receiver.Delivery{seen("a", "1", 3, 0), seen("a", "2", 4, 4000)}, [3]int{0, 0, 1}},
		{"the same attempt", []receiver.Delivery{seen("a", "1", 3, 2000), seen("a", "1", 4, 4000)}, [3]int{0, 0, 1}},
		{"two jobs", []receiver.Delivery{seen("a", "1", 3, 2000), seen("b", "2", 4, 4000)}, [3]int{0, 0, 1}},
	} {
		w := &witness{sent: map[int]bool{1: true}, accepted: map[int]string{1: "E"}, deliveries: map[int][]receiver.Delivery{}, killed: killed}
		if tt.deliveries != nil {
			w.deliveries[1] = tt.deliveries
		}
		v := w.judge()
		if got := [3]int{len(v.lost), len(v.unexpected), len(v.unexplained)}; got != tt.want {
			t.Errorf("%s: lost, unexpected, unexplained = %v, want %v: %q", tt.name, got, tt.want, v.unexplained)
		}
	}
	w := &witness{deliveries: map[int][]receiver.Delivery{9: {seen("a", "1", 1, 0)}}}
	if v := w.judge(); len(v.unexpected) != 1 {
		t.Errorf("delivery of what was never sent: %v, want it told", v)
	}
}
