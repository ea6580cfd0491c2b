package gateway_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	record "github.com/eventgateway/gateway/core/wire"
)

// manyFailed is a store with very many failed jobs, so that an answer with their errors is used for
// seconds. Slices of operations wait until the test lets them go.
type manyFailed struct {
	core.Store
	asked atomic.Int64
	let   chan struct{}
}

func (m *manyFailed) Failures(context.Context, core.FailureFilter) (page core.Page[core.FailedJob], err error) {
	m.asked.Add(1)
	for i := range core.MaxFailures {
		page.Items = append(page.Items, core.FailedJob{ID: core.ID(fmt.Sprintf("01J9%022d", i)), Lane: "handler/billing", Status: core.Dead, Error: "x"})
	}
	return page, nil
}

func (m *manyFailed) DoSlice(ctx context.Context, now time.Time, s core.Slice) (core.Operation, error) {
	<-m.let
	return m.Store.DoSlice(ctx, now, s)
}

// TestEndOfAnOperationIsShown: grouped errors are shared, and no caller gets an answer of before the end of an
// operation, although nobody calls a route that changes something then.
func TestEndOfAnOperationIsShown(t *testing.T) {
	hook, got := receiver(t, 500, 200)
	s := &manyFailed{Store: openStore(t, filepath.Join(t.TempDir(), "gateway.db")), let: make(chan struct{})}
	g := newGateway(t, load(t, `
server: {allow_private_urls: true}
sources: {shop: {type: event}}
handlers:
  billing: {source: shop, url: "`+hook+`", retry: {max: 1}}
`), s)
	base, stop := serve(t, g)
	post(t, base+"/events/shop/order", `{}`)
	next(t, got)
	until := func(what string, reached func() bool) {
		t.Helper()
		for deadline := time.Now().Add(5 * time.Second); !reached(); <-time.After(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: not within 5 s", what)
			}
		}
	}
	errorsAsked := func() int64 {
		if groups := told[record.Errors](t, g.Handler(), "GET /api/jobs/errors", ""); groups.Scanned != core.MaxFailures {
			t.Fatalf("looked at %d jobs", groups.Scanned)
		}
		return s.asked.Load()
	}
	until("a dead job", func() bool {
		return len(told[record.Jobs](t, g.Handler(), "GET /api/jobs?status=dead", "").Jobs) == 1
	})
	if r := httpAsk(g.Handler(), "POST /api/operations", `{"action": "retry", "filter": {"consumer": "billing"}, "rate": 10}`); r.Code >= 300 {
		t.Fatalf("begin an operation: %d %s", r.Code, r.Body)
	}
	before := errorsAsked()
	if n := errorsAsked(); n != before {
		t.Fatalf("asked the store %d times, want %d: the answer is shared", n, before)
	}
	close(s.let)
	until("a new answer", func() bool { return errorsAsked() > before })
	if err := stop(); err != nil {
		t.Error(err)
	}
}
