package wire

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestNextReadsMessagesHoweverTheyArrive(t *testing.T) {
	stream := "POST /a HTTP/1.1\r\nHost: x\r\ncontent-length: 3\r\n\r\nabc" +
		"HTTP/1.1 204 No Content\r\n\r\n" +
		"HTTP/1.1 202 Accepted\r\nCONTENT-LENGTH:  2 \r\nx: y\r\n\r\nok"
	readers := map[string]io.Reader{
		"at once":     strings.NewReader(stream),
		"byte by one": iotest.OneByteReader(strings.NewReader(stream)),
		"in halves":   iotest.HalfReader(strings.NewReader(stream)),
	}
	for name, in := range readers {
		r := NewReader(in)
		for _, want := range []string{"abc", "", "ok"} {
			_, body, err := r.Next()
			if err != nil || string(body) != want {
				t.Fatalf("%s: Next() = %q, %v, want %q", name, body, err, want)
			}
		}
		if _, _, err := r.Next(); err != io.EOF {
			t.Errorf("%s: Next() at the end = %v, want EOF", name, err)
		}
	}
}

func TestNextGrowsForALargeBody(t *testing.T) {
	body := strings.Repeat("x", 100_000)
	r := NewReader(strings.NewReader("POST / HTTP/1.1\r\nContent-Length: 100000\r\n\r\n" + body))
	_, got, err := r.Next()
	if err != nil || string(got) != body {
		t.Errorf("Next() = %d bytes, %v, want %d", len(got), err, len(body))
	}
}

func TestNextRefuses(t *testing.T) {
	cases := []struct {
		in   string
		want error
	}{
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", ErrChunked},
		{"HTTP/1.1 200 OK\r\nContent-Length: 1x\r\n\r\n", ErrLength},
		{"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", ErrLength},
		{"HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n\r\n", ErrTooLarge},
		{strings.Repeat("x", MaxMessage+1), ErrTooLarge},
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", io.ErrUnexpectedEOF},
	}
	for _, c := range cases {
		if _, _, err := NewReader(strings.NewReader(c.in)).Next(); !errors.Is(err, c.want) {
			t.Errorf("Next(%.50q) = %v, want %v", c.in, err, c.want)
		}
	}
}

func TestStatus(t *testing.T) {
	cases := map[string]int{
		"HTTP/1.1 202 Accepted\r\nx: y": 202, "HTTP/1.0 503": 503,
		"": 0, "HTTP/1.1 2": 0, "POST / HTTP/1.1": 0, "HTTP/1.1 2x2 ": 0,
	}
	for head, want := range cases {
		if got := Status([]byte(head)); got != want {
			t.Errorf("Status(%q) = %d, want %d", head, got, want)
		}
	}
}

func TestHeader(t *testing.T) {
	head := []byte("POST / HTTP/1.1\r\nWebhook-Id: a\r\nwebhook-timestamp:7")
	cases := map[string]string{"webhook-id": "a", "Webhook-Timestamp": "7"}
	for name, want := range cases {
		if got, ok := Header(head, name); string(got) != want || !ok {
			t.Errorf("Header(%q) = %q, %v, want %q", name, got, ok, want)
		}
	}
	if got, ok := Header(head, "webhook"); ok {
		t.Errorf("Header(webhook) = %q, want none", got)
	}
}
