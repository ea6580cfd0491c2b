package sns

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/infra/test/snsrig"
)

func TestBudget(t *testing.T) {
	now := time.Date(2026, 11, 20, 7, 28, 11, 0, time.UTC)
	var b budget
	for _, at := range []struct {
		later time.Duration
		want  int
	}{
		{0, 10}, {newEvery - 1, 0}, {1, 1}, {2*newEvery - 1, 1}, {1, 1}, {time.Hour, 10},
		{-time.Hour, 0}, {newEvery, 1}, // the clock is set back
	} {
		now = now.Add(at.later)
		got := 0
		for got <= maxNew && b.take(now) {
			got++
		}
		if got != at.want {
			t.Errorf("%d taken %s later, want %d", got, at.later, at.want)
		}
	}
}

// TestForgedAddressesCostABudget: each forged message names another certificate.
func TestForgedAddressesCostABudget(t *testing.T) {
	rig, now := snsrig.New(t), time.Now()
	topic := topic(rig.Fetch, func() time.Time { return now })
	genuine := rig.Message("Notification", "2", "published", "").JSON()
	open := func() {
		t.Helper()
		if _, err := topic.Open(t.Context(), genuine); err != nil {
			t.Fatalf("Open(genuine) = %v", err)
		}
	}
	made := 0
	forge := func() error {
		m := rig.Message("Notification", "2", "published", "")
		m["SigningCertURL"] = fmt.Sprintf("https://%s/SimpleNotificationService-%032x.pem", rig.Host, made)
		made++
		_, err := topic.Open(t.Context(), m.JSON())
		if _, refused := errors.AsType[*core.Refusal](err); err == nil || refused {
			t.Fatalf("Open(forged) = %v, want an error that is no refusal", err)
		}
		return err
	}
	open()
	const first = 1 // the genuine one was new, too
	for range 150 {
		forge()
		open()
	}
	if n := len(rig.Visits()); n != maxNew {
		t.Errorf("%d fetches for 150 forged names and one genuine, want %d", n, maxNew)
	}
	if err := forge(); !errors.Is(err, errNoBudget) {
		t.Errorf("Open(forged) = %v, want %v", err, errNoBudget)
	}
	now = now.Add(3 * newEvery)
	for range 150 {
		forge()
	}
	if n := len(rig.Visits()); n != maxNew+3 {
		t.Errorf("%d fetches after the time for 3 more, want %d", n, maxNew+3)
	}
	now = now.Add(certificateLife - 3*newEvery) // over for the genuine one
	for range 150 {
		forge()
	}
	open()
	if n := len(rig.Visits()); n != 2*maxNew+3+first {
		t.Errorf("%d fetches after an hour, want %d: the genuine one is not new", n, 2*maxNew+3+first)
	}
	open()
}

// TestFetchesAreFew: certificates that hang hold up few others, and none that are known.
func TestFetchesAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := aws(t, certificateFile)
		var mu sync.Mutex
		calls, running, most := 0, 0, 0
		hang := func(ctx context.Context, url string, _ int64) (int, []byte, error) {
			mu.Lock()
			calls++
			running++
			most = max(most, running)
			mu.Unlock()
			defer func() { mu.Lock(); running--; mu.Unlock() }()
			if url == "known" {
				return 200, body, nil
			}
			<-ctx.Done()
			return 0, nil, ctx.Err()
		}
		c := NewCertificates(hang, time.Now)
		if _, err := c.find(t.Context(), "known"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(certificateLife) // it is over
		var strangers sync.WaitGroup
		start := time.Now()
		for i := range 150 {
			strangers.Go(func() {
				if _, err := c.find(t.Context(), fmt.Sprint("forged ", i)); err == nil {
					t.Errorf("find(forged %d) = nil", i)
				}
			})
		}
		synctest.Wait()
		if _, err := c.find(t.Context(), "known"); err != nil || time.Since(start) != 0 {
			t.Errorf("find(known) = %v after %s, want it at once", err, time.Since(start))
		}
		strangers.Wait()
		if took := time.Since(start); took != certificateTimeout {
			t.Errorf("the last one waited %s, want %s", took, certificateTimeout)
		}
		if most > 2*maxFetches || calls > 2+maxNew {
			t.Errorf("%d fetches, %d of them at once; want at most %d, %d at once", calls, most, 2+maxNew, 2*maxFetches)
		}
	})
}
