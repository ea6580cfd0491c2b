package verify_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/verify"
)

var now = time.Date(2026, 11, 20, 9, 0, 0, 999_000_000, time.UTC)

const (
	secret = "It's a Secret to Everybody"
	body   = "Hello, World!"
	digits = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
)

// standardSecret is the secret in the tests of Standard Webhooks' own libraries.
const standardSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// aliases are the additional names of schemes.
var aliases = map[string]string{
	"provider_a": "github", "provider_b": "stripe", "provider_c": "shopify", "standard_webhooks": "standard-webhooks",
}

func canonical(name string) string {
	if c, ok := aliases[name]; ok {
		return c
	}
	return name
}

// secretsFor returns three secrets that a scheme accepts.
func secretsFor(name string) []string {
	if canonical(name) == "standard-webhooks" {
		return []string{standardSecret, "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "qLDu6QUsgXnZe5YPLU7eMA6Wl2rCkMrD"}
	}
	return []string{secret, "another secret", "a third secret"}
}

// messageFor returns a message that a scheme can sign.
func messageFor(name string) verify.Message {
	m := verify.Message{ID: "msg_1", URL: "https://hooks.example.com/webhooks/tel?a=1", ContentType: "application/json", Body: []byte(body)}
	switch name {
	case "linear":
		m.Body = fmt.Appendf(nil, `{"type":"Issue","webhookTimestamp":%d}`, now.UnixMilli())
	case "twilio":
		m.ContentType, m.Body = "application/x-www-form-urlencoded", []byte("From=%2B12349013030&Body=Hello%2C+World!")
	}
	return m
}

func newScheme(t testing.TB, name string, secrets ...string) verify.Scheme {
	t.Helper()
	s, err := verify.New(name, verify.Options{Secrets: secrets, PublicURL: true})
	if err != nil {
		t.Fatalf("New(%q) = %v", name, err)
	}
	return s
}

// A post is a request as it arrives.
type post struct {
	header http.Header
	url    string
	body   []byte
}

func (p post) request() verify.Request {
	return verify.Request{Header: p.header.Values, URL: p.url, Body: p.body}
}

func (p post) clone() post {
	return post{p.header.Clone(), p.url, slices.Clone(p.body)}
}

// posted returns a message as a request with these headers, given as name, value pairs.
func posted(m verify.Message, headers ...string) post {
	p := post{http.Header{}, m.URL, m.Body}
	if m.ContentType != "" {
		p.header.Set("Content-Type", m.ContentType)
	}
	for i := 0; i < len(headers); i += 2 {
		p.header.Add(headers[i], headers[i+1])
	}
	return p
}

// sent returns a message as a request with the headers of a scheme's proof.
func sent(t testing.TB, s verify.Scheme, m verify.Message) post {
	t.Helper()
	headers, err := s.Sign(m, now)
	if err != nil {
		t.Fatalf("Sign() = %v", err)
	}
	p := posted(m)
	for name, value := range headers {
		p.header.Set(name, value)
	}
	return p
}

// proofHeaders returns the names of the headers that Sign made.
func proofHeaders(p post) []string {
	var names []string
	for name := range p.header {
		if name != "Content-Type" {
			names = append(names, name)
		}
	}
	return names
}

// kind returns the kind of a refusal, 0 for none. It fails the test unless the refusal's text
// is "Invalid signature": the text must not say more.
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

func TestAliases(t *testing.T) {
	for alias, name := range aliases {
		p := sent(t, newScheme(t, name, secretsFor(name)...), messageFor(name))
		if err := newScheme(t, alias, secretsFor(name)...).Verify(p.request(), now); err != nil {
			t.Errorf("%s refuses what %s signed: %v", alias, name, err)
		}
	}
}

func TestVerifyTakesWhatSignMade(t *testing.T) {
	for _, name := range verify.Names() {
		s := newScheme(t, name, secretsFor(name)...)
		for _, body := range []string{"", "{}", string(messageFor(name).Body), strings.Repeat("long=", 1<<16)} {
			m := messageFor(name)
			m.Body = []byte(body)
			if name == "linear" { // it signs a time in the body
				m.Body = fmt.Appendf(nil, `{"note":%q,"webhookTimestamp":%d}`, body, now.UnixMilli())
			}
			if err := s.Verify(sent(t, s, m).request(), now); err != nil {
				t.Errorf("%s: Verify() of what Sign(%.20q) made = %v", name, body, err)
			}
		}
	}
}

func TestNothingSignedIsUnauthorized(t *testing.T) {
	for _, name := range verify.Names() {
		s := newScheme(t, name, secretsFor(name)...)
		if got := kind(t, s.Verify(posted(messageFor(name)).request(), now)); got != core.Unauthorized {
			t.Errorf("%s: Verify() without headers refuses with kind %d, want %d", name, got, core.Unauthorized)
		}
		signed := sent(t, s, messageFor(name))
		for _, header := range proofHeaders(signed) {
			p := signed.clone()
			p.header.Del(header)
			if got := kind(t, s.Verify(p.request(), now)); got != core.Unauthorized {
				t.Errorf("%s: Verify() without %s refuses with kind %d, want %d", name, header, got, core.Unauthorized)
			}
		}
	}
}

func TestRepeatedHeaders(t *testing.T) {
	for _, name := range verify.Names() {
		s := newScheme(t, name, secretsFor(name)...)
		signed := sent(t, s, messageFor(name))
		for _, header := range proofHeaders(signed) {
			value := signed.header.Get(header)
			for _, c := range []struct {
				values []string
				want   core.Kind
			}{
				{[]string{value, value}, 0},
				{[]string{value, "x" + value}, core.Invalid},
				{[]string{"x" + value, value}, core.Invalid},
				{[]string{value, ""}, core.Invalid},
			} {
				p := signed.clone()
				p.header[header] = c.values
				if got := kind(t, s.Verify(p.request(), now)); got != c.want {
					t.Errorf("%s: Verify() with %s %q refuses with kind %d, want %d", name, header, c.values, got, c.want)
				}
			}
		}
	}
}

// TestEveryFlippedByteIsRefused: a changed byte of the signed text is a mismatch. A changed
// byte of a proof may also make the proof unreadable; the schemes' own tests say when.
func TestEveryFlippedByteIsRefused(t *testing.T) {
	for _, name := range verify.Names() {
		s := newScheme(t, name, secretsFor(name)...)
		signed := sent(t, s, messageFor(name))
		for i := range signed.body {
			p := signed.clone()
			p.body[i] ^= 1
			if got := kind(t, s.Verify(p.request(), now)); got != core.Unauthorized && name != "gitlab" {
				t.Errorf("%s: Verify() of the body %q refuses with kind %d, want %d", name, p.body, got, core.Unauthorized)
			}
		}
		for _, header := range proofHeaders(signed) {
			for i := range signed.header.Get(header) {
				p := signed.clone()
				value := []byte(p.header.Get(header))
				value[i] ^= 1
				p.header.Set(header, string(value))
				if s.Verify(p.request(), now) == nil {
					t.Errorf("%s: Verify() accepts %s: %q", name, header, value)
				}
			}
		}
	}
}

func TestRotation(t *testing.T) {
	for _, name := range verify.Names() {
		secrets := secretsFor(name)
		both := newScheme(t, name, secrets[:2]...)
		for i, secret := range secrets {
			want := core.Unauthorized
			if i < 2 {
				want = 0
			}
			p := sent(t, newScheme(t, name, secret), messageFor(name))
			if got := kind(t, both.Verify(p.request(), now)); got != want {
				t.Errorf("%s: Verify() of a request signed with secret %d refuses with kind %d, want %d", name, i, got, want)
			}
		}
		if err := newScheme(t, name, secrets[0]).Verify(sent(t, both, messageFor(name)).request(), now); err != nil {
			t.Errorf("%s: Sign() does not use the first secret: %v", name, err)
		}
	}
}

// TestWindow: a proof is good for the Window of its Cover, before and after the signed time.
func TestWindow(t *testing.T) {
	want := map[string]time.Duration{
		"linear": time.Minute, "paddle": 5 * time.Minute, "slack": 5 * time.Minute, "standard-webhooks": 5 * time.Minute, "stripe": 5 * time.Minute,
	}
	for _, name := range verify.Names() {
		window := verify.CoverOf(name).Window
		if window != want[canonical(name)] {
			t.Errorf("%s: Window = %v, want %v (the table of this test has the windows)", name, window, want[canonical(name)])
		}
		s := newScheme(t, name, secretsFor(name)...)
		p := sent(t, s, messageFor(name))
		for _, c := range []struct {
			after time.Duration // the proof is looked at so long after it was made
			want  core.Kind
		}{
			{window, 0}, {-window, 0},
			{window + time.Second, core.Unauthorized}, {-window - time.Second, core.Unauthorized},
			{24 * time.Hour, core.Unauthorized}, {-24 * time.Hour, core.Unauthorized},
		} {
			if window == 0 {
				c.want = 0
			}
			if got := kind(t, s.Verify(p.request(), now.Add(c.after))); got != c.want {
				t.Errorf("%s: Verify() %v later refuses with kind %d, want %d", name, c.after, got, c.want)
			}
		}
	}
}

// TestBodyAlone: a scheme that covers the body alone makes the same proof for another id,
// address, content type and time. The other schemes make another proof, except GitLab's,
// which covers nothing.
func TestBodyAlone(t *testing.T) {
	for _, name := range verify.Names() {
		s, m := newScheme(t, name, secretsFor(name)...), messageFor(name)
		first, err := s.Sign(m, now)
		if err != nil {
			t.Fatal(err)
		}
		m.ID, m.URL = "msg_2", m.URL+"&b=2"
		second, err := s.Sign(m, now.Add(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		want := verify.CoverOf(name).BodyAlone || name == "gitlab"
		if got := maps.Equal(first, second); got != want {
			t.Errorf("%s: proofs of one body are the same: %v, want %v", name, got, want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	ed25519 := "6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
	for name, c := range map[string]struct {
		scheme  string
		options verify.Options
		says    string
	}{
		"unknown scheme":          {"noop", verify.Options{Secrets: []string{"s"}}, "verify must be one of " + strings.Join(verify.Names(), ", ")},
		"no scheme":               {"", verify.Options{Secrets: []string{"s"}}, "verify must be one of"},
		"no secret":               {"hmac", verify.Options{}, "secret is missing"},
		"empty secret":            {"github", verify.Options{Secrets: []string{""}}, "secret is empty"},
		"blank secret":            {"gitlab", verify.Options{Secrets: []string{" \t\n"}}, "secret is empty"},
		"one blank secret of two": {"hmac", verify.Options{Secrets: []string{"s", " "}}, "secret is empty"},
		"header with a space":     {"hmac", verify.Options{Secrets: []string{"s"}, SignatureHeader: "X Sig"}, "signature_header"},
		"header with a colon":     {"hmac", verify.Options{Secrets: []string{"s"}, SignatureHeader: "X-Sig:"}, "signature_header"},
		"header for github":       {"github", verify.Options{Secrets: []string{"s"}, SignatureHeader: "X-Sig"}, "signature_header is for verify: hmac only"},
		"header for stripe":       {"stripe", verify.Options{Secrets: []string{"s"}, SignatureHeader: "X-Sig"}, "signature_header is for verify: hmac only"},
		"twilio without URL":      {"twilio", verify.Options{Secrets: []string{"s"}}, "server.public_url"},
		"not base64 after prefix": {"standard-webhooks", verify.Options{Secrets: []string{"whsec_k3y-of-the-source"}}, "secret is not base64 after whsec_"},
		"nothing after prefix":    {"standard-webhooks", verify.Options{Secrets: []string{"whsec_"}}, "secret is not base64 after whsec_"},
		"second is not base64":    {"standard-webhooks", verify.Options{Secrets: []string{standardSecret, "whsec_k3y-of-the-source"}}, "secret is not base64 after whsec_"},
		"short public key":        {"standard-webhooks", verify.Options{Secrets: []string{"whpk_c2hvcnQ="}}, "32 bytes in base64 after whpk_"},
		"public key, not base64":  {"standard-webhooks", verify.Options{Secrets: []string{"whpk_k3y-of-the-source"}}, "32 bytes in base64 after whpk_"},
		"short private key":       {"standard-webhooks", verify.Options{Secrets: []string{"whsk_c2hvcnQ="}}, "ed25519 key in base64 after whsk_"},
		"halves do not match":     {"standard-webhooks", verify.Options{Secrets: []string{"whsk_7" + ed25519[1:]}}, "ed25519 key in base64 after whsk_"},
	} {
		s, err := verify.New(c.scheme, c.options)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: New() = %v, %v, want an error that says %q", name, s, err, c.says)
			continue
		}
		for _, secret := range c.options.Secrets {
			if len(secret) > 8 && strings.Contains(err.Error(), secret[6:]) {
				t.Errorf("%s: New() = %v, which quotes the secret", name, err)
			}
		}
	}
}

// TestRefusalsTellNothing: no refusal depends on the secret. In hookaido (GHSA-cpfq-rj4r-hh5c),
// a log line was derived from it.
func TestRefusalsTellNothing(t *testing.T) {
	for _, name := range verify.Names() {
		s := newScheme(t, name, secretsFor(name)...)
		m := messageFor(name)
		right, m2 := sent(t, s, m), m
		m2.Body = append(slices.Clone(m.Body), ' ')
		m2.ID = "msg_2"
		wrong := sent(t, newScheme(t, name, secretsFor(name)[2]), m2)
		for _, header := range proofHeaders(right) {
			value := right.header.Get(header)
			for _, given := range []string{"", "zz", wrong.header.Get(header), value + "00", value[:len(value)-1]} {
				p := right.clone()
				p.header.Set(header, given)
				err := s.Verify(p.request(), now)
				text := fmt.Sprintf("%v %+v", err, err)
				for _, told := range []string{secretsFor(name)[0], value, given} {
					if len(told) > 12 && strings.Contains(text, told[len(told)-12:]) {
						t.Errorf("%s: Verify() with %s %q = %s, which tells %q", name, header, given, text, told)
					}
				}
			}
		}
	}
}
