package web

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// NewServer returns a server that slow and silent clients cannot exhaust. It must serve a
// listener made by [Limit].
//
// ReadTimeout is for the headers and a small body. A large body gets more time as it arrives;
// see [pacer]. WriteTimeout counts from the end of the headers, or of a large body. So it
// covers the work and the reply, and is longer than the longest long poll.
func NewServer(h http.Handler, log *slog.Logger) *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true) // HTTP/2 belongs to TLS, and TLS to the proxy in front
	return &http.Server{
		Handler: h,
		// A client that sends its head byte by byte is cut off after 5 s. 16 KiB of headers are more
		// than any known sender needs, and bound the memory of each connection.
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      60 * time.Second,
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    16 << 10,
		Protocols:         &protocols,
		ConnState:         note,
		ConnContext:       withConnection,
		// The log lines of net/http are about mistakes of clients.
		ErrorLog:                     slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		DisableGeneralOptionsHandler: true, // it would answer "OPTIONS *" without the gateway's headers
	}
}

// CloseWrite lets net/http end a reply properly before it closes a connection with unread
// input. Otherwise the client could lose the reply to a reset.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// ownReply continues the head of a reply that net/http makes itself, after the status line;
// see the calls of Fprintf in (*http.conn).serve.
const ownReply = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"

// Write adds the headers of every reply to the replies of net/http itself: 400, 431, 501
// and 505 for invalid HTTP, 417 for an unknown expectation. net/http has no hook for them,
// but it writes each of them whole, and they differ from all replies of the gateway.
func (c *conn) Write(p []byte) (int, error) {
	// This runs for each write of a connection, so it compares two constants and copies nothing in
	// the usual case.
	head, rest, ok := cutOwnReply(p)
	if !ok {
		return c.Conn.Write(p)
	}
	var b bytes.Buffer
	b.Write(head)
	for _, a := range always {
		b.WriteString("\r\n" + a.name + ": " + strings.Join(a.value, ", "))
	}
	b.Write(rest)
	if _, err := c.Conn.Write(b.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// cutOwnReply cuts a reply of net/http itself after its status line.
func cutOwnReply(p []byte) (head, rest []byte, ok bool) {
	if !bytes.HasPrefix(p, []byte("HTTP/1.")) {
		return nil, nil, false
	}
	// The gateway's own replies have other headers after the status line.
	i := bytes.IndexByte(p, '\r')
	if i < 0 {
		return nil, nil, false
	}
	head, rest = p[:i], p[i:]
	ok = bytes.HasPrefix(rest, []byte(ownReply)) || bytes.HasSuffix(head, []byte(" 417 Expectation Failed"))
	return head, rest, ok
}
