package traces

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"
)

// usualTimeout bounds one request to the collector, unless OTEL_EXPORTER_OTLP_TIMEOUT sets
// another bound, in milliseconds.
const usualTimeout = 10 * time.Second

// newClient makes the HTTP client for the collector. The exporter's own client would follow
// redirects and send the headers of OTEL_EXPORTER_OTLP_HEADERS, such as API keys, to any host
// that a redirect names. An exporter with a client of ours ignores the environment's timeout
// and certificates, so newClient applies them. Like all calls of the gateway, the client uses
// no proxy of the environment: the headers often hold a key.
func newClient() (*http.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil
	var err error
	if transport.TLSClientConfig, err = certificates(); err != nil {
		return nil, err
	}
	return &http.Client{
		Transport:     transport,
		Timeout:       timeout(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// setting returns OpenTelemetry's variable for traces alone, or else the one for all signals.
func setting(name string) string {
	return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_"+name), os.Getenv("OTEL_EXPORTER_OTLP_"+name))
}

// timeout returns the bound of one request to the collector.
func timeout() time.Duration {
	if ms, err := strconv.Atoi(setting("TIMEOUT")); err == nil && ms > 0 {
		return time.Duration(ms) * time.Millisecond
	}
	return usualTimeout
}

// certificates returns the CAs to trust and the client's own certificate, as the environment
// sets them.
func certificates() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	// A named CA replaces those of the system, as the specification of OTLP has it.
	if file := setting("CERTIFICATE"); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("OTEL_EXPORTER_OTLP_CERTIFICATE: there is no certificate in the file")
		}
	}
	certificate, key := setting("CLIENT_CERTIFICATE"), setting("CLIENT_KEY")
	if certificate == "" && key == "" {
		return c, nil
	}
	own, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE, _CLIENT_KEY: %w", err)
	}
	c.Certificates = []tls.Certificate{own}
	return c, nil
}
