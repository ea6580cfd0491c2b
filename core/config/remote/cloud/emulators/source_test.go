package emulators

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/config/remote"
	"github.com/eventgateway/gateway/core/config/remote/cloud"
	"github.com/eventgateway/gateway/core/egress"
)

func open(t *testing.T, address, env string) *remote.Source {
	t.Helper()
	client := egress.New(egress.Options{AllowPrivate: true, Version: "1.2.3"})
	t.Cleanup(client.Close)
	lookup := func(string) (string, bool) { return "", false }
	s, err := remote.Open(address, remote.Options{Env: env, Lookup: lookup, Client: client, Stores: cloud.Stores(client, lookup)})
	if err != nil {
		t.Fatalf("Open(%s) = %v", address, err)
	}
	return s
}

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// port returns a configuration with this port, which identifies a version of the file.
func port(n int) string { return fmt.Sprintf("server: {port: %d}\nsources: {app: {type: event}}\n", n) }

func load(t *testing.T, s *remote.Source, want int) {
	t.Helper()
	c, err := s.Load(soon(t))
	if err != nil || c.Server.Port != want {
		t.Fatalf("Load() = %+v, %v, want port %d", c, err, want)
	}
}

func changed(t *testing.T, s *remote.Source, want bool) {
	t.Helper()
	if got, err := s.Changed(soon(t)); got != want || err != nil {
		t.Fatalf("Changed() = %v, %v, want %v", got, err, want)
	}
}

func TestChanges(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		r.put(t, "gateway.yaml", port(1001))
		s := open(t, r.address("gateway.yaml"), "")
		load(t, s, 1001)
		changed(t, s, false)
		r.put(t, "gateway.yaml", port(1001)) // of which Azure makes a new version
		changed(t, s, false)
		r.put(t, "gateway.yaml", port(1002))
		changed(t, s, true)
		load(t, s, 1002)
		changed(t, s, false)
		if name := s.Name(); name != r.folder+"/gateway.yaml" {
			t.Errorf("Name() = %s, want %s/gateway.yaml", name, r.folder)
		}
	})
}

// An unchanged object is not read again. The plain HTTP server is an exception: its objects
// are read to find out whether they have changed.
func TestReadsOnce(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		r.put(t, "gateway.yaml", port(1001))
		s := open(t, r.address("gateway.yaml"), "")
		load(t, s, 1001)
		before := r.gets.Load()
		for range 3 {
			changed(t, s, false)
		}
		if n := r.gets.Load() - before; n > 0 && !strings.HasPrefix(r.folder, "http") {
			t.Errorf("read %d times though nothing has changed", n)
		}
	})
}

// Caches may answer for Google Cloud Storage, for an hour if an object is public, but not
// if a generation is asked for.
func TestCaches(t *testing.T) {
	r := startGS(t)
	r.put(t, "gateway.yaml", port(1001))
	s := open(t, r.address("gateway.yaml"), "")
	load(t, s, 1001)
	r.fail(func(w http.ResponseWriter, q *http.Request) {
		if object := q.URL.Path == "/cfg/a/b/gateway.yaml"; object && q.URL.Query().Get("generation") == "" {
			io.WriteString(w, port(1001))
			return
		}
		r.store.ServeHTTP(w, q)
	})
	r.put(t, "gateway.yaml", port(1002))
	changed(t, s, true)
	load(t, s, 1002)
}

func TestOverlay(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		r.put(t, "gateway.yaml", port(1001))
		s := open(t, r.address("gateway.yaml"), "prod")
		load(t, s, 1001)
		changed(t, s, false)
		r.put(t, "gateway.prod.yaml", port(1003))
		changed(t, s, true)
		load(t, s, 1003)
		changed(t, s, false)
		r.remove(t, "gateway.prod.yaml")
		changed(t, s, true)
		load(t, s, 1001)
		changed(t, s, false)
	})
}

func TestInvalid(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		r.put(t, "gateway.yaml", port(1001))
		s := open(t, r.address("gateway.yaml"), "")
		load(t, s, 1001)
		at := r.folder + "/gateway.yaml"
		for text, want := range map[string]string{
			"sources: {app: {type: evnt}}":        at + `:1:17: sources.app.type: must be one of webhook, event, sns, cron, not "evnt"; did you mean "event"?`,
			"server: {host: \"${AWS_PROFILE}\"}":  at + ":1:10: server.host: a remote configuration may not read the environment variable AWS_PROFILE; name it GATEWAY_VAR_AWS_PROFILE, or list it in GATEWAY_CONFIG_ENV where the gateway runs",
			strings.Repeat("#", config.MaxFile+1): at + ": is larger than 1 MiB",
		} {
			r.put(t, "gateway.yaml", text)
			changed(t, s, true)
			_, err := s.Load(soon(t))
			if _, ok := errors.AsType[config.Problems](err); !ok || err.Error() != want {
				t.Errorf("Load() = %v, want problem %q", err, want)
			}
			changed(t, s, false)
		}
		r.put(t, "gateway.yaml", port(1001))
		changed(t, s, true)
		load(t, s, 1001)
	})
}

func TestOutage(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		r.put(t, "gateway.yaml", port(1001))
		s := open(t, r.address("gateway.yaml"), "")
		load(t, s, 1001)
		fails := func(want string) {
			t.Helper()
			_, asking := s.Changed(soon(t))
			_, loading := s.Load(soon(t))
			for _, err := range []error{asking, loading} {
				if _, ok := errors.AsType[config.Problems](err); ok || err == nil || err.Error() != r.folder+"/gateway.yaml: "+want {
					t.Errorf("Changed(), Load() = %v, want %s/gateway.yaml: %s", err, r.folder, want)
				}
			}
		}
		r.fail(cut)
		fails("protocol: connection closed before there was an answer")
		r.fail(status(503))
		fails("answered 503 Service Unavailable")
		r.fail(status(403))
		fails("answered 403 Forbidden: it must be readable by everyone (some stores also answer so if there is no such object)")
		r.fail(nil)
		changed(t, s, false)
		r.remove(t, "gateway.yaml")
		fails("there is nothing at this address")
		r.put(t, "gateway.yaml", port(1002))
		changed(t, s, true)
		load(t, s, 1002)
	})
}
