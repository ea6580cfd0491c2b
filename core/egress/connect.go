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

// ErrNoHTTP2 says that TLS came about with a server that did not agree to HTTP/2.
var ErrNoHTTP2 = errors.New("the server offers no HTTP/2, which gRPC needs")

// noApplicationProtocol is what a server says that knows none of the protocols it
// was offered (RFC 7301, section 3.2). One that knows nothing of the offer is silent.
var noApplicationProtocol = tls.AlertError(120).Error()

// Connect reports whether a connection to a gRPC receiver comes about: TCP, and for
// https TLS with HTTP/2; without the latter the error is [ErrNoHTTP2]. Nothing is
// called. ctx should have a deadline.
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

// receiverTLS is the configuration of TLS with gRPC receivers. That HTTP/2 was
// agreed to is checked here and not left to grpc, whose error has no type.
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

// handshakeError is the error of a handshake by [Client.receiverTLS].
func handshakeError(err error) error {
	if err != nil && innermost(err) == noApplicationProtocol {
		return ErrNoHTTP2
	}
	return err
}

// hostPort is what to dial for an address.
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
