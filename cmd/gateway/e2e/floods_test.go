//go:build linux

package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
)

const (
	floods = 50 // concurrent endless replies

	// floodMemory bounds the growth of the gateway's resident memory during the floods.
	floodMemory = 64 << 20
)

// TestFloods: 50 handlers send endless replies at the same time. The gateway cuts the replies
// short, uses little memory, and frees their slots.
func TestFloods(t *testing.T) {
	t.Parallel()
	r := receiver.New(t)
	kinds := []struct {
		name, first, then string
		want              string // of the job
	}{
		{"body", "HTTP/1.1 200 OK\r\n\r\n", strings.Repeat("x", 64<<10), "completed"},
		{"failure", "HTTP/1.1 500 No\r\n\r\n", strings.Repeat("x", 64<<10), "dead"},
		{"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", strings.Repeat("1000\r\n"+strings.Repeat("x", 0x1000)+"\r\n", 16), "completed"},
		{"headers", "HTTP/1.1 200 OK\r\n", strings.Repeat("X-Filler: y\r\n", 5000), "dead"},
		{"header", "HTTP/1.1 200 OK\r\nX: ", strings.Repeat("x", 64<<10), "dead"},
		{"bomb", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", zeros(), "completed"},
		{"drip", "HTTP/1.1 200 OK\r\n\r\n", "", "completed"}, // until the deadline
	}
	config := fmt.Sprintf(floodConfig, floods)
	crowds := map[string]*crowd{}
	for _, k := range kinds {
		config += fmt.Sprintf("  %s: {type: webhook}\n", k.name)
	}
	config += "handlers:\n  ok: {source: app, url: \"${RECEIVER}/ok\"}\n"
	for _, k := range kinds {
		c := &crowd{}
		crowds[k.name] = c
		url := rawServer(t, c.flood(k.first, k.then))
		for i := range floods {
			config += fmt.Sprintf("  %s%d: {source: %s, url: %s}\n", k.name, i, k.name, url)
		}
	}
	g := newGateway(t, config, r)
	g.start()
	const healthy = 20
	for n, k := range kinds {
		c := crowds[k.name]
		c.here.Add(floods)
		c.gone.Add(floods)
		g.forgetPeak()
		before := g.memory("VmRSS")
		a := g.post("/webhooks/"+k.name, `{}`)
		c.wait(t, k.name)
		for range healthy {
			g.send("/events/order.created", `{}`)
		}
		r.Await(t, 10*time.Second, "/ok", (n+1)*healthy)
		g.awaitDone(10 * time.Second)
		grown := g.memory("VmHWM") - before
		t.Logf("%d times %s: resident memory grew by %d KiB, from %d KiB", floods, k.name, grown>>10, before>>10)
		if grown > floodMemory {
			t.Errorf("%d times %s: resident memory grew by %d MiB, want at most %d MiB", floods, k.name, grown>>20, floodMemory>>20)
		}
		for handler, s := range g.storiesOf(a.eventID()) {
			if s.Status != k.want {
				t.Errorf("%s: %s, %q, want %s", handler, s.Status, s.LastError, k.want)
			}
		}
	}
	g.stop()
}

const floodConfig = `
server:
  host: 127.0.0.1
  port: ${PORT}
  allow_private_urls: true
delivery: {timeout: 5s, default_retry: {max: 1}}
worker: {max_concurrency: %d, batch_size: 100}
sources:
  app: {type: event}
`

// TestFloodsOfRequests: senders without credentials cannot fill the log. It has one line a
// second of each kind. The lines and the metrics together count every request.
func TestFloodsOfRequests(t *testing.T) {
	t.Parallel()
	g := newGateway(t, `
server: {host: 127.0.0.1, port: "${PORT}"}
api: {auth_token: events-token-0123456789}
sources:
  app: {type: event}
  hub: {type: webhook, verify: github, secret: github-secret-0123456789}
  topic: {type: sns, topic_arns: ["arn:aws:sns:eu-west-1:123456789012:orders"]}
`, nil)
	g.env = append(g.env, "GATEWAY_LOG=debug", "GATEWAY_LOG_FORMAT=json")
	g.start()
	const each, lanes = 500, 8
	began := time.Now()
	var senders sync.WaitGroup
	for lane := range lanes {
		senders.Go(func() {
			for i := lane; i < each; i += lanes {
				n := strconv.Itoa(i)
				g.post("/webhooks/hub", `{"n":`+n+`}`, "X-Hub-Signature-256", "sha256="+strings.Repeat("0", 64), "X-GitHub-Event", "push"+n)
				g.post("/webhooks/unknown"+n, `{}`)
				g.post("/events/order.created", `{}`, "Authorization", "Bearer wrong"+n)
				g.post("/sns/topic", `{"Type":"Notification","MessageId":"`+n+`","TopicArn":"arn:aws:sns:eu-west-1:1:`+n+`"}`)
				g.post("/callback/"+strings.Repeat("a", 40)+n, `{}`)
			}
		})
	}
	senders.Wait()
	seconds := int(time.Since(began)/time.Second) + 2
	if got := g.series(`gateway_events_received_total{result="unverified",source="hub"}`); got != strconv.Itoa(each) {
		t.Errorf("metrics count %s wrong signatures, want %d", got, each)
	}
	g.stop()
	for _, kind := range []struct {
		has  string
		most int // kinds of lines
	}{
		{`"msg":"verification failed","target":"intake","source":"hub"`, 1},
		{`"msg":"event turned away","target":"intake","source":""`, 1},
		{`"msg":"event turned away","target":"intake","source":"app"`, 1},
		{`"target":"intake","source":"topic"`, 1},
		{`"msg":"callback with a token that is not, or no longer, good","target":"workflow"`, 1},
	} {
		lines, all := 0, 0
		for line := range strings.Lines(g.log.String()) {
			if !strings.Contains(line, kind.has) {
				continue
			}
			var fields struct{ Repeated int }
			if err := json.Unmarshal([]byte(line), &fields); err != nil {
				t.Fatal(err)
			}
			lines++
			all += 1 + fields.Repeated
		}
		if lines > seconds*kind.most || all != each {
			t.Errorf("%s: %d lines that tell of %d requests in %d seconds, want %d requests and a line a second", kind.has, lines, all, seconds, each)
		}
	}
	if lines := strings.Count(g.log.String(), "\n"); lines > 12*seconds {
		t.Errorf("%d lines in %d seconds", lines, seconds)
	}
}

// A crowd is handlers that wait for each other and then answer together.
type crowd struct{ here, gone sync.WaitGroup }

func (c *crowd) flood(first, then string) func(net.Conn) {
	pause := time.Duration(0)
	if then == "" {
		then, pause = "x", 50*time.Millisecond
	}
	return func(conn net.Conn) {
		defer c.gone.Done()
		c.here.Done()
		c.here.Wait()
		talksOn(first, then, pause)(conn)
	}
}

// wait waits until the gateway has closed all connections.
func (c *crowd) wait(t *testing.T, name string) {
	t.Helper()
	done := make(chan struct{})
	go func() { c.gone.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s: not every connection is closed within 30s", name)
	}
}

// zeros returns 64 MiB of zeros, compressed to some ten thousand bytes.
func zeros() string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(make([]byte, 1<<20))
	_ = z.Close()
	return strings.Repeat(b.String(), 64)
}

// forgetPeak resets the kernel's record of the highest memory use.
func (g *gateway) forgetPeak() {
	g.t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", g.pid()), []byte("5"), 0); err != nil {
		g.t.Fatal(err)
	}
}

// memory returns a figure of the gateway's /proc/<pid>/status, in bytes.
func (g *gateway) memory(what string) int {
	g.t.Helper()
	kilobytes, err := statusFigure(g.pid(), what)
	if err != nil {
		g.t.Fatal(err)
	}
	return kilobytes << 10
}
