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

// request returns the HTTP request of an event, as net/http's server would have made it
// from the request to the front door. HTTP APIs (payload format 2.0) and function URLs send
// the same data:
// https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
//
// The library's conversion is repaired where it changes the input of signatures, client
// addresses or routes. The library splits header values at commas, leaves Host empty and
// the address without a port, reads a path as a URL, and ignores stages.
func request(ctx context.Context, event []byte) (*http.Request, error) {
	var e events.APIGatewayV2HTTPRequest
	if err := json.Unmarshal(event, &e); err != nil || e.RequestContext.HTTP.Method == "" {
		return nil, errShape
	}
	// The headers are taken from the event before the library splits them.
	header, host := headerOf(e)
	// The routes know no stage. A path that is not valid in a URL is repaired, since a signature
	// may cover it as the front door sent it on.
	e.RawPath = unstaged(escaped(e.RawPath), e.RequestContext.Stage)
	e.RequestContext.DomainName = "" // otherwise the library reads it as part of a URL
	if err := check(&e); err != nil {
		return nil, err
	}
	var accessor core.RequestAccessorV2
	r, err := accessor.EventToRequestWithContext(ctx, e)
	if err != nil {
		return nil, errMalformed
	}
	// The parts that the library changed are set again, as net/http's server sets them.
	r.Method = e.RequestContext.HTTP.Method
	r.RequestURI = e.RawPath
	if e.RawQueryString != "" {
		r.RequestURI += "?" + e.RawQueryString
	}
	r.URL.Scheme, r.URL.Host = "", "" // Host has them
	// web reads the address of the client here, as it reads the peer of a connection. The port is
	// not known, and not needed.
	r.RemoteAddr = net.JoinHostPort(e.RequestContext.HTTP.SourceIP, "0")
	r.Header, r.Host = header, host
	return r, nil
}

// check finds the faults for which the library would print the path and query to standard
// output, since these may contain a token. It decodes the body.
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

// headerOf returns the headers as they were received, as far as the front door passes them
// on: values of one name in several lines are joined. Cookies are separate.
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

// unstaged returns a path without the stage of an API. The stage comes first in the path
// unless it is the default one.
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

// escaped returns a path that is valid in a URL. Some front doors pass the path on decoded.
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

// isHex reports whether a byte is a hexadecimal digit.
func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
