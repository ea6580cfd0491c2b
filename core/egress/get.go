package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/eventgateway/gateway/core/endpoint"
)

// Get calls an address that endpoint.ParseURL accepts, and returns the status and all of
// the body, for any status. It follows no redirects. ctx bounds the whole call, and should
// have a deadline.
//
// A body of more than limit bytes is an error. Errors name the host and have the classes of
// deliveries (see the package comment). They contain nothing else of the URL, whose path or
// query may be secret.
func (c *Client) Get(ctx context.Context, url string, limit int64) (status int, body []byte, err error) {
	u, err := endpoint.ParseURL(url)
	if err != nil {
		return 0, nil, fmt.Errorf("the URL to get %w", err)
	}
	r := &http.Request{Method: http.MethodGet, URL: u, Header: http.Header{"User-Agent": {c.agent}}}
	status, body, err = c.get(r.WithContext(ctx), limit)
	if err != nil {
		return 0, nil, fmt.Errorf("get %s: %w", u.Host, err)
	}
	return status, body, nil
}

func (c *Client) get(r *http.Request, limit int64) (int, []byte, error) {
	d, err := c.fetch(r, limit+1)
	switch {
	case err != nil:
		return 0, nil, err
	case int64(len(d.Body)) > limit:
		return 0, nil, fmt.Errorf("protocol: the answer is longer than %d bytes", limit)
	}
	return d.Status, d.Body, nil
}

// A Document is the answer of an address.
type Document struct {
	Status int
	ETag   string // of this version of the body; empty if the server sends none
	Body   []byte
}

// Fetch is Get for a caller that may have the document already. If etag is not empty and
// still matches the document, the status is 304 and there is no body. Caches on the way
// must ask the server. Fetch reads at most most bytes of the body. Errors have the classes
// of Get and do not name the host.
func (c *Client) Fetch(ctx context.Context, url, etag string, most int64) (Document, error) {
	u, err := endpoint.ParseURL(url)
	if err != nil {
		return Document{}, fmt.Errorf("the URL %w", err)
	}
	r := &http.Request{Method: http.MethodGet, URL: u, Header: http.Header{"User-Agent": {c.agent}, "Cache-Control": {"no-cache"}}}
	if etag != "" {
		r.Header.Set("If-None-Match", etag)
	}
	return c.fetch(r.WithContext(ctx), most)
}

// fetch makes a call and reads up to most bytes of the body.
func (c *Client) fetch(r *http.Request, most int64) (Document, error) {
	start := c.clock()
	resp, err := c.transport.RoundTrip(r)
	if err != nil {
		return Document{}, errors.New(explain(r.Context(), err, start))
	}
	defer resp.Body.Close()
	d := Document{Status: resp.StatusCode, ETag: resp.Header.Get("ETag")}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return d, nil // the "body" is a connection that waits for the client to speak
	}
	if d.Body, err = io.ReadAll(io.LimitReader(resp.Body, most)); err != nil {
		return Document{}, errors.New(explain(r.Context(), err, start))
	}
	return d, nil
}
