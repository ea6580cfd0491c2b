//go:build linux

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
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
	wait.For(g.t, 30*time.Second, "the log says: "+said, func() bool { return strings.Count(g.log.String(), said) > before })
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
	if !wait.Until(30*time.Second, is) {
		g.t.Errorf("health says %s, want the configuration to be %q", body, state)
	}
}

// series returns the value of a metric of the gateway.
func (g *gateway) series(name string) string {
	a, err := fetch(oneShot, request{method: http.MethodGet, url: g.url("/metrics")})
	if err != nil {
		g.t.Error(err)
	}
	return sample(a.body, name)
}

// sample returns the value of a metric in a reply of /metrics.
func sample(metrics, name string) string {
	_, value, _ := strings.Cut("\n"+metrics, "\n"+name+" ")
	value, _, _ = strings.Cut(value, "\n")
	return value
}

// TestHangup: SIGHUP makes the gateway apply a changed configuration. The gateway ignores an
// invalid one.
func TestHangup(t *testing.T) {
	t.Parallel()
	r := receiver.New(t)
	g := newGateway(t, plainConfig, r)
	g.start()
	deliver := func(path string) {
		t.Helper()
		n := len(r.At(path))
		g.send("/events/order.created", "{}")
		r.Await(t, 5*time.Second, path, n+1)
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
	r := receiver.New(t)
	g := newGateway(t, plainConfig, r)
	g.launch()
	// In its first moments, before it handles signals, SIGHUP does kill the process.
	wait.For(t, 30*time.Second, "the database is opened", func() bool { return exists(g.database()) })
	g.signal(syscall.SIGHUP)
	g.awaitReady()
	g.send("/events/order.created", "{}")
	r.Await(t, 5*time.Second, "/ok", 1)
	g.stop()
}

// A webSite serves a configuration, or closes connections without an answer.
type webSite struct{ *receiver.Receiver }

// newWebSite serves no configuration yet.
func newWebSite(t testing.TB) webSite {
	w := webSite{receiver.New(t)}
	w.set("")
	return w
}

// address returns the URL of the configuration.
func (w webSite) address() string { return w.URL() + "/gateway.yaml" }

// set changes the configuration. With "", requests get no answer.
func (w webSite) set(text string) {
	w.On("/gateway.yaml", func(_ int, reply http.ResponseWriter, _ *http.Request) {
		if text == "" {
			panic(http.ErrAbortHandler)
		}
		_, _ = reply.Write([]byte(text))
	})
}

// looks returns the number of requests for the configuration so far.
func (w webSite) looks() int { return len(w.At("/gateway.yaml")) }

// TestConfigurationAtAnAddress: the gateway follows the document when it changes. While the
// document is invalid or cannot be read, the gateway keeps the previous configuration.
func TestConfigurationAtAnAddress(t *testing.T) {
	t.Parallel()
	r, site := receiver.New(t), newWebSite(t)
	g := newGateway(t, "", nil)
	with := func(path string) string {
		return fmt.Sprintf("server: {host: 127.0.0.1, port: %d, allow_private_urls: true}\nsources: {app: {type: event}}\nhandlers: {ok: {source: app, url: '%s'}}\n",
			g.port, r.URL()+path)
	}
	site.set(with("/a"))
	g.env = append(g.env, "GATEWAY_CONFIG="+site.address(), "GATEWAY_CONFIG_POLL=1s", "GATEWAY_CONFIG_ALLOW=server.allow_private_urls")
	g.start()
	deliver := func(path string) {
		t.Helper()
		wait.For(t, 30*time.Second, "a delivery to "+path, func() bool {
			g.send("/events/order.created", "{}")
			return len(r.At(path)) > 0
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
	wait.For(t, 30*time.Second, "it goes on asking", func() bool { return site.looks() >= asked+3 })
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
