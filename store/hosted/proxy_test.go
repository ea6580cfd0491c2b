package hosted

import (
	"net/http"
	"testing"
)

// TestNoProxy: the client sends the token only to the database's address, and ignores the proxies
// of the environment.
func TestNoProxy(t *testing.T) {
	c := new(Conn).newClient(1)
	if c.HTTPClient.Transport.(*http.Transport).Proxy != nil {
		t.Error("the transport asks for a proxy, want none")
	}
}
