package egress

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// A sight is a request as a receiver sees it.
type sight struct {
	Method, URI, Host, Body string
	Length                  int64
	Header                  http.Header
}

// TestSameRequest: a receiver sees the same request whether a direct or net/http sends it.
func TestSameRequest(t *testing.T) {
	seen := make(chan sight, 1)
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen <- sight{r.Method, r.RequestURI, r.Host, string(body), r.ContentLength, r.Header}
	})
	client := newClient(t)
	text := rapid.StringN(0, 20, 40)
	value := rapid.StringMatching(`[ -~\t]{0,20}`)
	rapid.Check(t, func(rt *rapid.T) {
		job := taken("J", rapid.OneOf(rapid.Just(""), text).Draw(rt, "payload"))
		job.Event.Source, job.Event.Type, job.Event.ContentType = text.Draw(rt, "source"), text.Draw(rt, "type"), text.Draw(rt, "content type")
		job.Event.Headers = map[string]string{"traceparent": rapid.SampledFrom([]string{"", sent}).Draw(rt, "traceparent"), "tracestate": value.Draw(rt, "tracestate")}
		maps.Copy(job.Event.Headers, rapid.MapOfN(rapid.StringMatching(`ce-[a-z0-9]{1,5}|ce-(id|type|source|specversion|time)`), text, 0, 8).Draw(rt, "attributes"))
		target := Target{
			Name: "billing", Method: rapid.SampledFrom(methods).Draw(rt, "method"),
			URL:     url + rapid.SampledFrom([]string{"", "/", "/a b?", "/%2f/é?q=ü&x=%20", "?", "?a=b#c"}).Draw(rt, "path"),
			Headers: rapid.MapOfN(rapid.SampledFrom([]string{"x-api-key", "User-Agent", "content-type", "ce-type", "idempotency-key", "X-Gateway-Attempt"}), value, 0, 4).Draw(rt, "own headers"),
		}
		if rapid.Bool().Draw(rt, "signed") {
			target.Secrets = []string{vectorSecret}
		}
		sender, err := client.HTTP(target)
		if err != nil {
			rt.Fatal(err)
		}
		s := sender.(*httpSender)
		letter, err := compose(nil, s.method, &job.Event)
		if err != nil {
			rt.Fatal(err)
		}
		d := s.delivery(&job, letter, time.Now())
		if !client.direct.takes(d) {
			rt.Fatalf("a request of %d bytes is not sent directly", d.size())
		}
		sight := func(resp *http.Response, err error) sight {
			if err != nil {
				rt.Fatal(err)
			}
			resp.Body.Close()
			return <-seen
		}
		message, err := d.appendTo(nil)
		if err != nil {
			rt.Fatal(err)
		}
		var written bytes.Buffer
		if err := d.request(rt.Context()).Write(&written); err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(lines(written.String()), lines(string(message))); diff != "" {
			rt.Fatalf("the lines of a direct (+) and those of net/http (-):\n%s", diff)
		}
		direct := sight(client.direct.roundTrip(rt.Context(), d))
		other := sight(client.transport.RoundTrip(d.request(rt.Context())))
		if diff := cmp.Diff(other, direct); diff != "" {
			rt.Fatalf("the request of a direct (+) and that of net/http (-):\n%s", diff)
		}
	})
}

// lines returns the sorted lines of a request, and its body.
func lines(message string) (all []string) {
	head, body, _ := strings.Cut(message, "\r\n\r\n")
	all = strings.Split(head, "\r\n")
	slices.Sort(all)
	return append(all, body)
}

// TestNoRequestInAHeader: no value of a header can end it, should one with a line break get so far.
func TestNoRequestInAHeader(t *testing.T) {
	for _, value := range []string{"a\r\nX-B: c", "a\nb", "a\rb", "a\x00b"} {
		d := newDelivery("POST", newSender(t, newClient(t), Target{URL: "http://example.com"}).(*httpSender).url, nil)
		d.set("X-A", value)
		if message, err := d.appendTo(nil); err == nil || message != nil {
			t.Errorf("%q: message = %q, %v, want an error", value, message, err)
		}
	}
}

// TestTooLargeForADirect: the headers count, and TLS is net/http's.
func TestTooLargeForADirect(t *testing.T) {
	client := newClient(t)
	job := taken("J", "{}")
	for _, c := range []struct {
		url, header string
		want        bool
	}{
		{"http://example.com", "", true},
		{"https://example.com", "", false},
		{"http://example.com", strings.Repeat("x", maxDirect), false},
		{"http://example.com/?" + strings.Repeat("x", maxDirect), "", false},
	} {
		s := newSender(t, client, Target{URL: c.url, Headers: map[string]string{"X-A": c.header}}).(*httpSender)
		if got := client.direct.takes(s.delivery(&job, Letter{}, time.Now())); got != c.want {
			t.Errorf("%.30s, a header of %d bytes: sent directly = %t, want %t", c.url, len(c.header), got, c.want)
		}
	}
}

// TestAnswersWithoutReading: the answer counts of a receiver that does not read the request.
func TestAnswersWithoutReading(t *testing.T) {
	ended := make(chan bool)
	defer close(ended)
	url := "http://" + accept(t, func(conn net.Conn) {
		say("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")(conn)
		<-ended
	})
	got := send(t, newSender(t, newClient(t), Target{URL: url}), taken("J", strings.Repeat("x", maxDirect-1000)))
	checkFailure(t, got, 503, "status: 503 Service Unavailable")
}

// TestClosedClient: a client that was closed sends, and keeps no connection.
func TestClosedClient(t *testing.T) {
	client, spies := spyOn(t)
	s := newSender(t, client, Target{URL: serve(t, func(http.ResponseWriter, *http.Request) {})})
	send(t, s, taken("J", "{}"))
	client.Close()
	<-(<-spies).closed
	if got := send(t, s, taken("J", "{}")); !got.OK {
		t.Errorf("Send() = %+v, want it delivered", got)
	}
	<-(<-spies).closed
}

// TestCanceledBefore: nothing is sent for an attempt that has ended before.
func TestCanceledBefore(t *testing.T) {
	handler := &counter{requests: map[string]int{}}
	s := newSender(t, newClient(t), Target{URL: serve(t, handler.ServeHTTP)})
	send(t, s, taken("FIRST", "{}"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	checkFailure(t, s.Send(ctx, taken("SECOND", "{}")), 0, "timeout: given up before there was an answer")
	send(t, s, taken("THIRD", "{}"))
	if n := handler.of("SECOND"); n != 0 {
		t.Errorf("the handler saw %d, want none", n)
	}
}

// TestDialOutlivesItsAttempt: a connection that took longer than the attempt is there for the next
// one.
func TestDialOutlivesItsAttempt(t *testing.T) {
	client, dials, reached := newClient(t), 0, make(chan bool)
	client.direct.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		dials++
		<-reached
		return client.dialer.DialContext(ctx, network, address)
	}
	s := newSender(t, client, Target{URL: serve(t, func(http.ResponseWriter, *http.Request) {})})
	ctx, cancel := core.WithLimit(t.Context(), 50*time.Millisecond)
	defer cancel()
	checkFailure(t, s.Send(ctx, taken("FIRST", "{}")), 0, "timeout: no answer within 50ms")
	close(reached)
	wait.For(t, 10*time.Second, "the connection is kept", func() bool {
		client.direct.mu.Lock()
		defer client.direct.mu.Unlock()
		return len(client.direct.idle) == 1
	})
	if got := send(t, s, taken("SECOND", "{}")); !got.OK || dials != 1 {
		t.Errorf("Send() = %+v after %d dials, want it delivered after one", got, dials)
	}
}
