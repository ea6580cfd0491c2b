package gateway_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkIntake measures the cost of one event of 2 KB, from the router to the commit on
// SQLite, while 32 senders post at the same time. cpu-µs/event is the processor's time, both
// user and system. Compare the row event, which has one handler, with the row signed, and
// with the row handlers=100, of which one handler matches.
func BenchmarkIntake(b *testing.B) {
	handlers := func(n int) string {
		var all strings.Builder
		for i := range n {
			fmt.Fprintf(&all, "  h%d: {source: shop, events: [type%d.*], url: 'https://handler.example/'}\n", i, i)
		}
		return all.String()
	}
	const secret = "a-secret-of-24-bytes-or-more"
	const item = `{"id":1042,"name":"a thing","price":12.50,"tags":["new","blue"],"stock":{"here":3,"there":null}},`
	body := []byte(`{"items":[` + strings.TrimSuffix(strings.Repeat(item, 20), ",") + `],"type":"type0.created"}`)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	signature := "sha256=" + hex.EncodeToString(mac.Sum(nil))
	for _, bb := range []struct {
		name, source, path string
		handlers           int
	}{
		{"event", "{type: event}", "/events/shop/type0.created", 1},
		{"signed", "{type: webhook, verify: github, secret: " + secret + "}", "/webhooks/shop", 1},
		{"signed/type in body", "{type: webhook, verify: hmac, signature_header: X-Hub-Signature-256, secret: " + secret + "}", "/webhooks/shop", 1},
		{"handlers=100", "{type: event}", "/events/shop/type0.created", 100},
		{"keyed", "{type: event}", "/events/shop/type0.created", 0},
	} {
		b.Run(bb.name, func(b *testing.B) {
			consumers := handlers(bb.handlers)
			if bb.handlers == 0 {
				consumers = "  h: {source: shop, idempotency_key: $.none, url: 'https://handler.example/'}\n"
			}
			c := load(b, "sources: {shop: "+bb.source+"}\nhandlers:\n"+consumers)
			handler := newGateway(b, c, openStore(b, filepath.Join(b.TempDir(), "gateway.db"))).Handler()
			b.SetParallelism(max(1, 32/runtime.GOMAXPROCS(0)))
			before := processorTime()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					r := httptest.NewRequest("POST", bb.path, bytes.NewReader(body))
					r.Header = http.Header{"Content-Type": {"application/json"}, "X-Github-Event": {"type0.created"}, "X-Hub-Signature-256": {signature}}
					if bb.name == "signed/type in body" {
						r.Header.Del("X-Github-Event")
					}
					w := httptest.NewRecorder()
					handler.ServeHTTP(w, r)
					if w.Code >= 300 {
						b.Errorf("POST %s = %d %s", bb.path, w.Code, w.Body)
						return
					}
				}
			})
			b.ReportMetric(float64((processorTime()-before).Microseconds())/float64(b.N), "cpu-µs/event")
		})
	}
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
