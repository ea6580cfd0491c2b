package egress

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/worker"
)

const (
	maxReply = 64 << 10 // bytes read of a reply before its connection is closed
	maxError = 512      // bytes of an error
)

// read makes a Reply of a response and closes the response.
func read(resp *http.Response, now time.Time) worker.Reply {
	r := worker.Reply{
		OK:         resp.StatusCode/100 == 2,
		StatusCode: resp.StatusCode,
		Response:   readBody(resp),
	}
	if !r.OK {
		r.Error = clean("status: "+describeStatus(resp), maxError)
		r.RetryAfter = retryAfter(resp, now)
	}
	return r
}

var buffers = sync.Pool{New: func() any { return new([core.MaxResponse]byte) }}

// readBody returns the kept part of the body. An error while reading does not matter: the
// status line has the result of the delivery. Reading to the end permits the reuse of the
// connection.
func readBody(resp *http.Response) string {
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return "" // the "body" is a connection that waits for the client to speak
	}
	if resp.ContentLength == 0 {
		return ""
	}
	buffer := buffers.Get().(*[core.MaxResponse]byte)
	defer buffers.Put(buffer)
	n, err := io.ReadFull(resp.Body, buffer[:])
	if err == nil {
		io.Copy(io.Discard, io.LimitReader(resp.Body, maxReply-core.MaxResponse))
	}
	return clean(string(buffer[:n]), core.MaxResponse)
}

// describeStatus uses the standard text of the status, because the handler's reason phrase
// could be anything.
func describeStatus(resp *http.Response) string {
	status := strings.TrimSpace(strconv.Itoa(resp.StatusCode) + " " + http.StatusText(resp.StatusCode))
	switch {
	case resp.StatusCode == http.StatusGone:
		return status + "; the receiver says it is gone for good: correct its url, or remove it"
	case resp.StatusCode/100 != 3:
		return status
	}
	if host := locationHost(resp); host != "" {
		return fmt.Sprintf("%s to %s; redirects are not followed", status, host)
	}
	return status + "; redirects are not followed"
}

// locationHost returns the host of a redirect, without path and query, which may contain
// secrets. It is empty if the host does not change.
func locationHost(resp *http.Response) string {
	u, err := url.Parse(resp.Header.Get("Location"))
	if err != nil {
		return ""
	}
	return clean(u.Hostname(), 253)
}

// retryAfter returns for how long a reply asks for no further requests, in seconds or until
// a date (RFC 9110, section 10.2.3), from 0 to [core.MaxBackoff]. It ignores any other
// value, and the header on replies with other statuses.
func retryAfter(resp *http.Response, now time.Time) time.Duration {
	switch resp.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
	default:
		if resp.StatusCode/100 != 5 {
			return 0
		}
	}
	return parseRetryAfter(resp.Header.Get("Retry-After"), now)
}

func parseRetryAfter(value string, now time.Time) time.Duration {
	if value != "" && strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return 0
		}
		return time.Duration(min(seconds, int64(core.MaxBackoff/time.Second))) * time.Second
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(date.Sub(now), 0), core.MaxBackoff)
}

// clean makes text suitable for every store: valid UTF-8, no NUL, at most max bytes, no
// partial characters.
func clean(s string, max int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max]
}
