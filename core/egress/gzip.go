package egress

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
)

// errGzip is the error of a reply that begins as gzip and breaks off.
var errGzip = errors.New("the reply is broken gzip")

// unpacked reads up to most bytes of a reply. The reply may be compressed although no
// request asks for it: HTTP permits that, and some servers and proxies do it. It unpacks
// gzip, up to most bytes. It leaves any other compression packed, and returns its name. It
// also leaves a reply unchanged whose header says gzip and whose body is not. With an error
// it returns the bytes before the error.
func unpacked(resp *http.Response, most int64) (body []byte, other string, err error) {
	switch coding := codingOf(resp.Header); coding {
	case "", "identity":
	case "gzip", "x-gzip":
		body, err = unzipped(resp.Body, most)
		return body, "", err
	default:
		other = coding
	}
	body, err = io.ReadAll(io.LimitReader(resp.Body, most))
	return body, other, err
}

// unzipped reads a reply whose header says gzip.
func unzipped(reply io.Reader, most int64) (body []byte, err error) {
	c := &connectionReader{from: reply}
	from := bufio.NewReader(c)
	if head, _ := from.Peek(2); string(head) != "\x1f\x8b" {
		return io.ReadAll(io.LimitReader(from, most))
	}
	body, err = unzip(from, most)
	if err != nil && c.err == nil {
		err = errGzip
	}
	return body, err
}

func codingOf(h http.Header) string {
	return strings.ToLower(strings.TrimSpace(strings.Join(h["Content-Encoding"], ", ")))
}

func unzip(from io.Reader, most int64) ([]byte, error) {
	z, err := gzip.NewReader(from)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(z, most))
}

// A connectionReader remembers the error of its connection. The gzip reader reports the
// same error for a reply that ends too early, so the two could not be distinguished.
type connectionReader struct {
	from io.Reader
	err  error
}

func (c *connectionReader) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	if err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
}
