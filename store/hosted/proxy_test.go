package hosted

import (
	"net/http"
	"sync/atomic"
	"testing"
)

// TestNoProxy: the token goes to the database's address, whatever proxies the environment
// names.
func TestNoProxy(t *testing.T) {
	c := newClient(1, new(atomic.Int64))
	if c.HTTPClient.Transport.(*http.Transport).Proxy != nil {
		t.Error("the transport asks for a proxy, want none")
	}
}
