package remote

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
)

// apiVersion is the version of the API that this program understands. A gateway sends its
// version in every reply.
const apiVersion = "1"

// judge returns an error for a reply without success, or from a server that is no gateway.
func (c *Client) judge(r *http.Response) error {
	if err := Recognise(r, c.base, c.advice.Address); err != nil {
		return err
	}
	if r.StatusCode >= 200 && r.StatusCode < 300 {
		return nil
	}
	// An error while reading is ignored: the status alone says enough.
	body, _ := io.ReadAll(io.LimitReader(r.Body, maxRefusal))
	return c.refusal(r, clip(refusalText(body), 400))
}

// Recognise refuses a reply that is not from a gateway that this program understands. The
// error names flag, with which the user gives another address; "" leaves that advice out.
func Recognise(r *http.Response, base *url.URL, flag string) error {
	// The header is on each reply of a gateway, refusals included, so a page of a proxy is recognised even with status 200.
	switch version := r.Header.Get("X-Api-Version"); version {
	case "":
		return stranger(r, base, flag)
	case apiVersion:
		return nil
	default:
		return core.Refuse(core.Unsupported, "the gateway at %s speaks version %s of its API, and this program version %s",
			base, clip(version, 20), apiVersion)
	}
}

// Stranger returns the error for a reply of the server that is not from a gateway.
func (c *Client) Stranger(r *http.Response) error { return stranger(r, c.base, c.advice.Address) }

// stranger returns the error for a reply that is not from a gateway: often a proxy or another
// program on the port.
func stranger(r *http.Response, base *url.URL, flag string) error {
	elsewhere, other := "", ""
	if flag != "" {
		elsewhere = "; if that is the gateway, give its address with " + flag
		other = "; give the address of one with " + flag
	}
	if to := r.Header.Get("Location"); r.StatusCode/100 == 3 && to != "" {
		return core.Refuse(core.Unsupported, "the server at %s leads elsewhere (%s): %s%s", base, Status(r.StatusCode), clip(to, 200), elsewhere)
	}
	if text, _ := io.ReadAll(io.LimitReader(r.Body, maxRefusal)); base.Scheme == "http" && r.StatusCode == http.StatusBadRequest && bytes.Contains(text, []byte("HTTPS")) {
		return core.Refuse(core.Unsupported, "the server at %s speaks TLS; is it https://%s?", base, base.Host)
	}
	return core.Refuse(core.Unsupported, "the server at %s is not a gateway: %s%s", base, Status(r.StatusCode), other)
}

// refusalText returns the reason of a refusal: the error of a JSON body, or the text.
func refusalText(body []byte) string {
	var refused struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(body, &refused) == nil && refused.Error != "" {
		return refused.Error
	}
	return strings.TrimSpace(string(body))
}

// refusal explains a gateway's refusal to the user of the command.
func (c *Client) refusal(r *http.Response, text string) error {
	switch code := r.StatusCode; {
	case code == http.StatusUnauthorized && c.token == "":
		if c.advice.Token == "" {
			return core.Refuse(core.Unauthorized, "the gateway at %s asks for a token", c.base)
		}
		return core.Refuse(core.Unauthorized, "the gateway at %s asks for a token; %s", c.base, c.advice.Token)
	case code == http.StatusUnauthorized:
		return core.Refuse(core.Unauthorized, "the gateway at %s refused the token; is it in api.auth_token or api.tokens of its configuration?", c.base)
	case LacksRole(r) && c.advice.Role == "":
		return core.Refuse(core.Forbidden, "the gateway at %s refused this: %s", c.base, text)
	case LacksRole(r):
		return core.Refuse(core.Forbidden, "the gateway at %s refused this: %s; %s", c.base, text, c.advice.Role)
	// The API answers an unknown route in this way, unlike an unknown event or queue. Most
	// likely one of the two programs is older.
	case code == http.StatusNotFound && text == "not found", code == http.StatusMethodNotAllowed:
		return UnknownRoute{core.Refuse(core.Unsupported, "the gateway at %s does not know %s %s; is it of this version (%s)?",
			c.base, r.Request.Method, r.Request.URL.Path, c.version)}
	case code == http.StatusNotFound:
		return known(text)
	case code < 500 && code != http.StatusTooManyRequests:
		return core.Refuse(core.Invalid, "%s", text)
	// The server is overloaded or starting. The client does not wait by itself: the user
	// decides.
	case r.Header.Get("Retry-After") != "":
		return core.Refuse(core.Unavailable, "the gateway at %s cannot do that now: %s; try again in %s s", c.base, text, clip(r.Header.Get("Retry-After"), 40))
	}
	return fmt.Errorf("the gateway at %s failed: %s: %s; its log says why", c.base, Status(r.StatusCode), text)
}

// LacksRole reports whether a gateway refused a token because of its role. The text of the reply
// has the role of the token and the needed role.
func LacksRole(r *http.Response) bool {
	return r.StatusCode == http.StatusForbidden && strings.Contains(r.Header.Get("WWW-Authenticate"), "insufficient_scope")
}

// An UnknownRoute is the error of a request to a gateway that does not have its route. Most likely
// the gateway is older than the caller.
type UnknownRoute struct{ Refusal *core.Refusal }

func (u UnknownRoute) Error() string { return u.Refusal.Error() }

// Unwrap returns the refusal.
func (u UnknownRoute) Unwrap() error { return u.Refusal }

// known returns the refusal with this text, if commands treat it in a special way.
func known(text string) error {
	for _, err := range []*core.Refusal{manage.ErrEvent, manage.ErrHandler, manage.ErrQueue, manage.ErrRun} {
		if err.Message == text {
			return err
		}
	}
	return core.Refuse(core.NotFound, "%s", text)
}

// unread explains a reply that broke off, or that no gateway of this version sends.
func (c *Client) unread(err error) error {
	var network net.Error
	switch {
	case core.IsKind(err, core.Unavailable), errors.Is(err, context.Canceled):
		return err
	// The reply was cut off on its way; the server is of the right kind.
	case errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &network):
		return fmt.Errorf("the gateway at %s broke off its answer: %w", c.base, Cause(err))
	}
	return core.Refuse(core.Unsupported, "the reply of the gateway at %s is not understood (%v); is it of this version (%s)?", c.base, err, c.version)
}

// interruptedOr returns the error of ctx if ctx has ended, otherwise err.
func interruptedOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// unreached explains why there is no reply to a request, with the remedy.
func (c *Client) unreached(r *http.Request, err error) error {
	var (
		dns         *net.DNSError
		dial        *net.OpError
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
	)
	// A POST that broke off may have had its effect. The user must look before repeating a
	// replay or a drain.
	unsure := ""
	if r.Method == http.MethodPost {
		unsure = "; whether it did what it was asked for is not known"
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return core.Refuse(core.Unavailable, "the gateway at %s has not answered within %s%s", c.base, replyTimeout, unsure)
	case errors.As(err, &certificate):
		return core.Refuse(core.Unavailable, "the certificate of %s is not trusted: %v; SSL_CERT_FILE may name an authority that signed it", c.base, certificate.Err)
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return core.Refuse(core.Unavailable, "the server at %s speaks no TLS; is it http://%s?", c.base, c.base.Host)
	case errors.As(err, &dns):
		return core.Refuse(core.Unavailable, "no gateway answers at %s: the name %s does not resolve (%s)", c.base, dns.Name, dns.Err)
	case errors.As(err, &dial) && dial.Op == "dial":
		return core.Refuse(core.Unavailable, "no gateway answers at %s (%v); is it running, and reachable from here?", c.base, dial.Err)
	}
	return fmt.Errorf("no answer from the gateway at %s: %w%s", c.base, Cause(err), unsure)
}
