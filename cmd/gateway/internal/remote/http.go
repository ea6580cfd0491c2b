package remote

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// HTTPClient makes the client for calls of a gateway; a zero timeout is no bound. The client
// follows no redirects: a token must not go to another server.
func HTTPClient(timeout time.Duration) *http.Client {
	return &http.Client{
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// ParseAddress reads the address of a gateway. The address may have a path, for a gateway
// behind a proxy. A user, password or query is refused: they would show in each error.
func ParseAddress(given string) (*url.URL, error) {
	u, err := url.Parse(given)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("must be an address such as http://127.0.0.1:8888")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("must be an address without user, password, query and fragment")
	}
	return u, nil
}

// Loopback reports whether a host is this machine itself, so that nothing sent to it crosses a
// network.
func Loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}

// Segment escapes a text as one segment of a path: its slashes, and its dots if it is "." or
// "..", which HTTP clients would remove.
func Segment(text string) string {
	if text == "." || text == ".." {
		return strings.Repeat("%2E", len(text))
	}
	return url.PathEscape(text)
}

// Status returns a status code with its words, such as "404 Not Found".
func Status(code int) string {
	if words := http.StatusText(code); words != "" {
		return fmt.Sprint(code, " ", words)
	}
	return strconv.Itoa(code)
}

// Cause returns an error without the address that net/http adds: the address may be secret, or
// is in the message already.
func Cause(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// clip shortens a text of a server to at most this number of characters.
func clip(s string, most int) string {
	runes := []rune(s)
	if len(runes) <= most {
		return s
	}
	return string(runes[:most-1]) + "…"
}
