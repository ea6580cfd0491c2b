package traces

import (
	"context"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
)

// TestRedirect: the client follows no redirect, so headers reach the collector alone.
func TestRedirect(t *testing.T) {
	var strayed atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strayed.Add(1) }))
	defer other.Close()
	var asked atomic.Int64
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.Redirect(w, r, other.URL+"/stolen", http.StatusTemporaryRedirect)
	}))
	defer collector.Close()
	x, log := start(t, collector.URL, "OTEL_EXPORTER_OTLP_HEADERS", "api-key=hunter3")
	x.Observe(core.Accepted{Event: order(x.Begin(core.Span{})), Jobs: 1})
	if err := end(x, 5*time.Second); err != nil {
		t.Errorf("Close = %v", err)
	}
	if asked.Load() == 0 || strayed.Load() != 0 {
		t.Errorf("the collector was asked %d times, another host %d times; want some and none", asked.Load(), strayed.Load())
	}
	if text := log.String(); strings.Contains(text, "hunter3") || !strings.Contains(text, "307") {
		t.Errorf("the log has the key, or not what the collector answered: %s", text)
	}
}

// TestCertificate: the client trusts the CA that the environment names.
func TestCertificate(t *testing.T) {
	var asked atomic.Int64
	collector := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer collector.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: collector.Certificate().Raw})
	if err := os.WriteFile(file, block, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, trusted := range []bool{false, true} {
		var env []string
		if trusted {
			env = []string{"OTEL_EXPORTER_OTLP_CERTIFICATE", file}
		}
		asked.Store(0)
		x, _ := start(t, collector.URL, env...)
		x.Observe(core.Accepted{Event: order(x.Begin(core.Span{})), Jobs: 1})
		err := end(x, 5*time.Second)
		if got := asked.Load() > 0 && err == nil; got != trusted {
			t.Errorf("trusted %t: asked %d times, Close = %v", trusted, asked.Load(), err)
		}
	}
}

func TestBadCertificates(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_CERTIFICATE": empty, "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE": empty + ".none", "OTEL_EXPORTER_OTLP_CLIENT_KEY": empty,
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			if c, err := newClient(); err == nil || !strings.Contains(err.Error(), "OTEL_EXPORTER_OTLP_C") {
				t.Errorf("newClient = %v, %v; want an error that names the variable", c, err)
			}
		})
	}
}

func TestTimeout(t *testing.T) {
	for value, want := range map[string]time.Duration{"": usualTimeout, "250": 250 * time.Millisecond, "soon": usualTimeout, "-1": usualTimeout} {
		t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", value)
		if got := timeout(); got != want {
			t.Errorf("timeout of %q = %v, want %v", value, got, want)
		}
	}
}

// TestNoProxy: the client ignores the proxies of the environment. The collector has no loopback
// address, since net/http never uses a proxy for one.
func TestNoProxy(t *testing.T) {
	var asked atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer proxy.Close()
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		t.Setenv(name, proxy.URL)
	}
	t.Setenv("NO_PROXY", "")
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "250")
	client, err := newClient()
	if err != nil {
		t.Fatal(err)
	}
	transport := client.Transport.(*http.Transport)
	if transport.Proxy != nil {
		t.Error("the transport asks for a proxy, want none")
	}
	transport.DialContext = func(_ context.Context, _, address string) (net.Conn, error) {
		return nil, fmt.Errorf("dialled %s", address)
	}
	for _, url := range []string{"http://collector.example:4318/v1/traces", "https://collector.example:4318/v1/traces"} {
		_, err := client.Get(url)
		if err == nil || !strings.Contains(err.Error(), "dialled collector.example:4318") || asked.Load() != 0 {
			t.Errorf("Get(%s) = %v, and the proxy was asked %d times; want the collector dialled", url, err, asked.Load())
		}
	}
}
