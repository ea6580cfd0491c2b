//go:build linux

package e2e

import (
	"net/url"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/servers"
	"github.com/eventgateway/gateway/infra/test/wire"
)

// TestHostedFaults: faults of D1, and of the network between a gateway and D1.
func TestHostedFaults(t *testing.T) {
	t.Parallel()
	const limited = `{"success":false,"errors":[{"code":971,"message":"Please wait and consider throttling your request speed"}],"messages":[],"result":null}`
	for _, tt := range []struct {
		name string
		what servers.Fault
	}{
		{"slow", servers.Stall(8 * time.Second)},
		{"500", servers.Before(500, internalError)},
		{"502 of a proxy", servers.Before(502, "<html>bad gateway</html>")},
		{"503", servers.Before(503, servers.Overloaded)},
		{"429", servers.Before(429, limited)},
		{"answers are lost", servers.After()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			st, faults := viaProxy(t, servers.D1(t))
			testFault(t, st, fault{tt.name, func(*testing.T) func() {
				faults.Chance(1, tt.what)
				return faults.Clear
			}})
		})
	}
	t.Run("connection refused", func(t *testing.T) {
		t.Parallel()
		h := servers.D1(t)
		w, endpoint := viaWire(t, h.Endpoint)
		testFault(t, proxyStore(h, endpoint), fault{"connection refused", func(*testing.T) func() {
			w.Cut()
			return w.Mend
		}})
	})
}

// viaWire puts a wire in front of a server, and returns the URL that leads through the wire.
func viaWire(t *testing.T, base string) (*wire.Wire, string) {
	t.Helper()
	u, err := url.Parse(base)
	check(t, err)
	w := wire.New(t, "tcp", u.Host)
	u.Host = w.Addr()
	return w, u.String()
}
