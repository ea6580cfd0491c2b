package gateway_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/core/telemetry/metrics"
)

// TestClocks: stored times, and times in ids, are from the database's clock. Times that other
// systems see are from the machine's clock: it is used to make and to verify signatures.
func TestClocks(t *testing.T) {
	const ahead = -45 * time.Minute
	clock := func() time.Time { return time.Now().Add(ahead) }
	is := func(what string, got, want time.Time) {
		t.Helper()
		if d := got.Sub(want).Abs(); d > 10*time.Minute {
			t.Errorf("%s is %v, want about %v", what, got, want)
		}
	}
	url, got := recorder(t)
	c := load(t, `
server: {allow_private_urls: true}
delivery: {signing_secret: for-all}
sources: {shop: {type: event}}
handlers: {billing: {source: shop, url: "`+url+`"}}
`)
	s := openStore(t, filepath.Join(t.TempDir(), "gateway.db"))
	g, err := gateway.New(c, gateway.Deps{
		Store: s, Clock: clock, Machine: core.SystemClock, Ahead: func() time.Duration { return ahead },
		Log: slog.New(slog.DiscardHandler), Metrics: metrics.New(metrics.Options{Names: gateway.Names(c)}),
	})
	if err != nil {
		t.Fatal(err)
	}
	base, stop := serve(t, g)
	id := core.ID(post(t, base+"/events/shop/order.created", `{}`).Header.Get("x-gateway-event-id"))
	r := await(t, got)
	signed, err := strconv.ParseInt(r.Header.Get("webhook-timestamp"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	is("the time of a delivery's signature", time.Unix(signed, 0), time.Now())
	if err := stop(); err != nil {
		t.Fatal(err)
	}

	e, err := s.Event(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	is("when the event was received", e.CreatedAt, clock())
	is("the time in its id", id.Time(), clock())
	jobs, err := s.Jobs(context.Background(), core.JobFilter{EventID: id})
	if err != nil || len(jobs.Items) != 1 {
		t.Fatalf("jobs %v, %v, want one", jobs.Items, err)
	}
	is("when the job was made", jobs.Items[0].CreatedAt, clock())
	is("when it was finished", jobs.Items[0].FinishedAt, clock())
	is("the time in its id", jobs.Items[0].ID.Time(), clock())

	if n, err := strconv.ParseFloat(scrape(t, g.Handler())["gateway_clock_offset_seconds"], 64); err != nil || math.Abs(n-ahead.Seconds()) > 1 {
		t.Errorf("clock_offset_seconds = %v, %v, want %v", n, err, ahead.Seconds())
	}
}

// TestSignaturesAreJudgedByTheMachine: the time in a signature is compared with the machine's
// clock, even if the database's clock differs.
func TestSignaturesAreJudgedByTheMachine(t *testing.T) {
	c := load(t, "sources: {pay: {type: webhook, verify: stripe, secret: whsec_x}}\n")
	g, err := gateway.New(c, gateway.Deps{
		Store: openStore(t, filepath.Join(t.TempDir(), "gateway.db")), Log: slog.New(slog.DiscardHandler),
		Clock: func() time.Time { return time.Now().Add(time.Hour) }, Machine: core.SystemClock,
	})
	if err != nil {
		t.Fatal(err)
	}
	base, stop := serve(t, g)
	defer func() { _ = stop() }()
	for at, want := range map[time.Time]int{time.Now(): 200, time.Now().Add(time.Hour): 401} {
		body := `{"id": "evt_1", "type": "charge"}`
		stamp := strconv.FormatInt(at.Unix(), 10)
		r, err := http.NewRequest(http.MethodPost, base+"/webhooks/pay", bytes.NewReader([]byte(body)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Stripe-Signature", fmt.Sprintf("t=%s,v1=%s", stamp, hex.EncodeToString(mac([]byte("whsec_x"), stamp, body))))
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("signed at %v: %s, want %d", at, resp.Status, want)
		}
	}
}
