//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The tests of these files attack a gateway from one network address while a victim works at
// another address. The victim must not notice. attacks_attackers_test.go has the attacks,
// attacks_victim_test.go the requests and the bounds of a victim, attacks_memory_test.go the
// limit on memory, and attacks_machine_test.go the check that other programs do not occupy
// the machine.
//
// They do not run beside another test of the package, since they measure latencies. They last
// about 40 s together. With GATEWAY_TORTURE_ATTACKS, a duration such as 60s, the attack of
// everything at once lasts so long, and each other attack lasts half as long.

const (
	attackSecret = "a-secret-of-the-shop-of-24-bytes"
	attackToken  = "a-token-of-operators-of-24-bytes"
	victimKey    = "the-key-of-the-queue-mail-24-bytes"
	attackerKey  = "the-key-of-the-queue-large-24-bytes"

	// attackShort is how long most attacks last without GATEWAY_TORTURE_ATTACKS.
	attackShort = 600 * time.Millisecond

	victimAddress   = "127.0.0.1"
	attackerAddress = "127.0.0.2"
)

// attackConfig leaves all limits at their defaults. The queue large hands out the same
// messages again and again. Messages of the queue dead are dead after one attempt.
const attackConfig = `
server:
  host: "${HOST:-127.0.0.1}"
  port: ${PORT}
%s
api: {auth_token: ` + attackToken + `}
sources:
  app: {type: event}
  shop: {type: webhook, verify: hmac, secret: ` + attackSecret + `}
  other: {type: webhook, verify: hmac, secret: ` + attackSecret + `}
  large: {type: event}
queues:
  mail: {source: app, api_key: ` + victimKey + `}
  orders: {source: shop, api_key: ` + victimKey + `}
  large: {source: large, api_key: ` + attackerKey + `, visibility_timeout: 1ms}
  dead: {source: large, max_attempts: 1}
  parked: {source: app, events: [never.sent]}
`

// attackTime is how long an attack lasts: short, or the part whole of
// GATEWAY_TORTURE_ATTACKS.
func attackTime(t *testing.T, short time.Duration, whole float64) time.Duration {
	t.Helper()
	text := os.Getenv("GATEWAY_TORTURE_ATTACKS")
	if text == "" {
		return short
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		t.Fatalf("GATEWAY_TORTURE_ATTACKS=%q, want a duration above 0, such as 60s", text)
	}
	return max(short, time.Duration(whole*float64(d)))
}

// attackable requires a run with meaningful latencies, and enough open files.
func attackable(t *testing.T) {
	t.Helper()
	if underRace() {
		need(t, "a run without the race detector", errors.New("it changes the latencies that the test measures"))
	}
	if testing.Short() {
		need(t, "a run without -short", errors.New("the attacks take 40 s"))
	}
	const files = 8 << 10
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	if err == nil && limit.Cur < files {
		err = fmt.Errorf("the limit is %d", limit.Cur)
	}
	need(t, fmt.Sprintf("%d open files", files), err)
}

// besiege starts a gateway within memoryLimit.
func besiege(t *testing.T, server string) (*gateway, *memoryCage) {
	t.Helper()
	g := besiegeable(t, server)
	c := newMemoryCage(t)
	g.launch()
	c.hold(g.process)
	g.awaitReady()
	return g, c
}

// besiegeable prepares a gateway for an attack, with lines of YAML for its section server. It
// does not start the gateway.
func besiegeable(t *testing.T, server string) *gateway {
	t.Helper()
	attackable(t)
	g := newGateway(t, fmt.Sprintf(attackConfig, server), nil)
	g.env = append(g.env, "GATEWAY_LOG=warn,pull=off") // no line for each dead message
	return g
}

// stocked is how many messages of nearly 1 MiB each queue of the attacker has.
const stocked = 24

// stock stores messages in the attacker's queues. If dead is true, it makes the messages of
// the queue dead into dead letters.
func (g *gateway) stock(dead bool) {
	g.t.Helper()
	body := `{"fill":"` + strings.Repeat("x", 1<<20-100) + `"}`
	for range stocked {
		g.send("/events/large/document.sent", body, bearer(attackToken)...)
	}
	q := queue{g: g, name: "dead"}
	for n := 0; dead && n < stocked; {
		ms := q.receive(8, "2s")
		if _, died := q.nack("", receipts(ms)...); died != len(ms) || died == 0 {
			g.t.Fatalf("dead messages = %d of %d, want all", died, len(ms))
		}
		n += len(ms)
	}
}

// everything is a list of all attacks.
var everything = []attack{
	halfBodies, slowHeaders, slowChunks, pipelines, parkedPolls, forgeries,
	unreadPolls, unreadPeeks, unreadDead, unreadExports, idle,
}

// TestAttacks: no attack from one address keeps another address from the gateway, or makes
// the gateway exceed its memory limit.
func TestAttacks(t *testing.T) {
	attackable(t)
	for _, a := range everything {
		t.Run(a.name, func(t *testing.T) {
			g, c := besiege(t, "")
			short := attackShort
			if strings.HasPrefix(a.name, "unread") {
				g.stock(a.name == unreadDead.name)
				short = time.Second // the gateway needs some time to read large messages
			}
			g.forgetPeak()
			at := attackWith(t, g.attacker(attackerAddress), a)
			newVictim(t, g, g.loopback(victimAddress)).endure(c, attackTime(t, short, 0.5))
			at.log(t)
		})
	}
}

// TestAttackByManyAddresses: polls of one queue, from many addresses, leave other queues
// their polls.
func TestAttackByManyAddresses(t *testing.T) {
	g, c := besiege(t, "")
	g.forgetPeak()
	var sides []side
	for i := range 20 {
		sides = append(sides, g.attacker(fmt.Sprintf("127.0.1.%d", i+1)))
	}
	attackFrom(t, sides, parkedPolls).log(t)
	newVictim(t, g, g.loopback(victimAddress)).endure(c, attackTime(t, attackShort, 0.5))
}

// TestAttackOfEverything: all attacks at once do not harm the victim either.
func TestAttackOfEverything(t *testing.T) {
	g, c := besiege(t, "")
	v := newVictim(t, g, g.loopback(victimAddress))
	v.endure(c, 500*time.Millisecond) // otherwise the machine is too slow, and not the attack harmful
	g.stock(true)
	g.forgetPeak()
	at := attackWith(t, g.attacker(attackerAddress), everything...)
	v.endure(c, attackTime(t, 6*time.Second, 1))
	at.log(t)
}

// log logs how many connections the attackers made.
func (at *attackers) log(t *testing.T) {
	t.Helper()
	t.Logf("the attackers made %d connections; %d could not be made", at.opened.Load(), at.failed.Load())
}

// TestBurstOfSmallBodies: the gateway refuses no request of an honest client that sends whole
// bodies as fast as it can, 64 at once. Half of the senders connect anew each time.
func TestBurstOfSmallBodies(t *testing.T) {
	g, _ := besiege(t, "")
	v := newVictim(t, g, g.loopback(victimAddress))
	v.clear()
	const senders, each = 64, 60
	var all sync.WaitGroup
	began := time.Now()
	for i := range senders {
		client := v.kept
		if i%2 == 1 {
			client = v.fresh
		}
		all.Go(func() {
			for n := range each {
				body := fmt.Sprintf(`{"sender":%d,"n":%d}`, i, n)
				v.ask(client, "post", request{method: http.MethodPost, url: g.url("/events/app/order.created"), body: body, headers: bearer(attackToken)})
			}
		})
	}
	all.Wait()
	t.Logf("%d posts by %d senders of one address took %v", senders*each, senders, time.Since(began).Round(time.Millisecond))
	for why, n := range v.misses {
		t.Errorf("%d requests failed: %s", n, why)
	}
}

// TestBurstOfLargeBodies: the gateway refuses no request of an honest client that sends 32
// bodies of 1 MiB at once. The bodies share a link of 200 Mbit/s.
func TestBurstOfLargeBodies(t *testing.T) {
	g, c := besiege(t, "")
	g.forgetPeak()
	v := newVictim(t, g, g.loopback(victimAddress))
	v.clear()
	const (
		senders = 32
		chunk   = 16 << 10
		link    = 200e6 / 8 // bytes a second
	)
	body := `"` + strings.Repeat("x", 1<<20-2) + `"` // server.max_body_size
	tick := time.NewTicker(time.Duration(chunk / link * float64(time.Second)))
	defer tick.Stop()
	var all sync.WaitGroup
	for range senders {
		all.Go(func() {
			r, err := http.NewRequest(http.MethodPost, g.url("/events/app/order.created"), &paced{strings.NewReader(body), tick.C, chunk})
			if err != nil {
				v.miss(err.Error())
				return
			}
			r.ContentLength = int64(len(body))
			r.Header.Set("Authorization", "Bearer "+attackToken)
			resp, err := (&http.Client{Timeout: time.Minute, Transport: v.fresh.Transport}).Do(r)
			if err != nil {
				v.miss(kindOf(err))
				return
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusAccepted {
				v.miss(resp.Status)
			}
		})
	}
	all.Wait()
	for why, n := range v.misses {
		t.Errorf("%d of %d large bodies failed: %s", n, senders, why)
	}
	v.checkMemory(c)
}

// paced reads at most a chunk at each tick.
type paced struct {
	r     *strings.Reader
	tick  <-chan time.Time
	chunk int
}

func (p *paced) Read(b []byte) (int, error) {
	<-p.tick
	return p.r.Read(b[:min(len(b), p.chunk)])
}
