//go:build linux

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/servers"
	"github.com/eventgateway/gateway/infra/test/wait"
)

const grpcConfig = `
server:
  host: 127.0.0.1
  port: ${PORT}
  allow_private_urls: true
delivery: {timeout: 2s, default_retry: {max: 2, backoff: fixed, interval: 50ms}, signing_secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw}
sources: {app: {type: event}}
handlers:
  takes: {source: app, type: grpc, url: "${GRPC}", transform: '{"n": {{ $.n }}}', filter: $.n > 0}
  refuses: {source: app, type: grpc, url: "${GRPC}", headers: {x-answer: '{"success":false,"message":"not today"}'}}
  misses: {source: app, type: grpc, url: "${GRPC}", timeout: 500ms, headers: {x-answer: '{"hang":true}'}}
  ails: {source: app, type: grpc, url: "${GRPC}", headers: {x-answer: '{"code":14,"details":"back soon"}'}}
  floods: {source: app, type: grpc, url: "${GRPC}", headers: {x-answer: '{"fill":2000000}'}}
  nobody: {source: app, type: grpc, url: "http://127.0.0.1:1"}
  wrong: {source: app, type: grpc, url: "${RECEIVER}"}
`

// TestGRPC: handlers with another gRPC implementation, each with a different answer.
func TestGRPC(t *testing.T) {
	t.Parallel()
	to, err := servers.StartReceiver(servers.ReceiverOptions{})
	servers.Check(t, err)
	t.Cleanup(func() { _ = to.Stop() })
	g := newGateway(t, grpcConfig, receiver.New(t))
	g.env = append(g.env, "GRPC="+to.URL())
	g.start()
	id := g.send("/events/order.created", `{"n": 7, "left": "out"}`, "Ce-Specversion", "1.0", "Ce-Id", "A-1", "Ce-Source", "/shop", "Ce-Type", "com.example.order", "Ce-Tenant", "acme",
		"Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	wait.For(t, 20*time.Second, "all settled", func() bool {
		return len(g.jobs("--status", "completed"))+len(g.jobs("--status", "dead")) == 7
	})
	want := map[string]struct {
		status, failure string
		attempt         int
	}{
		"takes":   {"completed", "", 1},
		"refuses": {"dead", "status: refused: not today", 2},
		"misses":  {"dead", "timeout: no answer within 500ms", 2},
		"ails":    {"dead", "status: UNAVAILABLE: back soon", 2},
		"floods":  {"dead", "protocol: ", 2},
		"nobody":  {"dead", "connect: connection refused", 2},
		"wrong":   {"dead", "protocol: ", 2},
	}
	for _, j := range g.jobs() {
		w, failure := want[j.Handler], ""
		if j.LastError != nil {
			failure = *j.LastError
		}
		if j.Status != w.status || j.Attempt != w.attempt || !strings.HasPrefix(failure, w.failure) || (failure == "") != (w.failure == "") {
			t.Errorf("%s: %s after %d attempts, %q; want %s, %d, %q", j.Handler, j.Status, j.Attempt, failure, w.status, w.attempt, w.failure)
		}
		delete(want, j.Handler)
	}
	if len(want) > 0 {
		t.Errorf("no jobs for %v", want)
	}
	calls, err := to.Calls(id)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, c := range calls {
		if c.Request.Handler != "takes" {
			continue
		}
		seen++
		r, m := c.Request, c.Request.Metadata
		if r.EventID != id || r.EventType != "com.example.order" || r.Payload != `{"n": 7}` || r.Attempt != 1 {
			t.Errorf("request %+v", r)
		}
		if m["ce-id"] != "A-1" || m["ce-source"] != "/shop" || m["ce-tenant"] != "acme" || m["ce-specversion"] != "1.0" || m["content-type"] != "application/json" {
			t.Errorf("metadata of the request %v", m)
		}
		if !strings.HasPrefix(c.Metadata["webhook-signature"], "v1,") || !strings.HasPrefix(c.Metadata["user-agent"], "gateway/") ||
			c.Metadata["traceparent"] != "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" || c.Deadline == 0 {
			t.Errorf("metadata of the call %v, deadline %v", c.Metadata, c.Deadline)
		}
	}
	if seen != 1 {
		t.Errorf("calls for the handler that takes: %d, want 1", seen)
	}
	g.listenOverGRPC(t, to, id)
}

// listenOverGRPC requires that a listen calls a gRPC handler as the gateway does, at another address.
func (g *gateway) listenOverGRPC(t *testing.T, to *servers.Receiver, id string) {
	t.Helper()
	for handler, said := range map[string]string{"takes": "ok  ", "refuses": "status: refused: not today  "} {
		g.listener(to.URL(), "--handler", handler, "--since", "1h").awaitLine(id + "  com.example.order  ->  " + said)
	}
	calls, err := to.Calls(id)
	if err != nil {
		t.Fatal(err)
	}
	var same []string
	for _, c := range calls {
		if c.Request.Handler == "takes" {
			same = append(same, fmt.Sprintf("%+v", c.Request))
		}
	}
	if len(same) != 2 || same[0] != same[1] {
		t.Errorf("the calls of the gateway and of listen:\n%s\nwant two equal ones", strings.Join(same, "\n"))
	}
}
