package servers

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// ReceiverOptions are the options of a receiver.
type ReceiverOptions struct {
	Cert, Key []byte // PEM; with them it speaks TLS
}

// A Receiver is a gRPC handler on 127.0.0.1 in another language: it uses node's @grpc/grpc-js.
// The metadata x-answer of each call decides the answer; see infra/test/clients/receiver.mjs.
type Receiver struct {
	process *process
	scheme  string
	args    []string
	told    struct{ Port int }
}

// A Call is a call that arrived.
type Call struct {
	Request struct {
		EventID   string            `json:"event_id"`
		EventType string            `json:"event_type"`
		Handler   string            `json:"handler"`
		Payload   string            `json:"payload"`
		Metadata  map[string]string `json:"metadata"`
		Attempt   int               `json:"attempt"`
	} `json:"request"`
	Metadata map[string]string `json:"metadata"` // of the call; names in lower case
	Deadline float64           `json:"deadline"` // in milliseconds of Unix time
}

// StartReceiver starts a receiver, which takes a third of a second. The error
// wraps [ErrMissing] if node or its packages are not installed.
func StartReceiver(o ReceiverOptions) (*Receiver, error) {
	if err := allowed(); err != nil {
		return nil, err
	}
	node, home := find("node"), nodeFolder("clients", "receiver.mjs")
	if node == "" {
		return nil, missing("node", "install Node.js 20 or newer, then run infra/test/install")
	}
	if _, err := os.Stat(filepath.Join(home, "node_modules/@grpc/grpc-js/package.json")); err != nil {
		return nil, missing("@grpc/grpc-js", "run infra/test/install")
	}
	p, err := newProcess("", "KILL", nil)
	if err != nil {
		return nil, err
	}
	r := &Receiver{process: p, scheme: "http", args: []string{node, filepath.Join(home, "receiver.mjs"), "--folder", p.dir}}
	if o.Cert != nil {
		r.scheme = "https"
		err = errors.Join(r.option("cert", o.Cert), r.option("key", o.Key))
	}
	if err == nil {
		err = r.Restart()
	}
	if err != nil {
		_ = r.Stop()
		return nil, fmt.Errorf("start a gRPC receiver in %s: %w", p.dir, err)
	}
	return r, nil
}

// option hands the script a file.
func (r *Receiver) option(name string, content []byte) error {
	path := filepath.Join(r.process.dir, name)
	r.args = append(r.args, "--"+name, path)
	return os.WriteFile(path, content, 0o600)
}

// URL is where the receiver listens. It stays the same over restarts.
func (r *Receiver) URL() string { return fmt.Sprintf("%s://127.0.0.1:%d", r.scheme, r.told.Port) }

// Calls returns the calls so far that contain a text, such as a job's id. With "" it returns
// all calls.
func (r *Receiver) Calls(holding string) ([]Call, error) {
	b, err := os.ReadFile(filepath.Join(r.process.dir, "calls"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var calls []Call
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		if !bytes.Contains(lines.Bytes(), []byte(holding)) {
			continue
		}
		var c Call
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return nil, fmt.Errorf("what the receiver wrote about a call: %w", err)
		}
		calls = append(calls, c)
	}
	return calls, lines.Err()
}

// Kill ends the receiver at once with SIGKILL. Connections are refused until it is restarted.
func (r *Receiver) Kill() { r.process.kill() }

// Restart starts the receiver on its old port, after ending it in good order if
// it runs, and returns when it listens.
func (r *Receiver) Restart() error {
	r.process.end(sigTerm, 10*time.Second)
	return r.process.startNode(r.args, &r.told)
}

// Log returns the end of the receiver's output.
func (r *Receiver) Log() string { return r.process.log() }

// Stop ends the receiver and removes its folder. It may be called again.
func (r *Receiver) Stop() error { return r.process.remove() }

// GRPC returns the test binary's own receiver, which the first call starts. Tests share it, so
// they find their calls by the job's id.
func GRPC(t testing.TB) *Receiver {
	t.Helper()
	r, err := sharedReceiver()
	Check(t, err)
	return r
}

var sharedReceiver = sync.OnceValues(func() (*Receiver, error) { return StartReceiver(ReceiverOptions{}) })
