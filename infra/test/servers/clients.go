package servers

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// ProviderClients are the libraries that providers of webhooks publish, run by node. They sign
// like the providers, and verify like the providers' users. A method ends the test if it
// fails. The methods are safe for concurrent use in a test.
type ProviderClients struct {
	t testing.TB
	*clients
}

// A Posting is a webhook to be signed.
type Posting struct {
	// Provider is stripe, github, standardwebhooks, slack, cloudevents-binary or
	// cloudevents-structured. The last two are not signed: their body becomes the
	// data of an event, and has to be JSON.
	Provider string

	Secret string    // as the provider shows it to its user
	Body   string    // UTF-8
	ID     string    // the provider's id of the delivery, if it is in a header
	Type   string    // the provider's type of the event, if it is in a header
	At     time.Time // of the signature, in whole seconds; zero means now
}

// A Signed is a webhook as a provider posts it.
type Signed struct {
	Headers map[string]string // names in lower case
	Body    string
}

// Sign signs a webhook with the provider's library. Slack's library can only verify: for
// Slack, Sign makes the documented signature and requires that the library accepts it.
func (c *ProviderClients) Sign(p Posting) Signed {
	c.t.Helper()
	question := map[string]any{"do": "sign", "provider": p.Provider, "secret": p.Secret, "body": []byte(p.Body), "id": p.ID, "type": p.Type}
	if !p.At.IsZero() {
		question["time"] = p.At.Unix()
	}
	var said struct {
		Headers map[string]string `json:"headers"`
		Body    []byte            `json:"body"`
	}
	if err := c.ask(question, &said); err != nil {
		c.t.Fatalf("sign for provider %s: %v", p.Provider, err)
	}
	return Signed{said.Headers, string(said.Body)}
}

// Verify asks the provider's library whether a request with these headers comes from a holder
// of the secret. The names of the headers are in lower case. The error says why it does not.
// The provider cloudevents needs no secret: its library decides whether the request is a valid
// event.
func (c *ProviderClients) Verify(provider, secret string, s Signed) error {
	c.t.Helper()
	question := map[string]any{"do": "verify", "provider": provider, "secret": secret, "headers": s.Headers, "body": []byte(s.Body)}
	var said struct {
		Verified bool   `json:"verified"`
		Why      string `json:"why"`
	}
	if err := c.ask(question, &said); err != nil {
		c.t.Fatalf("verify for provider %s: %v", provider, err)
	}
	if !said.Verified {
		return fmt.Errorf("the library of provider %s does not accept it: %s", provider, said.Why)
	}
	return nil
}

// Clients returns the providers' libraries. The first call starts the node process of this
// test binary.
func Clients(t testing.TB) *ProviderClients {
	t.Helper()
	c, err := sharedClients()
	Check(t, err)
	return &ProviderClients{t, c}
}

var sharedClients = sync.OnceValues(startClients)

// clients is a node process that answers line by line. It needs no janitor, since it ends with
// its input, and only this process holds the other end of the input.
type clients struct {
	mu      sync.Mutex
	in      *os.File
	out     *os.File
	answers *bufio.Reader
}

func startClients() (*clients, error) {
	if err := allowed(); err != nil {
		return nil, err
	}
	node, home := find("node"), nodeFolder("clients", "providers.mjs")
	if node == "" {
		return nil, missing("node", "install Node.js 20 or newer, then run infra/test/install")
	}
	if _, err := os.Stat(filepath.Join(home, "node_modules/stripe/package.json")); err != nil {
		return nil, missing("libraries of webhook providers", "run infra/test/install")
	}
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirIn.Close()
	out, theirOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	defer theirOut.Close()
	cmd := exec.Command(node, filepath.Join(home, "providers.mjs"))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirIn, theirOut, os.Stderr
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start node: %w", err), in.Close(), out.Close())
	}
	_ = cmd.Process.Release()
	return &clients{in: in, out: out, answers: bufio.NewReader(out)}, nil
}

// ask puts one question and decodes its answer.
func (c *clients) ask(question, answer any) error {
	line, err := json.Marshal(question)
	if err != nil {
		return err
	}
	said, err := c.exchange(append(line, '\n'))
	if err != nil {
		return fmt.Errorf("providers.mjs: %w (what it printed is above)", err)
	}
	var failed struct {
		Error string `json:"error"`
	}
	if err := json.Unmarshal(said, &failed); err != nil || failed.Error != "" {
		return fmt.Errorf("providers.mjs says %s", said)
	}
	return json.Unmarshal(said, answer)
}

func (c *clients) exchange(question []byte) (answer []byte, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	deadline := time.Now().Add(time.Minute) // loading a library takes a third of a second
	if err := errors.Join(c.in.SetWriteDeadline(deadline), c.out.SetReadDeadline(deadline)); err != nil {
		return nil, err
	}
	if _, err := c.in.Write(question); err != nil {
		return nil, err
	}
	return c.answers.ReadBytes('\n')
}
