// Package snsrig plays Amazon SNS for tests: it signs messages, serves the signing certificate
// over TLS under the name of the real host, and records requests. No request leaves the
// machine. It imports nothing of this module, and builds the signed text itself, so that it
// agrees with the code under test only if both are right.
//
// The idea to know: its own authority issued its TLS certificate, and every name leads to its
// one server. A client gets there with [Topic.Dial] and [Topic.Roots]. Code with a function
// for fetching takes [Topic.Fetch].
package snsrig

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Topic signs messages and serves the certificate to verify them.
type Topic struct {
	ARN  string
	Host string // "sns." + region + ".amazonaws.com"

	Roots *x509.CertPool // trusts the server
	// RootPEM is the same for SSL_CERT_FILE.
	RootPEM []byte

	// CertificatePEM is the answer to CertificateURL. It is valid for a day, from one hour
	// before the start.
	CertificatePEM []byte

	key    *rsa.PrivateKey
	server *httptest.Server

	mu     sync.Mutex
	answer http.HandlerFunc
	visits []string
}

// New starts a server that is closed at the end of the test.
func New(t testing.TB) *Topic {
	t.Helper()
	s := &Topic{Host: "sns.eu-west-1.amazonaws.com", ARN: "arn:aws:sns:eu-west-1:123456789012:orders", Roots: x509.NewCertPool()}
	key, err := signingKey()
	if err != nil {
		t.Fatal(err)
	}
	caKey, webKey := newKey(t), newKey(t)
	root := template("snsrig root")
	root.IsCA, root.KeyUsage = true, x509.KeyUsageCertSign
	ca := create(t, root, root, caKey.Public(), caKey)
	s.Roots.AddCert(ca)
	s.RootPEM = encode(ca)
	s.key, s.CertificatePEM = key, encode(create(t, template("sns.amazonaws.com"), ca, key.Public(), caKey))

	web := create(t, template(s.Host), ca, webKey.Public(), caKey)
	s.server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{web.Raw}, PrivateKey: webKey}}}
	s.server.StartTLS()
	t.Cleanup(s.server.Close)
	return s
}

// CertificateURL is where the signing certificate is.
func (s *Topic) CertificateURL() string {
	return "https://" + s.Host + "/SimpleNotificationService-0123456789abcdef0123456789abcdef.pem"
}

// Answer replaces the server's answers, until it is called with nil.
func (s *Topic) Answer(h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = h
}

// Visits returns the URLs that were asked for so far.
func (s *Topic) Visits() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.visits)
}

func (s *Topic) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.visits = append(s.visits, "https://"+r.Host+r.URL.String())
	answer := s.answer
	s.mu.Unlock()
	switch {
	case answer != nil:
		answer(w, r)
	case "https://"+r.Host+r.URL.String() == s.CertificateURL():
		w.Write(s.CertificatePEM)
	case r.URL.Query().Get("Action") == "ConfirmSubscription":
		io.WriteString(w, `<ConfirmSubscriptionResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/">`+
			`<ConfirmSubscriptionResult><SubscriptionArn>`+s.ARN+`:1</SubscriptionArn></ConfirmSubscriptionResult></ConfirmSubscriptionResponse>`)
	default:
		http.Error(w, "<Error>AccessDenied</Error>", http.StatusForbidden)
	}
}

// Dial connects to the server, for any address.
func (s *Topic) Dial(ctx context.Context, network, _ string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, s.server.Listener.Addr().String())
}

// Fetch gets a URL from the server and follows no redirects.
func (s *Topic) Fetch(ctx context.Context, url string, limit int64) (int, []byte, error) {
	transport := &http.Transport{DialContext: s.Dial, TLSClientConfig: &tls.Config{RootCAs: s.Roots}, DisableKeepAlives: true}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, err
	}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err == nil && int64(len(body)) > limit {
		err = errors.New("the answer is too long")
	}
	return resp.StatusCode, body, err
}

// A Message is the body of a post. To forge a message, change a member after signing.
type Message map[string]any

// JSON is the message as it is posted.
func (m Message) JSON() []byte {
	body, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return body
}

// Message makes a signed message of a type. The version of its signature is "1"
// (SHA-1) or "2" (SHA-256). Subject is of notifications only; empty for none.
func (s *Topic) Message(kind, version, text, subject string) Message {
	m := Message{
		"Type": kind, "MessageId": "165545c9-2a5c-472c-8df2-7ff2be2b3b1b", "TopicArn": s.ARN, "Message": text,
		"Timestamp":        time.Now().UTC().Format("2006-01-02T15:04:05.000Z"),
		"SignatureVersion": version, "SigningCertURL": s.CertificateURL(),
	}
	if kind == "Notification" {
		m["UnsubscribeURL"] = "https://" + s.Host + "/?Action=Unsubscribe&SubscriptionArn=" + s.ARN + ":1"
		if subject != "" {
			m["Subject"] = subject
		}
	} else {
		m["Token"] = "2336412f37fb687f5d51e6e2425929f52e8e"
		m["SubscribeURL"] = "https://" + s.Host + "/?Action=ConfirmSubscription&TopicArn=" + s.ARN + "&Token=2336412f37fb687f5d51e6e2425929f52e8e"
	}
	s.Sign(m)
	return m
}

// Sign sets the signature of the message as it is now.
func (s *Topic) Sign(m Message) {
	var b strings.Builder
	for _, name := range []string{"Message", "MessageId", "Subject", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"} {
		if value, ok := m[name].(string); ok {
			b.WriteString(name + "\n" + value + "\n")
		}
	}
	sum1 := sha1.Sum([]byte(b.String()))
	hash, digest := crypto.SHA1, sum1[:]
	if m["SignatureVersion"] == "2" {
		sum256 := sha256.Sum256([]byte(b.String()))
		hash, digest = crypto.SHA256, sum256[:]
	}
	signature, err := rsa.SignPKCS1v15(nil, s.key, hash, digest)
	if err != nil {
		panic(err)
	}
	m["Signature"] = base64.StdEncoding.EncodeToString(signature)
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// signingKey is the same for all topics of a process: it takes long to make one.
var signingKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func template(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(23 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
}

func create(t testing.TB, template, parent *x509.Certificate, of crypto.PublicKey, by crypto.Signer) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, of, by)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func encode(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}
