package web_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core/web"
)

func opsHandler(depth func(context.Context) (int, error)) http.Handler {
	return web.Handler(web.Settings{MaxBodySize: 1, MaxInbound: 1}, web.Ops(web.OpsOptions{Depth: depth}))
}

func TestHealthAsksAtMostOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		h := opsHandler(func(context.Context) (int, error) {
			time.Sleep(100 * time.Millisecond)
			if asked.Add(1) > 1 {
				return 0, errors.New("gone")
			}
			return 7, nil
		})
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if got := ask(h, "GET", "/health", ""); got.Code != 200 {
					t.Errorf("health = %d, want 200", got.Code)
				}
			})
		}
		wg.Wait()
		time.Sleep(800 * time.Millisecond)
		if got := ask(h, "GET", "/health", ""); got.Code != 200 || asked.Load() != 1 {
			t.Errorf("health = %d after %d checks within a second, want 200 after 1", got.Code, asked.Load())
		}
		time.Sleep(100 * time.Millisecond)
		if got := ask(h, "GET", "/health", ""); got.Code != 503 || asked.Load() != 2 {
			t.Errorf("health = %d after %d checks, want 503 after 2", got.Code, asked.Load())
		}
	})
}

// Where each question costs something, an answer is good for longer; trouble is
// asked about again after a second all the same.
func TestHealthAsksAsSeldomAsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked, trouble atomic.Int32
		depth := func(context.Context) (int, error) {
			asked.Add(1)
			if trouble.Load() > 0 {
				return 0, errors.New("gone")
			}
			return 0, nil
		}
		h := web.Handler(web.Settings{MaxBodySize: 1, MaxInbound: 1}, web.Ops(web.OpsOptions{Depth: depth, Every: 5 * time.Second}))
		for _, step := range []struct {
			wait    time.Duration
			trouble int32
			code    int
			asked   int32
		}{{0, 0, 200, 1}, {4 * time.Second, 1, 200, 1}, {time.Second, 1, 503, 2}, {time.Second, 0, 200, 3}} {
			time.Sleep(step.wait)
			trouble.Store(step.trouble)
			if got := ask(h, "GET", "/health", ""); got.Code != step.code || asked.Load() != step.asked {
				t.Errorf("health = %d after %d checks, want %d after %d", got.Code, asked.Load(), step.code, step.asked)
			}
		}
	})
}

// A driver that hangs and ignores its deadline blocks no request, and is not called a second time
// meanwhile.
func TestHealthOfADatabaseThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		release := make(chan struct{})
		h := opsHandler(func(context.Context) (int, error) {
			asked.Add(1)
			<-release
			return 0, nil
		})
		for _, want := range []time.Duration{2 * time.Second, 0, 0} {
			begun := time.Now()
			got := ask(h, "GET", "/health", "")
			if took := time.Since(begun); got.Code != 503 || took != want {
				t.Errorf("health = %d after %v, want 503 after %v", got.Code, took, want)
			}
		}
		if asked.Load() != 1 {
			t.Errorf("the database was asked %d times, want once", asked.Load())
		}
		close(release)
		synctest.Wait()
		if got := ask(h, "GET", "/health", ""); got.Code != 200 {
			t.Errorf("health after the hang = %d, want 200", got.Code)
		}
	})
}

// The reply for a database that answers reads and hangs in writes does not call it unreachable.
func TestHealthOfWritesThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		h := web.Handler(web.Settings{MaxBodySize: 1, MaxInbound: 1}, web.Ops(web.OpsOptions{
			Depth:  func(context.Context) (int, error) { return 0, nil },
			Writes: func(context.Context) error { <-release; return nil },
		}))
		const want = `{"status":"error","detail":"database takes no writes"}`
		if got := ask(h, "GET", "/health", ""); got.Code != 503 || strings.TrimSpace(got.Body.String()) != want {
			t.Errorf("health = %d %s, want 503 %s", got.Code, got.Body, want)
		}
		close(release)
		synctest.Wait()
		if got := ask(h, "GET", "/health", ""); got.Code != 200 {
			t.Errorf("health after the hang = %d, want 200", got.Code)
		}
	})
}
