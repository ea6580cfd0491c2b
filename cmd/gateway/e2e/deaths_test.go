//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/ports"
	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// deathServer is the beginning of all configurations in this file. Each has as many handlers
// for an event as places for alerts about dead jobs. So every event has the same number of
// jobs, including alerts.
const deathServer = `
server:
  host: 127.0.0.1
  port: ${PORT}
  allow_private_urls: true
sources: {app: {type: event}}
`

const deathConfig = deathServer + `
delivery: {timeout: 5s, default_retry: {max: 5, backoff: fixed, interval: 100ms}}
handlers:
  broken: {source: app, url: "${RECEIVER}/broken", retry: {max: 2, backoff: fixed, interval: 100ms}}
  flaky: {source: app, url: "${RECEIVER}/flaky", retry: {max: 2, backoff: fixed, interval: 100ms}}
  fine: {source: app, url: "${RECEIVER}/fine"}
alerts:
  - {url: "${RECEIVER}/generic", on: [dlq]}
  - {url: "${RECEIVER}/slack", type: slack, on: [dlq, verification_failure]}
  - {url: "${RECEIVER}/discord", type: discord, on: [dlq]}
  - {url: "${RECEIVER}/others", on: [verification_failure]}
`

// TestDeaths: of three jobs one becomes dead. Each place gets one alert about it, also a place
// that fails at first. The command in the alert works.
func TestDeaths(t *testing.T) {
	t.Parallel()
	r := receiver.New(t)
	g := newGateway(t, deathConfig, r)
	r.On("/broken", receiver.Failing(1000))
	r.On("/flaky", receiver.Failing(1))
	r.On("/slack", receiver.Failing(2))
	g.start()
	event := g.send("/events/order.created", `{"card":"4111"}`)
	generic := r.Await(t, 10*time.Second, "/generic", 1)[0]
	slacks := r.Await(t, 20*time.Second, "/slack", 3)
	discord := r.Await(t, 10*time.Second, "/discord", 1)[0]
	job := r.At("/broken")[0].Job()

	var told map[string]any
	if err := json.Unmarshal([]byte(generic.Body), &told); err != nil {
		t.Fatalf("generic alert %s: %v", generic.Body, err)
	}
	if at, _ := told["created_at"].(string); at == "" {
		t.Errorf("generic alert %s, want created_at", generic.Body)
	}
	message, _ := told["message"].(string)
	delete(told, "created_at")
	want := map[string]any{
		"alert": "dlq", "source": "app", "event_id": event, "event_type": "order.created", "handler": "broken",
		"job_id": job, "attempts": 2.0, "error": "status: 500 Internal Server Error",
		"message": fmt.Sprintf(`Job %s for handler "broken" is dead after 2 attempts: status: 500 Internal Server Error. `+
			`To try it again: gateway jobs retry %[1]s`, job),
	}
	if !maps.Equal(told, want) {
		t.Errorf("generic alert %v\nwant          %v", told, want)
	}
	checkChat(t, message, slacks[2], discord)
	for i := range 2 { // the retries themselves are due sooner, but Slack limits the rate
		if apart := slacks[i+1].At.Sub(slacks[i].At); apart < 500*time.Millisecond {
			t.Errorf("posts to Slack are %v apart, want about a second", apart)
		}
	}

	r.On("/broken", nil)
	_, help, _ := strings.Cut(message, "To try it again: gateway ")
	g.run(strings.Fields(help)...)
	if tried := r.Await(t, 10*time.Second, "/broken", 3)[2]; tried.Job() != job {
		t.Errorf("%q tried job %s, want %s", help, tried.Job(), job)
	}
	g.awaitIdle(10 * time.Second)
	g.stop()
	for path, want := range map[string]int{"/broken": 3, "/flaky": 2, "/fine": 1, "/generic": 1, "/slack": 3, "/discord": 1, "/others": 0} {
		if got := len(r.At(path)); got != want {
			t.Errorf("deliveries to %s = %d, want %d", path, got, want)
		}
	}
	g.ledger().check(3)
}

// checkChat compares the bodies for chat services with the message of the generic alert. The
// message has no characters that the services escape.
func checkChat(t *testing.T, message string, slack, discord receiver.Delivery) {
	t.Helper()
	var s struct{ Text string }
	if err := json.Unmarshal([]byte(slack.Body), &s); err != nil || !strings.HasPrefix(s.Text, message+"\n") {
		t.Errorf("slack alert %s: %v, want the message %q", slack.Body, err, message)
	}
	var d struct {
		Content  string
		Mentions struct{ Parse []string } `json:"allowed_mentions"`
	}
	if err := json.Unmarshal([]byte(discord.Body), &d); err != nil || d.Content != message || d.Mentions.Parse == nil {
		t.Errorf("discord alert %s: %v, want the message %q and no mentions", discord.Body, err, message)
	}
	for _, body := range []string{slack.Body, discord.Body} {
		if strings.Contains(body, "4111") {
			t.Errorf("alert %s holds some of the payload", body)
		}
	}
}

// TestAlertToAbsentReceiver: an alert for a place that does not answer is delivered once the place
// answers, by any later process.
func TestAlertToAbsentReceiver(t *testing.T) {
	t.Parallel()
	r := receiver.New(t)
	r.On("/broken", receiver.Failing(1000))
	place := ports.New(t)
	g := newGateway(t, deathServer+`
delivery: {timeout: 1s, default_retry: {max: 100, backoff: fixed, interval: 200ms}}
handlers: {broken: {source: app, url: "${RECEIVER}/broken", retry: {max: 2, backoff: fixed, interval: 100ms}}}
alerts: {url: "http://${PLACE}/late", on: [dlq]}
`, r)
	g.env = append(g.env, "PLACE="+place.Addr())
	g.start()
	g.send("/events/order.created", `{}`)
	wait.For(t, 10*time.Second, "an alert waits for its place", func() bool {
		return slices.ContainsFunc(g.jobs("--status", "retryable"), func(j job) bool {
			return strings.HasPrefix(j.Handler, "alert/") && strings.HasPrefix(*j.LastError, "connect: ")
		})
	})
	g.kill()

	l, err := place.Listen()
	if err != nil {
		t.Fatal(err)
	}
	late := httptest.NewUnstartedServer(r)
	late.Listener.Close()
	late.Listener = l
	late.Start()
	t.Cleanup(late.Close)
	g.start()
	r.Await(t, 10*time.Second, "/late", 1)
	g.awaitIdle(10 * time.Second)
	g.stop()
	checkTold(t, g.ledger(), r.At("/late"), 1)
	g.ledger().check(1)
}

// TestDeadAlert: an alert that becomes dead causes no other alert.
func TestDeadAlert(t *testing.T) {
	t.Parallel()
	r := receiver.New(t)
	r.On("/broken", receiver.Failing(1000))
	r.On("/gone", receiver.Failing(1000))
	g := newGateway(t, deathServer+`
delivery: {timeout: 5s, default_retry: {max: 2, backoff: fixed, interval: 100ms}}
handlers: {broken: {source: app, url: "${RECEIVER}/broken"}, fine: {source: app, url: "${RECEIVER}/fine"}}
alerts: [{url: "${RECEIVER}/gone", on: [dlq]}, {url: "${RECEIVER}/there", on: [dlq]}]
`, r)
	g.start()
	g.send("/events/order.created", `{}`)
	r.Await(t, 10*time.Second, "/gone", 2)
	var dead []job
	wait.For(t, 10*time.Second, "two dead jobs", func() bool {
		dead = g.jobs("--status", "dead")
		return len(dead) == 2
	})
	g.awaitIdle(10 * time.Second)
	g.stop()
	if dead[0].Handler == "broken" || dead[1].Handler != "broken" || !strings.HasPrefix(dead[0].Handler, "alert/") {
		t.Errorf("dead jobs %+v, want the alert and the handler's", dead)
	}
	if n := len(r.At("/gone")); n != 2 {
		t.Errorf("deliveries to /gone = %d, want 2", n)
	}
	db := g.ledger()
	checkTold(t, db, r.At("/there"), 1)
	db.check(2)
}

// deathPairs is the number of pairs of handlers. Both handlers of a pair match the same
// events.
const deathPairs = 10

// deathsConfig has many handlers, since a breaker opens for a handler that fails often.
func deathsConfig() string {
	var b strings.Builder
	b.WriteString(deathServer + `
delivery: {timeout: 5s, default_retry: {max: 100, backoff: fixed, interval: 100ms}}
worker: {max_concurrency: 10, batch_size: 10}
alerts: [{url: "${RECEIVER}/one", on: [dlq]}, {url: "${RECEIVER}/other", on: [dlq]}]
handlers:
`)
	for i := range deathPairs {
		for _, half := range []string{"a", "b"} {
			fmt.Fprintf(&b, "  h%[1]d%[2]s: {source: app, events: [bad.%[1]d, good.%[1]d], url: \"${RECEIVER}/h%[1]d%[2]s\", "+
				"retry: {max: 2, backoff: fixed, interval: 100ms}}\n", i, half)
		}
	}
	return b.String()
}

// closeBreakers resets the failures of handlers in the database of a gateway that does not
// run. A kill may lose the success between two failures, and five failures in a row pause a
// handler for a minute.
func closeBreakers(t *testing.T, g *gateway) {
	t.Helper()
	db := openLedger(t, g.database())
	defer db.close()
	if _, err := db.db.Exec(`UPDATE gates SET failures = 0, open_until = 0, taker = ''`); err != nil {
		t.Fatal(err)
	}
}

// TestDeathsAndKills: after any number of kills, there is an alert about each dead job and
// about no other job.
func TestDeathsAndKills(t *testing.T) {
	t.Parallel()
	r := receiver.New(t)
	last := make(chan struct{}, 10_000) // receives at each last attempt
	for i := range deathPairs {
		for _, half := range []string{"a", "b"} {
			r.On(fmt.Sprintf("/h%d%s", i, half), func(_ int, w http.ResponseWriter, req *http.Request) {
				if !strings.HasPrefix(req.Header.Get("X-Gateway-Event-Type"), "bad.") {
					return // a success, so that failures of different rounds are not in a row
				}
				if req.Header.Get("X-Gateway-Attempt") == "2" {
					last <- struct{}{}
				}
				http.Error(w, "not now", http.StatusInternalServerError)
			})
		}
	}
	g := newGateway(t, deathsConfig(), r)
	g.env = append(g.env, "GATEWAY_LOG=warn")
	rounds := kills(t)
	for range rounds {
		g.start()
		for i := range deathPairs {
			g.send(fmt.Sprintf("/events/good.%d", i), `{}`)
			g.send(fmt.Sprintf("/events/bad.%d", i), `{}`)
		}
		awaitLast(last, 1+rand.IntN(2*deathPairs))
		<-time.After(rand.N(10 * time.Millisecond)) // at any time between the answer, the commit and the alert
		g.kill()
		closeBreakers(t, g)
	}
	g.start()
	g.awaitIdle(90 * time.Second)
	g.stop()

	db := g.ledger()
	db.check(2)
	deaths := 2 * deathPairs * rounds
	t.Logf("kills %d, deaths %d, of these by an expired lease %d; alerts posted %d and %d times", rounds, deaths,
		db.count(`SELECT COUNT(*) FROM jobs WHERE status = 'dead' AND last_error LIKE 'lease expired%'`), len(r.At("/one")), len(r.At("/other")))
	checkTold(t, db, r.At("/one"), deaths)
	checkTold(t, db, r.At("/other"), deaths)
	if n := db.count(`SELECT COUNT(*) FROM jobs WHERE lane LIKE 'alert/%' AND status <> 'completed'`); n != 0 {
		t.Errorf("alerts that are not completed: %d, want 0", n)
	}
}

// awaitLast waits until n jobs are at their last attempt, for at most 2 s: a kill may have
// come in between.
func awaitLast(last <-chan struct{}, n int) {
	limit := time.After(2 * time.Second)
	for range n {
		select {
		case <-last:
		case <-limit:
			return
		}
	}
}

// checkTold compares the alerts of a place with the dead jobs: each dead job has one alert. An
// alert may be delivered again, like any job.
func checkTold(t *testing.T, db *ledger, deliveries []receiver.Delivery, deaths int) {
	t.Helper()
	dead := map[string]bool{}
	for _, id := range db.column(`SELECT id FROM jobs WHERE status = 'dead' AND lane LIKE 'handler/%'`) {
		dead[id] = true
	}
	by := map[string]string{} // the id of the alert by the id of its job
	for _, d := range deliveries {
		var told struct {
			Alert, Handler, Error string
			Attempts              int
			JobID                 string `json:"job_id"`
		}
		if err := json.Unmarshal([]byte(d.Body), &told); err != nil || told.Alert != "dlq" || told.Handler == "" || told.Error == "" || told.Attempts != 2 {
			t.Errorf("alert %s: %v", d.Body, err)
		}
		if first, known := by[told.JobID]; known && first != d.Event() {
			t.Errorf("alerts %s and %s tell of job %s", first, d.Event(), told.JobID)
		}
		by[told.JobID] = d.Event()
		if !dead[told.JobID] {
			t.Errorf("alert %s tells of job %s, which is not dead", d.Event(), told.JobID)
		}
	}
	if len(dead) != deaths || len(by) != deaths {
		t.Errorf("%d jobs are dead, %d were told of, want %d of both", len(dead), len(by), deaths)
	}
	if n := db.count(`SELECT COUNT(*) FROM events WHERE source = '_alerts'`); n != deaths {
		t.Errorf("alerts stored: %d, want %d", n, deaths)
	}
}
