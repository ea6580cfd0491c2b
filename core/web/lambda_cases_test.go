package web_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// mirror replies with the request as its handler sees it. Header fields in several lines are joined
// as a front door joins them.
func mirror(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	host, _, split := net.SplitHostPort(r.RemoteAddr)
	header := map[string]string{}
	for name, values := range r.Header {
		header[name] = strings.Join(values, ",")
	}
	delete(header, "Content-Length")
	cookies := []string{}
	for _, c := range r.Cookies() {
		cookies = append(cookies, c.String())
	}
	delete(header, "Cookie")
	shown, _ := json.MarshalIndent(map[string]any{
		"method": r.Method, "target": r.RequestURI, "path": r.URL.Path, "raw": r.URL.RawPath, "escaped": r.URL.EscapedPath(),
		"query": r.URL.RawQuery, "values": r.URL.Query(), "url": r.URL.String(), "host": r.Host, "from": host, "ported": split == nil,
		"header": header, "cookies": cookies, "length": max(r.ContentLength, int64(len(body))), "body": fmt.Sprintf("%q", body),
		"proto": r.Proto, "error": err,
	}, "", " ")
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(shown)
}

// seen are requests in which front doors, the library or we could change something.
var seen = []string{
	"GET / HTTP/1.1",
	"GET /a/b/ HTTP/1.1",
	"GET /a//b/../c/./ HTTP/1.1",
	"GET //a/b HTTP/1.1",
	"GET /prod HTTP/1.1",
	"GET /prod/prod HTTP/1.1",
	"GET /production HTTP/1.1",
	"GET /a%2Fb%2fc/%41%7E~ HTTP/1.1",
	"GET /a%20b+c%C3%A9 HTTP/1.1",
	"GET /caf\\xc3\\xa9 HTTP/1.1",
	"GET /a:b@c,d;e=f&g!$'()* HTTP/1.1",
	"GET /a%3Fb%23c HTTP/1.1",
	"GET /a%00b HTTP/1.1",
	"GET /a?b=1&b=2&a=3 HTTP/1.1",
	"GET /a?b=%zz&c=%&d HTTP/1.1",
	"GET /a?b;c&=&&d=? HTTP/1.1",
	"GET /a?q=a+b%20c%2B%26 HTTP/1.1",
	"GET /a?caf\\xc3\\xa9=\"<>\" HTTP/1.1",
	"HEAD /a HTTP/1.1",
	"OPTIONS /a HTTP/1.1",
	"DELETE /a HTTP/1.1",
	"PURGE /a HTTP/1.1",
	"get /a HTTP/1.1",
	"POST /a HTTP/1.1\nStripe-Signature: t=1,v1=abc,v1=def\nDate: Sun, 22 Nov 2026 12:00:00 GMT\nWebhook-Signature: v1,abc= v1,def=\nIdempotency-Key: a, b,c\n\n{}",
	"POST /a HTTP/1.1\nX-Forwarded-For: 6.6.6.6, 9.9.9.9\nX-Forwarded-For: 7.7.7.7\n\n",
	"GET /a HTTP/1.1\nCookie: a=1; b=\"2,3\"; c=",
	"GET /a HTTP/1.1\nCookie: a=1\nCookie: b=2",
	"GET /a HTTP/1.1\nAccept: a,b\nAccept: c",
	"GET /a HTTP/1.1\nX-Name: caf\\xc3\\xa9 \\xe2\\x9c\\x93",
	"GET /a HTTP/1.1\nX-Empty:\nx_low: 1\nX-Quoted: \"a\\\\b\"",
	"POST /a HTTP/1.1\nContent-Type: text/plain\n\n\\xff\\xfe\\x00binary",
	"POST /a HTTP/1.1\nContent-Type: application/octet-stream\n\ntext all the same",
	"POST /a HTTP/1.1\nContent-Type: application/json\n\n{\"a\": \"<&>\\xe2\\x80\\xa8\"}",
	"POST /a HTTP/1.1\nTransfer-Encoding: chunked\n\n4\nabcd\n0",
	"POST /a HTTP/1.1\n\n" + strings.Repeat("x", 1<<20+1),
}

// TestFunctionsSeeTheRequest: a handler in a function sees the same request as behind net/http.
func TestFunctionsSeeTheRequest(t *testing.T) {
	for name, d := range map[string]door{"api": {}, "stage": {stage: "prod"}, "url": {url: true}} {
		d.handler = http.HandlerFunc(mirror)
		for _, request := range seen {
			t.Run(name, func(t *testing.T) {
				section := txtar.File{Data: []byte(request)}
				want, got := exchange(t, serveHandler(t, http.HandlerFunc(mirror)), section), exchange(t, serveHandler(t, d), section)
				if diff := cmp.Diff(unconnected(want), unconnected(got)); diff != "" {
					t.Errorf("%.60s (-directly +by a function):\n%s", request, diff)
				}
			})
		}
	}
}

// TestFunctionsSendTheReply: a handler is understood as net/http understands it.
func TestFunctionsSendTheReply(t *testing.T) {
	say := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status); _, _ = io.WriteString(w, body) }
	}
	handlers := map[string]http.HandlerFunc{
		"nothing":           func(http.ResponseWriter, *http.Request) {},
		"only headers":      func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-A", "1") },
		"an empty body":     func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(nil) },
		"200":               say(200, "plain"),
		"201 and nothing":   say(201, ""),
		"204":               say(204, ""),
		"204 and a body":    say(204, "none"),
		"304":               say(304, "none"),
		"404":               say(404, "not here"),
		"HTML by its looks": say(200, "<html>hello</html>"),
		"bytes":             say(200, "\xff\x00\xfe"),
		"JSON":              say(200, `{"a":"<&>\u2028"}`),
		"two statuses": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(202)
			w.WriteHeader(500)
			_, _ = io.WriteString(w, "first")
		},
		"early hints": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200) },
		"a header too late": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "body")
			w.Header().Set("X-Late", "1")
		},
		"a value changed too late": func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["X-A"] = []string{"1"}
			w.WriteHeader(200)
			w.Header()["X-A"][0] = "2"
		},
		"several cookies": func(w http.ResponseWriter, _ *http.Request) {
			http.SetCookie(w, &http.Cookie{Name: "a", Value: "1, 2", Path: "/"})
			http.SetCookie(w, &http.Cookie{Name: "b", Value: "2", HttpOnly: true})
		},
		"several values": func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Vary"] = []string{"Accept", "Origin"}
			w.Header()["Www-Authenticate"] = []string{`Bearer realm="a,b"`}
		},
		"several writes": func(w http.ResponseWriter, _ *http.Request) {
			for i := range 3 {
				fmt.Fprintf(w, "<%d>", i)
			}
		},
		"a length of its own": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "4")
			_, _ = io.WriteString(w, "four")
		},
	}
	for _, name := range slices.Sorted(maps.Keys(handlers)) {
		for _, method := range []string{"GET", "HEAD", "POST"} {
			t.Run(method+" "+name, func(t *testing.T) {
				section := txtar.File{Data: []byte(method + " / HTTP/1.1")}
				want := exchange(t, serveHandler(t, handlers[name]), section)
				got := exchange(t, serveHandler(t, door{handler: handlers[name]}), section)
				if diff := cmp.Diff(joined(want), joined(got)); diff != "" {
					t.Errorf("(-directly +by a function):\n%s", diff)
				}
			})
		}
	}
}

// joined is a reply with the values of each header in one line, as a function sends them,
// but for cookies.
func joined(reply string) string {
	head, body, _ := strings.Cut(unconnected(reply), "\n\n")
	lines, at := []string{}, map[string]int{}
	for line := range strings.SplitSeq(head, "\n") {
		name, value, _ := strings.Cut(line, ": ")
		if i, known := at[name]; known && name != "Set-Cookie" {
			lines[i] += "," + value
			continue
		}
		at[name] = len(lines)
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n") + "\n\n" + body
}
