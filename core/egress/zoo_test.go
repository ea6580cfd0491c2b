package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/worker"
	"github.com/eventgateway/gateway/infra/test/dnsrig"
)

// TestAnswers holds the outcomes for well-formed answers.
func TestAnswers(t *testing.T) {
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	type header = map[string]string
	for name, c := range map[string]struct {
		status int
		header header
		body   string
		want   worker.Reply
	}{
		"200":            {200, nil, "thanks", worker.Reply{OK: true, StatusCode: 200, Response: "thanks"}},
		"202 empty":      {202, nil, "", worker.Reply{OK: true, StatusCode: 202}},
		"204":            {204, nil, "", worker.Reply{OK: true, StatusCode: 204}},
		"299":            {299, nil, "", worker.Reply{OK: true, StatusCode: 299}},
		"200, later":     {200, header{"Retry-After": "5"}, "", worker.Reply{OK: true, StatusCode: 200}},
		"301 metadata":   {301, header{"Location": "http://169.254.169.254/latest/meta-data?token=s3cret"}, "", worker.Reply{StatusCode: 301, Error: "status: 301 Moved Permanently to 169.254.169.254; redirects are not followed"}},
		"302 relative":   {302, header{"Location": "/elsewhere"}, "", worker.Reply{StatusCode: 302, Error: "status: 302 Found; redirects are not followed"}},
		"307 user":       {307, header{"Location": "https://user:s3cret@example.com/"}, "", worker.Reply{StatusCode: 307, Error: "status: 307 Temporary Redirect to example.com; redirects are not followed"}},
		"308 no URL":     {308, header{"Location": "http://[::1"}, "", worker.Reply{StatusCode: 308, Error: "status: 308 Permanent Redirect; redirects are not followed"}},
		"304":            {304, nil, "", worker.Reply{StatusCode: 304, Error: "status: 304 Not Modified; redirects are not followed"}},
		"400":            {400, nil, `{"error":"no"}`, worker.Reply{StatusCode: 400, Error: "status: 400 Bad Request", Response: `{"error":"no"}`}},
		"400, later":     {400, header{"Retry-After": "5"}, "", worker.Reply{StatusCode: 400, Error: "status: 400 Bad Request"}},
		"401":            {401, nil, "", worker.Reply{StatusCode: 401, Error: "status: 401 Unauthorized"}},
		"404":            {404, nil, "", worker.Reply{StatusCode: 404, Error: "status: 404 Not Found"}},
		"408, later":     {408, header{"Retry-After": "7"}, "", worker.Reply{StatusCode: 408, Error: "status: 408 Request Timeout", RetryAfter: 7 * time.Second}},
		"410":            {410, nil, "", worker.Reply{StatusCode: 410, Error: "status: 410 Gone; the receiver says it is gone for good: correct its url, or remove it"}},
		"425, later":     {425, header{"Retry-After": "7"}, "", worker.Reply{StatusCode: 425, Error: "status: 425 Too Early", RetryAfter: 7 * time.Second}},
		"429":            {429, nil, "", worker.Reply{StatusCode: 429, Error: "status: 429 Too Many Requests"}},
		"429, seconds":   {429, header{"Retry-After": "5"}, "", worker.Reply{StatusCode: 429, Error: "status: 429 Too Many Requests", RetryAfter: 5 * time.Second}},
		"429, date":      {429, header{"Retry-After": "Fri, 20 Nov 2026 09:01:30 GMT"}, "", worker.Reply{StatusCode: 429, Error: "status: 429 Too Many Requests", RetryAfter: 90 * time.Second}},
		"500":            {500, nil, "oops", worker.Reply{StatusCode: 500, Error: "status: 500 Internal Server Error", Response: "oops"}},
		"503, later":     {503, header{"Retry-After": "120"}, "", worker.Reply{StatusCode: 503, Error: "status: 503 Service Unavailable", RetryAfter: 2 * time.Minute}},
		"599":            {599, nil, "", worker.Reply{StatusCode: 599, Error: "status: 599"}},
		"not UTF-8":      {200, nil, "a\xff\xfeb\x00c", worker.Reply{OK: true, StatusCode: 200, Response: "a\uFFFDb\uFFFDc"}},
		"gzip unopened":  {200, header{"Content-Encoding": "gzip"}, "plain", worker.Reply{OK: true, StatusCode: 200, Response: "plain"}},
		"long":           {200, nil, strings.Repeat("x", 5000), worker.Reply{OK: true, StatusCode: 200, Response: strings.Repeat("x", 4096)}},
		"exactly enough": {200, nil, strings.Repeat("x", 4096), worker.Reply{OK: true, StatusCode: 200, Response: strings.Repeat("x", 4096)}},
	} {
		t.Run(name, func(t *testing.T) {
			url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				for k, v := range c.header {
					w.Header().Set(k, v)
				}
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			})
			client := newClient(t)
			client.clock = func() time.Time { return now }
			got := send(t, newSender(t, client, Target{URL: url}), taken("J", "{}"))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("Send() (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDisorderlyAnswers holds the outcomes for malformed answers. Class is the beginning of the
// error, "" for a success.
func TestDisorderlyAnswers(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for name, c := range map[string]struct {
		talk   func(net.Conn)
		status int
		class  string
	}{
		"closes at once":         {say(), 0, "protocol: connection closed before there was an answer"},
		"garbage":                {say("\x16\x03\x01\x00\xffgarbage\r\n\r\n"), 0, "protocol: malformed HTTP response"},
		"half a status line":     {say("HTTP/1.1 2"), 0, "protocol: malformed HTTP status code"},
		"half the headers":       {say(ok, "Content-Le"), 0, "protocol: malformed MIME header"},
		"no such status":         {say("HTTP/1.1 2000 Fine\r\n\r\n"), 0, "protocol: malformed HTTP status code"},
		"huge headers":           {untilClosedAfter(ok, "X-Filler: "+strings.Repeat("x", 1000)+"\r\n"), 0, "protocol: server response headers exceeded 65536 bytes; aborted"},
		"many headers":           {untilClosedAfter(ok, strings.Repeat("X-Filler: y\r\n", 100)), 0, "protocol: server response headers exceeded 65536 bytes; aborted"},
		"endless early hints":    {untilClosed("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"), 0, "protocol: "},
		"early hints":            {say("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", ok, "Content-Length: 2\r\n\r\nok"), 200, ""},
		"switches protocols":     {say("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"), 101, "status: 101 Switching Protocols"},
		"two lengths":            {say(ok, "Content-Length: 2\r\nContent-Length: 3\r\n\r\nokk"), 0, "protocol: "},
		"closes in mid-body":     {say(ok, "Content-Length: 100\r\n\r\nthanks"), 200, ""},
		"bad chunks":             {say(ok, "Transfer-Encoding: chunked\r\n\r\nzz\r\nthanks"), 200, ""},
		"failure cut in body":    {say("HTTP/1.1 500 No\r\nContent-Length: 100\r\n\r\noops"), 500, "status: 500 Internal Server Error"},
		"endless body":           {untilClosedAfter(ok+"\r\n", strings.Repeat("x", 4096)), 200, ""},
		"endless body, failure":  {untilClosedAfter("HTTP/1.1 502 No\r\n\r\n", strings.Repeat("x", 4096)), 502, "status: 502 Bad Gateway"},
		"endless chunks":         {untilClosedAfter(ok+"Transfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n"), 200, ""},
		"HTTP/1.0 until closing": {say("HTTP/1.0 200 OK\r\n\r\nthanks"), 200, ""},
	} {
		for way, payload := range payloads {
			t.Run(name+", "+way, func(t *testing.T) {
				got := send(t, newSender(t, newClient(t), Target{URL: serveRaw(t, c.talk)}), taken("J", payload))
				checkFailure(t, got, c.status, c.class)
			})
		}
	}
}

// TestDeadline: the deadline includes the status line and the body. But once the status has
// come, a body that does not end does not change the outcome.
func TestDeadline(t *testing.T) {
	silence := func(conn net.Conn) { io.Copy(io.Discard, conn) }
	for name, c := range map[string]struct {
		talk   func(net.Conn)
		status int
		class  string
	}{
		"never answers":           {silence, 0, "timeout: no answer within "},
		"drips headers":           {func(conn net.Conn) { say("HTTP/1.1 200 OK\r\n")(conn); drip("X-A: b\r\n")(conn) }, 0, "timeout: no answer within "},
		"drips a status line":     {drip("H"), 0, "timeout: no answer within "},
		"drips a body":            {func(conn net.Conn) { say("HTTP/1.1 200 OK\r\n\r\n")(conn); drip("x")(conn) }, 200, ""},
		"drips a failure's body":  {func(conn net.Conn) { say("HTTP/1.1 503 No\r\n\r\n")(conn); drip("x")(conn) }, 503, "status: 503 Service Unavailable"},
		"promises more than came": {func(conn net.Conn) { say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx")(conn); silence(conn) }, 200, ""},
	} {
		for way, payload := range payloads {
			t.Run(name+", "+way, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second) // a busy machine may take a part of it for the request
				defer cancel()
				s := newSender(t, newClient(t), Target{URL: serveRaw(t, c.talk)})
				began := time.Now()
				checkFailure(t, s.Send(ctx, taken("J", payload)), c.status, c.class)
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("Send() took %v with a deadline of 1s", took)
				}
			})
		}
	}
}

func TestDeadlineInWords(t *testing.T) {
	start := time.Now().Add(time.Hour)
	for _, c := range []struct {
		timeout time.Duration
		want    string
	}{
		{30*time.Second - 21*time.Microsecond, "no answer within 30s"},
		{1500 * time.Millisecond, "no answer within 1.5s"},
		{500*time.Millisecond - 40*time.Microsecond, "no answer within 500ms"},
	} {
		ctx, cancel := context.WithDeadline(t.Context(), start.Add(c.timeout))
		if got := late(ctx, start); got != c.want {
			t.Errorf("late(%v) = %q, want %q", c.timeout, got, c.want)
		}
		cancel()
		if got, want := late(ctx, start), "given up before there was an answer"; got != want {
			t.Errorf("late(cancelled) = %q, want %q", got, want)
		}
	}
}

// TestTimeoutInWords: the error has the configured timeout, not the time that was left when a
// busy machine began the call. A deadline that is sooner than the timeout is told as the time
// that was left.
func TestTimeoutInWords(t *testing.T) {
	for limit, want := range map[time.Duration]string{
		500 * time.Millisecond: "no answer within 500ms",
		30 * time.Second:       "no answer within 30s",
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := core.WithLimit(t.Context(), limit)
			defer cancel()
			sooner, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
			defer cancel()
			start := time.Now().Add(11 * time.Millisecond)
			if got := late(ctx, start); got != want {
				t.Errorf("late(of %v) = %q, want %q", limit, got, want)
			}
			if got, want := late(sooner, start), "no answer within 189ms"; got != want {
				t.Errorf("late(of 200ms in %v) = %q, want %q", limit, got, want)
			}
		})
	}
}

func TestNoConnection(t *testing.T) {
	closed := listen(t)
	closed.Close()
	plain := strings.Replace(serve(t, func(http.ResponseWriter, *http.Request) {}), "http:", "https:", 1)
	for name, c := range map[string]struct{ url, class string }{
		"refused":      {"http://" + closed.Addr().String(), "connect: connection refused"},
		"no such name": {"http://handler.invalid/", "dns: "},
		"not trusted":  {serveTLS(t, nil).URL, "tls: x509: certificate signed by unknown authority"},
		"old TLS":      {serveTLS(t, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}).URL, "tls: "},
		"not TLS":      {plain, "tls: "},
	} {
		t.Run(name, func(t *testing.T) {
			for way, payload := range payloads {
				t.Run(way, func(t *testing.T) {
					got := send(t, newSender(t, newClient(t), Target{URL: c.url + "?token=s3cret"}), taken("J", payload))
					checkFailure(t, got, got.StatusCode, c.class)
				})
			}
		})
	}
}

// TestPlainHTTPToTLS: the receiver answers after the first bytes of a request and closes the
// connection, which resets it. If net/http is still writing then, its error is about the write.
func TestPlainHTTPToTLS(t *testing.T) {
	url := strings.Replace(serveTLS(t, nil).URL, "https:", "http:", 1) + "?token=s3cret"
	for way, payload := range payloads {
		t.Run(way, func(t *testing.T) {
			got := send(t, newSender(t, newClient(t), Target{URL: url}), taken("J", payload))
			status, class := http.StatusBadRequest, "status: 400 Bad Request"
			if way == "net/http" && got.StatusCode == 0 {
				status, class = 0, "protocol: "
			}
			checkFailure(t, got, status, class)
		})
	}
}

func TestSecureHTTP2(t *testing.T) {
	server := serveTLS(t, nil)
	client := newClient(t)
	client.transport.TLSClientConfig.RootCAs = x509.NewCertPool()
	client.transport.TLSClientConfig.RootCAs.AddCert(server.Certificate())
	s := newSender(t, client, Target{URL: server.URL})
	for range 3 {
		got := send(t, s, taken("J", "{}"))
		if want := (worker.Reply{OK: true, StatusCode: 200, Response: "HTTP/2.0 2"}); got != want {
			t.Errorf("Send() = %+v, want %+v", got, want)
		}
	}
}

// TestWrongCertificates: a certificate of a trusted root must also be valid now and for the
// host.
func TestWrongCertificates(t *testing.T) {
	server := serveTLS(t, nil)
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	for name, c := range map[string]struct {
		host  string
		years int
		class string
	}{
		"right":     {"example.com", 0, ""},
		"expired":   {"example.com", 100, "tls: x509: certificate has expired"},
		"too early": {"example.com", -100, "tls: x509: certificate has expired or is not yet valid"},
		"of others": {"handler.test", 0, "tls: x509: certificate is valid for example.com, "},
	} {
		t.Run(name, func(t *testing.T) {
			client := newClient(t)
			client.dialer.Resolver = dnsrig.New(t, func(string, int) []string { return []string{"127.0.0.1"} }).Resolver()
			client.transport.TLSClientConfig.RootCAs = x509.NewCertPool()
			client.transport.TLSClientConfig.RootCAs.AddCert(server.Certificate())
			client.transport.TLSClientConfig.Time = func() time.Time { return time.Now().AddDate(c.years, 0, 0) }
			got := send(t, newSender(t, client, Target{URL: "https://" + c.host + ":" + port + "/?token=s3cret"}), taken("J", "{}"))
			checkFailure(t, got, got.StatusCode, c.class)
		})
	}
}

// TestGoAway: a server that sends GOAWAY after each answer costs only a new connection. A
// request that a server refuses with GOAWAY unread is repeated until the deadline.
func TestGoAway(t *testing.T) {
	client := newClient(t)
	client.transport.TLSClientConfig.InsecureSkipVerify = true
	polite := serveSecure(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") })
	s := newSender(t, client, Target{URL: polite.URL})
	for range 5 {
		if got := send(t, s, taken("J", "{}")); !got.OK {
			t.Errorf("Send() = %+v, want it delivered", got)
		}
	}
	const settings, goAway = "\x00\x00\x00\x04\x00\x00\x00\x00\x00", "\x00\x00\x08\x07\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"
	rude := newRawTLS(t, func(conn net.Conn) {
		say(settings, goAway)(conn)
		io.Copy(io.Discard, conn)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	checkFailure(t, newSender(t, client, Target{URL: rude}).Send(ctx, taken("J", "{}")), 0, "timeout: no answer within ")
}

// newRawTLS runs talk for every connection on which HTTP/2 was agreed to, and
// closes it at the end of the test.
func newRawTLS(t *testing.T, talk func(net.Conn)) string {
	certificate := serveTLS(t, nil).TLS.Certificates
	l := tls.NewListener(listen(t), &tls.Config{Certificates: certificate, NextProtos: []string{"h2"}})
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
			go talk(conn)
		}
	}()
	return "https://" + l.Addr().String()
}

// serveTLS answers with the protocol and the length of the request.
func serveTLS(t *testing.T, config *tls.Config) *httptest.Server {
	return serveWithTLS(t, config, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprint(w, r.Proto, " ", len(body))
	})
}

// serveSecure serves HTTP/2 over TLS.
func serveSecure(t *testing.T, h http.HandlerFunc) *httptest.Server { return serveWithTLS(t, nil, h) }

func serveWithTLS(t *testing.T, config *tls.Config, h http.HandlerFunc) *httptest.Server {
	s := httptest.NewUnstartedServer(h)
	s.TLS, s.EnableHTTP2 = config, config == nil
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func TestCancelled(t *testing.T) {
	for _, payload := range payloads {
		ctx, cancel := context.WithCancel(t.Context())
		url := serveRaw(t, func(conn net.Conn) { cancel(); io.Copy(io.Discard, conn) })
		got := newSender(t, newClient(t), Target{URL: url}).Send(ctx, taken("J", payload))
		checkFailure(t, got, 0, "timeout: given up before there was an answer")
	}
}

// TestEndlessBodyIsCutShort: hookaido (#206) and outpost (#975) read a reply without a bound.
func TestEndlessBodyIsCutShort(t *testing.T) {
	written := make(chan int, 1)
	url := serveRaw(t, func(conn net.Conn) {
		say("HTTP/1.1 200 OK\r\n\r\n")(conn)
		total := 0
		for {
			n, err := io.WriteString(conn, strings.Repeat("x", 1<<10))
			total += n
			if err != nil {
				written <- total
				return
			}
		}
	})
	got := send(t, newSender(t, newClient(t), Target{URL: url}), taken("J", "{}"))
	if len(got.Response) != core.MaxResponse {
		t.Errorf("Send() keeps %d bytes, want %d", len(got.Response), core.MaxResponse)
	}
	// The kernel's buffers hold some bytes more than the 64 KiB that are read.
	if n := <-written; n > 16<<20 {
		t.Errorf("the handler could write %d bytes", n)
	}
}

func checkFailure(t *testing.T, got worker.Reply, status int, class string) {
	t.Helper()
	if got.OK != (class == "") || got.StatusCode != status || !strings.HasPrefix(got.Error, class) {
		t.Errorf("Send() = %+v, want status %d, error %q...", got, status, class)
	}
	if (class == "") != (got.Error == "") {
		t.Errorf("Send() = %+v, want an error exactly if it failed", got)
	}
	if len(got.Error) > maxError || !utf8.ValidString(got.Error) || strings.Contains(got.Error, "s3cret") {
		t.Errorf("Send() error %q is too long, not UTF-8, or tells a secret", got.Error)
	}
}

func untilClosedAfter(first, again string) func(net.Conn) {
	return func(conn net.Conn) {
		say(first)(conn)
		untilClosed(again)(conn)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"":                                  0,
		"0":                                 0,
		"5":                                 5 * time.Second,
		"007":                               7 * time.Second,
		"86400":                             24 * time.Hour,
		"86401":                             24 * time.Hour,
		"1000000000000":                     24 * time.Hour,
		"9223372036854775807":               24 * time.Hour,
		"9223372036854775808":               0, // overflow
		"1e12":                              0,
		"-1":                                0,
		"+5":                                0,
		"1.5":                               0,
		"5 seconds":                         0,
		"soon":                              0,
		"Fri, 20 Nov 2026 09:00:30 GMT":     30 * time.Second,
		"Friday, 20-Nov-26 09:00:30 GMT":    30 * time.Second,
		"Fri Nov 20 09:00:30 2026":          30 * time.Second,
		"Fri, 20 Nov 2026 08:00:00 GMT":     0,
		"Mon, 20 Nov 2028 09:00:00 GMT":     24 * time.Hour,
		"Fri, 31 Dec 9999 23:59:59 GMT":     24 * time.Hour,
		"Mon, 01 Jan 0001 00:00:00 GMT":     0,
		"2026-11-20T09:00:30Z":              0,
		"Fri, 20 Nov 2026 09:00:30 +0100 x": 0,
	} {
		if got := parseRetryAfter(value, now); got != want {
			t.Errorf("parseRetryAfter(%q) = %v, want %v", value, got, want)
		}
	}
}

func TestClean(t *testing.T) {
	for _, c := range []struct {
		in   string
		max  int
		want string
	}{
		{"", 4, ""},
		{"abcd", 4, "abcd"},
		{"abcde", 4, "abcd"},
		{"abcé", 4, "abc"},
		{"ab€", 4, "ab"},
		{"a€b", 4, "a€"},
		{"a\x00b", 9, "a\uFFFDb"},
		{"a\x00b", 4, "a\uFFFD"},
		{"\xff\xff", 9, "\uFFFD"},
		{"a\xffb\xffc\xff", 8, "a\uFFFDb\uFFFD"}, // replacing makes it longer
		{"€", 2, ""},
		{"ab\xe2\x82", 4, "ab"}, // cut in the middle already
	} {
		if got := clean(c.in, c.max); got != c.want {
			t.Errorf("clean(%q, %d) = %q, want %q", c.in, c.max, got, c.want)
		}
	}
}
