//go:build linux

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/ports"
	"github.com/eventgateway/gateway/infra/test/receiver"
)

// rawServer runs talk for every connection after the headers of a request have arrived. It
// closes the connection when talk returns. It returns the URL of the server.
func rawServer(t testing.TB, talk func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveRaw(t, l, talk)
	return "http://" + l.Addr().String()
}

// serveRaw is rawServer on an existing listener. It closes the listener too.
func serveRaw(t testing.TB, l net.Listener, talk func(net.Conn)) {
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // the listener is closed
			}
			t.Cleanup(func() { c.Close() })
			go func() {
				defer c.Close()
				if heard(c) {
					talk(c)
				}
			}()
		}
	}()
}

// heard reads the headers of a request and bytes that arrived with them, or the beginning of a
// TLS handshake.
func heard(c net.Conn) bool {
	var request []byte
	buffer := make([]byte, 64<<10)
	for !strings.Contains(string(request), "\r\n\r\n") {
		n, err := c.Read(buffer)
		if err != nil {
			return false
		}
		request = append(request, buffer[:n]...)
		if request[0] == 0x16 {
			break
		}
	}
	return true
}

// talks writes texts and returns.
func talks(texts ...string) func(net.Conn) {
	return func(c net.Conn) { _, _ = io.WriteString(c, strings.Join(texts, "")) }
}

// talksOn writes first, and then again repeatedly until the connection is closed, with a pause
// in between.
func talksOn(first, again string, pause time.Duration) func(net.Conn) {
	return func(c net.Conn) {
		_, err := io.WriteString(c, first)
		for err == nil {
			if pause > 0 {
				<-time.After(pause)
			}
			_, err = io.WriteString(c, again)
		}
	}
}

// fullServer accepts no connections: connection attempts get no answer, as with a firewall.
func fullServer(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	address, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("127.0.0.1:%d", address.(*syscall.SockaddrInet4).Port)
	for range 10 {
		c, err := net.DialTimeout("tcp", at, 300*time.Millisecond)
		if err != nil {
			return "http://" + at + "/?token=s3cret"
		}
		t.Cleanup(func() { c.Close() })
	}
	t.Fatal("a server that takes no connections takes them")
	return ""
}

// secureAnimals are handlers with an https URL, some without TLS.
func secureAnimals(t *testing.T) []animal {
	cage := func(name string, certificate *tls.Certificate) *httptest.Server {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		if certificate != nil {
			s.TLS = &tls.Config{Certificates: []tls.Certificate{*certificate}}
		}
		s.EnableHTTP2 = true
		s.StartTLS()
		t.Cleanup(s.Close)
		return s
	}
	old := cage("old", nil)
	old.TLS.MaxVersion = tls.VersionTLS11
	good, expired, unknown := cage("good", nil), cage("expired", selfSigned(t, -48*time.Hour)), cage("unknown", selfSigned(t, 0))
	with := func(s *httptest.Server) string { return s.URL + "/?token=s3cret" }
	return []animal{
		{name: "tls", url: with(good), code: 200},
		{name: "tls-wrong-name", url: strings.Replace(with(good), "127.0.0.1", "localhost", 1), want: "tls: x509: certificate is valid for example.com"},
		{name: "tls-expired", url: with(expired), want: "tls: x509: certificate has expired"},
		{name: "tls-unknown", url: with(unknown), want: "tls: x509: certificate signed by unknown authority"},
		{name: "tls-old", url: with(old), want: "tls: "},
		{name: "tls-not", url: strings.Replace(rawServer(t, talks("HTTP/1.1 200 OK\r\n\r\n")), "http:", "https:", 1) + "/?token=s3cret", want: "tls: "},
		{name: "tls-to-plain", url: strings.Replace(with(good), "https:", "http:", 1), code: 400, want: "status: 400 Bad Request"},
	}
}

// foreignAnimals are handlers for gRPC that do not speak it.
func foreignAnimals(t *testing.T, r *receiver.Receiver) []animal {
	silent := func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }
	return []animal{
		{name: "grpc-http1", grpc: true, url: r.URL(), want: "protocol: "},
		{name: "grpc-garbage", grpc: true, url: rawServer(t, talks("\x16\x03\x01\x00\xffgarbage\r\n\r\n")), want: "protocol: "},
		{name: "grpc-closes", grpc: true, url: rawServer(t, talks()), want: "protocol: "},
		{name: "grpc-hangs", grpc: true, url: rawServer(t, silent), want: "timeout: no answer within 2s"},
		{name: "grpc-refuses", grpc: true, url: "http://" + ports.Refusing(t), want: "connect: connection refused"},
		{name: "grpc-no-name", grpc: true, url: "http://handler.invalid", want: "dns: "},
		{name: "grpc-not-tls", grpc: true, url: strings.Replace(r.URL(), "http:", "https:", 1), want: "tls: "},
		{name: "grpc-metadata", grpc: true, url: "http://169.254.169.254", want: "blocked: 169.254.169.254 may be a cloud's metadata service"},
	}
}

// selfSigned makes a certificate for 127.0.0.1. It is valid for a day, from one hour before
// the time that is shift from now.
func selfSigned(t *testing.T, shift time.Duration) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	from := time.Now().Add(shift - time.Hour)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: from.Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// trusted returns a file with the certificate of Go's test servers, for SSL_CERT_FILE.
func trusted(t *testing.T) string {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	path := filepath.Join(t.TempDir(), "root.pem")
	root := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(path, root, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
