//go:build linux

package lambda

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// through passes a request through a door and returns the response.
func through(d Door, f *Function, r *http.Request) (*http.Response, string) {
	d.Route = func(*http.Request) *Function { return f }
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	body, _ := io.ReadAll(w.Result().Body) // from a recorder
	return w.Result(), string(body)
}

// TestEvent checks the events for requests. The function answers with its event, which becomes
// the body.
func TestEvent(t *testing.T) {
	t.Parallel()
	f := deploy(t, Options{})
	for _, tt := range []struct {
		name string
		door Door
		want map[string]any
	}{
		{"HTTP API", Door{}, map[string]any{"rawPath": "/a%2Fb/c", "stage": "$default", "cookie": "a=1; b=2"}},
		{"stage", Door{Stage: "prod"}, map[string]any{"rawPath": "/prod/a%2Fb/c", "stage": "prod", "cookie": "a=1; b=2"}},
		{"URL", Door{URL: true}, map[string]any{"rawPath": "/a%2Fb/c", "stage": "$default", "cookie": nil}},
	} {
		r := httptest.NewRequest("POST", "http://gateway.example/a%2Fb/c?x=1&x=2&y=%20", strings.NewReader(`{"a": 1}`))
		r.RemoteAddr = "[2001:db8::7]:4711"
		r.Header = http.Header{"Content-Type": {"application/json; charset=utf-8"}, "X-Many": {"1,2", "3"}, "Cookie": {"a=1; b=2"}, "X-Forwarded-For": {"6.6.6.6"}}
		resp, body := through(tt.door, f, r)
		var e event
		if err := json.Unmarshal([]byte(body), &e); err != nil || resp.StatusCode != 200 {
			t.Fatalf("%s: %d %s", tt.name, resp.StatusCode, body)
		}
		tt.want["version"], tt.want["query"], tt.want["host"] = "2.0", "x=1&x=2&y=%20", "gateway.example"
		tt.want["many"], tt.want["ip"], tt.want["method"] = "1,2,3", "2001:db8::7", "POST"
		tt.want["from"], tt.want["cookies"], tt.want["body"], tt.want["base64"] = "6.6.6.6, 2001:db8::7", "a=1|b=2", `{"a": 1}`, false
		got := map[string]any{
			"rawPath": e.RawPath, "stage": e.RequestContext.Stage, "cookie": nil, "version": e.Version, "query": e.RawQueryString,
			"host": e.Headers["host"], "many": e.Headers["x-many"], "ip": e.RequestContext.HTTP.SourceIP, "method": e.RequestContext.HTTP.Method,
			"from": e.Headers["x-forwarded-for"], "cookies": strings.Join(e.Cookies, "|"), "body": e.Body, "base64": e.IsBase64Encoded,
		}
		if c, ok := e.Headers["cookie"]; ok {
			got["cookie"] = c
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tt.name, diff)
		}
	}
}

// TestBodies: bodies of text types are put into events unchanged, other bodies in base64.
func TestBodies(t *testing.T) {
	t.Parallel()
	f := deploy(t, Options{})
	for _, tt := range []struct {
		kind, body, want string
		encoded          bool
	}{
		{"application/json", `{}`, `{}`, false},
		{"text/plain", "é", "é", false},
		{"application/octet-stream", "abc", "YWJj", true},
		{"", "abc", "YWJj", true},
		{"text/plain", "\xff\x00", "/wA=", true},
		{"application/cloudevents+json; charset=utf-8", `{}`, `{}`, false},
	} {
		r := httptest.NewRequest("POST", "/", strings.NewReader(tt.body))
		r.Header.Set("Content-Type", tt.kind)
		_, body := through(Door{}, f, r)
		var e event
		if err := json.Unmarshal([]byte(body), &e); err != nil {
			t.Fatal(err)
		}
		if e.Body != tt.want || e.IsBase64Encoded != tt.encoded {
			t.Errorf("body %q of type %q: %q, base64 %v, want %q, %v", tt.body, tt.kind, e.Body, e.IsBase64Encoded, tt.want, tt.encoded)
		}
	}
}

// TestAnswers checks the HTTP responses for answers of a function.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, answer string
		status       int
		header, body string
	}{
		{"plain", `{"statusCode": 202, "headers": {"x-a": "1, 2"}, "body": "yes"}`, 202, "X-A: 1, 2|", "yes"},
		{"cookies", `{"statusCode": 200, "cookies": ["a=1; Path=/", "b=2"]}`, 200, "Set-Cookie: a=1; Path=/|Set-Cookie: b=2|", ""},
		{"binary", `{"statusCode": 200, "body": "/wA=", "isBase64Encoded": true}`, 200, "", "\xff\x00"},
		{"several values are not a thing", `{"statusCode": 200, "multiValueHeaders": {"x-a": ["1", "2"]}, "body": "b"}`, 200, "", "b"},
		{"length is counted anew", `{"statusCode": 200, "headers": {"content-length": "7"}, "body": "b"}`, 200, "", "b"},
		{"no answer at all", `{"a":1}`, 200, "Content-Type: application/json|", `{"a":1}`},
		{"not base64", `{"statusCode": 200, "body": "!", "isBase64Encoded": true}`, 500, "Content-Type: application/json|", "{\"message\":\"Internal Server Error\"}\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := deploy(t, Options{Env: []string{"ANSWER=" + tt.answer}})
			resp, body := through(Door{}, f, httptest.NewRequest("GET", "/", nil))
			var header strings.Builder
			_ = resp.Header.Write(&header)
			lines := strings.ReplaceAll(header.String(), "\r\n", "|")
			if resp.StatusCode != tt.status || lines != tt.header || body != tt.body {
				t.Errorf("answer %d %q %q, want %d %q %q", resp.StatusCode, lines, body, tt.status, tt.header, tt.body)
			}
		})
	}
}

// TestDoorsThatStayShut checks the responses for functions that fail, and for requests that do
// not reach a function.
func TestDoorsThatStayShut(t *testing.T) {
	t.Parallel()
	failing := deploy(t, Options{Env: []string{"INIT=exit"}})
	small := deploy(t, Options{})
	full := deploy(t, Options{MaxCopies: 1})
	full.copies = append(full.copies, &Copy{busy: 1, exited: closed(), begun: closed()})
	for _, tt := range []struct {
		name         string
		f            *Function
		header, body int // in bytes
		api, url     int
	}{
		{"no route", nil, 0, 0, 404, 404},
		{"fails", failing, 0, 0, 500, 502},
		{"no copy is free", full, 0, 0, 503, 429},
		{"headers too large", small, maxHeaders, 0, 431, 200},
		{"event too large", small, 0, maxSync * 3 / 4, 413, 413},
	} {
		for _, door := range []Door{{}, {URL: true}} {
			want := tt.api
			if door.URL {
				want = tt.url
			}
			r := httptest.NewRequest("POST", "/", strings.NewReader(strings.Repeat("x", tt.body)))
			r.Header.Set("X-Long", strings.Repeat("x", tt.header))
			if resp, body := through(door, tt.f, r); resp.StatusCode != want {
				t.Errorf("%s, URL %v: %d %.80s, want %d", tt.name, door.URL, resp.StatusCode, body, want)
			}
		}
	}
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}
