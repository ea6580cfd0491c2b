package egress

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/sns"
	"github.com/eventgateway/gateway/infra/test/snsrig"
)

// get makes a request with a deadline that is far away.
func get(t testing.TB, c *Client, url string, limit int64) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return c.Get(ctx, url, limit)
}

func TestGet(t *testing.T) {
	client := newClient(t)
	for what, c := range map[string]struct {
		status, length int
		chunked        bool
		limit          int64
		want           string // error
	}{
		"a body":           {status: 200, length: 100, limit: 1000},
		"exactly enough":   {status: 200, length: 1000, limit: 1000},
		"one byte more":    {status: 200, length: 1001, limit: 1000, want: ": protocol: the answer is longer than 1000 bytes"},
		"chunks":           {status: 200, length: 1000, limit: 1000, chunked: true},
		"a chunk too much": {status: 200, length: 1001, limit: 1000, chunked: true, want: ": protocol: the answer is longer than 1000 bytes"},
		"nothing":          {status: 200, limit: 0},
		"404":              {status: 404, length: 10, limit: 1000},
		"503":              {status: 503, length: 10, limit: 1000},
	} {
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != "GET" || r.UserAgent() != "gateway/1.2.3" || r.URL.RawQuery != "a=b" || r.Header.Get("Accept-Encoding") != "" {
				t.Errorf("%s: %s %s, %v", what, r.Method, r.URL, r.Header)
			}
			w.WriteHeader(c.status)
			if c.chunked {
				http.NewResponseController(w).Flush()
			}
			w.Write(make([]byte, c.length))
		})
		status, body, err := get(t, client, url+"/x?a=b#f", c.limit)
		if c.want != "" {
			if err == nil || !strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("Get(%s) = %v, want an error that ends in %q", what, err, c.want)
			}
		} else if err != nil || status != c.status || len(body) != c.length {
			t.Errorf("Get(%s) = %d, %d bytes, %v", what, status, len(body), err)
		}
	}
}

func TestGetFollowsNothing(t *testing.T) {
	witness := newWitness(t)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:"+witness.port, http.StatusFound)
	})
	if status, _, err := get(t, newClient(t), url, 1000); status != http.StatusFound || err != nil {
		t.Errorf("Get() of a redirect = %d, %v, want the redirect itself", status, err)
	}
	witness.check(t)
}

// TestGetFails: an error begins with its class. It contains the host, and no other part of the
// URL.
func TestGetFails(t *testing.T) {
	witness := newWitness(t)
	closed := New(Options{})
	defer closed.Close()
	open := newClient(t)
	const secret = "/s3cret?token=s3cret"
	for _, c := range []struct {
		client    *Client
		url, want string
	}{
		{closed, "http://127.0.0.1:" + witness.port + secret, "blocked: 127.0.0.1 is a loopback address (server.allow_private_urls is false)"},
		{closed, "http://[::1]:" + witness.port + secret, "blocked: "},
		{open, "http://169.254.169.254" + secret, "blocked: "},
		{open, "http://user:s3cret@127.0.0.1:" + witness.port, "the URL to get must not hold a user name or password"},
		{open, "file://localhost" + secret, "the URL to get must start with http:// or https://"},
		{open, "gopher://localhost" + secret, "the URL to get must start with http:// or https://"},
		{open, secret, "the URL to get must start with http:// or https://"},
		{open, "http://2130706433:" + witness.port + secret, "the URL to get has a host that is almost an IPv4 address"},
		{open, "http://" + free(t) + secret, "connect: connection refused"},
		{open, serveRaw(t, say("garbage\r\n")) + secret, "protocol: "},
		{open, serveRaw(t, say("")) + secret, "protocol: connection closed"},
		{open, serveRaw(t, say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")) + secret, "protocol: connection closed"},
		{open, strings.Replace(serve(t, http.NotFound), "http", "https", 1) + secret, "tls: "},
	} {
		_, body, err := get(t, c.client, c.url, 1000)
		if err == nil || body != nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("Get(%s) = %v, want %q", c.url, err, c.want)
		}
	}
	witness.check(t)
}

// free returns an address without a listener.
func free(t testing.TB) string {
	l := listen(t)
	l.Close()
	return l.Addr().String()
}

// TestGetTimesOut: the deadline includes reading the body.
func TestGetTimesOut(t *testing.T) {
	client := newClient(t)
	for what, talk := range map[string]func(net.Conn){
		"silence":       func(conn net.Conn) { conn.Read(make([]byte, 1)) },
		"half a header": func(conn net.Conn) { say("HTTP/1.1 200 OK\r\nX: ")(conn); conn.Read(make([]byte, 1)) },
		"half a body": func(conn net.Conn) {
			say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")(conn)
			conn.Read(make([]byte, 1))
		},
		"drops": func(conn net.Conn) { say("HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n")(conn); drip(".")(conn) },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, _, err := client.Get(ctx, serveRaw(t, talk)+"/?token=s3cret", 100_000)
		cancel()
		if err == nil || !strings.Contains(err.Error(), ": timeout: ") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("Get(%s) = %v, want a timeout", what, err)
		}
	}
}

// TestGetForSNS: a signing certificate is trusted only if the right host sent it over valid
// TLS.
func TestGetForSNS(t *testing.T) {
	rig := snsrig.New(t)
	open := func(client *Client) (sns.Message, error) {
		topic := sns.NewTopic(sns.Options{Certificates: sns.NewCertificates(client.Get, nil), Fetch: client.Get})
		return topic.Open(t.Context(), netip.Addr{}, rig.Message("SubscriptionConfirmation", "2", "text", "").JSON())
	}
	client := newClient(t)
	client.transport.DialContext = rig.Dial
	if _, err := open(client); err == nil || !strings.Contains(err.Error(), "tls: ") {
		t.Errorf("Open() with a host nobody vouches for = %v, want an error of class tls", err)
	}
	if len(rig.Visits()) != 0 {
		t.Errorf("visits: %q", rig.Visits())
	}
	client = newClient(t)
	client.transport.DialContext = rig.Dial
	client.transport.TLSClientConfig.RootCAs = rig.Roots
	if m, err := open(client); err != nil || m.Type != sns.SubscriptionConfirmation || len(rig.Visits()) != 2 {
		t.Errorf("Open() = %+v, %v; visits: %q", m, err, rig.Visits())
	}
	rig.Answer(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://"+rig.Host+"/elsewhere", http.StatusMovedPermanently)
	})
	_, err := open(client)
	if _, refused := errors.AsType[*core.Refusal](err); refused || err == nil || !strings.Contains(err.Error(), "status 301") {
		t.Errorf("Open() with a certificate that moved = %v, want an error that is no refusal", err)
	}
	if n := len(rig.Visits()); n != 3 {
		t.Errorf("%d visits, want 3, none of them elsewhere: %q", n, rig.Visits())
	}
}
