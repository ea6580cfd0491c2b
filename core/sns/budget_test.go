package sns

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/infra/test/snsrig"
)

// sender is the address of requests in these tests.
var sender = netip.MustParseAddr("192.0.2.1")

func TestBudget(t *testing.T) {
	now := time.Date(2026, 11, 20, 7, 28, 11, 0, time.UTC)
	var b budget
	for _, at := range []struct {
		later time.Duration
		want  int
	}{
		{0, 10}, {perClient.every - 1, 0}, {1, 1}, {2*perClient.every - 1, 1}, {1, 1}, {time.Hour, 10},
		{-time.Hour, 0}, {perClient.every, 1}, // the clock is set back
	} {
		now = now.Add(at.later)
		got := 0
		for got <= perClient.most && b.left(perClient, now) {
			b.spend(perClient)
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
		if _, err := topic.Open(t.Context(), sender, genuine); err != nil {
			t.Fatalf("Open(genuine) = %v", err)
		}
	}
	made := 0
	forge := func() error {
		m := rig.Message("Notification", "2", "published", "")
		m["SigningCertURL"] = fmt.Sprintf("https://%s/SimpleNotificationService-%032x.pem", rig.Host, made)
		made++
		_, err := topic.Open(t.Context(), sender, m.JSON())
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
	if n := len(rig.Visits()); n != perClient.most {
		t.Errorf("%d fetches for 150 forged names and one genuine, want %d", n, perClient.most)
	}
	if err := forge(); !errors.Is(err, errNoBudget) {
		t.Errorf("Open(forged) = %v, want %v", err, errNoBudget)
	}
	now = now.Add(3 * perClient.every)
	for range 150 {
		forge()
	}
	if n := len(rig.Visits()); n != perClient.most+3 {
		t.Errorf("%d fetches after the time for 3 more, want %d", n, perClient.most+3)
	}
	now = now.Add(certificateLife - 3*perClient.every) // the genuine certificate has expired
	for range 150 {
		forge()
	}
	open()
	if n := len(rig.Visits()); n != 2*perClient.most+3+first {
		t.Errorf("%d fetches after an hour, want %d: the genuine one is not new", n, 2*perClient.most+3+first)
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
		if _, err := c.find(t.Context(), clientOf(sender), "known"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(certificateLife) // it is over
		var strangers sync.WaitGroup
		start := time.Now()
		for i := range 150 {
			strangers.Go(func() {
				if _, err := c.find(t.Context(), clientOf(sender), fmt.Sprint("forged ", i)); err == nil {
					t.Errorf("find(forged %d) = nil", i)
				}
			})
		}
		synctest.Wait()
		if _, err := c.find(t.Context(), clientOf(sender), "known"); err != nil || time.Since(start) != 0 {
			t.Errorf("find(known) = %v after %s, want it at once", err, time.Since(start))
		}
		strangers.Wait()
		if took := time.Since(start); took != certificateTimeout {
			t.Errorf("the last one waited %s, want %s", took, certificateTimeout)
		}
		if most > 2*maxFetches || calls > 2+perClient.most {
			t.Errorf("%d fetches, %d of them at once; want at most %d, %d at once", calls, most, 2+perClient.most, 2*maxFetches)
		}
	})
}

// TestForgersDoNotStopOthers: an address that forges messages with ever new names of
// certificates does not keep another address from a certificate that is new to the gateway.
func TestForgersDoNotStopOthers(t *testing.T) {
	for _, forger := range []string{"203.0.113.7", "2001:db8:1:2::%x"} { // an address, and a network of them
		rig, now := snsrig.New(t), time.Now()
		topic := topic(rig.Fetch, func() time.Time { return now })
		made, message := 0, rig.Message("Notification", "2", "published", "")
		forge := func() {
			address := forger
			if made++; forger[0] == '2' && forger[3] == '1' {
				address = fmt.Sprintf(forger, made)
			}
			m := maps.Clone(message)
			m["SigningCertURL"] = fmt.Sprintf("https://%s/SimpleNotificationService-%032x.pem", rig.Host, made)
			if _, err := topic.Open(t.Context(), netip.MustParseAddr(address), m.JSON()); err == nil {
				t.Fatal("Open(forged) = nil")
			}
		}
		for range 300 {
			for range 5 {
				forge()
			}
			now = now.Add(time.Second)
		}
		if _, err := topic.Open(t.Context(), sender, message.JSON()); err != nil {
			t.Errorf("Open(genuine) after %d messages forged by %s: %v", made, forger, err)
		}
		if n, most := len(rig.Visits()), perClient.most+300/6+2; n > most {
			t.Errorf("%d fetches for %s in 300 seconds, want at most %d", n, forger, most)
		}
	}
}

// TestForgersShareNoFlight: a forger without a budget names the very certificate that another
// client needs. The other client gets its certificate.
func TestForgersShareNoFlight(t *testing.T) {
	rig, now := snsrig.New(t), time.Now()
	topic := topic(rig.Fetch, func() time.Time { return now })
	forger := netip.MustParseAddr("203.0.113.7")
	for i := range perClient.most {
		m := rig.Message("Notification", "2", "published", "")
		m["SigningCertURL"] = fmt.Sprintf("https://%s/SimpleNotificationService-%032x.pem", rig.Host, i)
		_, _ = topic.Open(t.Context(), forger, m.JSON())
	}
	genuine := rig.Message("Notification", "2", "published", "").JSON()
	if _, err := topic.Open(t.Context(), forger, genuine); !errors.Is(err, errNoBudget) {
		t.Fatalf("Open by the forger = %v, want %v", err, errNoBudget)
	}
	if _, err := topic.Open(t.Context(), sender, genuine); err != nil {
		t.Errorf("Open by the sender = %v", err)
	}
	if _, err := topic.Open(t.Context(), forger, genuine); err != nil {
		t.Errorf("Open by the forger of what is known now = %v", err)
	}
}

// TestForgersWaitInOneLine: slow fetches for one address leave room for the fetches of
// another.
func TestForgersWaitInOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := aws(t, certificateFile)
		c := NewCertificates(func(ctx context.Context, url string, _ int64) (int, []byte, error) {
			if url == "genuine" {
				return 200, body, nil
			}
			<-ctx.Done()
			return 0, nil, ctx.Err()
		}, time.Now)
		for i := range 100 {
			go func() {
				_, _ = c.find(t.Context(), clientOf(netip.MustParseAddr("203.0.113.7")), fmt.Sprint("forged ", i))
			}()
		}
		synctest.Wait()
		start := time.Now()
		if _, err := c.find(t.Context(), clientOf(sender), "genuine"); err != nil || time.Since(start) != 0 {
			t.Errorf("find = %v after %s, want it at once", err, time.Since(start))
		}
		time.Sleep(2 * certificateTimeout)
	})
}

// TestBudgetsAreBounded: a sender with many addresses has at most the budget of all clients
// together, and takes no more memory than maxClients budgets.
func TestBudgetsAreBounded(t *testing.T) {
	var b budgets
	now, taken := time.Now(), 0
	for i := range 10_000 {
		if _, ok := b.take(clientOf(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})), now); ok {
			taken++
		}
		if i == 5_000 {
			now = now.Add(10 * inAll.every)
		}
	}
	if taken != inAll.most+10 || len(b.clients) != maxClients {
		t.Errorf("%d taken, %d addresses known, want %d and %d", taken, len(b.clients), inAll.most+10, maxClients)
	}
}

// TestConfirmationsCostABudget: an attacker may repeat a message that asks for a
// subscription.
func TestConfirmationsCostABudget(t *testing.T) {
	rig, now := snsrig.New(t), time.Now()
	o := topic(rig.Fetch, func() time.Time { return now }).options
	calls := 0
	o.Fetch = func(context.Context, string, int64) (int, []byte, error) { calls++; return 200, nil, nil }
	topic := NewTopic(o)
	ask := rig.Message("SubscriptionConfirmation", "2", "", "").JSON()
	for range 100 {
		_, err := topic.Open(t.Context(), netip.MustParseAddr("203.0.113.7"), ask)
		if err != nil && (!errors.Is(err, ErrConfirmation) || !errors.Is(err, errNoBudget)) {
			t.Fatalf("Open = %v", err)
		}
	}
	if calls != perClient.most {
		t.Errorf("%d calls for 100 messages, want %d", calls, perClient.most)
	}
	if _, err := topic.Open(t.Context(), sender, ask); err != nil || calls != perClient.most+1 {
		t.Errorf("Open by another = %v, %d calls, want it confirmed", err, calls)
	}
}
