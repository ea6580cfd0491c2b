package manage

import (
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestErrorKind(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		// As deliveries and workflows write them.
		{"status: 503 Service Unavailable", "status: 503 Service Unavailable"},
		{"status: 301 Moved Permanently to 10.0.0.1; redirects are not followed", "status: 301 Moved Permanently to <address>; redirects are not followed"},
		{"status: Unavailable: try later", "status: Unavailable: try later"},
		{"connect: connection refused", "connect: connection refused"},
		{"timeout: no answer within 10s", "timeout: no answer within <duration>"},
		{"timeout: no answer within 1m30.5s", "timeout: no answer within <duration>"},
		{"timeout: the workflow's timeout of 3600 s is over", "timeout: the workflow's timeout of <n> s is over"},
		{"data: more than 10,000 transitions", "data: more than <n> transitions"},
		{"dns: no such host (shop.example.com)", "dns: no such host (shop.example.com)"},
		// Statuses stay, and other numbers of three digits do not.
		{"HTTP 500", "HTTP 500"},
		{"HTTP/1.1 502 Bad Gateway", "HTTP/1.1 502 Bad Gateway"},
		{"status code 429", "status code 429"},
		{"status=404", "status=404"},
		{"status 503: order 503", "status 503: order <n>"},
		{"attempt 12 of 99", "attempt 12 of 99"},
		{"status 5030", "status <n>"},
		{"order 4711", "order <n>"},
		{"order-4711 is gone.", "order-<n> is gone."},
		{"12.5 of 1.000.000", "<n> of <n>"},
		// Ids.
		{"no run 01M85BY2RY55G7T4PRSF0JFRTW", "no run <id>"},
		{"no user 6ba7b810-9dad-11d1-80b4-00c04fd430c8, sorry", "no user <id>, sorry"},
		{"trace 4bf92f3577b34da6a3ce929d0e0e4736", "trace <id>"},
		{"at 0x7ffe12ab", "at <id>"},
		{"commit deadbee1 of deadbeef", "commit <id> of deadbeef"},
		{"No such customer: cus_9s6XKzkNRiz8i3", "No such customer: cus_<id>"},
		{"x509: sha256 and E1234 stay", "x509: sha256 and E1234 stay"},
		// Addresses and times.
		{"dial 192.168.1.17:8080: refused", "dial <address>: refused"},
		{"dial [2001:db8::1]:443: refused", "dial <address>: refused"},
		{"dial ::1: refused", "dial <address>: refused"},
		{"since 2026-11-24T10:00:00.123Z.", "since <time>."},
		{"since 2026-11-24 10:00:00+02:00", "since <time>"},
		{"on 2026-11-24, at 10:00:59", "on <time>, at <time>"},
		{"after 250ms.", "after <duration>."},
		{"after 15µs", "after <duration>"},
		{"größer als 1000 €", "größer als <n> €"},
	} {
		if got := ErrorKind(tt.text); got != tt.want {
			t.Errorf("ErrorKind(%q) = %q, want %q", tt.text, got, tt.want)
		}
		if again := ErrorKind(tt.want); again != tt.want {
			t.Errorf("ErrorKind(%q) = %q, want no change", tt.want, again)
		}
	}
}

func FuzzErrorKind(f *testing.F) {
	f.Add("dial [::1]:80: 1h. 0x12")
	f.Fuzz(func(t *testing.T, text string) { _ = ErrorKind(text) })
}

// TestErrorKindShortcuts: random texts have addresses and durations exactly where the parsers of the
// standard library find them. The code looks at few texts with these parsers.
func TestErrorKindShortcuts(t *testing.T) {
	pieces := []string{"1", "12", "255", "fe80", ".", ":", "::", "[", "]", "h", "m", "s", "ms", "µs", "ns", "x", " ", "0", "abc", "é", "%", "-", "10.0.0.1", "[::1]:80", "1m30.5s"}
	found := map[string]int{}
	for range 50_000 {
		var b strings.Builder
		for range 1 + rand.IntN(7) {
			b.WriteString(pieces[rand.IntN(len(pieces))])
		}
		text := b.String()
		if got, want := addressLength(text), parsedAddress(text); got != want {
			t.Fatalf("addressLength(%q) = %d, want %d", text, got, want)
		} else if want > 0 {
			found["addresses"]++
		}
		if got, want := durationLength(text), parsedDuration(text); got != want {
			t.Fatalf("durationLength(%q) = %d, want %d", text, got, want)
		} else if want > 0 {
			found["durations"]++
		}
	}
	if found["addresses"] < 200 || found["durations"] < 200 {
		t.Errorf("the texts had %v, want more", found)
	}
}

// parsedAddress is addressLength by the parsers alone.
func parsedAddress(text string) int {
	text = text[:min(len(text), maxAddress)]
	word := text[:prefix(text, func(c byte) bool { return isHex(c) || strings.IndexByte(".:[]", c) >= 0 })]
	if !strings.ContainsAny(word, ".:") {
		return 0
	}
	for range 3 {
		_, withPort := netip.ParseAddrPort(word)
		_, without := netip.ParseAddr(strings.Trim(word, "[]"))
		if withPort == nil || without == nil {
			return len(word)
		}
		if word == "" || strings.IndexByte(".:]", word[len(word)-1]) < 0 {
			return 0
		}
		word = word[:len(word)-1]
	}
	return 0
}

// parsedDuration is durationLength by the parser alone.
func parsedDuration(text string) int {
	word := strings.TrimRight(text[:prefix(text, func(c byte) bool { return isWord(c) || c == '.' || c >= 0x80 })], ".")
	if word == "" || !isDigit(word[0]) || prefix(word, isDigit) == len(word) || numberLength(word) == len(word) {
		return 0
	}
	if _, err := time.ParseDuration(word); err != nil {
		return 0
	}
	return len(word)
}

func BenchmarkErrorKind(b *testing.B) {
	for b.Loop() {
		ErrorKind("status: 503 Service Unavailable, request 01M85BY2RY55G7T4PRSF0JFRTW of 192.168.1.17:8080")
	}
}
