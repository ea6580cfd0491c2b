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

// usualTimeout bounds one request to the collector, unless OTEL_EXPORTER_OTLP_TIMEOUT
// says otherwise, in milliseconds.
const usualTimeout = 10 * time.Second

// newClient makes the client for the collector. The exporter's own client follows
// redirects, and would send the headers of OTEL_EXPORTER_OTLP_HEADERS, which often hold an
// API key, to any host that a redirect names. With a client of its own, the exporter
// ignores the environment's timeout and certificates, so newClient applies them. Proxies of
// the environment are not used, as for all calls of the gateway.
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

// setting returns the variable for traces alone, else the variable for all exports. The
// names are OpenTelemetry's.
func setting(name string) string {
	return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_"+name), os.Getenv("OTEL_EXPORTER_OTLP_"+name))
}

func timeout() time.Duration {
	if ms, err := strconv.Atoi(setting("TIMEOUT")); err == nil && ms > 0 {
		return time.Duration(ms) * time.Millisecond
	}
	return usualTimeout
}

// certificates returns the trusted authorities, and the client's own certificate.
func certificates() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
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
