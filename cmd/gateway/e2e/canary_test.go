//go:build linux

package e2e

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/infra/test/otlp"
	"github.com/eventgateway/gateway/infra/test/receiver"
)

// canaryHomes are the places where secrets belong.
var canaryHomes = []home{
	{"handlers.works.*", "delivery /works", "a handler gets its configured secrets"},
	{"handlers.fails.*", "delivery /fails", "a handler gets its configured secrets"},
	{"handlers.leads.url", "delivery /leads", "a handler gets its configured secrets"},
	{"handlers.slow.url", "delivery /slow", "a handler gets its configured secrets"},
	{"workflows.call.*", "delivery /call", "the receiver of a step gets its configured secrets"},
	{"workflows.ask.*", "delivery /ask", "the receiver of a step gets its configured secrets"},
	{"workflows.branch.*", "delivery /branch", "the receiver of a step gets its configured secrets"},
	{"workflows.item.*", "delivery /item", "the receiver of a step gets its configured secrets"},
	{"workflows.fail.*", "delivery /failing-step", "the receiver of a step gets its configured secrets"},
	{"workflows.call.headers literal", "database definitions.body", "runs follow a workflow as it is written"},
	{"workflows.call.headers literal", "file *", "runs follow a workflow as it is written"},
	{"handlers.repeats.*", "delivery /repeats", "a handler gets its configured secrets"},
	{"handlers.repeats.*", "database attempts.response", "the handler repeats it, and replies of handlers are stored"},
	{"handlers.repeats.*", "file *", "the handler repeats it"},
	{"handlers.repeats.*", "command inspect*", "the handler repeats it, and replies of handlers are shown"},
	{"alerts.generic *", "alert generic", "it is its address"},
	{"alerts.slack", "alert slack", "it is its address"},
	{"alerts.discord", "alert discord", "it is its address"},
	{"callback", "delivery /ask", "the receiver of the step gets the token of its callback"},
	{"receipt", "answer GET /api/queues/{name}/messages", "the consumer gets it"},
	{"receipt", "database jobs.lease", "it names a lease"},
	{"receipt", "file *", "it names a lease"},
	{"otel headers", "collector", "the collector gets its configured headers"},

	{"sent payload", "delivery *", "a consumer of an event gets its payload"},
	{"sent payload", "database events.payload", "events are stored"},
	{"sent payload", "database steps.*", "steps work on the payload"},
	{"sent payload", "file *", "events are stored"},
	{"sent payload", "answer GET /api/events/{id}", "it shows an event"},
	{"sent payload", "answer GET /api/export/events", "it shows events"},
	{"sent payload", "answer GET /api/workflow-runs/{id}", "it shows the input of steps"},
	{"sent payload", "answer GET /api/queues/{name}/*", "it shows messages"},
	{"sent payload", "command inspect*", "it shows an event"},
	{"sent payload", "command export*", "it shows events"},
	{"sent payload", "command queues peek*", "it shows messages"},
	{"sent payload", "command queues dlq*", "it shows messages"},
	{"sent payload", "command workflow-runs inspect*", "it shows the input of steps"},
	{"sent ce-extension", "delivery *", "extensions of CloudEvents are passed on"},
	{"sent ce-extension", "database events.headers", "extensions are stored with the event"},
	{"sent ce-extension", "file *", "extensions are stored with the event"},
	{"sent ce-extension", "answer GET /api/events/{id}", "extensions are shown with the event"},
	{"sent ce-extension", "answer GET /api/export/events", "extensions are shown with the event"},
	{"sent ce-extension", "answer GET /api/queues/{name}/*", "extensions are shown with the message"},
	{"sent ce-extension", "command inspect*", "extensions are shown with the event"},
	{"sent ce-extension", "command export*", "extensions are shown with the event"},
	{"sent ce-extension", "command queues peek*", "extensions are shown with the message"},
	{"sent ce-extension", "command queues dlq*", "extensions are shown with the message"},
	{"sent idempotency-key", "database events.*", "it identifies repeats"},
	{"sent idempotency-key", "file *", "it identifies repeats"},
	{"sent idempotency-key", "answer GET /api/events*", "it is shown with the event"},
	{"sent idempotency-key", "answer GET /api/queues/{name}/*", "it is shown with the message"},
	{"sent idempotency-key", "answer GET /api/export/events", "it is shown with the event"},
	{"sent idempotency-key", "answer GET /api/tail", "it is shown with the event"},
	{"sent idempotency-key", "command events list*", "it is shown with the event"},
	{"sent idempotency-key", "command inspect*", "it is shown with the event"},
	{"sent idempotency-key", "command export*", "it is shown with the event"},
	{"sent idempotency-key", "command tail*", "it is shown with the event"},
	{"sent idempotency-key", "command listen*", "it is shown with the event"},
	{"sent idempotency-key", "command queues peek*", "it is shown with the message"},
	{"sent idempotency-key", "command queues dlq*", "it is shown with the message"},
	{"echoed payload", "log", "the echo receiver logs payloads"},
	{"echoed payload", "database events.payload", "events are stored"},
	{"echoed payload", "file *", "events are stored"},
	{"echoed payload", "answer GET /api/export/events", "it shows events"},
	{"echoed payload", "command export*", "it shows events"},
	{"echoed payload", "delivery /leads", "listen without a handler posts the events of all sources"},
	{"listen --to", "delivery *", "it is the address to which listen posts"},
	{"answered call", "delivery *", "the reply to a step is the input of the next step"},
	{"answered call", "database steps.*", "the reply to a step is the input of the next step"},
	{"answered *", "database attempts.response", "replies of handlers are stored"},
	{"answered *", "database jobs.success", "replies of handlers are stored"},
	{"answered *", "file *", "replies of handlers are stored"},
	{"answered *", "answer GET /api/*", "replies of handlers are shown"},
	{"answered *", "command inspect*", "replies of handlers are shown"},
	{"answered *", "command listen*", "replies of the server are shown"},
	{"answered *", "command workflow-runs inspect*", "replies of handlers are shown"},
}

// A cage is a gateway full of canaries, with its handlers and its collector.
type cage struct {
	*gateway
	t         *testing.T
	haul      *haul
	receiver  *receiver.Receiver
	collector *otlp.Collector
	ids       map[string]string // an id of each kind of record
}

// newCage starts a gateway on a database, with a canary in each setting.
func newCage(t *testing.T, st *store) *cage {
	c := &cage{t: t, haul: newHaul(), receiver: receiver.New(t), collector: otlp.New(t), ids: map[string]string{}}
	database := ""
	if st != nil {
		database = st.yaml
		c.haul.guard(t, st)
	}
	c.gateway = newGateway(t, "", c.receiver)
	c.haul.furnish(c.gateway, database)
	untrusted := httptest.NewUnstartedServer(c.receiver)
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0) // the server's errors about distrust are expected
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	raw := receiver.New(t)
	raw.On("/", func(_ int, w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_, _ = conn.Write([]byte("this is no HTTP\r\n\r\n"))
			conn.Close()
		}
	})
	c.env = append(c.env, "TLS="+untrusted.URL, "RAW="+raw.URL(), "GATEWAY_LOG=trace",
		"OTEL_EXPORTER_OTLP_ENDPOINT="+c.collector.URL, "OTEL_BSP_SCHEDULE_DELAY=50", "OTEL_EXPORTER_OTLP_HEADERS=authorization="+c.haul.secret("otel headers"),
		"HTTPS_PROXY=http://user:"+c.haul.secret("proxy")+"@127.0.0.1:1", "UNRELATED_SECRET="+c.haul.secret("environment"))
	if st != nil {
		c.store = st
		c.env = append(append(c.env, "GATEWAY_LOG_FORMAT=json"), st.env...)
	}
	c.answers()
	return c
}

// answers makes the receivers answer with secrets of their own.
func (c *cage) answers() {
	c.receiver.On("/works", func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Set-Cookie", c.haul.secret("reply's cookie"))
		fmt.Fprint(w, "done: ", c.haul.secret("answered works"))
	})
	c.receiver.On("/fails", func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Www-Authenticate", c.haul.secret("reply's header"))
		http.Error(w, "failed: "+c.haul.secret("answered fails"), http.StatusInternalServerError)
	})
	c.receiver.On("/failing-step", func(_ int, w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "failed: "+c.haul.secret("answered failing-step"), http.StatusInternalServerError)
	})
	c.receiver.On("/leads", func(_ int, w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, c.receiver.URL()+"/elsewhere?key="+c.haul.secret("reply's location"), http.StatusFound)
	})
	c.receiver.On("/repeats", func(_ int, w http.ResponseWriter, r *http.Request) {
		http.Error(w, r.URL.RawQuery+" "+r.Header.Get("X-Key"), http.StatusBadRequest)
	})
	c.receiver.On("/slow", c.receiver.Hanging())
	c.receiver.On("/call", func(_ int, w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"answer": "%s"}`, c.haul.secret("answered call"))
	})
	for _, path := range []string{"/branch", "/item"} {
		c.receiver.On(path, func(_ int, w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"ok": true}`) })
	}
}

// serve starts the gateway. All of its log goes into a file.
func (c *cage) serve() {
	c.t.Helper()
	write(c.t, c.tokenFile(), c.haul.secret("api.auth_token")+"\n")
	line := c.command("-c", `exec "$0" start >>server.log 2>&1`, binary)
	line.name = "/bin/sh"
	c.process = spawn(c.t, line)
	c.awaitReady()
}

// do makes a request, and keeps the answer under the name of a route.
func (c *cage) do(route, method, path, body string, headers ...string) answer {
	c.t.Helper()
	a, err := fetch(oneShot, request{method: method, url: c.url(path), body: body, headers: headers})
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	c.haul.add("answer "+method+" "+route, a.body+"\n"+written(a.header))
	return a
}

func (c *cage) token() []string { return bearer(c.haul.secret("api.auth_token")) }

// everyForm reports whether the commands run in each form, as each kind of sender, and with wrong
// tokens and addresses. On SQLite alone: how a command prints, asks a gateway or explains a mistake
// is the same code on each database, and each command is a process.
func (c *cage) everyForm() bool { return c.store == nil }

// say runs a command on the database, with --json. In every form, it runs the command on the gateway
// too, with and without --json.
func (c *cage) say(args ...string) {
	c.t.Helper()
	if !c.everyForm() {
		c.sayOnce(append(slices.Clone(args), "--json")...)
		return
	}
	for _, more := range [][]string{nil, {"--json"}, {"--url", c.url(""), "--token-file", c.tokenFile()}, {"--url", c.url(""), "--token-file", c.tokenFile(), "--json"}} {
		c.sayOnce(append(slices.Clone(args), more...)...)
	}
}

// tokenFile is the file with the token of the API, which serve writes.
func (c *cage) tokenFile() string { return filepath.Join(c.dir, "token") }

func (c *cage) sayOnce(args ...string) result {
	c.t.Helper()
	r := runUnwatched(c.t, c.command(args...))
	c.haul.add("command "+c.shown(args), r.stdout+r.stderr)
	return r
}

// shown returns a command without the parts that differ between runs.
func (c *cage) shown(args []string) string {
	return strings.NewReplacer(c.dir, ".", c.url(""), "address").Replace(strings.Join(args, " "))
}

// TestCanaries: no secret leaks through any route, command, delivery or failure.
func TestCanaries(t *testing.T) {
	t.Parallel()
	places := []place{{"SQLite", ownFile}}
	if !testing.Short() {
		// Each way to D1 has secrets of its own.
		places = append(places, place{"PostgreSQL", onPostgres}, place{"MySQL", onMySQL}, place{"D1", onD1}, place{"D1 behind its proxy", onProxy})
	}
	for _, p := range places {
		t.Run(p.name, func(t *testing.T) {
			if len(places) > 1 { // with a single place, parallel running would only delay the test
				t.Parallel()
			}
			c := newCage(t, p.on(t))
			c.serve()
			c.sendAll()
			c.sendWrong()
			c.work()
			c.operate()
			c.everyRoute()
			c.empty()
			if c.everyForm() {
				c.everyCommand()
			}
			c.stop()
			c.gather()
			homes := canaryHomes
			if c.store != nil {
				homes = slices.DeleteFunc(slices.Clone(homes), func(h home) bool { return h.place == "file *" })
			}
			for _, wrong := range c.haul.judge(homes) {
				t.Error(wrong)
			}
		})
	}
}

// gather adds the log, the traces and the database after the gateway has stopped.
func (c *cage) gather() {
	c.t.Helper()
	log, err := os.ReadFile(filepath.Join(c.dir, "server.log"))
	if err != nil || !strings.Contains(string(log), "serving") {
		c.t.Fatalf("the log has %d bytes: %v", len(log), err)
	}
	c.haul.add("log", string(log))
	if len(c.collector.Spans()) == 0 {
		c.t.Error("no traces were exported")
	}
	c.haul.addSearch("traces", c.collector.Has)
	c.haul.add("collector", written(c.collector.Header()))
	for _, d := range below(c.receiver, "/") {
		c.haul.add(labelOf(d), d.Path+"?"+d.Query+"\n"+written(d.Header)+"\n"+d.Body)
	}
	c.gatherDatabase()
}

// labelOf returns the kind and the path of a delivery, without secret parts.
func labelOf(d receiver.Delivery) string {
	if parts := strings.Split(d.Path, "/"); parts[1] == "alert" {
		return "alert " + parts[2]
	}
	return "delivery " + d.Path
}

// gatherDatabase adds every value of every column, and all bytes of a database file.
func (c *cage) gatherDatabase() {
	c.t.Helper()
	if c.store == nil {
		files, err := filepath.Glob(c.database() + "*")
		if err != nil || len(files) == 0 {
			c.t.Fatalf("no database file: %v", err)
		}
		for _, name := range files {
			b, err := os.ReadFile(name)
			if err != nil {
				c.t.Fatal(err)
			}
			c.haul.add("file "+filepath.Base(name), string(b))
		}
	}
	name := ""
	if c.store != nil {
		name = c.store.name
	}
	for column, values := range c.ledger().values(name) {
		c.haul.add("database "+column, values)
	}
}
