package web_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/intake"
	"github.com/eventgateway/gateway/core/pull"
	"github.com/eventgateway/gateway/core/web"
)

// instant is a store that costs nothing.
type instant struct{}

func (instant) Accept(_ context.Context, a core.Arrival) (core.Receipt, error) {
	return core.Receipt{EventID: a.Event.ID, Jobs: len(a.Jobs)}, nil
}

// benchHandler has two handlers for the events of each source.
func benchHandler() http.Handler {
	var consumers []intake.Consumer
	sources := []intake.Source{{Name: "app", Kind: intake.Event}, {Name: "plain", Kind: intake.Webhook}}
	for _, s := range sources {
		consumers = append(consumers,
			intake.Consumer{Lane: "handler/a", Source: s.Name, Events: []string{"order.*"}, MaxAttempts: 5},
			intake.Consumer{Lane: "handler/b", Source: s.Name, Events: []string{"invoice.paid"}, MaxAttempts: 5})
	}
	in := intake.New(intake.Deps{
		Inbox: instant{}, IDs: core.NewIDs(core.SystemClock), Clock: core.SystemClock,
		Sources: sources, Consumers: consumers,
	})
	return web.Handler(web.Settings{MaxBodySize: 1 << 20, MaxInbound: 100},
		web.Intake(web.IntakeOptions{Receiver: in, Tokens: []web.Token{{Text: "s3cret", Role: core.RoleAdmin}}}))
}

var benchBody = `{"data":{"text":"` + strings.Repeat("x", 480) + `"},"type":"order.created"}`

// discard is a response writer that drops the reply.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkIntake is the cost of a request between net/http and the store.
func BenchmarkIntake(b *testing.B) {
	for _, path := range []string{"/events/order.created", "/webhooks/plain"} {
		b.Run(strings.Split(path, "/")[1], func(b *testing.B) {
			h := benchHandler()
			body := strings.NewReader(benchBody)
			r, err := http.NewRequest("POST", path, body)
			if err != nil {
				b.Fatal(err)
			}
			r.RemoteAddr = "192.0.2.1:4711"
			r.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer s3cret"}, "User-Agent": {"bench"}}
			w := &discard{header: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				body.Reset(benchBody)
				clear(w.header)
				h.ServeHTTP(w, r)
			}
			if w.status >= 300 {
				b.Fatalf("status %d", w.status)
			}
		})
	}
}

// BenchmarkServer adds net/http, the kernel and the client, on the same cores.
func BenchmarkServer(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := web.NewServer(benchHandler(), slog.New(slog.DiscardHandler))
	go func() { _ = server.Serve(web.Limit(l, web.Crowd{Most: web.MaxConnections, Each: web.MaxConnections})) }()
	b.Cleanup(func() { _ = server.Close() })
	request := fmt.Sprintf("POST /events/order.created HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer s3cret\r\nContent-Length: %d\r\n\r\n%s", len(benchBody), benchBody)
	var failed atomic.Int64
	b.SetParallelism(16)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			b.Error(err)
			return
		}
		defer func() { _ = c.Close() }()
		in := bufio.NewReader(c)
		for pb.Next() {
			if _, err := io.WriteString(c, request); err != nil || !accepted(in) {
				failed.Add(1)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
	if failed.Load() > 0 {
		b.Fatalf("%d connections failed", failed.Load())
	}
}

// accepted reads a reply to its end, which is its only line without newline.
func accepted(in *bufio.Reader) bool {
	line, err := in.ReadSlice('\n')
	ok := err == nil && strings.HasPrefix(string(line), "HTTP/1.1 202")
	for err == nil && len(line) > 2 {
		line, err = in.ReadSlice('\n')
	}
	_, err = in.Discard(len("Event accepted"))
	return ok && err == nil
}

// handing is a puller that returns messages at once.
type handing struct{ *counter }

func (h handing) Receive(context.Context, pull.Request) ([]core.TakenJob, error) {
	return messages(), nil
}

// BenchmarkReceive is the cost of a poll that finds four messages.
func BenchmarkReceive(b *testing.B) {
	c := handing{&counter{}}
	h := web.Handler(web.Settings{MaxInbound: 100}, web.Queues(web.QueuesOptions{Puller: c, Manager: c, Keys: map[string][]string{"work": nil}}))
	r, err := http.NewRequest("GET", "/api/queues/work/messages?batch=4", nil)
	if err != nil {
		b.Fatal(err)
	}
	r.RemoteAddr = "192.0.2.1:4711"
	w := &discard{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		h.ServeHTTP(w, r)
	}
	if w.status != 200 {
		b.Fatalf("status %d", w.status)
	}
}

func (i instant) AcceptAll(ctx context.Context, all []core.Arrival) (receipts []core.Receipt, err error) {
	for _, a := range all {
		r, err := i.Accept(ctx, a)
		if err != nil {
			return nil, err
		}
		receipts = append(receipts, r)
	}
	return receipts, nil
}
