//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/ports"
	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// A printout is the output of a process while it runs.
type printout struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *printout) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *printout) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// awaits waits until a text was printed.
func (p *printout) awaits(t *testing.T, text string) {
	t.Helper()
	wait.For(t, 20*time.Second, "listen prints "+text, func() bool { return strings.Contains(p.String(), text) })
}

// listen runs "gateway listen" against the HTTP API until the returned function interrupts it.
func (d *deployment) listen(t *testing.T, to string, flags ...string) (*printout, func()) {
	t.Helper()
	p := &printout{}
	cmd := exec.Command(program("gateway"), append([]string{"listen", "--url", d.api.URL, "--to", to}, flags...)...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = t.TempDir(), []string{"PATH=" + os.Getenv("PATH")}, p, p
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended already
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("listen printed\n%s", p)
		}
	})
	p.awaits(t, "listening to "+d.api.URL)
	return p, func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait() // the exit code says that it was interrupted
	}
}

// serveAt serves a receiver at a port until the returned function stops it.
func serveAt(t *testing.T, port *ports.Port, r *receiver.Receiver) (stop func()) {
	t.Helper()
	on, err := port.Listen()
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: r}
	go func() { _ = s.Serve(on) }()
	t.Cleanup(func() { _ = s.Close() })
	return func() { _ = s.Close() }
}

// TestListen: a listen beside the functions, to a server that fails, hangs and is restarted. It
// settles nothing, and costs a call a second.
func TestListen(t *testing.T) {
	onEach(t, func(t *testing.T, db *database) {
		d, r := newStory(t, db)
		desk, port := receiver.New(t), ports.New(t)
		if err := port.Lend(); err != nil {
			t.Fatal(err)
		}
		desk.On("/hooks", func(n int, w http.ResponseWriter, q *http.Request) {
			switch n {
			case 1:
				http.Error(w, "no such table", http.StatusInternalServerError)
			case 2:
				desk.Hanging()(n, w, q)
			}
		})
		stop, began := serveAt(t, port, desk), time.Now()
		p, interrupt := d.listen(t, "http://"+port.Addr()+"/hooks", "--source", "app", "--match", "$.n > 0", "--timeout", "1s")
		d.send("/events/order.created", `{"n": 0}`)
		sent := []string{d.send("/events/order.created", `{"n": 1}`), d.send("/events/order.created", `{"n": 2}`)}
		p.awaits(t, sent[1]+"  order.created  ->  timeout: no answer within 1s")
		stop()
		sent = append(sent, d.send("/events/order.created", `{"n": 3}`))
		p.awaits(t, "(connect: connection refused); trying again for 30s")
		d.pull.Stop() // the next call has a new environment
		serveAt(t, port, desk)
		sent = append(sent, d.send("/events/order.created", `{"n": 4}`))
		p.awaits(t, sent[3]+"  order.created  ->  200")
		interrupt()
		took := time.Since(began)

		var got []string
		for i, post := range desk.At("/hooks") {
			got = append(got, post.Event())
			if want := fmt.Sprintf(`{"n": %d}`, i+1); post.Body != want || post.Header.Get("Content-Type") != "application/json" {
				t.Errorf("post %d = %q %v, want %q", i, post.Body, post.Header, want)
			}
		}
		if !slices.Equal(got, sent) {
			t.Errorf("posted %q, want %q", got, sent)
		}
		if said := p.String(); !strings.Contains(said, sent[0]+"  order.created  ->  500 Internal Server Error") || !strings.Contains(said, "  no such table\n") ||
			!strings.Contains(said, "posted 4 events: 2 delivered, 2 failed; 1 not wanted; nothing was settled\n") {
			t.Errorf("printed\n%s", said)
		}
		// A look a second, two at the start, and each event in full.
		if n, most := len(d.pull.Results()), int(took/time.Second)+3+5; n > most {
			t.Errorf("%d calls of the function in %v, want at most %d", n, took, most)
		}
		d.awaitIdle(20 * time.Second)
		d.stop()
		db.sound()
		if n := len(r.At("/orders")); n != 5 {
			t.Errorf("deliveries to the handler = %d, want each of 5 events once", n)
		}
	})
}
