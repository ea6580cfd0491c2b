package egress

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/alert"
	"github.com/eventgateway/gateway/core/worker"
	"github.com/eventgateway/gateway/infra/test/dnsrig"
	"github.com/eventgateway/gateway/infra/test/hosts"
)

// ways are all kinds of outgoing calls. Each returns the error of its call, nil if the call
// succeeded. An error of the address's form means that no connection was tried.
var ways = []struct {
	name string
	call func(ctx context.Context, c *Client, url string) error
}{
	{"handler http", func(ctx context.Context, c *Client, url string) error {
		return deliverBy(ctx, c.HTTP, url)
	}},
	{"handler grpc", func(ctx context.Context, c *Client, url string) error {
		return deliverBy(ctx, c.GRPC, url)
	}},
	{"alert", func(ctx context.Context, c *Client, url string) error {
		return deliverBy(ctx, func(t Target) (worker.Sender, error) {
			s, err := c.HTTP(t)
			return alert.Sender(s, "slack"), err
		}, url)
	}},
	// The function that sns.Certificates and sns.Topic use for their calls.
	{"SNS", func(ctx context.Context, c *Client, url string) error {
		_, _, err := c.Get(ctx, url, 1000)
		if err != nil && strings.HasPrefix(err.Error(), "the URL to get ") {
			return errShape
		}
		return err
	}},
	{"doctor", func(ctx context.Context, c *Client, url string) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodHead, url, nil)
		if err != nil {
			return errShape
		}
		resp, err := c.HTTPClient(time.Minute).Do(r)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}},
}

var errShape = errors.New("refused for its shape")

// deliverBy makes one delivery with a new sender.
func deliverBy(ctx context.Context, kind func(Target) (worker.Sender, error), url string) error {
	s, err := kind(Target{Name: "x", URL: url})
	if err != nil {
		return errShape
	}
	if got := s.Send(ctx, core.TakenJob{Event: core.Event{Payload: []byte(`{"alert":"x"}`)}}); !got.OK {
		return errors.New(got.Error)
	}
	return nil
}

// A doorkeeper is behind a client's guard. It notes every address that the guard permits, and
// lets the client dial only loopback addresses.
type doorkeeper struct {
	mu     sync.Mutex
	passed []netip.Addr
}

var errNotHere = errors.New("not dialled by a test")

func watch(c *Client) *doorkeeper {
	d := &doorkeeper{}
	guard := c.dialer.ControlContext
	c.dialer.ControlContext = func(ctx context.Context, network, address string, conn syscall.RawConn) error {
		if err := guard(ctx, network, address, conn); err != nil {
			return err
		}
		to := netip.MustParseAddrPort(address).Addr()
		d.mu.Lock()
		d.passed = append(d.passed, to.Unmap())
		d.mu.Unlock()
		if !to.Unmap().IsLoopback() {
			return errNotHere
		}
		return nil
	}
	return d
}

// let returns the addresses that were permitted since the last call of let.
func (d *doorkeeper) let() []netip.Addr {
	d.mu.Lock()
	defer d.mu.Unlock()
	passed := d.passed
	d.passed = nil
	return passed
}

// localNames resolves the names of this machine to it, and no other name.
func localNames(name string, _ int) []string {
	if strings.Contains(name, "localhost") {
		return []string{"127.0.0.1", "::1"}
	}
	return nil
}

func newWatched(t *testing.T, allowPrivate bool, zone dnsrig.Zone) (*Client, *doorkeeper) {
	c := New(Options{AllowPrivate: allowPrivate, Concurrency: 1})
	t.Cleanup(c.Close)
	c.dialer.Resolver = dnsrig.New(t, zone).Resolver()
	return c, watch(c)
}

// TestBadHostsAreRefused: no kind of call connects to an address that is not public, in any
// spelling of the address.
func TestBadHostsAreRefused(t *testing.T) {
	if len(hosts.Bad) < 60 {
		t.Errorf("%d hosts, want at least 60", len(hosts.Bad))
	}
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			witness := newWitness(t)
			client, door := newWatched(t, false, localNames)
			for _, host := range hosts.Bad {
				err := attempt(t, way.call, client, "http://"+host+":"+witness.port+"/")
				if err == nil {
					t.Errorf("%s is connected to", host)
				}
				if _, isAddr := address(host); isAddr == nil && !isBlocked(err) {
					t.Errorf("%s: %v, want it blocked", host, err)
				}
			}
			if passed := door.let(); len(passed) != 0 {
				t.Errorf("the guard let through %v", passed)
			}
			witness.check(t)
		})
	}
}

// attempt makes a call with a deadline that is far away.
func attempt(t *testing.T, call func(context.Context, *Client, string) error, c *Client, url string) error {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return call(ctx, c, url)
}

// address parses a host that is an IP address in its usual form.
func address(host string) (netip.Addr, error) {
	inner, bracketed := strings.CutPrefix(host, "[")
	if bracketed && strings.HasSuffix(inner, "]") {
		host = inner[:len(inner)-1]
	}
	a, err := netip.ParseAddr(host)
	if err == nil && (a.Zone() != "" || a.Is6() != bracketed) {
		err = errShape
	}
	return a, err
}

// isBlocked reports whether an error, or the text of one, is the guard's refusal.
func isBlocked(err error) bool {
	_, ok := errors.AsType[*blockedError](err)
	return ok || err != nil && strings.Contains(err.Error(), "blocked: ")
}

// TestBadHostsWhenPrivateIsAllowed: permitting private addresses permits them and loopback, and
// no other address.
func TestBadHostsWhenPrivateIsAllowed(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			client, door := newWatched(t, true, localNames)
			opened := 0
			for _, host := range hosts.Bad {
				a, err := address(host)
				if err != nil {
					continue
				}
				a = a.Unmap()
				attempt(t, way.call, client, "http://"+host+":1")
				passed := door.let()
				if want := (within(private, a) || within(loopback, a)) && !within(metadata, a); slices.Contains(passed, a) != want {
					t.Errorf("%s: let through %v, want it let through: %v", host, passed, want)
				}
				opened += len(passed)
			}
			if opened == 0 {
				t.Error("nothing was let through, want private addresses")
			}
		})
	}
}

// lies are DNS zones in which a name resolves to an address that its text does not suggest.
var lies = map[string]dnsrig.Zone{
	"public, then loopback": turns([]string{"8.8.8.8"}, []string{"127.0.0.1"}),
	"public, then private":  turns([]string{"8.8.8.8", "2001:4860:4860::8888"}, []string{"10.0.0.1", "fd00::1"}),
	"public, then metadata": turns([]string{"8.8.8.8"}, []string{"169.254.169.254", "fd00:ec2::254"}),
	"public, then nothing":  turns([]string{"8.8.8.8"}, nil, []string{"0.0.0.0"}),
	"both in one answer":    turns([]string{"8.8.8.8", "127.0.0.1", "::1"}),
	"both, private first":   turns([]string{"192.168.0.1", "127.0.0.1", "8.8.8.8"}),
	"alias of localhost":    turns([]string{"localhost"}, []string{"alias.test"}),
	"mapped":                turns([]string{"::ffff:127.0.0.1", "::ffff:169.254.169.254"}),
	"wrapped":               turns([]string{"64:ff9b::7f00:1", "2002:7f00:1::", "::127.0.0.1"}),
}

// turns answers a name with each of the sets in turn.
func turns(sets ...[]string) dnsrig.Zone {
	return func(name string, n int) []string {
		switch name {
		case "localhost":
			return []string{"127.0.0.1", "::1"}
		case "alias.test":
			return []string{"localhost"}
		}
		return sets[(n-1)%len(sets)]
	}
}

// TestRebinding: the guard checks the dialled address at every dial, so earlier answers of DNS
// do not matter.
func TestRebinding(t *testing.T) {
	rounds := 1200
	if testing.Short() {
		rounds = 120
	}
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			for lie, zone := range lies {
				witness := newWitness(t)
				client, door := newWatched(t, false, zone)
				blocked := 0
				for n := range max(rounds/len(lies), 1) {
					err := attempt(t, way.call, client, fmt.Sprintf("http://h%d.rebind.test:%s/", n%2, witness.port))
					if err == nil {
						t.Errorf("%s: round %d got through", lie, n)
					}
					if isBlocked(err) {
						blocked++
					}
				}
				for _, a := range door.let() {
					if public.SafeAddr(a.Unmap()) != nil {
						t.Errorf("%s: the guard let through %v", lie, a)
					}
				}
				if blocked == 0 {
					t.Errorf("%s: no round was blocked", lie)
				}
				witness.check(t)
			}
		})
	}
}
