package verify_test

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkVerify verifies a body of 2 KB with one secret.
func BenchmarkVerify(b *testing.B) {
	json := []byte(`{"type":"invoice.paid","note":"` + strings.Repeat("x", 2<<10) + `"}`)[:2<<10]
	for _, c := range []struct{ name, scheme, secret string }{
		{"github", "github", secret}, {"gitlab", "gitlab", secret}, {"hmac", "hmac", secret}, {"linear", "linear", secret},
		{"paddle", "paddle", secret}, {"shopify", "shopify", secret}, {"slack", "slack", secret},
		{"standard-webhooks-v1", "standard-webhooks", standardSecret}, {"standard-webhooks-v1a", "standard-webhooks", standardPrivate},
		{"stripe", "stripe", secret}, {"twilio", "twilio", secret},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, m := newScheme(b, c.scheme, c.secret), messageFor(c.scheme)
			switch c.scheme {
			case "linear":
				m.Body = fmt.Appendf(nil, `{"webhookTimestamp":%d,"note":"%s"}`, now.UnixMilli(), strings.Repeat("x", 2<<10-45))
			case "twilio":
				m.Body = []byte("From=%2B12349013030&Body=" + strings.Repeat("x", 2<<10-25))
			default:
				m.Body = json
			}
			r := sent(b, s, m).request()
			b.ReportAllocs()
			b.SetBytes(int64(len(m.Body)))
			for b.Loop() {
				if err := s.Verify(r, now); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
