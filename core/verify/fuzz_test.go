package verify_test

import (
	"crypto/ed25519"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/verify"
)

// fuzzed are the schemes that are fuzzed, with the names of the headers that they read. A new
// scheme goes to the end: inputs in testdata/fuzz name schemes by their place.
var fuzzed = []fuzzedScheme{
	{"github", []string{"X-Hub-Signature-256"}},
	{"gitlab", []string{"X-Gitlab-Token"}},
	{"hmac", []string{"X-Webhook-Signature"}},
	{"linear", []string{"Linear-Signature"}},
	{"paddle", []string{"Paddle-Signature"}},
	{"shopify", []string{"X-Shopify-Hmac-Sha256", "Shopify-Hmac-Sha256"}},
	{"slack", []string{"X-Slack-Signature", "X-Slack-Request-Timestamp"}},
	{"standard-webhooks", []string{"Webhook-Signature", "Webhook-Timestamp", "Webhook-Id", "Svix-Signature", "Svix-Timestamp", "Svix-Id"}},
	{"stripe", []string{"Stripe-Signature"}},
	{"twilio", []string{"X-Twilio-Signature", "Content-Type"}},
}

type fuzzedScheme struct {
	scheme  string
	headers []string
}

// fuzzedAt returns the scheme that a byte of an input names. Larger bytes name the schemes that
// the table had first, and keep doing so when it grows.
func fuzzedAt(n uint8) (name string, headers []string) {
	const first = 10
	if int(n) >= len(fuzzed) {
		n %= first
	}
	return fuzzed[n].scheme, fuzzed[n].headers
}

// fuzzedSecrets returns the secrets that verify the requests of FuzzVerify.
func fuzzedSecrets(name string) []string {
	if name == "standard-webhooks" {
		return []string{standardPrivate, standardSecret}
	}
	return []string{"another", secret}
}

const fuzzedHost = "https://hooks.example.com"

// FuzzVerify: an independent check accepts each request that a scheme accepts. The independent
// check encodes the expected proof; it does not decode the given one.
func FuzzVerify(f *testing.F) {
	for n := range len(fuzzed) {
		name, reads := fuzzedAt(uint8(n))
		for _, secret := range fuzzedSecrets(name) {
			m := messageFor(name)
			m.URL = fuzzedHost + "/a?b=c"
			p := sent(f, newScheme(f, name, secret), m)
			var values []string
			for _, header := range reads {
				values = append(values, p.header.Get(header))
			}
			f.Add(uint8(n), strings.Join(values, "\n"), "/a?b=c", p.body, int16(0))
			f.Add(uint8(n), strings.Join(append(values, values...), "\n"), "/a?b=c", p.body, int16(-300))
		}
	}
	f.Fuzz(func(t *testing.T, n uint8, headers, target string, body []byte, later int16) {
		name, reads := fuzzedAt(n)
		p := post{http.Header{}, fuzzedHost + "/" + strings.TrimPrefix(target, "/"), body}
		for i, value := range strings.Split(headers, "\n") {
			header := reads[i%len(reads)]
			if value != "" || i >= len(reads) {
				p.header.Add(header, value)
			}
		}
		at := now.Add(time.Duration(later) * time.Second)
		err := newScheme(t, name, fuzzedSecrets(name)...).Verify(p.request(), at)
		if _, bad := url.Parse(p.url); bad != nil && name == "twilio" {
			if err == nil {
				t.Errorf("Verify() accepts the address %q", p.url)
			}
			return
		}
		if kind(t, err) == 0 && !slices.ContainsFunc(fuzzedSecrets(name), func(s string) bool { return independent(name, s, p, at) }) {
			t.Errorf("%s: Verify() accepts %q", name, p)
		}
	})
}

func independent(name, secret string, p post, at time.Time) bool {
	h, body := p.header, string(p.body)
	sum := hexMAC(secret, body)
	is := func(header, want string) bool { return strings.EqualFold(h.Get(header), want) }
	fresh := func(text string) bool {
		n, err := strconv.Atoi(text)
		return err == nil && text == strings.TrimLeft(text, "+-") && max(n-int(at.Unix()), int(at.Unix())-n) <= 300
	}
	switch name {
	case "github":
		return strings.HasPrefix(h.Get("X-Hub-Signature-256"), "sha256=") && is("X-Hub-Signature-256", "sha256="+sum)
	case "hmac":
		return is("X-Webhook-Signature", sum) || is("X-Webhook-Signature", "sha256="+sum)
	case "linear":
		return is("Linear-Signature", sum) && independentTime(p.body, at)
	case "gitlab":
		return h.Get("X-Gitlab-Token") == secret
	case "shopify":
		want := base64MAC(sha256.New, secret, body)
		return h.Get("X-Shopify-Hmac-Sha256") == want || h.Get("Shopify-Hmac-Sha256") == want
	case "stripe":
		return independentList(h.Get("Stripe-Signature"), ",", "t=", "v1=", func(t string) string { return hexMAC(secret, t+"."+body) }, fresh)
	case "paddle":
		return independentList(h.Get("Paddle-Signature"), ";", "ts=", "h1=", func(t string) string { return hexMAC(secret, t+":"+body) }, fresh)
	case "slack":
		t := h.Get("X-Slack-Request-Timestamp")
		return fresh(t) && is("X-Slack-Signature", "v0="+hexMAC(secret, "v0:"+t+":"+body))
	case "standard-webhooks":
		return independentStandard(secret, h, "Webhook-", body, fresh) || independentStandard(secret, h, "Svix-", body, fresh)
	case "twilio":
		return independentTwilio(secret, p)
	}
	panic("scheme " + name + ": independent in fuzz_test.go has no case that checks its proof")
}

// independentTime searches the body for Linear's signed time without decoding JSON.
func independentTime(body []byte, at time.Time) bool {
	for _, found := range regexp.MustCompile(`(?i)"webhookTimestamp"\s*:\s*([0-9]+)\b`).FindAllSubmatch(body, -1) {
		if ms, err := strconv.ParseInt(string(found[1]), 10, 64); err == nil && time.UnixMilli(ms).Sub(at).Abs() <= time.Minute {
			return true
		}
	}
	return false
}

func independentList(value, between, time, proof string, want func(at string) string, fresh func(string) bool) bool {
	var at, proofs []string
	for _, entry := range strings.Split(value, between) {
		if text, ok := strings.CutPrefix(entry, time); ok {
			at = append(at, text)
		}
		if text, ok := strings.CutPrefix(entry, proof); ok {
			proofs = append(proofs, strings.ToLower(text))
		}
	}
	return len(at) == 1 && fresh(at[0]) && slices.Contains(proofs, want(at[0]))
}

func independentStandard(secret string, h http.Header, family, body string, fresh func(string) bool) bool {
	id, at := h.Get(family+"Id"), h.Get(family+"Timestamp")
	signed := id + "." + at + "." + body
	key, _ := base64.StdEncoding.DecodeString(secret[strings.Index(secret, "_")+1:])
	want := "v1," + base64MAC(sha256.New, string(key), signed)
	if strings.HasPrefix(secret, "whsk_") {
		want = "v1a," + base64.StdEncoding.EncodeToString(ed25519.Sign(key, []byte(signed)))
	}
	return id != "" && !strings.Contains(id, ".") && fresh(at) && slices.Contains(strings.Split(h.Get(family+"Signature"), " "), want)
}

func independentTwilio(secret string, p post) bool {
	_, query, _ := strings.Cut(p.url, "?")
	query, _, _ = strings.Cut(query, "#")
	parameters, _ := url.ParseQuery(query)
	signed := ""
	if sum := parameters.Get("bodySHA256"); parameters.Has("bodySHA256") {
		actual := sha256.Sum256(p.body)
		if !strings.EqualFold(sum, hex.EncodeToString(actual[:])) {
			return false
		}
	} else if len(p.body) > 0 {
		form, err := url.ParseQuery(string(p.body))
		if err != nil || !strings.HasPrefix(strings.ToLower(strings.TrimSpace(p.header.Get("Content-Type"))), formType) {
			return false
		}
		names := make([]string, 0, len(form))
		for name := range form {
			names = append(names, name)
		}
		sort.Strings(names)
		for _, name := range names {
			sort.Strings(form[name])
			for i, value := range form[name] {
				if i == 0 || value != form[name][i-1] {
					signed += name + value
				}
			}
		}
	}
	ported := strings.Replace(p.url, fuzzedHost, fuzzedHost+":443", 1)
	proof := p.header.Get("X-Twilio-Signature")
	return proof == base64MAC(sha1.New, secret, p.url+signed) || proof == base64MAC(sha1.New, secret, ported+signed)
}

// FuzzSignVerify: a scheme accepts its own proof, but not with another secret, body or time.
func FuzzSignVerify(f *testing.F) {
	for n := range len(fuzzed) {
		name, _ := fuzzedAt(uint8(n))
		m := messageFor(name)
		f.Add(uint8(n), secretsFor(name)[0], m.ID, "/a?b=c", m.ContentType, m.Body)
	}
	f.Add(uint8(7), standardPrivate, "msg_1", "/", "", []byte(body))
	f.Add(uint8(7), standardPublic, "msg_1", "/", "", []byte(body))
	f.Fuzz(func(t *testing.T, n uint8, secret, id, target, contentType string, body []byte) {
		name, _ := fuzzedAt(n)
		s, err := verify.New(name, verify.Options{Secrets: []string{secret}, PublicURL: true})
		if err != nil {
			return
		}
		m := verify.Message{ID: id, URL: fuzzedHost + "/" + target, ContentType: contentType, Body: body}
		headers, err := s.Sign(m, now)
		if err != nil {
			return
		}
		p := posted(m)
		for header, value := range headers {
			p.header.Set(header, value)
		}
		if err := s.Verify(p.request(), now); err != nil {
			t.Errorf("%s: Verify() of what Sign() made = %v", name, err)
		}
		other := "\x01" + secret
		if name == "standard-webhooks" {
			other = "whsec_b3RoZXI=" // "other"
		}
		if got := kind(t, newScheme(t, name, other).Verify(p.request(), now)); got != core.Unauthorized {
			t.Errorf("%s: Verify() with another secret refuses with kind %d, want %d", name, got, core.Unauthorized)
		}
		if verify.CoverOf(name).Window > 0 && kind(t, s.Verify(p.request(), now.Add(301*time.Second))) != core.Unauthorized {
			t.Errorf("%s: Verify() 301 s later does not refuse what Sign() made", name)
		}
		p.body = append(slices.Clone(p.body), '!')
		if name != "gitlab" && s.Verify(p.request(), now) == nil {
			t.Errorf("%s: Verify() accepts the body %q, which was signed without its last byte", name, p.body)
		}
	})
}
