package consume

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"time"

	"github.com/eventgateway/gateway/cmd/bench/internal/event"
	"github.com/eventgateway/gateway/cmd/bench/internal/wire"
)

// Client is a consumer of the gateway's API on a keep-alive connection of its own. It is not
// safe for concurrent use. Requests and replies alternate on the connection, as with a client
// library that keeps it open.
type Client struct {
	conn    net.Conn
	replies *wire.Reader
	addr    string
	path    string // of the queue
	wait    time.Duration
	forget  func() bool
}

// Dial connects to the API of a queue at host:port. Its receives wait up to wait for
// messages, in whole milliseconds. When ctx ends, calls under way end too.
func Dial(ctx context.Context, addr, queue string, wait time.Duration) (*Client, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", addr, err)
	}
	// A read that waits for an answer does not watch ctx.
	forget := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	return &Client{
		conn: conn, replies: wire.NewReader(conn), addr: addr,
		path: "/api/queues/" + url.PathEscape(queue), wait: wait, forget: forget,
	}, nil
}

// Close ends the connection.
func (c *Client) Close() error {
	c.forget()
	return c.conn.Close()
}

// Receive returns up to n messages.
func (c *Client) Receive(_ context.Context, n int) ([]Message, error) {
	request := fmt.Appendf(nil, "GET %s/messages?batch=%d&wait=%dms HTTP/1.1\r\nHost: %s\r\n\r\n", c.path, n, c.wait.Milliseconds(), c.addr)
	body, err := c.ask(request)
	if err != nil {
		return nil, err
	}
	return messages(body)
}

// Ack acks messages by their receipts.
func (c *Client) Ack(_ context.Context, messages []Message) (int, error) {
	// The JSON is written by hand, as in messages: an encoder would take CPU from the system.
	body := []byte(`{"ids":[`)
	for i, m := range messages {
		if i > 0 {
			body = append(body, ',')
		}
		body = strconv.AppendQuote(body, m.Receipt)
	}
	body = append(body, `]}`...)
	request := fmt.Appendf(nil, "POST %s/ack HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", c.path, c.addr, len(body), body)
	reply, err := c.ask(request)
	if err != nil {
		return 0, err
	}
	count := between(reply, `{"acked":`, '}')
	acked, err := strconv.Atoi(string(bytes.TrimSpace(count)))
	if err != nil {
		return 0, fmt.Errorf("no count in %.100q", reply)
	}
	return acked, nil
}

// ask returns the body of a reply of status 200, until the next call.
func (c *Client) ask(request []byte) ([]byte, error) {
	if _, err := c.conn.Write(request); err != nil {
		return nil, err
	}
	head, body, err := c.replies.Next()
	if err != nil {
		return nil, err
	}
	if status := wire.Status(head); status != 200 {
		return nil, fmt.Errorf("status %d %.200q", status, body)
	}
	return body, nil
}

const (
	payloadKey = `"payload":`
	receiptKey = `"receipt":"`
)

// messages finds receipts and sequence numbers in a reply. It searches for the two fields,
// which no payload of the benchmark contains, and leaves the rest unparsed: a parser would
// take as long as the reply does.
func messages(body []byte) (found []Message, err error) {
	for payloads, receipts := body, body; ; {
		var payload, receipt bool
		_, payloads, payload = bytes.Cut(payloads, []byte(payloadKey))
		_, receipts, receipt = bytes.Cut(receipts, []byte(receiptKey))
		if payload != receipt {
			return nil, fmt.Errorf("a message without payload or receipt in %.300q", body)
		}
		if !payload {
			return found, nil
		}
		seq, ours := event.Seq(payloads)
		if !ours {
			seq = -1
		}
		id, _, _ := bytes.Cut(receipts, []byte{'"'})
		found = append(found, Message{Seq: seq, Receipt: string(id)})
	}
}

// between returns the text between before and after, empty if they are not there.
func between(b []byte, before string, after byte) []byte {
	_, rest, _ := bytes.Cut(b, []byte(before))
	text, _, _ := bytes.Cut(rest, []byte{after})
	return text
}
