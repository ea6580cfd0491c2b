package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/eventgateway/gateway/core/endpoint"
)

// Get calls an address that endpoint.ParseURL accepts, and returns the status and
// all of the body, whatever the status is. It follows no redirects. ctx bounds all
// of it, and should have a deadline.
//
// A body of more than limit bytes is an error. Errors name the host and are classed
// like those of deliveries (see the package comment); they hold nothing else of the
// URL, whose path or query may be secret.
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
	start := c.clock()
	resp, err := c.transport.RoundTrip(r)
	if err != nil {
		return 0, nil, errors.New(explain(r.Context(), err, start))
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return resp.StatusCode, nil, nil // the "body" is a connection that waits for us to speak
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return 0, nil, errors.New(explain(r.Context(), err, start))
	}
	if int64(len(body)) > limit {
		return 0, nil, fmt.Errorf("protocol: the answer is longer than %d bytes", limit)
	}
	return resp.StatusCode, body, nil
}
