//go:build linux

package e2e

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
)

// occupied is the share of the machine's CPU time above which other programs make a latency
// meaningless.
const occupied = 0.3

// cpuTime is CPU time since the machine started, in ticks of 10 ms.
type cpuTime struct {
	all    int // of all processors, idle too
	others int // used by other programs than the gateway and this one
}

// cpuTime reads the CPU time. Interrupts do not count as time of other programs: under load
// they are packets of the attack.
func (g *gateway) cpuTime() (c cpuTime, err error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return c, err
	}
	fields := strings.Fields(lineWith(string(text), "cpu "))
	if len(fields) < 9 {
		return c, fmt.Errorf("/proc/stat begins with %.80q", text)
	}
	const user, nice, system, steal = 0, 1, 2, 7 // see proc_stat(5)
	for i, f := range fields[1:9] {
		n, err := strconv.Atoi(f)
		if err != nil {
			return c, err
		}
		c.all += n
		if i == user || i == nice || i == system || i == steal {
			c.others += n
		}
	}
	c.others -= ownTicks()
	if !g.ended() {
		c.others -= g.ticks()
	}
	return c, nil
}

// ownTicks is the CPU time that this program has used.
func ownTicks() int {
	var self syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &self); err != nil {
		panic(err) // the call fails for a bad address only
	}
	return int(time.Duration(self.Utime.Nano()+self.Stime.Nano()) / (10 * time.Millisecond))
}

// since is the part of all CPU time that other programs have used since an earlier time.
func (c cpuTime) since(earlier cpuTime) float64 {
	return float64(max(0, c.others-earlier.others)) / float64(max(1, c.all-earlier.all))
}

// TestCPUTime: time of this program does not count as time of other programs, even if this
// program occupies all processors.
func TestCPUTime(t *testing.T) {
	t.Parallel()
	g := newGateway(t, plainConfig, receiver.New(t))
	g.start()
	read := func() (cpuTime, int) {
		c, err := g.cpuTime()
		if err != nil {
			t.Fatal(err)
		}
		return c, ownTicks()
	}
	before, began := read()
	var all sync.WaitGroup
	for range runtime.NumCPU() {
		all.Go(func() {
			for ownTicks() < began+40 {
			}
		})
	}
	all.Wait()
	after, ended := read()
	others, sum, own := after.others-before.others, after.all-before.all, ended-began
	const inexact = 8 // ticks
	if others > sum-own+inexact || others < -inexact {
		t.Errorf("of %d ticks this program used %d and others %d, want at most %d", sum, own, others, sum-own)
	}
}
