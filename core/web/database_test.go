package web_test

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core/web"
	"github.com/eventgateway/gateway/core/wire"
)

// Only a request with a proof of the API's token gets the name of the database.
func TestHealthNamesTheDatabase(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	const plain, named = `{"status":"ok","queue_depth":3}`, `{"status":"ok","queue_depth":3,"database":{"name":"postgres db/gateway","id":"x"}}`
	for _, tt := range []struct {
		tokens []string
		proof  string
		want   string
	}{
		{[]string{"t0ken"}, "", plain},
		{[]string{"t0ken"}, wire.ProofOf("t0ken", now), named},
		{[]string{"t0ken"}, wire.ProofOf("", now), plain},
		{[]string{"t0ken"}, wire.ProofOf("t0ken", now.Add(-time.Hour)), plain},
		{nil, "", plain},
		{nil, wire.ProofOf("", now), named},
	} {
		h := web.Handler(web.Settings{MaxBodySize: 9, MaxInbound: 1}, web.Ops(web.OpsOptions{
			Depth:    func(context.Context) (int, error) { return 3, nil },
			Database: wire.Database{Name: "postgres db/gateway", ID: "x"},
			Tokens:   tt.tokens,
			Now:      func() time.Time { return now },
		}))
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/health", nil)
		r.Header.Set(wire.Proof, tt.proof)
		got := httptest.NewRecorder()
		h.ServeHTTP(got, r)
		if got.Body.String() != tt.want {
			t.Errorf("tokens %q, proof %q: %s, want %s", tt.tokens, tt.proof, got.Body, tt.want)
		}
	}
}
