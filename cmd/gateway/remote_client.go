package main

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

// A client calls the management API of one server.
type client struct {
	base  *url.URL
	token string // "" for none
	calls *http.Client
}

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

// client returns a client for the server at --url.
func (a *app) client(ctx context.Context) (*client, error) {
	base, err := parseServer("--url", a.urlFlag)
	if err != nil {
		return nil, err
	}
	token, err := a.token(ctx)
	if err != nil {
		return nil, err
	}
	a.warnUnencrypted(base, token)
	return &client{base: base, token: token, calls: httpClient(0)}, nil
}

// get reads the resource at a path, given in segments, and decodes the reply.
func (c *client) get(ctx context.Context, reply any, query url.Values, path ...string) error {
	return c.call(ctx, http.MethodGet, path, query, nil, reply)
}

// post sends body as JSON and decodes the reply. A nil body is an empty request.
func (c *client) post(ctx context.Context, reply, body any, path ...string) error {
	return c.call(ctx, http.MethodPost, path, nil, body, reply)
}

func (c *client) call(ctx context.Context, method string, path []string, query url.Values, body, reply any) error {
	calling, cancel := context.WithTimeout(ctx, replyTimeout)
	defer cancel()
	response, err := c.ask(calling, method, path, query, body)
	if err != nil {
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
func (c *client) stream(ctx context.Context, query url.Values, path ...string) (io.ReadCloser, error) {
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
	*client
	ctx     context.Context
	body    io.ReadCloser
	stalled *time.Timer
	cancel  context.CancelCauseFunc
}

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
		return core.Refuse(core.Unavailable, "the gateway at %s has been silent for %s", f.base, stallTimeout)
	default:
		return why
	}
}

func (f *flow) Close() error {
	f.end()
	return f.body.Close()
}

func (f *flow) end() {
	f.stalled.Stop()
	f.cancel(nil)
}

// ask sends a request and returns the reply, if it is a success.
func (c *client) ask(ctx context.Context, method string, path []string, query url.Values, body any) (*http.Response, error) {
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

func (c *client) request(ctx context.Context, method string, path []string, query url.Values, body any) (*http.Request, error) {
	segments := []string{"api"}
	for _, s := range path {
		segments = append(segments, segment(s))
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
	request.Header.Set("User-Agent", "gateway/"+readBuild().Version)
	return request, nil
}
