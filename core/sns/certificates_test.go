package sns

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const certificateFile = "SimpleNotificationService-7506a1e35b36ef5a444dd1a8e7cc3ed8.pem"

// A counter gives every address the same answer, and counts the calls.
type counter struct {
	status int
	body   []byte
	err    error
	calls  map[string]int
}

func (c *counter) fetch(_ context.Context, url string, _ int64) (int, []byte, error) {
	if c.calls == nil {
		c.calls = map[string]int{}
	}
	c.calls[url]++
	return c.status, c.body, c.err
}

func TestCertificatesAreFetchedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body, calls, answer := aws(t, certificateFile), 0, make(chan bool)
		c := NewCertificates(func(ctx context.Context, url string, limit int64) (int, []byte, error) {
			calls++
			<-answer
			return 200, body, ctx.Err()
		}, nil)
		impatient, leave := context.WithCancel(t.Context())
		left := make(chan error)
		go func() { _, err := c.find(impatient, clientOf(sender), "u"); left <- err }()
		synctest.Wait() // until this call fetches
		found := make(chan error)
		for range 50 {
			go func() { _, err := c.find(t.Context(), clientOf(sender), "u"); found <- err }()
		}
		synctest.Wait()
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("find() given up = %v, want that", err)
		}
		close(answer)
		for range 50 {
			if err := <-found; err != nil {
				t.Errorf("find() = %v", err)
			}
		}
		if calls != 1 {
			t.Errorf("%d fetches for 50 callers, want 1", calls)
		}
	})
}

func TestCertificatesAreKept(t *testing.T) {
	now := time.Now()
	web := &counter{status: 200, body: aws(t, certificateFile)}
	c := NewCertificates(web.fetch, func() time.Time { return now })
	for _, at := range []struct {
		later time.Duration
		calls int
	}{{0, 1}, {time.Hour - 1, 1}, {1, 2}, {time.Hour - 1, 2}, {time.Hour, 3}} {
		now = now.Add(at.later)
		if cert, err := c.find(t.Context(), clientOf(sender), "u"); err != nil || cert.Subject.CommonName != "sns.amazonaws.com" || web.calls["u"] != at.calls {
			t.Errorf("find() %s later = %v, %d fetches so far, want %d", at.later, err, web.calls["u"], at.calls)
		}
	}
}

func TestFailuresAreKeptForAShortTime(t *testing.T) {
	now := time.Now()
	web := &counter{err: errors.New("connect: connection refused")}
	c := NewCertificates(web.fetch, func() time.Time { return now })
	for _, at := range []struct {
		later time.Duration
		calls int
	}{{0, 1}, {10*time.Second - 1, 1}, {1, 2}} {
		now = now.Add(at.later)
		if _, err := c.find(t.Context(), clientOf(sender), "u"); !errors.Is(err, web.err) || web.calls["u"] != at.calls {
			t.Errorf("find() %s later = %v, %d fetches so far, want %d", at.later, err, web.calls["u"], at.calls)
		}
	}
	web.status, web.body, web.err = 200, aws(t, certificateFile), nil
	now = now.Add(10 * time.Second)
	if _, err := c.find(t.Context(), clientOf(sender), "u"); err != nil {
		t.Errorf("find() after the trouble was over = %v", err)
	}
}

// TestCertificatesAreBounded: however many addresses forged messages name, few are remembered,
// and certificates in use stay.
func TestCertificatesAreBounded(t *testing.T) {
	now := time.Now()
	web := &counter{status: 200, body: aws(t, certificateFile)}
	c := NewCertificates(web.fetch, func() time.Time { now = now.Add(time.Millisecond); return now })
	find := func(url string) {
		now = now.Add(perClient.every) // so that the budget has room for each new address
		c.find(t.Context(), clientOf(sender), url)
	}
	find("used")
	for i := range 100 {
		find(fmt.Sprint("genuine ", i))
		find("used")
	}
	web.status = 404
	for i := range 100 {
		find(fmt.Sprint("made up ", i))
	}
	web.status = 200
	find("used")
	find("genuine 99")
	find("genuine 0")
	for url, want := range map[string]int{"used": 1, "genuine 99": 1, "genuine 0": 2} {
		if web.calls[url] != want {
			t.Errorf("%q was fetched %d times, want %d", url, web.calls[url], want)
		}
	}
	if len(c.known) != 16 || len(c.failed) != 16 {
		t.Errorf("%d certificates and %d failures are kept, want 16 each", len(c.known), len(c.failed))
	}
}

func TestCertificateFiles(t *testing.T) {
	good := string(aws(t, certificateFile))
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	elliptic, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1)}, &x509.Certificate{SerialNumber: big.NewInt(1)}, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, bytes []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}))
	}
	der, _ := pem.Decode([]byte(good))
	for what, c := range map[string]struct {
		status int
		body   string
		ok     bool
	}{
		"as it is":         {200, good, true},
		"blank lines":      {200, "\n\n" + good + "\r\n \n", true},
		"other line ends":  {200, strings.ReplaceAll(good, "\n", "\r\n"), true},
		"status 403":       {403, good, false},
		"status 302":       {302, good, false},
		"status 206":       {206, good, false},
		"empty":            {200, "", false},
		"XML":              {200, "<Error/>", false},
		"two":              {200, good + good, false},
		"text before":      {200, "x\n" + good, false},
		"text after":       {200, good + "x", false},
		"broken one first": {200, "-----BEGIN CERTIFICATE-----\nx\n" + good, false},
		"cut off":          {200, good[:1000], false},
		"a key":            {200, block("PUBLIC KEY", der.Bytes), false},
		"bytes after":      {200, block("CERTIFICATE", append(der.Bytes, 0)), false},
		"no certificate":   {200, block("CERTIFICATE", []byte("x")), false},
		"elliptic key":     {200, block("CERTIFICATE", elliptic), false},
	} {
		web := &counter{status: c.status, body: []byte(c.body)}
		if cert, err := NewCertificates(web.fetch, nil).find(t.Context(), clientOf(sender), "u"); (err == nil) != c.ok || (cert != nil) != c.ok {
			t.Errorf("find(%s) = %v, %v, want success %v", what, cert, err, c.ok)
		}
	}
}
