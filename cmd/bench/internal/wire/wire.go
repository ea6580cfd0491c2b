// Package wire reads HTTP/1.1 messages off a connection at the least cost: one buffer, no
// maps, no allocation a message. It reads only the messages that the two ends of a
// benchmark exchange, bodies with a content-length. It refuses all others by name, so that
// a surprise is an error and never a wrong figure.
//
// net/http was measured first and costs about as much CPU as the system under
// test, which shares the cores.
//
// It imports the standard library only.
package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// MaxMessage bounds one message, head and body, in bytes.
const MaxMessage = 1 << 20

var (
	// ErrChunked is a message with a transfer-encoding.
	ErrChunked = errors.New("transfer-encoding is not understood, only content-length")
	// ErrTooLarge is a message above MaxMessage.
	ErrTooLarge = fmt.Errorf("message above %d bytes", MaxMessage)
	// ErrLength is a content-length that is no number.
	ErrLength = errors.New("malformed content-length")
)

// blank ends the head of a message.
var blank = []byte("\r\n\r\n")

// Reader reads one message after the other. It is not safe for concurrent use. buf[start:end]
// is the data that was read and not returned yet.
type Reader struct {
	r          io.Reader
	buf        []byte
	start, end int
}

// NewReader returns a Reader on r.
func NewReader(r io.Reader) *Reader { return &Reader{r: r, buf: make([]byte, 8<<10)} }

// Next returns the head, without its blank line, and the body of the next
// message; both are valid until the next call. It returns io.EOF when the other
// side closed between two messages and io.ErrUnexpectedEOF within one.
func (r *Reader) Next() (head, body []byte, err error) {
	for {
		head, body, total, err := Split(r.buf[r.start:r.end])
		if err != nil {
			return nil, nil, err
		}
		if total > 0 {
			r.start += total
			return head, body, nil
		}
		if err := r.fill(); err != nil {
			return nil, nil, err
		}
	}
}

// fill reads more data after the unread data, which it moves to the front first.
func (r *Reader) fill() error {
	if r.start > 0 {
		r.end = copy(r.buf, r.buf[r.start:r.end])
		r.start = 0
	}
	if r.end == len(r.buf) {
		if len(r.buf) >= MaxMessage {
			return ErrTooLarge
		}
		// The buffer doubles and never shrinks: a connection carries messages of one size.
		r.buf = append(r.buf, make([]byte, len(r.buf))...)
	}
	n, err := r.r.Read(r.buf[r.end:])
	r.end += n
	// Data comes before the error: a reader may return both.
	if n > 0 {
		return nil
	}
	if err == io.EOF && r.end > 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Split cuts the first message off b. A total of 0 says that b holds no complete
// message yet.
func Split(b []byte) (head, body []byte, total int, err error) {
	at := bytes.Index(b, blank)
	if at < 0 {
		return nil, nil, 0, nil
	}
	head = b[:at]
	length, err := contentLength(head)
	if err != nil {
		return nil, nil, 0, err
	}
	total = at + len(blank) + length
	if total > MaxMessage {
		return nil, nil, 0, ErrTooLarge
	}
	if total > len(b) {
		return nil, nil, 0, nil
	}
	return head, b[at+len(blank) : total], total, nil
}

// contentLength returns 0 for a message without the header, such as a request without a
// body or a 204 reply.
func contentLength(head []byte) (int, error) {
	value, ok := Header(head, "Content-Length")
	if !ok {
		if _, chunked := Header(head, "Transfer-Encoding"); chunked {
			return 0, ErrChunked
		}
		return 0, nil
	}
	if len(value) == 0 || len(value) > 9 {
		return 0, ErrLength
	}
	n := 0
	for _, c := range value {
		if c < '0' || c > '9' {
			return 0, ErrLength
		}
		n = n*10 + int(c-'0')
	}
	return n, nil
}

// Header returns the trimmed value of the first field called name, in any case.
func Header(head []byte, name string) ([]byte, bool) {
	for len(head) > 0 {
		line, rest, _ := bytes.Cut(head, []byte("\r\n"))
		// The length comparison settles nearly every line before EqualFold runs.
		if len(line) > len(name) && line[len(name)] == ':' && equalFold(line[:len(name)], name) {
			return bytes.TrimSpace(line[len(name)+1:]), true
		}
		head = rest
	}
	return nil, false
}

// equalFold compares ASCII letters without their case. Other characters that differ in that bit
// alone are in no header name that the benchmark asks for.
func equalFold(b []byte, name string) bool {
	for i, c := range b {
		if c|0x20 != name[i]|0x20 {
			return false
		}
	}
	return true
}

// Status is the status code of a reply's head, 0 if it has none.
func Status(head []byte) int {
	const at = len("HTTP/1.1 ")
	if len(head) < at+3 || !bytes.HasPrefix(head, []byte("HTTP/1.")) {
		return 0
	}
	code := 0
	for _, c := range head[at : at+3] {
		if c < '0' || c > '9' {
			return 0
		}
		code = code*10 + int(c-'0')
	}
	return code
}
