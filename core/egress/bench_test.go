package egress

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// BenchmarkSend compares a delivery, with its headers and signature, with the least that
// net/http can do: the same payload through a plain http.Client. The last line is the number of
// deliveries in the time of one plain call.
func BenchmarkSend(b *testing.B) {
	url := "http://" + quickServer(b) + "/hook"
	payload := bytes.Repeat([]byte(`{"order":"12345","total":"99.90"}`), 31) // 1023 bytes
	job := core.TakenJob{
		Job: core.Job{ID: "01HZY0000000000000000000JB", Attempt: 1},
		Event: core.Event{
			ID: "01HZY0000000000000000000EV", Source: "shop", Type: "order.created", ContentType: "application/json",
			Payload: payload, CreatedAt: time.UnixMilli(1_700_000_000_123),
		},
	}
	gateway := New(Options{AllowPrivate: true, Concurrency: 16, Version: "1.0.0"})
	defer gateway.Close()
	send := func(secrets ...string) func(context.Context) bool {
		s, err := gateway.HTTP(Target{Name: "billing", URL: url, Secrets: secrets})
		if err != nil {
			b.Fatal(err)
		}
		return func(ctx context.Context) bool { return s.Send(ctx, job).OK }
	}
	plain := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	defer plain.CloseIdleConnections()
	bare := func(ctx context.Context) bool {
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(payload))
		req.Header.Set("Content-Type", "application/json")
		resp, err := plain.Do(req)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		io.Copy(io.Discard, resp.Body)
		return resp.StatusCode == http.StatusOK
	}
	cases := []struct {
		name string
		once func(context.Context) bool
	}{{"bare", bare}, {"unsigned", send()}, {"signed", send("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")}}
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(4)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					deliverOnce(b, c.once)
				}
			})
		})
	}
	// Both are measured in turns, so that other load on the machine affects both alike.
	b.Run("in turns", func(b *testing.B) {
		spent := make([]time.Duration, len(cases))
		for b.Loop() {
			for i, c := range cases {
				began := time.Now()
				var senders sync.WaitGroup
				for range 8 {
					senders.Go(func() {
						for range 50 {
							deliverOnce(b, c.once)
						}
					})
				}
				senders.Wait()
				spent[i] += time.Since(began)
			}
		}
		for i, c := range cases[1:] {
			b.ReportMetric(float64(spent[0])/float64(spent[i+1]), c.name+"/bare")
		}
	})
}

func deliverOnce(b *testing.B, once func(context.Context) bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if !once(ctx) {
		b.Error("not delivered")
	}
}

// quickServer answers every request with 200 ok, at the lowest cost.
func quickServer(b *testing.B) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go quickAnswers(conn)
		}
	}()
	return l.Addr().String()
}

func quickAnswers(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	for {
		length := 0
		for {
			line, err := r.ReadSlice('\n')
			if err != nil {
				return
			}
			if len(line) == 2 {
				break
			}
			if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
				length, _ = strconv.Atoi(string(bytes.TrimSpace(value)))
			}
		}
		if _, err := r.Discard(length); err != nil {
			return
		}
		if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"); err != nil {
			return
		}
	}
}
