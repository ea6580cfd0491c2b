//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

const diskConfig = `
server:
  host: 127.0.0.1
  port: ${PORT}
  allow_private_urls: true
database: {url: data/gateway.db}
delivery: {timeout: 5s, default_retry: {max: 50, backoff: fixed, interval: 100ms}}
sources: {app: {type: event}}
handlers: {load: {source: app, url: "${RECEIVER}/load", headers: {x-life: "${LIFE:-0}"}}}
`

// trouble is a gateway whose disk will fail, and its witness.
type trouble struct {
	*gateway
	*load
	t    *testing.T
	next serial
}

func newTrouble(t *testing.T) *trouble {
	t.Helper()
	r := receiver.New(t)
	g := newGateway(t, diskConfig, r)
	if err := os.Mkdir(filepath.Join(g.dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	// Handlers are slow, so deliveries are under way when the trouble begins or ends.
	r.On("/load", r.Taking(30*time.Millisecond))
	return &trouble{gateway: g, load: newLoad(g, r, pooled), t: t}
}

// offer posts n events and returns how many were accepted. It fails the test for answers other
// than 202 and 503 with Retry-After: on any other answer a sender drops the event for good.
func (d *trouble) offer(n int) (accepted int) {
	d.t.Helper()
	for range n {
		d.next++
		d.load.send(d.next)
		body := fmt.Sprintf(`{"serial":%d,"fill":%q}`, d.next, strings.Repeat("x", 2000))
		a, err := fetch(pooled, request{method: http.MethodPost, url: d.url("/events/load"), body: body})
		switch {
		case err != nil:
			d.t.Fatalf("post: %v", err)
		case a.status == http.StatusAccepted:
			d.accept(d.next, a.eventID())
			accepted++
			continue
		case a.status == http.StatusServiceUnavailable && a.header.Get("Retry-After") == "":
			d.t.Errorf("answer = 503 %q without Retry-After", a.body)
		case a.status != http.StatusServiceUnavailable && a.status != http.StatusInternalServerError:
			d.t.Errorf("answer = %d %q, want 503 or 500", a.status, a.body)
		}
		d.miss(fmt.Sprint(a.status))
	}
	return accepted
}

// checkHealth requires that /health answers as documented, with success or an error.
func (d *trouble) checkHealth() (status int) {
	d.t.Helper()
	status, body, err := d.health()
	switch {
	case err != nil:
		d.t.Errorf("/health: %v, want an answer", err)
	case status == http.StatusOK && strings.Contains(body, `"queue_depth"`):
	case status == http.StatusServiceUnavailable && strings.Contains(body, `"detail"`):
	default:
		d.t.Errorf("/health = %d %s, want 200 with queue_depth or 503 with detail", status, body)
	}
	return status
}

// checkRecovery requires that the gateway works again by itself and has kept every promise.
func (d *trouble) checkRecovery() {
	d.t.Helper()
	d.awaitRecovery()
	if n := d.offer(20); n != 20 {
		d.t.Errorf("accepted after recovery = %d, want all 20", n)
	}
	wait.For(d.t, 5*time.Second, "healthy again", d.healthy)
	d.checkPromises(0)
}

func (d *trouble) awaitRecovery() {
	d.t.Helper()
	wait.For(d.t, 10*time.Second, "events accepted again without a restart", func() bool { return d.offer(1) == 1 })
}

// checkPromises waits for all deliveries and stops the gateway.
func (d *trouble) checkPromises(maxDuplicates int) {
	d.t.Helper()
	d.settle(20 * time.Second)
	d.awaitIdle(10 * time.Second)
	d.gateway.process.stop()

	v := d.judge(settleReach)
	d.t.Logf("%v; posts without 202: %v", v, d.misses)
	v.check(d.t, maxDuplicates)
	db := openLedger(d.t, d.database())
	db.check(1)
	db.holds(d.acceptedIDs())
}

// TestDiskFull: on a full disk, the gateway accepts no event and loses none. It recovers by
// itself once there is room.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	d := newTrouble(t)
	disk := filepath.Join(d.dir, "data")
	// SQLite's WAL may grow to several megabytes before a checkpoint. The ballast must be
	// larger than the WAL, or removing the ballast makes no room.
	need(t, "the right to mount", syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=32m"))
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", disk, err)
		}
	})
	d.gateway.start()
	if n := d.offer(100); n != 100 {
		t.Fatalf("accepted with room = %d, want all 100", n)
	}
	ballast := filepath.Join(disk, "ballast")
	fill(t, ballast)
	// The file of the log has some room left, so a few more events are stored.
	full := wait.Until(20*time.Second, func() bool { return d.offer(1) == 0 })
	if !full {
		t.Fatal("events are still accepted on a full disk")
	}
	d.offer(50)
	wait.For(t, 5*time.Second, "/health says that nothing is written", func() bool {
		status, body, err := d.health()
		return err == nil && status == http.StatusServiceUnavailable && strings.Contains(body, "takes no writes")
	})
	remove(t, ballast)
	d.checkRecovery()
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 64 << 10; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("fill the disk: %v, want that it is full", err)
		}
	}
}

// TestSyncFails: while the disk refuses to sync, no event is accepted. After that, no accepted
// event is missing. strace injects the error and leaves the gateway unchanged when it
// detaches.
func TestSyncFails(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"EIO", "ENOSPC"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			d := newTrouble(t)
			d.gateway.start()
			for range 3 { // later rounds use connections that have seen a fault
				tr := d.failSyncs(fault)
				tr.detach()
				if len(tr.calls()) == 0 {
					t.Error("no sync was tried, so nothing was tested")
				}
				d.awaitRecovery()
			}
			d.checkRecovery()
		})
	}
	t.Run("and then killed", func(t *testing.T) {
		t.Parallel()
		d := newTrouble(t)
		d.gateway.start()
		for range 3 {
			d.failSyncs("EIO")
			d.gateway.kill()
			d.load.kill(d.life, time.Now())
			d.gateway.start()
		}
		// A refused event may have reached the log all the same, and then counts. At each kill
		// some deliveries were under way, and the outcomes of others were not written yet.
		d.checkPromises(3 * 3 * killConcurrency)
	})
}

// failSyncs makes every sync fail while deliveries are under way, and requires that no event
// is accepted then.
func (d *trouble) failSyncs(fault string) *tracer {
	d.t.Helper()
	if n := d.offer(100); n != 100 {
		d.t.Errorf("accepted before the fault = %d, want all 100", n)
	}
	tr := trace(d.t, d.gateway.process, "-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:error="+fault+":when=1+")
	if n := d.offer(20); n != 0 {
		d.t.Errorf("accepted while no sync succeeds = %d, want 0", n)
	}
	d.checkHealth()
	return tr
}
