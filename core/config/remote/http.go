package remote

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"

	"github.com/eventgateway/gateway/core/egress"
	"github.com/eventgateway/gateway/core/endpoint"
)

// A server is any HTTP server.
type server struct{ client *egress.Client }

// Check refuses addresses that the client would not call.
func (server) Check(u *url.URL) error {
	if err := endpoint.CheckURL(u.String()); err != nil {
		return err
	}
	return CheckPlain(u)
}

// Read requests a document. If a server sends the whole document although its etag is the given
// one, Read returns the document: the bytes decide.
func (s server) Read(ctx context.Context, u *url.URL, etag string, most int64) (Object, error) {
	// The client bounds the body, and checks each address that it connects to.
	d, err := s.client.Fetch(ctx, u.String(), etag, most)
	if err != nil {
		return Object{}, err
	}
	return ofStatus(d, etag != "")
}

// ofStatus converts an answer.
func ofStatus(d egress.Document, conditional bool) (Object, error) {
	switch {
	case d.Status == http.StatusOK:
		return Object{ETag: d.ETag, Body: d.Body}, nil
	// Only an answer to a conditional request can be 304.
	case d.Status == http.StatusNotModified && conditional:
		return Object{Same: true}, nil
	// An overlay that does not exist is not an error, so this is decided by the caller.
	case d.Status == http.StatusNotFound, d.Status == http.StatusGone:
		return Object{}, fs.ErrNotExist
	}
	return Object{}, Refused(d.Status)
}

// Refused is the error of an answer that is neither the object nor 404.
func Refused(status int) error {
	what := fmt.Errorf("answered %d %s", status, http.StatusText(status))
	switch {
	// Requests carry no credentials, so only a public object can be read.
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return fmt.Errorf("%w: it must be readable by everyone (some stores also answer so if there is no such object)", what)
	case status >= 300 && status < 400 && status != http.StatusNotModified:
		return fmt.Errorf("%w: redirects are not followed", what)
	}
	return what
}
