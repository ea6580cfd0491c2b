//go:build linux

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// replace replaces the configuration in one step.
func (g *gateway) replace(config string) {
	g.t.Helper()
	path := filepath.Join(g.dir, "gateway.yaml")
	write(g.t, path+".new", config)
	if err := os.Rename(path+".new", path); err != nil {
		g.t.Fatal(err)
	}
}

// hangup makes the gateway reload, and waits for another log line that contains said. An empty
// config leaves the file unchanged.
func (g *gateway) hangup(config, said string) {
	g.t.Helper()
	before := strings.Count(g.log.String(), said)
	if config != "" {
		g.replace(config)
	}
	g.signal(syscall.SIGHUP)
	eventually(g.t, 30*time.Second, "the log says: "+said, func() bool { return strings.Count(g.log.String(), said) > before })
}

// ignores waits until /health says that the configuration is ignored in this state. With "" it
// waits until the configuration is not ignored.
func (g *gateway) ignores(state string) {
	g.t.Helper()
	var body string
	is := func() bool {
		_, body, _ = g.health()
		_, config, ignored := strings.Cut(body, `"config":{"state":"`)
		return body != "" && ignored == (state != "") && strings.HasPrefix(config, state)
	}
	if !within(30*time.Second, is) {
		g.t.Errorf("health says %s, want the configuration to be %q", body, state)
	}
}

// series returns the value of a metric of the gateway.
func (g *gateway) series(name string) string {
	a, err := fetch(oneShot, request{method: http.MethodGet, url: g.url("/metrics")})
	if err != nil {
		g.t.Error(err)
	}
	_, value, _ := strings.Cut("\n"+a.body, "\n"+name+" ")
	value, _, _ = strings.Cut(value, "\n")
	return value
}

// TestHangup: SIGHUP makes the gateway apply a changed configuration. The gateway ignores an
// invalid one.
func TestHangup(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	g := newGateway(t, plainConfig, r)
	g.start()
	deliver := func(path string) {
		t.Helper()
		n := len(r.at(path))
		g.send("/events/order.created", "{}")
		r.await(t, 5*time.Second, path, n+1)
	}
	deliver("/ok")

	g.hangup("", "configuration is unchanged")
	g.hangup("# a comment\n"+plainConfig, "configuration is unchanged")
	changed := strings.ReplaceAll(plainConfig, "/ok", "/changed")
	g.hangup(changed, "configuration applied")
	deliver("/changed")

	g.hangup(strings.Replace(changed, "sources: {app: {type: event}}", "sources: {app: {type: evnt}}", 1), "did you mean")
	g.ignores("invalid")
	deliver("/changed")
	g.hangup(strings.Replace(changed, "port: ${PORT}", "port: 1", 1), "server.port: cannot change while the gateway runs")
	g.ignores("forbidden")
	deliver("/changed")
	if err := os.Remove(filepath.Join(g.dir, "gateway.yaml")); err != nil {
		t.Fatal(err)
	}
	g.hangup("", "no such file")
	g.ignores("invalid")
	if got := g.series("gateway_config_last_reload_successful"); got != "0" {
		t.Errorf("config_last_reload_successful = %s, want 0", got)
	}
	g.hangup(changed, "configuration is unchanged")
	g.ignores("")

	// The configuration names a schema file, and only that file changes.
	strict := strings.Replace(changed, "{app: {type: event}}", "{app: {type: event}, strict: {type: event, schema: schema.json}}", 1)
	write(t, filepath.Join(g.dir, "schema.json"), `{"type": "object", "required": ["a"]}`)
	g.hangup(strict, "configuration applied")
	if a := g.post("/events/strict/x", `{"b": 1}`); a.status != http.StatusBadRequest {
		t.Errorf("an event without what the schema asks for: %d %s, want 400", a.status, a.body)
	}
	write(t, filepath.Join(g.dir, "schema.json"), `{"type": "object", "required": ["b"]}`)
	g.hangup("", "configuration applied")
	g.send("/events/strict/x", `{"b": 1}`)

	for result, want := range map[string]string{"applied": "3", "invalid": "2", "forbidden": "1"} {
		if got := g.series(`gateway_config_reloads_total{result="` + result + `"}`); got != want {
			t.Errorf("%s: %s, want %s", result, got, want)
		}
	}
	if got := g.series("gateway_config_last_reload_successful"); got != "1" {
		t.Errorf("config_last_reload_successful = %s, want 1", got)
	}
	g.stop()
}

// TestHangupDuringStart: SIGHUP does not kill a gateway that starts.
func TestHangupDuringStart(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	g := newGateway(t, plainConfig, r)
	g.launch()
	// In its first moments, before it handles signals, SIGHUP does kill the process.
	eventually(t, 30*time.Second, "the database is opened", func() bool { return exists(g.database()) })
	g.signal(syscall.SIGHUP)
	g.awaitReady()
	g.send("/events/order.created", "{}")
	r.await(t, 5*time.Second, "/ok", 1)
	g.stop()
}

// A webSite serves a configuration, or an error.
type webSite struct {
	mu     sync.Mutex
	text   string // "" for an error
	asked  int
	server *httptest.Server
}

func newWebSite(t testing.TB) *webSite {
	w := &webSite{}
	w.server = httptest.NewServer(w)
	t.Cleanup(w.server.Close)
	return w
}

func (w *webSite) set(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = text
}

func (w *webSite) ServeHTTP(reply http.ResponseWriter, _ *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asked++; w.text == "" {
		panic(http.ErrAbortHandler)
	}
	_, _ = reply.Write([]byte(w.text))
}

func (w *webSite) looks() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked
}

// TestConfigurationAtAnAddress: the gateway follows the document when it changes. While the
// document is invalid or cannot be read, the gateway keeps the previous configuration.
func TestConfigurationAtAnAddress(t *testing.T) {
	t.Parallel()
	r, site := newReceiver(t), newWebSite(t)
	g := newGateway(t, "", nil)
	with := func(path string) string {
		return fmt.Sprintf("server: {host: 127.0.0.1, port: %d, allow_private_urls: true}\nsources: {app: {type: event}}\nhandlers: {ok: {source: app, url: '%s'}}\n",
			g.port, r.url()+path)
	}
	site.set(with("/a"))
	g.env = append(g.env, "GATEWAY_CONFIG="+site.server.URL+"/gateway.yaml", "GATEWAY_CONFIG_POLL=1s", "GATEWAY_CONFIG_ALLOW=server.allow_private_urls")
	g.start()
	deliver := func(path string) {
		t.Helper()
		eventually(t, 30*time.Second, "a delivery to "+path, func() bool {
			g.send("/events/order.created", "{}")
			return len(r.at(path)) > 0
		})
	}
	deliver("/a")
	site.set(with("/b"))
	deliver("/b")
	site.set("sources: 1")
	g.ignores("invalid")
	site.set("")
	g.ignores("unreachable")
	asked := site.looks()
	eventually(t, 30*time.Second, "it goes on asking", func() bool { return site.looks() >= asked+3 })
	if n := strings.Count(g.log.String(), "configuration cannot be read"); n != 1 {
		t.Errorf("the log says %d times that the configuration cannot be read, want once", n)
	}
	site.set("sources: 1") // the same as before the site failed
	g.ignores("invalid")
	site.set(with("/c"))
	g.ignores("")
	deliver("/c")
	site.set("")
	g.ignores("unreachable")
	site.set(with("/c"))
	g.ignores("")
	g.stop()
}
