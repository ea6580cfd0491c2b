//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/hosts"
	"github.com/eventgateway/gateway/infra/test/snsrig"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// outConfig has sources that cause each kind of outgoing request. Handlers and alerts are
// appended.
const outConfig = `
server:
  host: 127.0.0.1
  port: ${PORT}
  allow_private_urls: %t
delivery: {timeout: 5s, default_retry: {max: 1}}
worker: {max_concurrency: 20}
sources:
  app: {type: event}
  github: {type: webhook, verify: github, secret: a-secret-of-24-bytes-or-more}
  topic: {type: sns}
%s`

// emulators is the number of sources of emulators. Each confirms a few subscriptions at a time
// for one address.
const emulators = 16

// worldPort is the port of all servers in a world, besides 443.
const worldPort = 8080

// tellPlaces makes a configuration in which each host is the address of a handler, of a gRPC
// handler and of a place for alerts.
func tellPlaces(allowPrivate bool, hosts []string) string {
	sources, handlers, alerts := "", "handlers:\n", "alerts:\n"
	for i := range emulators {
		sources += fmt.Sprintf("  emulator%d: {type: sns, skip_verify: true}\n", i)
	}
	for i, host := range hosts {
		url, _ := json.Marshal(fmt.Sprintf("http://%s:%d/", host, worldPort)) // JSON is YAML too
		handlers += fmt.Sprintf("  h%d: {source: app, url: %s}\n  g%d: {source: app, type: grpc, url: %s}\n", i, url, i, url)
		alerts += fmt.Sprintf("  - {url: %s, on: [verification_failure]}\n", url)
	}
	return fmt.Sprintf(outConfig, allowPrivate, sources) + handlers + alerts
}

// dialable returns the bad hosts that "validate" accepts. It requires that validate reports
// every other bad host at each place.
func dialable(t *testing.T) []string {
	t.Helper()
	g := newGateway(t, tellPlaces(false, hosts.Bad), nil)
	var found struct{ Problems []struct{ Path string } }
	got := run(t, g.command("validate", "--json"))
	if err := json.Unmarshal([]byte(got.stdout), &found); err != nil || got.code != 1 {
		t.Fatalf("validate: exit code %d, %v\n%s%s", got.code, err, got.stdout, got.stderr)
	}
	refused := map[string]bool{}
	for _, p := range found.Problems {
		refused[p.Path] = true
	}
	var left []string
	for i, host := range hosts.Bad {
		at := func(path string) bool { return refused[fmt.Sprintf(path, i)] }
		handler, grpc, alert := at("handlers.h%d.url"), at("handlers.g%d.url"), at("alerts[%d].url")
		if handler != alert || handler && !grpc {
			t.Errorf("validate refuses %q for a handler: %v, for one of gRPC: %v, for alerts: %v; want the same", host, handler, grpc, alert)
		}
		if !grpc { // a gRPC URL has no part after the host
			left = append(left, host)
		}
	}
	return left
}

// publicHosts are allowed. The test sees connections to them, so it would see others too.
var publicHosts = []string{"8.8.8.8", "[2606:4700:4700::1111]", "public.test"}

// TestAddressTable: the gateway connects to public addresses only, with each kind of outgoing
// request.
func TestAddressTable(t *testing.T) {
	t.Parallel()
	bad := dialable(t)
	if len(bad) < 60 {
		t.Errorf("%d hosts are left to be dialled, want at least 60", len(bad))
	}
	certificates := inGroups(addressesOf(bad), 12)
	w := newWorld(t, zoneOf(certificates))
	w.listen(worldPort)
	w.listen(80)
	w.listen(443)
	g := newGateway(t, tellPlaces(false, append(slices.Clone(bad), publicHosts...)), nil)
	w.start(g)
	public := []string{"8.8.8.8:8080", "9.9.9.9:8080", "[2606:4700:4700::1111]:8080"}

	w.wantConnections("handlers", public, func() {
		event := g.send("/events/order.created", `{}`)
		g.awaitDone(60 * time.Second)
		told := g.storiesOf(event)
		for i, host := range bad {
			checkBlocked(t, host, told[fmt.Sprintf("h%d", i)])
			checkBlocked(t, host+" by gRPC", told[fmt.Sprintf("g%d", i)])
		}
		for i, host := range publicHosts {
			if s := told[fmt.Sprintf("h%d", len(bad)+i)]; s.Status != "completed" {
				t.Errorf("%s: %s, %s, want it delivered to", host, s.Status, s.LastError)
			}
		}
	})
	w.wantConnections("alerts", public, func() {
		a := g.post("/webhooks/github", `{}`, "X-Hub-Signature-256", "sha256="+strings.Repeat("0", 64))
		wantAnswer(t, "a forged webhook", a, http.StatusUnauthorized, "Invalid signature")
		g.awaitDone(60 * time.Second)
	})
	w.wantConnections("certificates", []string{"9.9.9.9:443"}, func() {
		for i := range certificates {
			g.notify(t, regionHost(i))
		}
		g.notify(t, publicRegion)
	})
	w.wantConnections("confirmations", public, func() {
		for i, host := range append(slices.Clone(hosts.Bad), publicHosts...) {
			m := snsrig.Message{"Type": "SubscriptionConfirmation", "MessageId": "m", "TopicArn": "arn:aws:sns:us-east-1:000000000000:local",
				"Message": "x", "Token": "t", "SubscribeURL": fmt.Sprintf("https://%s:%d/", host, worldPort)}
			if a := g.postSNS(fmt.Sprintf("emulator%d", i%emulators), m); a.status < 400 {
				t.Errorf("a subscription confirmed at %q = %d %q, want it refused", host, a.status, a.body)
			}
		}
	})
	w.wantConnections("doctor", public, func() {
		got := run(t, w.command(g.command("doctor")))
		if n := strings.Count(got.stdout, "is an address that nothing is sent to"); got.code != 1 || n < 2*len(bad) {
			t.Errorf("doctor: exit code %d, refuses %d addresses, want 1 and at least %d\n%s", got.code, n, 2*len(bad), got.stderr)
		}
	})
	g.stop()
	db := g.ledger()
	for where, want := range map[string]int{
		`status = 'dead' AND last_error LIKE 'blocked: %'`: 3 * len(bad),
		`status = 'completed'`:                             2 * len(publicHosts),
		`status = 'dead'`:                                  3*len(bad) + len(publicHosts), // the public server speaks no gRPC
	} {
		if n := db.count(`SELECT COUNT(*) FROM jobs WHERE ` + where); n != want {
			t.Errorf("jobs with %s: %d, want %d", where, n, want)
		}
	}
}

// TestPrivateAddressesAllowed: server.allow_private_urls allows the machine and its network,
// but no metadata service of a cloud.
func TestPrivateAddressesAllowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, zoneOf(nil))
	w.listen(worldPort)
	var places, want []string
	for _, host := range dialable(t) {
		a, err := netip.ParseAddr(strings.Trim(host, "[]"))
		if err != nil {
			continue // a name
		}
		places = append(places, host)
		const broadcast = "127.255.255.255" // no connection to it is possible
		if isPrivate(a.Unmap()) && host != broadcast {
			want = append(want, netip.AddrPortFrom(a.Unmap(), worldPort).String())
		}
	}
	slices.Sort(want)
	want = slices.Compact(want)
	if len(want) < 10 || len(want) > len(places)/2 {
		t.Fatalf("%d of %d addresses are private: %q", len(want), len(places), want)
	}
	g := newGateway(t, tellPlaces(true, places), nil)
	w.start(g)
	w.wantConnections("handlers", want, func() {
		g.send("/events/order.created", `{}`)
		g.awaitDone(60 * time.Second)
	})
	w.wantConnections("alerts", want, func() {
		g.post("/webhooks/github", `{}`, "X-Hub-Signature-256", "sha256="+strings.Repeat("0", 64))
		g.awaitDone(60 * time.Second)
	})
	w.wantConnections("doctor", want, func() { run(t, w.command(g.command("doctor"))) })
	g.stop()
}

// isPrivate reports whether server.allow_private_urls allows an address.
func isPrivate(a netip.Addr) bool {
	for _, never := range []string{"100.100.100.200/32", "fd00:ec2::/32", "fd20:ce::254/128", "fd00:42::42/128", "fd00:c1::a9fe:a9fe/128"} {
		if netip.MustParsePrefix(never).Contains(a) {
			return false
		}
	}
	return a.IsPrivate() || a.IsLoopback() || netip.MustParsePrefix("100.64.0.0/10").Contains(a)
}

const rebindConfig = `
server:
  host: 127.0.0.1
  port: ${PORT}
delivery: {timeout: 5s, default_retry: {max: 20, backoff: fixed, interval: 1ms}}
worker: {max_concurrency: 1} # so that each second attempt succeeds, and no breaker opens
sources:
  turns: {type: webhook}
  app: {type: event}
  emulator: {type: sns, skip_verify: true}
handlers:
  turns: {source: turns, url: "http://turns.test:8080/"}
  both: {source: app, url: "http://both.test:8080/"}
  after: {source: app, url: "http://after.test:8080/"}
  alias: {source: app, url: "http://alias.test:8080/", retry: {max: 3, backoff: fixed, interval: 1ms}}
  mapped: {source: app, url: "http://mapped.test:8080/", retry: {max: 3, backoff: fixed, interval: 1ms}}
  wrapped: {source: app, url: "http://wrapped.test:8080/", retry: {max: 3, backoff: fixed, interval: 1ms}}
  grpc: {source: app, type: grpc, url: "http://grpc.test:8080", retry: {max: 4, backoff: fixed, interval: 1ms}}
`

// TestRebinding: a DNS name changes its address at each second lookup. The gateway connects to
// the public address, and never to the private one.
func TestRebinding(t *testing.T) {
	t.Parallel()
	const public = "8.8.8.8"
	w := newWorld(t, func(name string, n int) []string {
		switch name {
		case "turns.test", "grpc.test", "sns.test":
			return [][]string{{public}, {"127.0.0.1", "169.254.169.254", "fd00::1"}}[(n-1)%2]
		case "both.test":
			return []string{public, "127.0.0.1", "::1"}
		case "after.test":
			return []string{"192.168.0.1", "127.0.0.1", public}
		case "alias.test":
			return []string{"localhost"}
		case "localhost":
			return []string{"127.0.0.1", "::1"}
		case "mapped.test":
			return []string{"::ffff:127.0.0.1"}
		case "wrapped.test":
			return []string{"64:ff9b::7f00:1", "2002:7f00:1::", "::127.0.0.1"}
		}
		return nil
	})
	w.listen(worldPort)
	g := newGateway(t, rebindConfig, nil)
	w.start(g)
	rounds := 990 // with the other jobs, as many as one list shows
	if testing.Short() {
		rounds = 100
	}
	event := g.send("/events/order.created", `{}`)
	for range rounds {
		if a := g.post("/webhooks/turns", `{}`); a.status != http.StatusOK {
			t.Fatalf("an event is answered %d %q", a.status, a.body)
		}
	}
	for range rounds / 5 {
		m := snsrig.Message{"Type": "SubscriptionConfirmation", "MessageId": "m", "TopicArn": "arn:aws:sns:us-east-1:000000000000:local",
			"Message": "x", "Token": "t", "SubscribeURL": "https://sns.test:8080/"}
		if a := g.postSNS("emulator", m); a.status < 400 {
			t.Errorf("a subscription is confirmed: %d %q", a.status, a.body)
		}
	}
	g.awaitDone(90 * time.Second)
	told := g.storiesOf(event)
	for handler, want := range map[string]string{
		"both": "", "after": "", "alias": "blocked: ", "mapped": "blocked: ", "wrapped": "blocked: ", "grpc": "blocked: ",
	} {
		s := told[handler]
		if s.Status != map[bool]string{true: "completed", false: "dead"}[want == ""] || !strings.HasPrefix(s.LastError, want) {
			t.Errorf("%s: %s, %q, want error %q", handler, s.Status, s.LastError, want)
		}
	}
	g.stop()
	seen, n := w.connected()
	if !slices.Equal(seen, []string{public + ":8080"}) {
		t.Errorf("connected to %q, want %s alone", seen, public)
	}
	db := g.ledger()
	blocked := db.count(`SELECT COUNT(*) FROM attempts WHERE error LIKE 'blocked: %'`)
	if done := db.count(`SELECT COUNT(*) FROM jobs WHERE lane = 'handler/turns' AND status = 'completed'`); done != rounds || blocked < rounds-1 {
		t.Errorf("%d of %d deliveries completed, %d attempts were blocked, want all and at least %d", done, rounds, blocked, rounds-1)
	}
	t.Logf("%d attempts were blocked, %d connections made, all to %s", blocked, n, public)
}

// wantConnections requires that f connects to these addresses and to no other.
func (w *world) wantConnections(what string, want []string, f func()) {
	w.t.Helper()
	f()
	slices.Sort(want)
	var seen []string
	wait.Until(5*time.Second, func() bool {
		more, _ := w.connected()
		seen = append(seen, more...)
		slices.Sort(seen)
		seen = slices.Compact(seen)
		return len(seen) >= len(want)
	})
	if !slices.Equal(seen, want) {
		w.t.Errorf("%s: connected to %q, want %q", what, seen, want)
	}
}

func checkBlocked(t *testing.T, host string, s story) {
	t.Helper()
	if s.Status != "dead" || s.Attempt != 1 || len(s.Attempts) != 1 || !strings.HasPrefix(s.LastError, "blocked: ") {
		t.Errorf("%s: %s after attempt %d, %q, want it dead and blocked", host, s.Status, s.Attempt, s.LastError)
	}
}

// addressesOf returns the hosts that are addresses.
func addressesOf(hosts []string) (all []string) {
	for _, host := range hosts {
		if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
			all = append(all, a.String())
		}
	}
	return all
}

func inGroups(all []string, of int) [][]string { return slices.Collect(slices.Chunk(all, of)) }

// regionHost returns a host name of SNS for each group of addresses. Groups are necessary,
// since the gateway fetches only a few unknown certificates.
func regionHost(group int) string { return fmt.Sprintf("sns.xx-%c-1.amazonaws.com", 'a'+group) }

const publicRegion = "sns.xx-public-1.amazonaws.com"

// zoneOf resolves the hosts of the groups, a public host, and the machine itself.
func zoneOf(groups [][]string) func(string, int) []string {
	return func(name string, _ int) []string {
		for i, group := range groups {
			if name == regionHost(i) {
				return group
			}
		}
		switch {
		case name == "public.test" || name == publicRegion:
			return []string{"9.9.9.9"}
		case strings.Contains(name, "localhost"):
			return []string{"127.0.0.1", "::1"}
		}
		return nil
	}
}

// notify posts a message whose certificate is at an SNS host.
func (g *gateway) notify(t *testing.T, host string) {
	t.Helper()
	region := strings.TrimSuffix(strings.TrimPrefix(host, "sns."), ".amazonaws.com")
	a := g.postSNS("topic", snsrig.Message{"Type": "Notification", "MessageId": "m", "TopicArn": "arn:aws:sns:" + region + ":123456789012:orders",
		"Message": "x", "Timestamp": time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), "SignatureVersion": "2", "Signature": "eA==",
		"SigningCertURL": "https://" + host + "/SimpleNotificationService-0123456789abcdef0123456789abcdef.pem"})
	wantAnswer(t, "a message with a certificate at "+host, a, http.StatusInternalServerError, "Verification error")
}
