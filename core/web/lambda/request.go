package lambda

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/awslabs/aws-lambda-go-api-proxy/core"
)

// request is the HTTP request of an event, as net/http's server would have made it of
// the request that came in at the front door. HTTP APIs (payload format 2.0) and function
// URLs send the same shape:
// https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
//
// The conversion of the library is repaired where it changes what a signature, a client's
// address or a route depends on: it cuts header values at commas, leaves Host empty and
// the address without a port, reads a path as a URL, and knows nothing of stages.
func request(ctx context.Context, event []byte) (*http.Request, error) {
	var e events.APIGatewayV2HTTPRequest
	if err := json.Unmarshal(event, &e); err != nil || e.RequestContext.HTTP.Method == "" {
		return nil, errShape
	}
	header, host := headerOf(e)
	e.RawPath = unstaged(escaped(e.RawPath), e.RequestContext.Stage)
	e.RequestContext.DomainName = "" // it would be part of what is read as a URL
	if err := check(&e); err != nil {
		return nil, err
	}
	var accessor core.RequestAccessorV2
	r, err := accessor.EventToRequestWithContext(ctx, e)
	if err != nil {
		return nil, errMalformed
	}
	r.Method = e.RequestContext.HTTP.Method
	r.RequestURI = e.RawPath
	if e.RawQueryString != "" {
		r.RequestURI += "?" + e.RawQueryString
	}
	r.URL.Scheme, r.URL.Host = "", "" // they are Host's
	r.RemoteAddr = net.JoinHostPort(e.RequestContext.HTTP.SourceIP, "0")
	r.Header, r.Host = header, host
	return r, nil
}

// check finds what the library would fail at, and tell standard output of, with the path
// and query, which may hold a token. It decodes the body.
func check(e *events.APIGatewayV2HTTPRequest) error {
	if e.IsBase64Encoded {
		body, err := base64.StdEncoding.DecodeString(e.Body)
		if err != nil {
			return errMalformed
		}
		e.Body, e.IsBase64Encoded = string(body), false
	}
	if _, err := http.NewRequest(e.RequestContext.HTTP.Method, "https:///"+e.RawPath+"?"+e.RawQueryString, nil); err != nil {
		return errMalformed
	}
	return nil
}

// headerOf is the header as it was received, as far as the front door tells: values of
// one name that came in several lines come joined. Cookies come apart.
func headerOf(e events.APIGatewayV2HTTPRequest) (h http.Header, host string) {
	h = make(http.Header, len(e.Headers)+1)
	for name, value := range e.Headers {
		h[http.CanonicalHeaderKey(name)] = []string{value}
	}
	if len(e.Cookies) > 0 {
		h["Cookie"] = []string{strings.Join(e.Cookies, "; ")}
	}
	host = e.RequestContext.DomainName
	if named := h["Host"]; len(named) > 0 {
		host = named[0]
	}
	delete(h, "Host") // as net/http does
	delete(h, "Transfer-Encoding")
	return h, host
}

// unstaged is a path without the stage of an API, which is in front of it unless it is
// the default one.
func unstaged(path, stage string) string {
	rest, ok := strings.CutPrefix(path, "/"+stage)
	switch {
	case !ok || stage == "" || stage == "$default":
		return path
	case rest == "":
		return "/"
	case rest[0] != '/':
		return path
	}
	return rest
}

// escaped is a path that can be one of a URL. Some front doors hand it on decoded.
func escaped(path string) string {
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		switch c := path[i]; {
		case c == '%' && !(i+2 < len(path) && isHex(path[i+1]) && isHex(path[i+2])), c <= ' ', c == 0x7f, c == '?', c == '#', c == '"', c == '<', c == '>':
			const digits = "0123456789ABCDEF"
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
