package verify_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/verify"
)

var now = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

func newScheme(t testing.TB, name string, o verify.Options) verify.Scheme {
	t.Helper()
	s, err := verify.New(name, o)
	if err != nil {
		t.Fatalf("New(%q) = %v", name, err)
	}
	return s
}

func request(body string, headers ...string) verify.Request {
	h := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		h.Add(headers[i], headers[i+1])
	}
	return verify.Request{Header: h.Values, Body: []byte(body)}
}

// kind is the kind of a refusal, 0 for none. It insists on the words.
func kind(t testing.TB, err error) core.Kind {
	t.Helper()
	if err == nil {
		return 0
	}
	var r *core.Refusal
	if !errors.As(err, &r) || r.Message != "Invalid signature" || r.Cause == nil {
		t.Fatalf("Verify() = %#v, want a refusal %q with a cause", err, "Invalid signature")
	}
	return r.Kind
}

const (
	secret = "It's a Secret to Everybody"
	body   = "Hello, World!"
	digits = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
)

// The first vector is published by GitHub, "Validating webhook deliveries"; the
// second comes from the tests of octokit/webhooks-methods.js.
func TestPublishedVectors(t *testing.T) {
	for _, v := range []struct{ secret, body, signature string }{
		{secret, body, "sha256=" + digits},
		{"mysecret", `{"foo":"bar"}`, "sha256=4864d2759938a15468b5df9ade20bf161da9b4f737ea61794142f3484236bda3"},
	} {
		for _, c := range []struct{ scheme, header string }{
			{"github", "X-Hub-Signature-256"}, {"provider_a", "X-Hub-Signature-256"}, {"hmac", "X-Webhook-Signature"},
		} {
			s := newScheme(t, c.scheme, verify.Options{Secrets: []string{v.secret}})
			if err := s.Verify(request(v.body, c.header, v.signature), now); err != nil {
				t.Errorf("%s: Verify(%q) = %v, want nil", c.scheme, v.body, err)
			}
			if got := s.Sign([]byte(v.body), now); len(got) != 1 || got[c.header] != v.signature {
				t.Errorf("%s: Sign(%q) = %v, want %s: %s", c.scheme, v.body, got, c.header, v.signature)
			}
		}
	}
}

func TestVerify(t *testing.T) {
	const gh, generic = "X-Hub-Signature-256", "X-Webhook-Signature"
	for name, c := range map[string]struct {
		scheme  string
		headers []string
		want    core.Kind // 0: accepted
	}{
		"github":                        {"github", []string{gh, "sha256=" + digits}, 0},
		"github, other case":            {"github", []string{"x-hub-signature-256", "sha256=" + strings.ToUpper(digits)}, 0},
		"github, absent":                {"github", nil, core.Unauthorized},
		"github, only SHA-1":            {"github", []string{"X-Hub-Signature", "sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59"}, core.Unauthorized},
		"github, other header":          {"github", []string{generic, "sha256=" + digits}, core.Unauthorized},
		"github, wrong":                 {"github", []string{gh, "sha256=" + strings.Repeat("0", 64)}, core.Unauthorized},
		"github, no prefix":             {"github", []string{gh, digits}, core.Invalid},
		"github, other prefix":          {"github", []string{gh, "sha1=" + digits}, core.Invalid},
		"github, prefix in capitals":    {"github", []string{gh, "SHA256=" + digits}, core.Invalid},
		"github, empty":                 {"github", []string{gh, ""}, core.Invalid},
		"github, no digits":             {"github", []string{gh, "sha256="}, core.Invalid},
		"github, not digits":            {"github", []string{gh, "sha256=" + strings.Repeat("g", 64)}, core.Invalid},
		"github, odd":                   {"github", []string{gh, "sha256=" + digits[1:]}, core.Invalid},
		"github, short":                 {"github", []string{gh, "sha256=" + digits[2:]}, core.Invalid},
		"github, long":                  {"github", []string{gh, "sha256=" + digits + "00"}, core.Invalid},
		"github, space before":          {"github", []string{gh, " sha256=" + digits}, core.Invalid},
		"github, NUL after":             {"github", []string{gh, "sha256=" + digits + "\x00"}, core.Invalid},
		"github, joined":                {"github", []string{gh, "sha256=" + digits + ", sha256=" + digits}, core.Invalid},
		"github, twice the same":        {"github", []string{gh, "sha256=" + digits, gh, "sha256=" + digits}, 0},
		"github, right and wrong":       {"github", []string{gh, "sha256=" + digits, gh, "sha256=" + strings.Repeat("0", 64)}, core.Invalid},
		"github, wrong and right":       {"github", []string{gh, "sha256=" + strings.Repeat("0", 64), gh, "sha256=" + digits}, core.Invalid},
		"github, right, then empty":     {"github", []string{gh, "sha256=" + digits, gh, ""}, core.Invalid},
		"hmac":                          {"hmac", []string{generic, "sha256=" + digits}, 0},
		"hmac, no prefix":               {"hmac", []string{generic, digits}, 0},
		"hmac, prefix twice":            {"hmac", []string{generic, "sha256=sha256=" + digits}, core.Invalid},
		"hmac, absent":                  {"hmac", nil, core.Unauthorized},
		"hmac, GitHub's header instead": {"hmac", []string{gh, "sha256=" + digits}, core.Unauthorized},
	} {
		s := newScheme(t, c.scheme, verify.Options{Secrets: []string{secret}})
		if got := kind(t, s.Verify(request(body, c.headers...), now)); got != c.want {
			t.Errorf("%s: Verify() refuses with kind %d, want %d", name, got, c.want)
		}
	}
}

func TestSignatureHeader(t *testing.T) {
	s := newScheme(t, "hmac", verify.Options{Secrets: []string{secret}, SignatureHeader: "x-acme-proof"})
	if err := s.Verify(request(body, "X-Acme-Proof", digits), now); err != nil {
		t.Errorf("Verify() with the configured header = %v, want nil", err)
	}
	if got := kind(t, s.Verify(request(body, verify.DefaultSignatureHeader, digits), now)); got != core.Unauthorized {
		t.Errorf("Verify() with the default header refuses with kind %d, want %d", got, core.Unauthorized)
	}
	if got := s.Sign([]byte(body), now)["x-acme-proof"]; got != "sha256="+digits {
		t.Errorf("Sign() = %q under the configured header, want %q", got, "sha256="+digits)
	}
}

func TestEveryFlippedByteIsRefused(t *testing.T) {
	for _, name := range verify.Names() {
		s := newScheme(t, name, verify.Options{Secrets: []string{secret}})
		for header, value := range s.Sign([]byte(body), now) {
			for i := range len(body) {
				flipped := []byte(body)
				flipped[i] ^= 1
				if s.Verify(request(string(flipped), header, value), now) == nil {
					t.Errorf("%s: Verify() accepts the body %q", name, flipped)
				}
			}
			for i := range len(value) {
				flipped := []byte(value)
				flipped[i] ^= 1
				if s.Verify(request(body, header, string(flipped)), now) == nil {
					t.Errorf("%s: Verify() accepts the signature %q", name, flipped)
				}
			}
		}
	}
}

func TestRotation(t *testing.T) {
	for _, name := range verify.Names() {
		both := newScheme(t, name, verify.Options{Secrets: []string{"new", "old"}})
		for _, c := range []struct {
			secret string
			want   core.Kind
		}{{"new", 0}, {"old", 0}, {"older", core.Unauthorized}} {
			sender := newScheme(t, name, verify.Options{Secrets: []string{c.secret}})
			for header, value := range sender.Sign([]byte(body), now) {
				if got := kind(t, both.Verify(request(body, header, value), now)); got != c.want {
					t.Errorf("%s: Verify() of a request signed with %q refuses with kind %d, want %d", name, c.secret, got, c.want)
				}
			}
		}
		for header, value := range both.Sign([]byte(body), now) {
			sender := newScheme(t, name, verify.Options{Secrets: []string{"new"}})
			if err := sender.Verify(request(body, header, value), now); err != nil {
				t.Errorf("%s: Sign() does not use the first secret: %v", name, err)
			}
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		scheme  string
		options verify.Options
	}{
		"unknown scheme":          {"noop", verify.Options{Secrets: []string{"s"}}},
		"no scheme":               {"", verify.Options{Secrets: []string{"s"}}},
		"no secret":               {"hmac", verify.Options{}},
		"empty secret":            {"github", verify.Options{Secrets: []string{""}}},
		"blank secret":            {"github", verify.Options{Secrets: []string{" \t\n"}}},
		"one blank secret of two": {"hmac", verify.Options{Secrets: []string{"s", " "}}},
		"header with a space":     {"hmac", verify.Options{Secrets: []string{"s"}, SignatureHeader: "X Sig"}},
		"header with a colon":     {"hmac", verify.Options{Secrets: []string{"s"}, SignatureHeader: "X-Sig:"}},
		"header for github":       {"github", verify.Options{Secrets: []string{"s"}, SignatureHeader: "X-Sig"}},
	} {
		if s, err := verify.New(c.scheme, c.options); err == nil {
			t.Errorf("%s: New() = %v, want an error", name, s)
		}
	}
	if names := verify.Names(); !slices.IsSorted(names) || !slices.Contains(names, "github") {
		t.Errorf("Names() = %v, want them sorted and complete", names)
	}
}

// hookaido GHSA-cpfq-rj4r-hh5c: a log line was derived from the signing secret.
func TestRefusalsTellNothing(t *testing.T) {
	const key = "k3y-of-the-source"
	s := newScheme(t, "hmac", verify.Options{Secrets: []string{key}})
	right := s.Sign([]byte(body), now)[verify.DefaultSignatureHeader]
	for _, value := range []string{"", "zz", digits, "sha256=" + digits, right + "00"} {
		err := s.Verify(request(body, verify.DefaultSignatureHeader, value), now)
		text := fmt.Sprintf("%v %+v", err, err)
		for _, told := range []string{key, right[len("sha256="):][:16], digits[:16]} {
			if strings.Contains(text, told) {
				t.Errorf("Verify(%q) = %s, which tells %q", value, text, told)
			}
		}
	}
}

// FuzzVerify: what a scheme accepts, an independent check accepts, and what it
// signs it accepts.
func FuzzVerify(f *testing.F) {
	f.Add([]byte(body), secret, "sha256="+digits)
	f.Add([]byte(body), secret, digits)
	f.Add([]byte{}, "s", "sha256=")
	f.Fuzz(func(t *testing.T, body []byte, secret, value string) {
		for _, name := range verify.Names() {
			s, err := verify.New(name, verify.Options{Secrets: []string{"another", secret}})
			if err != nil {
				return // a blank secret
			}
			for header := range s.Sign(body, now) {
				r := verify.Request{Header: func(string) []string { return []string{value} }, Body: body}
				if kind(t, s.Verify(r, now)) == 0 && !independent(secret, body, value) && !independent("another", body, value) {
					t.Errorf("%s: Verify() accepts %s: %q", name, header, value)
				}
			}
			for header, signed := range s.Sign(body, now) {
				if err := s.Verify(request(string(body), header, signed), now); err != nil {
					t.Errorf("%s: Verify() of what Sign() returned = %v", name, err)
				}
			}
		}
	})
}

// independent encodes what it expects instead of decoding what it was given.
func independent(secret string, body []byte, value string) bool {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write(body)
	want := hex.EncodeToString(m.Sum(nil))
	return strings.EqualFold(value, want) || (strings.HasPrefix(value, "sha256=") && strings.EqualFold(value[7:], want))
}
