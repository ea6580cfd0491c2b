//go:build linux

package e2e

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
)

// TestTakeover is TestKills for processes that share a database. The other processes, or the
// next start of the killed one, take over its jobs after their leases have ended.
func TestTakeover(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for leases to end")
	}
	t.Parallel()
	st := onPostgres(t)
	r := receiver.New(t)
	mortal, other := newGatewayOn(t, st, outageConfig, r), newGatewayOn(t, st, outageConfig, r)
	other.life = 1000 // after all lives of mortal
	for _, g := range []*gateway{mortal, other} {
		g.env = append(g.env, "GATEWAY_LOG=warn")
		g.start()
	}
	l := newLoad(mortal, r, pooled)
	l.gateways = []*gateway{mortal, other}
	l.pause = 10 * time.Millisecond // this test does not measure speed
	l.start(outageSenders)
	const n = 10
	for range n {
		<-time.After(50*time.Millisecond + rand.N(250*time.Millisecond)) // at any point of the gateway's work
		mortal.kill()
		l.kill(mortal.life, time.Now())
		mortal.start()
	}
	l.end()
	l.settle(outageLease + 20*time.Second)
	for _, g := range l.gateways {
		g.awaitIdle(20 * time.Second)
		g.stop()
	}

	v := l.judge(settleReach)
	t.Logf("kills %d, %v, at most %d of one kill; posts without 202: %v; shares %v", n, v, v.worst, l.misses, l.shares())
	v.check(t, (n+10)*killConcurrency) // see TestKills
	if l.shares()[other.life] == 0 {
		t.Error("the process that was not killed delivered nothing, want a share")
	}
	db := st.open(t)
	db.check(1)
	db.holds(l.acceptedIDs())
	if n := db.count(`SELECT COUNT(*) FROM jobs WHERE status <> 'completed'`); n != 0 {
		t.Errorf("jobs that are not completed: %d, want 0", n)
	}
}
