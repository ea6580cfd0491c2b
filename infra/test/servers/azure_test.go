package servers_test

import (
	"net/http"
	"testing"

	"github.com/eventgateway/gateway/infra/test/servers"
)

func TestAzure(t *testing.T) {
	response, err := http.Get(servers.Azure(t) + "/none/none")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusForbidden || response.Header.Get("X-Ms-Error-Code") == "" {
		t.Errorf("GET by a stranger = %s, %v, want Azure's 403", response.Status, response.Header)
	}
}
