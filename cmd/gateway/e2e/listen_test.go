//go:build linux

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/ports"
	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/servers"
	"github.com/eventgateway/gateway/infra/test/wait"
)

const (
	listenKey   = "a signing key of one handler"
	readToken   = "a-token-that-reads-and-no-more"
	senderToken = "a-token-that-sends-and-no-more"
)

var listenConfig = `
server:
  host: 127.0.0.1
  port: ${PORT}
  allow_private_urls: true
api:
  tokens:
    - {name: laptop, token: ` + readToken + `, role: read}
    - {name: shop, token: ` + senderToken + `, role: send}
sources: {app: {type: event}, other: {type: event}}
handlers:
  orders:
    source: app
    events: ["order.*"]
    filter: $.total > 10
    transform: '{"sum": {{ $.total }}}'
    headers: {x-shop: north}
    signing_secret: ` + base64Secret(listenKey) + `
    url: ${RECEIVER}/prod
`

// A laptop is a server at a fixed address that is stopped and started again. A receiver answers.
type laptop struct {
	t    *testing.T
	port *ports.Port
	to   *receiver.Receiver
	*http.Server
}

func newLaptop(t *testing.T, to *receiver.Receiver) *laptop {
	t.Helper()
	l := &laptop{t: t, port: ports.New(t), to: to}
	if err := l.port.Lend(); err != nil {
		t.Fatal(err)
	}
	l.start()
	return l
}

func (l *laptop) start() {
	l.t.Helper()
	listener, err := l.port.Listen()
	if err != nil {
		l.t.Fatal(err)
	}
	l.Server = &http.Server{Handler: l.to}
	go func(s *http.Server, on net.Listener) { _ = s.Serve(on) }(l.Server, listener)
	l.t.Cleanup(l.stop)
}

func (l *laptop) stop() { _ = l.Server.Close() }

func (l *laptop) url() string { return "http://" + l.port.Addr() + "/hooks" }

// listener starts "gateway listen" with a token that may only read, and waits until it listens.
func (g *gateway) listener(to string, more ...string) *process {
	g.t.Helper()
	c := g.command(append([]string{"listen", "--url", g.url(""), "--to", to}, more...)...)
	c.env = append(c.env, "GATEWAY_TOKEN="+readToken)
	p := spawn(g.t, c)
	p.awaitLine("listening to " + g.url(""))
	return p
}

// awaitLine waits until the process has printed a text.
func (p *process) awaitLine(text string) {
	p.t.Helper()
	wait.For(p.t, 20*time.Second, "the process prints "+text, func() bool { return strings.Contains(p.log.String(), text) })
}

// eventsOf returns the ids of the delivered events.
func eventsOf(all []receiver.Delivery) (ids []string) {
	for _, d := range all {
		ids = append(ids, d.Event())
	}
	return ids
}

// TestListen: a listen beside a laptop whose server fails, hangs and is restarted, and beside a
// gateway that is killed. Each event of the handler is posted once, in order, as the gateway's own
// delivery, and the gateway does not notice.
func TestListen(t *testing.T) {
	t.Parallel()
	r := receiver.New(t)
	r.On("/hooks", func(n int, w http.ResponseWriter, q *http.Request) {
		switch n {
		case 2:
			http.Error(w, "KeyError: 'total'\nin line 7", http.StatusInternalServerError)
		case 3:
			r.Hanging()(n, w, q)
		case 5:
			r.Taking(1500*time.Millisecond)(n, w, q)
		}
	})
	g := newGateway(t, listenConfig, r)
	g.start()
	desk := newLaptop(t, r)
	order := func(total int) string {
		return g.send("/events/app/order.created", fmt.Sprintf(`{"total": %d, "text": "ü"}`, total), bearer(senderToken)...)
	}
	order(100) // before it listens

	p := g.listener(desk.url(), "--handler", "orders", "--timeout", "2s")
	g.send("/events/other/order.created", `{"total": 100}`, bearer(senderToken)...)
	g.send("/events/app/refund", `{"total": 100}`, bearer(senderToken)...)
	order(10)
	sent := []string{order(11), order(12), order(13)}
	p.awaitLine("no answer within 2s")

	desk.stop()
	sent = append(sent, order(14))
	p.awaitLine("nothing answers at " + desk.url() + " (connect: connection refused); trying again for 30s")
	desk.start()
	r.Await(t, 10*time.Second, "/hooks", 4)

	// The next event is under way and another one waits when the gateway dies.
	sent = append(sent, order(15), order(16))
	r.Await(t, 10*time.Second, "/hooks", 5)
	r.Await(t, 10*time.Second, "/prod", 7)
	wait.For(t, 5*time.Second, "the outcomes are stored", func() bool {
		return !slices.ContainsFunc(g.jobs(), func(j job) bool { return j.Status != "completed" })
	})
	g.kill()
	p.awaitLine("; trying again\n")
	g.start()
	sent = append(sent, order(17))
	p.awaitLine("connected again")
	got := r.Await(t, 10*time.Second, "/hooks", 7)
	p.awaitLine(sent[6] + "  order.created  ->  200")
	if ids := eventsOf(got); !slices.Equal(ids, sent) {
		t.Errorf("posted the events\n%q\nwant\n%q", ids, sent)
	}
	g.likeDelivered(r, got)
	t.Run("signature", func(t *testing.T) {
		clients := servers.Clients(t)
		for _, d := range got {
			if err := clients.Verify("standardwebhooks", base64Secret(listenKey), asSigned(d)); err != nil {
				t.Errorf("the signature of event %s: %v", d.Event(), err)
			}
		}
	})
	p.signal(syscall.SIGINT)
	if code := p.wait(10 * time.Second); code != 130 {
		t.Errorf("exit code = %d, want 130", code)
	}
	listenTold(t, p.log.String(), sent)
	g.undisturbed()

	// It goes on after the last event.
	last := order(18)
	again := g.listener(desk.url(), "--handler", "orders", "--after", sent[6])
	again.awaitLine(last + "  order.created  ->  200")
	if ids := eventsOf(r.At("/hooks")); !slices.Equal(ids, append(sent, last)) {
		t.Errorf("posted the events\n%q\nwant\n%q", ids, append(sent, last))
	}
}

// likeDelivered requires that listen makes the same deliveries as the gateway itself: the same body
// and headers, but for the time of the signature.
func (g *gateway) likeDelivered(r *receiver.Receiver, got []receiver.Delivery) {
	g.t.Helper()
	own := map[string]receiver.Delivery{}
	for _, d := range r.Await(g.t, 10*time.Second, "/prod", 8) {
		own[d.Event()] = d
	}
	for _, d := range got {
		want, as := own[d.Event()], d.Header.Clone()
		// These depend on the time.
		for _, name := range []string{"Webhook-Timestamp", "Webhook-Signature"} {
			as.Set(name, want.Header.Get(name))
		}
		if d.Body != want.Body || fmt.Sprint(as) != fmt.Sprint(want.Header) || d.Method != want.Method {
			g.t.Errorf("listen posted\n%s %v\n%s\nwhere the gateway delivered\n%s %v\n%s", d.Method, d.Header, d.Body, want.Method, want.Header, want.Body)
		}
	}
}

// listenTold requires a line for each event, with the answers of TestListen, and the summary.
func listenTold(t *testing.T, said string, sent []string) {
	t.Helper()
	for i, want := range []string{"200", "500 Internal Server Error  [0-9.µms<]+  KeyError: 'total'", "timeout: no answer within 2s", "200", "200", "200", "200"} {
		line := regexp.MustCompile(`(?m)^[0-9T:.-]+  ` + sent[i] + `  order.created  ->  ` + want)
		if n := len(line.FindAllString(said, -1)); n != 1 || strings.Count(said, "  "+sent[i]+"  ") != 1 {
			t.Errorf("%d lines of event %d, want one with %s:\n%s", n, i, want, said)
		}
	}
	for _, want := range []string{
		"posted 7 events: 5 delivered, 2 failed; 2 not wanted; nothing was settled\n",
		" --after " + sent[6] + "\n", "gateway: interrupted\n",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("said\n%s\nwant %q", said, want)
		}
	}
}

// undisturbed requires that the gateway has delivered each event once to its own handler, also if
// the laptop answered with an error.
func (g *gateway) undisturbed() {
	g.t.Helper()
	g.awaitIdle(10 * time.Second)
	jobs := g.jobs()
	for _, j := range jobs {
		if j.Status != "completed" || j.Attempt != 1 {
			g.t.Errorf("job %+v, want it completed at its first attempt", j)
		}
	}
	if len(jobs) != 8 {
		g.t.Errorf("%d jobs, want 8", len(jobs))
	}
}
