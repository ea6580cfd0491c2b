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

// read makes a Reply of an answer and closes it.
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

// readBody returns what is kept of the body. Whatever goes wrong while reading is
// no news: the status line has said how the delivery went. Reading to the end is
// what lets the connection be used again.
func readBody(resp *http.Response) string {
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return "" // the "body" is a connection that waits for us to speak
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

// describeStatus uses our own words for the status, as the handler's reason
// phrase could be anything.
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

// locationHost is where a redirect points, without path and query: those may hold
// secrets. Empty if it stays on the same host.
func locationHost(resp *http.Response) string {
	u, err := url.Parse(resp.Header.Get("Location"))
	if err != nil {
		return ""
	}
	return clean(u.Hostname(), 253)
}

// retryAfter is how long a reply asks to be left alone, in seconds or until a
// date (RFC 9110, section 10.2.3), from 0 to [core.MaxBackoff]. Anything else is
// ignored, and so is the header on a reply that has no business with it.
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

// clean makes text fit for every store: valid UTF-8, no NUL, at most max bytes,
// no half characters.
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
