package sns

import (
	"bytes"
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/eventgateway/gateway/core"
)

const (
	certificateLife    = time.Hour
	failureLife        = 10 * time.Second
	certificateTimeout = 5 * time.Second
	maxCertificate     = 64 << 10 // bytes
	maxKept            = 16       // certificates, and as many failures
	maxFetches         = 2        // at once of known addresses, and as many of new ones
)

// Certificates fetches signing certificates and keeps the 16 last used ones for an hour.
// Callers that need the same one at the same time share one fetch of at most 5 seconds. A
// failed fetch is not repeated for 10 seconds.
//
// A forger may name another address in every message. A fetch from an address that never
// gave a certificate therefore takes from a budget: each client has 10 fetches at once and
// one more every 6 seconds; all clients together have 40 and one more every second. Beyond
// the budget a fetch fails without a call, and the failure is not remembered. Each client
// has one such fetch at a time, and all clients together have two. So one client cannot
// keep another from a certificate that is new here.
//
// Requests of strangers do not affect known addresses: a fetch from a known address needs
// no budget and has a lane of its own (2 at once each). Failures are kept apart, so that
// they displace no certificate.
//
// It is safe for concurrent use.
type Certificates struct {
	fetch  Fetch
	clock  core.Clock
	flight singleflight.Group

	renewals, firsts chan struct{} // hold one value for each fetch under way

	budgets budgets

	mu     sync.Mutex
	known  shelf
	failed shelf
}

// NewCertificates returns an empty collection. A nil clock means the machine's.
func NewCertificates(fetch Fetch, clock core.Clock) *Certificates {
	if clock == nil {
		clock = core.SystemClock
	}
	return &Certificates{
		fetch:    fetch,
		clock:    clock,
		renewals: make(chan struct{}, maxFetches),
		firsts:   make(chan struct{}, maxFetches),
		known:    shelf{},
		failed:   shelf{},
	}
}

// find returns the certificate at an address, for a client. The caller has checked the form
// of the address. The key is an RSA key. The caller checks whether the certificate is valid
// now.
func (c *Certificates) find(ctx context.Context, from client, url string) (*x509.Certificate, error) {
	if e := c.kept(url); e != nil {
		return e.certificate, e.err
	}
	// Each client has its own flight. In a shared flight the empty budget of one client
	// would fail all clients.
	done := c.flight.DoChan(from.String()+" "+url, func() (any, error) {
		if e := c.kept(url); e != nil { // by a flight that landed since
			return e.certificate, e.err
		}
		// The fetch continues if the first caller leaves, because others wait for it.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), certificateTimeout)
		defer cancel()
		return c.call(ctx, from, url)
	})
	select {
	case r := <-done:
		return r.Val.(*x509.Certificate), r.Err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// call fetches a certificate in the lanes of its kind and keeps the result.
func (c *Certificates) call(ctx context.Context, from client, url string) (*x509.Certificate, error) {
	lanes, err := c.lanes(from, url)
	if err != nil {
		return nil, err
	}
	for _, lane := range lanes {
		select {
		case lane <- struct{}{}:
			defer func() { <-lane }()
		case <-ctx.Done():
			return nil, fmt.Errorf("others are being fetched: %w", ctx.Err())
		}
	}
	if e := c.kept(url); e != nil { // fetched for another client, while this one waited
		return e.certificate, e.err
	}
	var certificate *x509.Certificate
	err = core.Contain(func() (err error) { certificate, err = c.download(ctx, url); return err }) // this goroutine has no other guard against panics
	c.keep(url, certificate, err)
	return certificate, err
}

// lanes returns the lanes in which a fetch waits for its turn, one after the other. A fetch
// from a new address takes from the client's budget, and waits for the client's earlier
// fetch first.
func (c *Certificates) lanes(from client, url string) ([]chan struct{}, error) {
	now := c.clock()
	c.mu.Lock()
	known := c.known[url] != nil
	c.mu.Unlock()
	if known {
		return []chan struct{}{c.renewals}, nil
	}
	purse, ok := c.budgets.take(from, now)
	if !ok {
		return nil, errNoBudget
	}
	return []chan struct{}{purse.turn, c.firsts}, nil
}

func (c *Certificates) download(ctx context.Context, url string) (*x509.Certificate, error) {
	status, body, err := c.fetch(ctx, url, maxCertificate)
	if err != nil {
		return nil, err
	}
	if status != 200 {
		return nil, fmt.Errorf("status %d", status)
	}
	return parseCertificate(body)
}

// parseCertificate reads a file with one certificate and nothing else.
func parseCertificate(file []byte) (*x509.Certificate, error) {
	block, rest := pem.Decode(file)
	// pem.Decode skips text before a block, even other blocks that are broken.
	start := []byte("-----BEGIN CERTIFICATE-----")
	if block == nil || !bytes.HasPrefix(bytes.TrimSpace(file), start) || bytes.Count(file, []byte("-----BEGIN")) != 1 || len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("the file is not one certificate in PEM form")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	if _, ok := certificate.PublicKey.(*rsa.PublicKey); !ok {
		return nil, fmt.Errorf("its key is %s, not RSA", certificate.PublicKeyAlgorithm)
	}
	return certificate, nil
}

// kept returns the entry of an address, nil if there is none.
func (c *Certificates) kept(url string) *entry {
	now := c.clock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.known.find(url, now); e != nil {
		return e
	}
	return c.failed.find(url, now)
}

func (c *Certificates) keep(url string, certificate *x509.Certificate, err error) {
	now := c.clock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.failed.put(url, &entry{err: err, until: now.Add(failureLife), used: now})
		return
	}
	c.known.put(url, &entry{certificate: certificate, until: now.Add(certificateLife), used: now})
}

// An entry is a certificate, or the reason why there is none.
type entry struct {
	certificate *x509.Certificate
	err         error
	until, used time.Time
}

// A shelf holds at most maxKept entries by their address. An expired entry stays, since its
// address is not a new one.
type shelf map[string]*entry

func (s shelf) find(url string, now time.Time) *entry {
	e := s[url]
	if e == nil {
		return nil
	}
	e.used = now
	if !now.Before(e.until) {
		return nil
	}
	return e
}

// put adds an entry. If there is no room, it removes the entry that was unused for longest.
func (s shelf) put(url string, e *entry) {
	if _, ok := s[url]; !ok && len(s) >= maxKept {
		oldest := ""
		for u, o := range s {
			if oldest == "" || o.used.Before(s[oldest].used) {
				oldest = u
			}
		}
		delete(s, oldest)
	}
	s[url] = e
}
