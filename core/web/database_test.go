package web_test

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/web"
	"github.com/eventgateway/gateway/core/wire"
)

// Only a request with a proof of a token that may read gets the name of the database.
func TestHealthNamesTheDatabase(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	const plain, named = `{"status":"ok","queue_depth":3}`, `{"status":"ok","queue_depth":3,"database":{"name":"postgres db/gateway","id":"x"}}`
	all := []web.Token{{Text: "t0ken", Role: core.RoleAdmin}}
	some := []web.Token{{Name: "a", Text: "reads", Role: core.RoleRead}, {Name: "b", Text: "sends", Role: core.RoleSend}}
	for _, tt := range []struct {
		tokens []web.Token
		proof  string
		want   string
	}{
		{all, "", plain},
		{all, wire.ProofOf("t0ken", now), named},
		{all, wire.ProofOf("", now), plain},
		{all, wire.ProofOf("t0ken", now.Add(-time.Hour)), plain},
		{some, wire.ProofOf("reads", now), named},
		{some, wire.ProofOf("sends", now), plain},
		{some[1:], wire.ProofOf("", now), plain},
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
			t.Errorf("tokens %v, proof %q: %s, want %s", tt.tokens, tt.proof, got.Body, tt.want)
		}
	}
}
