package egress

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core/worker"
)

const (
	floods = 50 // at once

	// floodHeap bounds the growth of the heap during 50 floods, in bytes. The senders of the
	// floods are in the same process and count as well.
	floodHeap = 64 << 20
)

// A flood is an endless reply of a handler. The handler writes first, waits until all other
// floods have begun, and then writes then again and again.
type flood struct {
	first, then string
	status      int
	class       string // of the error, "" for a success
}

func endless() map[string]flood {
	const ok = "HTTP/1.1 200 OK\r\n"
	filler := strings.Repeat("x", 64<<10)
	bomb := zeros()
	return map[string]flood{
		"body":            {ok + "\r\n", filler, 200, ""},
		"announced body":  {ok + "Content-Length: 9999999999999\r\n\r\n", filler, 200, ""},
		"failure's body":  {"HTTP/1.1 500 No\r\n\r\n", filler, 500, "status: 500 "},
		"redirect's body": {"HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n", filler, 302, "status: 302 "},
		"chunk":           {ok + "Transfer-Encoding: chunked\r\n\r\nffffffffffff\r\n", filler, 200, ""},
		"chunks":          {ok + "Transfer-Encoding: chunked\r\n\r\n", strings.Repeat("1\r\nx\r\n", 10_000), 200, ""},
		"chunk extension": {ok + "Transfer-Encoding: chunked\r\n\r\n1;", filler, 200, ""},
		"trailers":        {ok + "Transfer-Encoding: chunked\r\n\r\n0\r\n", strings.Repeat("X: y\r\n", 10_000), 200, ""},
		"status line":     {"HTTP/1.1 200 ", filler, 0, "protocol: "},
		"header":          {ok + "X: ", filler, 0, "protocol: "},
		"headers":         {ok, strings.Repeat("X-Filler: y\r\n", 10_000), 0, "protocol: "},
		"early hints":     {"HTTP/1.1 103 Early Hints\r\n\r\n", strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 1000), 0, "protocol: "},
		"gzip bomb":       {ok + "Content-Encoding: gzip\r\n\r\n" + bomb[:20], bomb[20:], 200, ""},
	}
}

// zeros returns 64 MiB of zeros, compressed to about 10,000 bytes.
func zeros() string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(make([]byte, 1<<20))
	z.Close()
	return strings.Repeat(b.String(), 64)
}

// TestFloods: 50 endless replies at the same time are cut short, their connections are closed,
// and the heap grows by less than [floodHeap].
func TestFloods(t *testing.T) {
	for way, payload := range payloads {
		t.Run(way, func(t *testing.T) { testFloods(t, payload) })
	}
}

func testFloods(t *testing.T, payload string) {
	for name, f := range endless() {
		t.Run(name, func(t *testing.T) {
			var talking, here sync.WaitGroup
			talking.Add(floods)
			here.Add(floods)
			url := serveRaw(t, func(conn net.Conn) {
				defer talking.Done()
				say(f.first)(conn)
				here.Done()
				here.Wait()
				untilClosed(f.then)(conn)
			})
			s := newSender(t, newClient(t), Target{URL: url})
			for _, got := range sendAtOnce(t, s, payload) {
				checkFailure(t, got, f.status, f.class)
				if strings.HasPrefix(name, "gzip") && !strings.HasPrefix(got.Response, "\x1f\uFFFD\b") {
					t.Errorf("Send() keeps %.40q..., want it still compressed", got.Response)
				}
			}
			waitFor(t, &talking, "every connection is closed")
		})
	}
}

// TestFloodsHTTP2 is the same over the single connection of HTTP/2.
func TestFloodsHTTP2(t *testing.T) {
	for name, status := range map[string]int{"success": 200, "failure": 500} {
		t.Run(name, func(t *testing.T) {
			var talking, here sync.WaitGroup
			talking.Add(floods)
			here.Add(floods)
			filler := make([]byte, 64<<10)
			server := serveSecure(t, func(w http.ResponseWriter, r *http.Request) {
				defer talking.Done()
				w.WriteHeader(status)
				w.Write(filler[:1])
				w.(http.Flusher).Flush()
				here.Done()
				here.Wait()
				for {
					if _, err := w.Write(filler); err != nil {
						return
					}
				}
			})
			client := newClient(t)
			client.transport.TLSClientConfig.RootCAs = x509.NewCertPool()
			client.transport.TLSClientConfig.RootCAs.AddCert(server.Certificate())
			for _, got := range sendAtOnce(t, newSender(t, client, Target{URL: server.URL}), "{}") {
				if got.StatusCode != status || got.OK != (status == 200) {
					t.Errorf("Send() = %d, %q, want status %d", got.StatusCode, got.Error, status)
				}
			}
			waitFor(t, &talking, "every stream is closed")
		})
	}
}

// TestFloodsGRPC is the same for gRPC receivers.
func TestFloodsGRPC(t *testing.T) {
	message := append([]byte{0, 0, 0, 3, 0xe8}, make([]byte, 1000)...)
	for name, c := range map[string]struct{ first, then []byte }{
		"message":                  {[]byte{0, 0xff, 0xff, 0xff, 0xff}, make([]byte, 64<<10)},
		"messages":                 {message, bytes.Repeat(message, 60)},
		"allowed message, cut off": {[]byte{0, 0, 0x07, 0xff, 0xff}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var talking, here sync.WaitGroup
			talking.Add(floods)
			here.Add(floods)
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer talking.Done()
				w.Header().Set("Content-Type", "application/grpc")
				w.Write(c.first)
				w.(http.Flusher).Flush()
				here.Done()
				here.Wait()
				for c.then != nil {
					if _, err := w.Write(c.then); err != nil {
						return
					}
				}
				w.Write(make([]byte, 1<<18))
			}))
			server.Config.Protocols = new(http.Protocols)
			server.Config.Protocols.SetUnencryptedHTTP2(true)
			server.Start()
			t.Cleanup(server.Close)
			s, err := newClient(t).GRPC(Target{URL: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			for _, got := range sendAtOnce(t, s, "{}") {
				if got.OK || got.Error == "" {
					t.Errorf("Send() = %+v, want a failure", got)
				}
			}
			waitFor(t, &talking, "every call is ended")
		})
	}
}

// sendAtOnce makes 50 attempts at the same time and checks the growth of the heap.
func sendAtOnce(t *testing.T, s worker.Sender, payload string) []worker.Reply {
	t.Helper()
	runtime.GC()
	before := heapInUse()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	stop, peak := make(chan struct{}), make(chan uint64)
	go func() { peak <- highest(stop) }()
	replies := make([]worker.Reply, floods)
	var sending sync.WaitGroup
	for i := range replies {
		sending.Go(func() { replies[i] = s.Send(ctx, taken("J", payload)) })
	}
	sending.Wait()
	close(stop)
	grown := int64(<-peak) - int64(before)
	t.Logf("the heap grew by %d KiB", grown>>10)
	if grown > floodHeap {
		t.Errorf("the heap grew by %d MiB, want at most %d MiB", grown>>20, floodHeap>>20)
	}
	return replies
}

// highest returns the largest size of the heap until stop was closed, in bytes.
func highest(stop chan struct{}) (most uint64) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		most = max(most, heapInUse())
		select {
		case <-stop:
			return max(most, heapInUse())
		case <-tick.C:
		}
	}
}

func heapInUse() (bytes uint64) {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() + samples[1].Value.Uint64()
}

func waitFor(t *testing.T, wg *sync.WaitGroup, what string) {
	t.Helper()
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("not within 20s: %s", what)
	}
}

// TestWindowHTTP2: the window of an HTTP/2 connection is no larger than the part of a reply
// that is read. So a handler cannot send more in advance.
func TestWindowHTTP2(t *testing.T) {
	wrote := make(chan int, 1)
	server := serveSecure(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		total := 0
		control := http.NewResponseController(w)
		control.SetWriteDeadline(time.Now().Add(time.Second))
		for {
			n, err := w.Write(make([]byte, 1<<10))
			total += n
			if err != nil {
				wrote <- total
				return
			}
		}
	})
	client := newClient(t)
	client.transport.TLSClientConfig.RootCAs = x509.NewCertPool()
	client.transport.TLSClientConfig.RootCAs.AddCert(server.Certificate())
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	resp, err := client.transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	// The server's own buffers hold some bytes more.
	if n := <-wrote; n > 2*maxReply {
		t.Errorf("the handler could write %d bytes to somebody who did not read, want at most %d", n, 2*maxReply)
	}
	io.Copy(io.Discard, resp.Body)
}
