package servers_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/servers"
)

// TestReceiverRestarts: the address stays the same, and connections are refused in between.
// The tests of core/egress check the calls.
func TestReceiverRestarts(t *testing.T) {
	t.Parallel()
	r, err := servers.StartReceiver(servers.ReceiverOptions{})
	servers.Check(t, err)
	t.Cleanup(func() { _ = r.Stop() })
	url := r.URL()
	listens := func() bool {
		conn, err := net.DialTimeout("tcp", strings.TrimPrefix(url, "http://"), 10*time.Second)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}
	if !listens() {
		t.Errorf("no server listens at %s", url)
	}
	r.Kill()
	if listens() {
		t.Errorf("a server listens at %s after Kill()", url)
	}
	if err := r.Restart(); err != nil || r.URL() != url || !listens() {
		t.Errorf("Restart() = %v, listening at %s, want %s", err, r.URL(), url)
	}
	if calls, err := r.Calls(""); len(calls) != 0 || err != nil {
		t.Errorf("Calls() = %v, %v before there was one", calls, err)
	}
}
