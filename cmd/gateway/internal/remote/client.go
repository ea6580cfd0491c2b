// Package remote is a client of the management API of a gateway.
//
// The idea to know: the services of a [Client] ([Events], [Jobs], [Queues], [Runs], [Operations], [Tail],
// [Breakers]) have the methods of the services in core/manage, with the same results and
// refusals. The server answers each request with that service, and core/wire has both
// directions of each record. So a caller works on a database or through a server with the same
// code, behind an interface of its own.
//
// Errors are written for the user of the calling program. They name the fault and the
// remedy: no gateway answers, another program answers, the token is missing, the version differs.
// Flags and variables are the caller's, so their names are passed in as [Advice].
//
// A call is sent once. The client never repeats it, since a request without an answer may have
// been carried out; the error of a POST says so. It follows no redirects, and keeps no state
// but connections. It prints nothing, reads no environment, and knows neither commands nor
// their flags, so that other programs can use it.
package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A Client calls the management API of one server. It is safe for concurrent use.
type Client struct {
	base    *url.URL
	token   string // "" for none
	version string
	advice  Advice
	calls   *http.Client
}

// Options configure a [Client].
type Options struct {
	Base    *url.URL // address of the server; see [ParseAddress]
	Token   string   // bearer token for the management API; "" for none
	Version string   // version of the calling program, for the header User-Agent and for errors
	Advice  Advice
	HTTP    *http.Client // makes the calls; nil means HTTPClient(0)
}

// Advice is the advice in errors for the user of the calling program. Where a text is "", the
// errors end before the advice.
type Advice struct {
	Address string // the flag or field that takes an address, such as "--url"
	Token   string // how to give a token, as an imperative
	Role    string // how to give a token with another role, as an imperative
}

// New returns a client. It sends nothing yet.
func New(o Options) *Client {
	c := &Client{base: o.Base, token: o.Token, version: o.Version, advice: o.Advice, calls: o.HTTP}
	if c.calls == nil {
		c.calls = HTTPClient(0)
	}
	return c
}

// Base returns the address of the server.
func (c *Client) Base() *url.URL { return c.base }

// HasToken reports whether the client sends a token.
func (c *Client) HasToken() bool { return c.token != "" }

// Anonymous returns a client for the same server that sends no token.
func (c *Client) Anonymous() *Client {
	other := *c
	other.token = ""
	return &other
}

// Close closes the connections that are not in use.
func (c *Client) Close() { c.calls.CloseIdleConnections() }

const (
	// replyTimeout bounds a call: a healthy server has answered, or closed the connection,
	// before.
	replyTimeout = 75 * time.Second

	// stallTimeout bounds a pause within a streamed reply.
	stallTimeout = 60 * time.Second

	// maxReply bounds the bytes of a reply that are read, and maxRefusal the bytes of a reply
	// without success. A page of messages contains their payloads.
	maxReply   = 1 << 30
	maxRefusal = 64 << 10
)

// get reads the resource at a path, given in segments, and decodes the reply.
func (c *Client) get(ctx context.Context, reply any, query url.Values, path ...string) error {
	return c.call(ctx, http.MethodGet, path, query, nil, reply)
}

// post sends body as JSON and decodes the reply. A nil body is an empty request.
func (c *Client) post(ctx context.Context, reply, body any, path ...string) error {
	return c.call(ctx, http.MethodPost, path, nil, body, reply)
}

// call sends a request and decodes the whole reply, within replyTimeout.
func (c *Client) call(ctx context.Context, method string, path []string, query url.Values, body, reply any) error {
	calling, cancel := context.WithTimeout(ctx, replyTimeout)
	defer cancel()
	response, err := c.ask(calling, method, path, query, body)
	if err != nil {
		// An interruption by the user is reported itself, not the failure that it causes.
		return interruptedOr(ctx, err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(io.LimitReader(response.Body, maxReply)).Decode(reply); err != nil {
		return interruptedOr(ctx, c.unread(err))
	}
	return nil
}

// stream opens a reply that the caller reads in pieces. Its duration is not bounded, but a
// read that gets nothing for stallTimeout fails. The caller closes the stream.
func (c *Client) stream(ctx context.Context, query url.Values, path ...string) (io.ReadCloser, error) {
	reading, cancel := context.WithCancelCause(ctx)
	stalled := time.AfterFunc(stallTimeout, func() { cancel(context.DeadlineExceeded) })
	f := &flow{client: c, ctx: reading, stalled: stalled, cancel: cancel}
	response, err := c.ask(reading, http.MethodGet, path, query, nil)
	if err != nil {
		defer f.end()
		return nil, f.explain(err)
	}
	stalled.Stop()
	f.body = response.Body
	return f, nil
}

// A flow is a streamed reply.
type flow struct {
	client  *Client
	ctx     context.Context
	body    io.ReadCloser
	stalled *time.Timer
	cancel  context.CancelCauseFunc
}

// Read reads with a time limit for this one read. The limit is off between reads.
func (f *flow) Read(p []byte) (int, error) {
	f.stalled.Reset(stallTimeout)
	n, err := f.body.Read(p)
	f.stalled.Stop() // the caller may use the data slowly
	if err != nil && err != io.EOF {
		err = f.explain(err)
	}
	return n, err
}

// explain returns why a reply ended early: the caller canceled it, or it paused for too long.
func (f *flow) explain(err error) error {
	switch why := context.Cause(f.ctx); why {
	case nil:
		return err
	case context.DeadlineExceeded:
		return core.Refuse(core.Unavailable, "the gateway at %s has been silent for %s", f.client.base, stallTimeout)
	default:
		return why
	}
}

func (f *flow) Close() error {
	f.end()
	return f.body.Close()
}

// end stops the timer and ends the request.
func (f *flow) end() {
	f.stalled.Stop()
	f.cancel(nil)
}

// ask sends a request and returns the reply, if it is a success.
func (c *Client) ask(ctx context.Context, method string, path []string, query url.Values, body any) (*http.Response, error) {
	request, err := c.request(ctx, method, path, query, body)
	if err != nil {
		return nil, err
	}
	response, err := c.calls.Do(request)
	if err != nil {
		return nil, c.unreached(request, err)
	}
	if err := c.judge(response); err != nil {
		response.Body.Close()
		return nil, err
	}
	return response, nil
}

// request makes a request below /api. Each segment of the path is escaped by itself: names of
// queues may contain slashes.
func (c *Client) request(ctx context.Context, method string, path []string, query url.Values, body any) (*http.Request, error) {
	segments := []string{"api"}
	for _, s := range path {
		segments = append(segments, Segment(s))
	}
	to := c.base.JoinPath(segments...)
	to.RawQuery = query.Encode()
	var text io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		text = bytes.NewReader(b)
	}
	request, err := http.NewRequestWithContext(ctx, method, to.String(), text)
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	request.Header.Set("User-Agent", c.agent())
	return request, nil
}

// agent returns the header User-Agent. The log of a server shows it.
func (c *Client) agent() string { return "gateway/" + c.version }
