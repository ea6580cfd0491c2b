package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"

	"github.com/eventgateway/gateway/core/endpoint"
)

// ErrNoHTTP2 says that TLS succeeded with a server that did not agree to HTTP/2.
var ErrNoHTTP2 = errors.New("the server offers no HTTP/2, which gRPC needs")

// noApplicationProtocol is the alert of a server that knows none of the offered protocols
// (RFC 7301, section 3.2). A server without ALPN sends no alert.
var noApplicationProtocol = tls.AlertError(120).Error()

// Connect checks the connection to a gRPC receiver: TCP, and for https TLS with HTTP/2.
// Without HTTP/2 the error is [ErrNoHTTP2]. It makes no call. ctx should have a deadline.
func (c *Client) Connect(ctx context.Context, rawURL string) error {
	u, err := endpoint.ParseReceiverURL(rawURL)
	if err != nil {
		return fmt.Errorf("the url %w", err)
	}
	conn, err := c.dialer.DialContext(ctx, "tcp", hostPort(u))
	if err != nil {
		return err
	}
	defer conn.Close()
	if u.Scheme == "http" {
		return nil
	}
	config := c.receiverTLS()
	config.ServerName = u.Hostname()
	return handshakeError(tls.Client(conn, config).HandshakeContext(ctx))
}

// receiverTLS returns the configuration of TLS with gRPC receivers. It checks the agreement
// on HTTP/2 itself, because grpc's error for that has no type.
func (c *Client) receiverTLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		RootCAs:    c.transport.TLSClientConfig.RootCAs,
		NextProtos: []string{"h2"},
		VerifyConnection: func(state tls.ConnectionState) error {
			if state.NegotiatedProtocol != "h2" {
				return ErrNoHTTP2
			}
			return nil
		},
	}
}

// handshakeError converts the error of a handshake by [Client.receiverTLS].
func handshakeError(err error) error {
	if err != nil && innermost(err) == noApplicationProtocol {
		return ErrNoHTTP2
	}
	return err
}

// hostPort returns the address to dial for a URL.
func hostPort(u *url.URL) string {
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port)
}
