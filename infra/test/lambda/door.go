//go:build linux

package lambda

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// A Door turns HTTP requests into events of format 2.0 and results back into answers.
type Door struct {
	// Route returns the function for a request; nil means 404.
	Route func(*http.Request) *Function
	// URL makes the door a function URL instead of an HTTP API. They differ in the answers for
	// failed functions, and in the place of cookies.
	URL bool
	// Stage is the first segment of every path of an HTTP API. An empty Stage stands for
	// $default, which is not in paths.
	Stage string
}

// Limits of an HTTP API.
const (
	maxHeaders       = 10240 // bytes of the request line and all headers
	integrationLimit = 30 * time.Second
)

// An event is the payload of a function for a request.
type event struct {
	Version         string            `json:"version"`
	RouteKey        string            `json:"routeKey"`
	RawPath         string            `json:"rawPath"`
	RawQueryString  string            `json:"rawQueryString"`
	Cookies         []string          `json:"cookies,omitempty"`
	Headers         map[string]string `json:"headers"`
	RequestContext  requestContext    `json:"requestContext"`
	Body            string            `json:"body,omitempty"`
	IsBase64Encoded bool              `json:"isBase64Encoded"`
}

type requestContext struct {
	AccountID    string `json:"accountId"`
	APIID        string `json:"apiId"`
	DomainName   string `json:"domainName"`
	DomainPrefix string `json:"domainPrefix"`
	HTTP         struct {
		Method    string `json:"method"`
		Path      string `json:"path"`
		Protocol  string `json:"protocol"`
		SourceIP  string `json:"sourceIp"`
		UserAgent string `json:"userAgent"`
	} `json:"http"`
	RequestID string `json:"requestId"`
	RouteKey  string `json:"routeKey"`
	Stage     string `json:"stage"`
	Time      string `json:"time"`
	TimeEpoch int64  `json:"timeEpoch"`
}

// An answered is the response of a function.
type answered struct {
	StatusCode      int               `json:"statusCode"`
	Headers         map[string]string `json:"headers"`
	Cookies         []string          `json:"cookies"`
	Body            string            `json:"body"`
	IsBase64Encoded bool              `json:"isBase64Encoded"`
}

// ServeHTTP passes one request through a function.
func (d Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	f := d.Route(r)
	if f == nil {
		d.fail(w, http.StatusNotFound, "Not Found")
		return
	}
	if !d.URL && headerSize(r) > maxHeaders {
		d.fail(w, http.StatusRequestHeaderFieldsTooLarge, "Request Header Fields Too Large")
		return
	}
	payload, err := json.Marshal(d.event(r, body))
	if err != nil || len(payload) > maxSync {
		d.fail(w, http.StatusRequestEntityTooLarge, "Request Entity Too Large")
		return
	}
	result, err := d.invoke(f, payload)
	if err != nil {
		d.fail(w, http.StatusServiceUnavailable, "Service Unavailable")
		return
	}
	d.reply(w, result)
}

// invoke stops waiting after the limit of an HTTP API. The function goes on.
func (d Door) invoke(f *Function, payload []byte) (Result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), integrationLimit)
	defer cancel()
	done := make(chan Result, 1)
	go func() { done <- f.Invoke(payload) }()
	for {
		select {
		case r := <-done:
			return r, nil
		case <-ctx.Done():
			if !d.URL {
				return Result{}, errors.New("too slow")
			}
			return <-done, nil
		}
	}
}

func headerSize(r *http.Request) int {
	n := len(r.Method) + len(r.RequestURI) + len(r.Proto)
	for name, values := range r.Header {
		for _, v := range values {
			n += len(name) + len(v) + 4
		}
	}
	return n
}

func (d Door) event(r *http.Request, body []byte) event {
	stage, path := "$default", r.URL.EscapedPath()
	if d.Stage != "" {
		stage, path = d.Stage, "/"+d.Stage+path
	}
	ip, _, _ := net.SplitHostPort(r.RemoteAddr)
	e := event{
		Version: "2.0", RouteKey: "$default", RawPath: path, RawQueryString: r.URL.RawQuery,
		Cookies: cookies(r), Headers: d.headers(r, ip),
	}
	now := time.Now().UTC()
	e.RequestContext = requestContext{
		AccountID: Account, APIID: "a1b2c3d4e5", DomainName: r.Host, DomainPrefix: "a1b2c3d4e5",
		RequestID: "JKJaXmPLvHcESHA=", RouteKey: "$default", Stage: stage,
		Time: now.Format("02/Jan/2006:15:04:05 -0700"), TimeEpoch: now.UnixMilli(),
	}
	h := &e.RequestContext.HTTP
	h.Method, h.Path, h.Protocol, h.SourceIP, h.UserAgent = r.Method, path, r.Proto, ip, r.UserAgent()
	if e.Body = string(body); !isText(r.Header.Get("Content-Type")) || !utf8.Valid(body) {
		e.IsBase64Encoded, e.Body = true, base64.StdEncoding.EncodeToString(body)
	}
	return e
}

// isText reports whether a body of this type is put into events unchanged.
func isText(kind string) bool {
	kind, _, _ = strings.Cut(kind, ";")
	switch kind = strings.TrimSpace(strings.ToLower(kind)); kind {
	case "application/json", "application/javascript", "application/xml", "application/x-www-form-urlencoded":
		return true
	}
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml")
}

func cookies(r *http.Request) (all []string) {
	for _, line := range r.Header.Values("Cookie") {
		for c := range strings.SplitSeq(line, ";") {
			all = append(all, strings.TrimSpace(c))
		}
	}
	return all
}

// headers returns the headers with names in lower case. Several values of a name are joined
// into one.
func (d Door) headers(r *http.Request, ip string) map[string]string {
	h := map[string]string{"host": r.Host}
	for name, values := range r.Header {
		h[strings.ToLower(name)] = strings.Join(values, ",")
	}
	if d.URL {
		delete(h, "cookie")
	}
	if before := h["x-forwarded-for"]; before != "" {
		ip = before + ", " + ip
	}
	maps.Copy(h, map[string]string{
		"x-forwarded-for": ip, "x-forwarded-port": "443", "x-forwarded-proto": "https",
		"x-amzn-trace-id": "Root=1-5e9f0c65-1de4d666d4dd26aced652b6c",
	})
	return h
}

// reply writes the function's response, or the response for a failed function.
func (d Door) reply(w http.ResponseWriter, r Result) {
	switch {
	case r.Error == Throttled && d.URL:
		d.fail(w, http.StatusTooManyRequests, "Rate Exceeded.")
	case r.Error == Throttled:
		d.fail(w, http.StatusServiceUnavailable, "Service Unavailable")
	case r.Error != "" && d.URL:
		d.fail(w, http.StatusBadGateway, "Internal Server Error")
	case r.Error != "":
		d.fail(w, http.StatusInternalServerError, "Internal Server Error")
	default:
		d.write(w, r.Payload)
	}
}

func (d Door) write(w http.ResponseWriter, payload []byte) {
	var a answered
	if err := json.Unmarshal(payload, &a); err != nil || a.StatusCode == 0 {
		// Any other JSON is the body of a response.
		a = answered{StatusCode: http.StatusOK, Headers: map[string]string{"content-type": "application/json"}, Body: string(payload)}
	}
	body := []byte(a.Body)
	if a.IsBase64Encoded {
		decoded, err := base64.StdEncoding.DecodeString(a.Body)
		if err != nil {
			d.fail(w, http.StatusInternalServerError, "Internal Server Error")
			return
		}
		body = decoded
	}
	for _, name := range slices.Sorted(maps.Keys(a.Headers)) {
		w.Header().Set(name, a.Headers[name])
	}
	for _, c := range a.Cookies {
		w.Header().Add("Set-Cookie", c)
	}
	w.Header().Del("Content-Length")
	w.WriteHeader(a.StatusCode)
	_, _ = w.Write(body)
}

func (d Door) fail(w http.ResponseWriter, status int, message string) {
	if d.URL {
		http.Error(w, message, status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"message": message})
}
