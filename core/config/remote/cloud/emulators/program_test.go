//go:build linux

package emulators

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/ports"
)

// program builds the gateway, once.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "gateway-")
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "gateway")
	build := exec.Command("go", "build", "-tags", "otel grpcnotrace nopgxregisterdefaulttypes", "-o", name, "./cmd/gateway")
	build.Dir = "../../../../.." // the gateway's own module
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return name, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if name, err := program(); err == nil {
		os.RemoveAll(filepath.Dir(name))
	}
	os.Exit(code)
}

// A gateway is the program with a configuration at an address.
type gateway struct {
	t    *testing.T
	url  string
	cmd  *exec.Cmd
	done chan error

	mu  sync.Mutex
	log bytes.Buffer
}

func (g *gateway) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.log.Write(p)
}

func (g *gateway) said() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.log.String()
}

// run runs a command that ends by itself, and returns its output and exit code.
func run(t *testing.T, address string, args ...string) (string, int) {
	name, err := program()
	check(t, err)
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = t.TempDir(), []string{"GATEWAY_CONFIG=" + address, "PATH=" + os.Getenv("PATH")}
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode()
}

// start starts a gateway on a port, which looks for changes every second.
func start(t *testing.T, address string, port int) *gateway {
	name, err := program()
	check(t, err)
	g := &gateway{t: t, url: fmt.Sprintf("http://127.0.0.1:%d", port), cmd: exec.Command(name, "start"), done: make(chan error, 1)}
	g.cmd.Dir, g.cmd.Stdout, g.cmd.Stderr = t.TempDir(), g, g
	g.cmd.Env = []string{"GATEWAY_CONFIG=" + address, "GATEWAY_CONFIG_POLL=1s", "PATH=" + os.Getenv("PATH")}
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // Pdeathsig is sent when the thread that forked ends
		err := g.cmd.Start()
		if started <- err; err == nil {
			g.done <- g.cmd.Wait()
		}
	}()
	check(t, <-started)
	t.Cleanup(func() {
		_ = g.cmd.Process.Kill()
		if t.Failed() {
			t.Log(g.said())
		}
	})
	g.await("it is well", func() bool { s, err := g.health(); return err == nil && s == "" })
	return g
}

func (g *gateway) await(what string, holds func() bool) {
	g.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			g.t.Fatalf("not within half a minute: %s", what)
		}
	}
}

// health returns the state of an ignored configuration, "" if the gateway follows its configuration.
func (g *gateway) health() (string, error) {
	response, err := http.Get(g.url + "/health")
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var told struct{ Config struct{ State string } }
	return told.Config.State, json.NewDecoder(response.Body).Decode(&told)
}

func (g *gateway) awaitState(want string) {
	g.t.Helper()
	g.await("/health shows the state \""+want+"\"", func() bool { s, _ := g.health(); return s == want })
}

// takes reports whether there is a source of this name.
func (g *gateway) takes(source string) bool {
	response, err := http.Post(g.url+"/events/"+source+"/greeting", "application/json", strings.NewReader("{}"))
	if err != nil {
		g.t.Errorf("POST to source %s: %v", source, err)
		return false
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode < 300
}

// serving is a configuration with these sources.
func serving(port int, sources ...string) string {
	text := fmt.Sprintf("server: {host: 127.0.0.1, port: %d}\nsources:\n", port)
	for _, s := range sources {
		text += "  " + s + ": {type: event}\n"
	}
	return text
}

// TestProgram: the gateway starts with the configuration at an address and follows its valid
// changes. It keeps its configuration if the new one is invalid or forbidden, or if the store
// does not answer.
func TestProgram(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		port := ports.ForServer(t)
		at := r.folder + "/gateway.yaml"
		r.put(t, "gateway.yaml", serving(port, "one"))
		if out, code := run(t, r.address("gateway.yaml"), "validate"); code != 0 || !strings.Contains(out, at+" is valid: 1 source, 0 handlers\n") {
			t.Errorf("validate = %d, %s", code, out)
		}
		g := start(t, r.address("gateway.yaml"), port)
		if !g.takes("one") || g.takes("two") {
			t.Error("does not serve what is configured")
		}
		follow(t, r, g, port)
		outage(t, r, g, port)
		g.stop()
		for _, secret := range []string{"s3cret", "endpoint="} {
			if strings.Contains(g.said(), secret) {
				t.Errorf("log shows %s:\n%s", secret, g.said())
			}
		}
	})
}

// follow makes one valid change of the configuration, then changes that the gateway refuses.
func follow(t *testing.T, r *rig, g *gateway, port int) {
	r.put(t, "gateway.yaml", serving(port, "one", "two"))
	g.await("a new source", func() bool { return g.takes("two") })
	for _, c := range []struct{ text, state, warning string }{
		{"sources: {app: {type: evnt}}", "invalid", "gateway.yaml:1:17: sources.app.type: must be one of webhook, event, sns, cron"},
		{serving(port+1, "one"), "forbidden", "server.port"},
		{serving(port, "one") + "handlers: {h: {source: one, url: \"https://${HOME}\"}}", "invalid", "may not read the environment variable HOME"},
	} {
		r.put(t, "gateway.yaml", c.text)
		g.awaitState(c.state)
		g.await("a warning with "+c.warning, func() bool { return strings.Contains(g.said(), c.warning) })
		if !g.takes("two") {
			t.Errorf("state %s: another configuration was followed", c.state)
		}
	}
	r.put(t, "gateway.yaml", serving(port, "one", "three"))
	g.awaitState("")
	if !g.takes("three") || g.takes("two") {
		t.Error("does not follow a valid configuration after a refused one")
	}
}

// outage lets the store close every connection for a while.
func outage(t *testing.T, r *rig, g *gateway, port int) {
	r.fail(cut)
	g.awaitState("unreachable")
	if !g.takes("three") {
		t.Error("does not go on without its configuration")
	}
	if out, code := run(t, r.address("gateway.yaml"), "start"); code != 1 || out != "gateway: "+r.folder+"/gateway.yaml: protocol: connection closed before there was an answer\n" {
		t.Errorf("start without a configuration = %d, %s", code, out)
	}
	r.fail(nil)
	g.awaitState("")
	r.put(t, "gateway.yaml", serving(port, "four"))
	g.await("the change after the outage", func() bool { return g.takes("four") })
}

// stop sends SIGTERM to the gateway, and checks that it ends without an error.
func (g *gateway) stop() {
	g.t.Helper()
	check(g.t, g.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-g.done:
		check(g.t, err)
	case <-time.After(20 * time.Second):
		g.t.Fatal("does not end")
	}
}
