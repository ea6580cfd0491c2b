package servers_test

import (
	"encoding/base64"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/servers"
)

const clientsBody = "{\"n\": 1.50, \"sign\": \"€\"}\n"

var clientsSecret = "whsec_" + base64.StdEncoding.EncodeToString([]byte("a key for the providers' clients"))

var signers = []string{"stripe", "github", "standardwebhooks", "slack"}

// TestClients: every library accepts its own signatures, byte for byte, and no others.
func TestClients(t *testing.T) {
	for _, provider := range signers {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			c := servers.Clients(t)
			signed := c.Sign(servers.Posting{Provider: provider, Secret: clientsSecret, Body: clientsBody, ID: "d-1", Type: "push"})
			if signed.Body != clientsBody {
				t.Errorf("body = %q, want %q", signed.Body, clientsBody)
			}
			if err := c.Verify(provider, clientsSecret, signed); err != nil {
				t.Error(err)
			}
			other := "whsec_" + base64.StdEncoding.EncodeToString([]byte("somebody else's key"))
			if c.Verify(provider, other, signed) == nil {
				t.Error("accepted with another secret")
			}
			signed.Body = strings.Replace(signed.Body, "1", "2", 1)
			if c.Verify(provider, clientsSecret, signed) == nil {
				t.Error("accepted with another body")
			}
			if provider == "github" {
				return // signs no time
			}
			old := c.Sign(servers.Posting{Provider: provider, Secret: clientsSecret, Body: clientsBody, ID: "d-1", At: time.Now().Add(-time.Hour)})
			if c.Verify(provider, clientsSecret, old) == nil {
				t.Error("accepted an hour later")
			}
		})
	}
}

func TestClientsKnowCloudEvents(t *testing.T) {
	t.Parallel()
	c := servers.Clients(t)
	for _, mode := range []string{"cloudevents-binary", "cloudevents-structured"} {
		event := c.Sign(servers.Posting{Provider: mode, Body: clientsBody, ID: "e-1", Type: "order.created"})
		if err := c.Verify("cloudevents", "", event); err != nil {
			t.Errorf("%s: %v", mode, err)
		}
		delete(event.Headers, "ce-type")
		event.Body = strings.Replace(event.Body, `"type":"order.created",`, "", 1)
		if c.Verify("cloudevents", "", event) == nil {
			t.Errorf("%s without type is a valid event", mode)
		}
	}
}

// TestClientsAnswerWhoAsked: many goroutines use the process at the same time.
func TestClientsAnswerWhoAsked(t *testing.T) {
	t.Parallel()
	c := servers.Clients(t)
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			body := fmt.Sprintf(`{"n": %d}`, i)
			if got := c.Sign(servers.Posting{Provider: "slack", Secret: "s", Body: body}).Body; got != body {
				t.Errorf("body = %s, want %s", got, body)
			}
		})
	}
	all.Wait()
}

// TestClientsEndWithTheirInput: nothing has to be stopped.
func TestClientsEndWithTheirInput(t *testing.T) {
	t.Parallel()
	servers.Clients(t) // or skip
	cmd := exec.CommandContext(t.Context(), "node", "../clients/providers.mjs")
	cmd.Stdin = strings.NewReader("{}\n")
	if out, err := cmd.Output(); err != nil || strings.Count(string(out), "\n") != 1 || !strings.Contains(string(out), `"error"`) {
		t.Errorf("after one question that means nothing: %q, %v, want one error and a good end", out, err)
	}
}
