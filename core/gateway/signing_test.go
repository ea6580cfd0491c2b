package gateway_test

import (
	"encoding/base64"
	"io"
	"strings"
	"testing"
)

// Deliveries are signed with the secrets of their handler, or else with the secrets in
// delivery.signing_secret.
func TestSigningSecrets(t *testing.T) {
	for _, tt := range []struct {
		name, delivery, handler string
		keys                    []string
	}{
		{"none", "", "", nil},
		{"of all", "signing_secret: for-all", "", []string{"for-all"}},
		{"its own", "signing_secret: for-all", "signing_secret: its-own", []string{"its-own"}},
		{"only its own", "", "signing_secret: [its-own, whsec_b2xkIG93bg==]", []string{"its-own", "old own"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url, got := recorder(t)
			w := wire(t, billing(url, tt.handler, "delivery: {"+tt.delivery+"}"))
			w.send(t)
			r := await(t, got)
			body, _ := io.ReadAll(r.Body)
			var want []string
			for _, key := range tt.keys {
				sum := mac([]byte(key), r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp"), string(body))
				want = append(want, "v1,"+base64.StdEncoding.EncodeToString(sum))
			}
			if got := r.Header.Get("webhook-signature"); got != strings.Join(want, " ") {
				t.Errorf("webhook-signature %q, want %q", got, want)
			}
		})
	}
}
