//go:build linux

package e2e

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
)

// duplicatesConfig is for processes that may share a database. Events of source app have a
// delivery id. Events of source orders have no delivery id; their consumer has an idempotency
// key.
const duplicatesConfig = `
server:
  host: 127.0.0.1
  port: ${PORT}
  allow_private_urls: true
delivery: {timeout: 5s, default_retry: {max: 50, backoff: fixed, interval: 100ms}}
sources:
  app: {type: event}
  orders: {type: event}
  both: {type: event}
handlers:
  app: {source: app, url: "${RECEIVER}/app"}
  orders: {source: orders, url: "${RECEIVER}/orders", idempotency_key: "$.order.id"}
  keyed: {source: both, url: "${RECEIVER}/keyed", idempotency_key: "$.order.id"}
  plain: {source: both, url: "${RECEIVER}/plain"}
`

const (
	duplicatePosts   = 16 // of each key, at the same time
	duplicateSenders = 4  // concurrent senders of different keys
)

// TestSimultaneousDuplicates: of simultaneous posts with the same key, one is stored. All
// other answers say that the event is a duplicate.
func TestSimultaneousDuplicates(t *testing.T) {
	for _, tt := range []place{{"SQLite", ownFile}, {"PostgreSQL", onPostgres}, {"MySQL", onMySQL}, {"D1 behind its proxy", onProxy}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // beside the other databases, and no other tests
			keys := whole(500, 150)
			if testing.Short() || underRace() {
				keys = 50
			}
			r := receiver.New(t)
			testDuplicates(t, r, launchDuplicates(t, tt.on(t), r), keys)
		})
	}
}

// launchDuplicates starts two processes on a server, or one on a file.
func launchDuplicates(t *testing.T, st *store, r *receiver.Receiver) []*gateway {
	t.Helper()
	gateways := []*gateway{newGatewayOn(t, st, duplicatesConfig, r)}
	if st != nil {
		gateways = append(gateways, newGatewayOn(t, st, duplicatesConfig, r))
	}
	for _, g := range gateways {
		g.env = append(g.env, "GATEWAY_LOG=warn")
		g.launch()
	}
	for _, g := range gateways {
		g.awaitReady()
	}
	return gateways
}

func testDuplicates(t *testing.T, r *receiver.Receiver, gateways []*gateway, keys int) {
	began := time.Now()
	var senders sync.WaitGroup
	for first := range duplicateSenders {
		senders.Go(func() {
			for i := first; i < keys; i += duplicateSenders {
				key := fmt.Sprintf("order %d", i)
				body := fmt.Sprintf(`{"order": {"id": %q}}`, key)
				checkOneAccepted(t, key, simultaneously(gateways, "/events/app/order.created", `{"n": 1}`, "Idempotency-Key", key))
				checkOneAccepted(t, key, simultaneously(gateways, "/events/orders/order.created", body))
			}
		})
	}
	senders.Wait()
	t.Logf("%d keys, each posted by two mechanisms %d times at once: %.1f s", keys, duplicatePosts, time.Since(began).Seconds())

	// A consumer without a key takes every event, so every event is stored.
	for i, a := range simultaneously(gateways, "/events/both/order.created", `{"order": {"id": 1.0}}`) {
		if a.err != nil || a.status != 202 || a.body != "Event accepted" {
			t.Errorf("post %d of one key to a consumer with and one without = %d %q, %v, want 202", i, a.status, a.body, a.err)
		}
	}
	for path, n := range map[string]int{"/app": keys, "/orders": keys, "/plain": duplicatePosts, "/keyed": 1} {
		r.Await(t, time.Minute, path, n)
	}
	for _, g := range gateways {
		g.stop() // after all deliveries are recorded
		if lines := grumbles(g); len(lines) > 0 {
			t.Errorf("the gateway logged %q, want nothing", lines)
		}
	}
	checkDuplicates(t, gateways[0].ledger(), keys)
}

// checkDuplicates counts the events and jobs in the database.
func checkDuplicates(t *testing.T, db *ledger, keys int) {
	t.Helper()
	db.sound()
	for query, want := range map[string]int{
		`SELECT COUNT(*) FROM events WHERE source = 'app'`:                          keys,
		`SELECT COUNT(DISTINCT delivery_id) FROM events WHERE source = 'app'`:       keys,
		`SELECT COUNT(*) FROM jobs WHERE lane = 'handler/app'`:                      keys,
		`SELECT COUNT(*) FROM events WHERE source = 'orders'`:                       keys,
		`SELECT COUNT(DISTINCT payload) FROM events WHERE source = 'orders'`:        keys,
		`SELECT COUNT(*) FROM jobs WHERE lane = 'handler/orders'`:                   keys,
		`SELECT COUNT(*) FROM events WHERE source = 'both'`:                         duplicatePosts,
		`SELECT COUNT(*) FROM jobs WHERE lane = 'handler/plain'`:                    duplicatePosts,
		`SELECT COUNT(*) FROM jobs WHERE lane = 'handler/keyed'`:                    1,
		`SELECT COUNT(*) FROM jobs WHERE status <> 'completed'`:                     0,
		`SELECT COUNT(*) FROM jobs WHERE success LIKE '1 200 %'`:                    2*keys + duplicatePosts + 1,
		`SELECT COUNT(*) FROM events WHERE source NOT IN ('app', 'orders', 'both')`: 0,
	} {
		if n := db.count(query); n != want {
			t.Errorf("%s = %d, want %d", query, n, want)
		}
	}
}

type posted struct {
	answer
	err error
}

// simultaneously posts the same event many times at once, to the gateways in turn.
func simultaneously(gateways []*gateway, path, body string, headers ...string) []posted {
	all := make([]posted, duplicatePosts)
	ready := make(chan struct{})
	var posts sync.WaitGroup
	for i := range all {
		posts.Go(func() {
			<-ready
			g := gateways[i%len(gateways)]
			all[i].answer, all[i].err = fetch(pooled, request{method: "POST", url: g.url(path), body: body, headers: headers})
		})
	}
	close(ready)
	posts.Wait()
	return all
}

// checkOneAccepted checks the answers to one key: one is 202, and the others say duplicate.
func checkOneAccepted(t *testing.T, key string, all []posted) {
	t.Helper()
	accepted := 0
	for _, a := range all {
		switch {
		case a.err == nil && a.status == 202 && a.body == "Event accepted":
			accepted++
		case a.err != nil || a.status != 200 || a.body != "Duplicate event ignored":
			t.Errorf("%s: %d %q, %v, want 202 Event accepted or 200 Duplicate event ignored", key, a.status, a.body, a.err)
		}
		if a.eventID() != all[0].eventID() || a.eventID() == "" {
			t.Errorf("%s: event ids %q and %q, want the same", key, a.eventID(), all[0].eventID())
		}
	}
	if accepted != 1 {
		t.Errorf("%s: accepted %d times, want once", key, accepted)
	}
}
