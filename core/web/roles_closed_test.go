package web

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/eventgateway/gateway/core"
)

// A route that asks for a token and is missing from the table of roles is closed to every
// caller, also if the API has no tokens.
func TestRoutesWithoutARoleAreClosed(t *testing.T) {
	for what, tokens := range map[string][]Token{"no tokens": nil, "a token": {{Name: "ci", Text: "s3cret", Role: core.RoleAdmin}}, "all rights": {{Text: "s3cret", Role: core.RoleAdmin}}} {
		reached := false
		h := Handler(Settings{MaxBodySize: 1, MaxInbound: 1}, func(r chi.Router, d *Door) {
			r.Post("/api/forgotten", d.changing(newKeyring(tokens), func(http.ResponseWriter, *http.Request) error {
				reached = true
				return nil
			}))
		})
		r := httptest.NewRequest("POST", "/api/forgotten", nil)
		r.Header.Set("Authorization", "Bearer s3cret")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusForbidden || reached {
			t.Errorf("%s: %d %s, want 403", what, w.Code, w.Body)
		}
	}
}
