package sink

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/cmd/bench/internal/event"
)

func listen(t *testing.T, cfg Config) *Sink {
	t.Helper()
	s, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func deliver(t *testing.T, s *Sink, seq int, header http.Header) {
	t.Helper()
	body := event.Body(1024)
	event.Stamp(body, seq, 1_700_000_000_000_000_000)
	post(t, s, body, header)
}

func post(t *testing.T, s *Sink, body []byte, header http.Header) {
	t.Helper()
	postTo(t, s, "", body, header)
}

func postTo(t *testing.T, s *Sink, path string, body []byte, header http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if header != nil {
		req.Header = header
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("status = %d, want 200", res.StatusCode)
	}
}

func TestCountsUniqueRepeatedAndStrange(t *testing.T) {
	s := listen(t, Config{Events: 3})
	for _, seq := range []int{0, 2, 2, 0, 2, 3} {
		deliver(t, s, seq, nil)
	}
	post(t, s, []byte(`{"hello": 1}`), nil)
	want := Counts{Unique: 2, Duplicated: 3, Strange: 2}
	if got := s.Counts(); got != want {
		t.Errorf("Counts() = %+v, want %+v", got, want)
	}
	if s.First(0) == 0 || s.First(1) != 0 || s.First(2) < s.First(0) {
		t.Errorf("First = %d, %d, %d, want a time, none, a later time", s.First(0), s.First(1), s.First(2))
	}
}

func TestStepsAreToldApart(t *testing.T) {
	s := listen(t, Config{Events: 2, Steps: 3})
	body := event.Body(1024)
	arrive := func(seq int, step string) {
		event.Stamp(body, seq, 1_700_000_000_000_000_000)
		postTo(t, s, step, body, nil)
	}
	arrive(0, "0")
	arrive(0, "1")
	if n := s.Unique(); n != 0 {
		t.Errorf("Unique() = %d before the last step, want 0", n)
	}
	arrive(0, "2")
	arrive(1, "1")
	arrive(1, "1")
	arrive(1, "2") // without its first step
	if got, want := s.Counts(), (Counts{Unique: 2, Duplicated: 1}); got != want {
		t.Errorf("Counts() = %+v, want %+v", got, want)
	}
	if n := s.Skipped(); n != 1 {
		t.Errorf("Skipped() = %d, want 1", n)
	}
}

func TestSignatureIsChecked(t *testing.T) {
	// The expected value was computed with openssl:
	// printf 'msg_1.1700000000.%s' "$body" | openssl dgst -sha256 -hmac key -binary | base64
	body := event.Body(event.MinSize)
	event.Stamp(body, 0, 1_700_000_000_000_000_000)
	good := http.Header{
		"Webhook-Id": {"msg_1"}, "Webhook-Timestamp": {"1700000000"},
		"Webhook-Signature": {"v1,YKP8mSfgmCYinN2i9Iu9hhwLcb/Om1C+4aZdEWYFCYI="},
	}
	bad := good.Clone()
	bad.Set("Webhook-Id", "msg_2")
	s := listen(t, Config{Events: 1, Key: []byte("key")})
	post(t, s, body, good)
	if got := s.Counts().Unsigned; got != 0 {
		t.Errorf("unsigned after a good signature = %d, want 0", got)
	}
	post(t, s, body, bad)
	post(t, s, body, nil)
	if got := s.Counts().Unsigned; got != 2 {
		t.Errorf("unsigned after two bad ones = %d, want 2", got)
	}
}

func TestWait(t *testing.T) {
	s := listen(t, Config{Events: 2})
	if s.Wait(t.Context(), 1, time.Millisecond) {
		t.Error("Wait without deliveries = true, want false after the stall")
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if s.Wait(cancelled, 1, time.Minute) {
		t.Error("Wait with an ended context = true")
	}
	done := make(chan bool)
	go func() { done <- s.Wait(t.Context(), 2, time.Minute) }()
	deliver(t, s, 0, nil)
	deliver(t, s, 1, nil)
	if !<-done || !s.Wait(t.Context(), 2, time.Minute) {
		t.Error("Wait after both deliveries = false")
	}
}

func TestDelayHoldsTheAnswer(t *testing.T) {
	s := listen(t, Config{Events: 1, Delay: 5 * time.Millisecond})
	deliver(t, s, 0, nil)
	if got := s.Held(); got < 5*time.Millisecond {
		t.Errorf("Held() = %v, want at least 5ms", got)
	}
}

func TestCloseEndsAHangingDelivery(t *testing.T) {
	s := listen(t, Config{Events: 1, Hang: true})
	body := event.Body(100)
	failed := make(chan error)
	go func() {
		res, err := http.Post(s.URL(), "application/json", bytes.NewReader(body))
		if err == nil {
			_ = res.Body.Close()
		}
		failed <- err
	}()
	if !s.Wait(t.Context(), 1, time.Minute) {
		t.Fatal("the delivery did not arrive")
	}
	s.Close()
	if err := <-failed; err == nil {
		t.Error("a delivery to a hanging sink was answered")
	}
}

func TestUnreadableDeliveryIsReported(t *testing.T) {
	s := listen(t, Config{Events: 1})
	c, err := net.Dial("tcp", strings.Trim(strings.TrimPrefix(s.URL(), "http:"), "/"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
	_, _ = io.Copy(io.Discard, c) // until the sink hangs up
	s.Close()
	if got := s.Counts().Err; got == nil {
		t.Error("Err = nil, want the chunked delivery")
	}
}
