package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core/verify"
)

// TestSendIsVerified: each scheme accepts the signatures of send. The test goes through all
// names of schemes, so that a new scheme cannot be forgotten.
func TestSendIsVerified(t *testing.T) {
	const public = "https://hooks.example.com/in"
	for _, name := range verify.Names() {
		payloads := []string{`{"id": 1}`, "a=b&c=d"}
		if name == "linear" { // its time is in the payload, which must be JSON
			payloads = []string{`{}`, `{"id": 1}`, `{"webhookTimestamp": 1614265330000, "id": 1}`}
		}
		for _, payload := range payloads {
			secret := "a-secret-of-the-source-0123456789"
			if strings.HasPrefix(name, "standard") {
				secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
			}
			scheme, err := verify.New(name, verify.Options{Secrets: []string{secret}, PublicURL: true})
			if err != nil {
				t.Fatal(err)
			}
			var verified error
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				verified = scheme.Verify(verify.Request{Header: r.Header.Values, Body: body, URL: public + r.RequestURI}, time.Now())
			}))
			config := filepath.Join(t.TempDir(), "gateway.yaml")
			text := "server: {public_url: " + public + "}\nsources: {s: {type: webhook, verify: " + name + ", secret: " + secret + "}}\n"
			if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			code, stdout, stderr := session{}.run(t.Context(), "send", "-c", config, "-s", "s", "-t", "order.created", "--raw", payload, "--url", server.URL)
			server.Close()
			if code != 0 || verified != nil {
				t.Errorf("%s: send %q ends with %d, printing %q and %q; it verifies with %v", name, payload, code, stdout, stderr, verified)
			}
		}
	}
}

func TestWithTime(t *testing.T) {
	at := time.UnixMilli(1700000000123)
	for payload, want := range map[string]string{
		`{}`:                          `{"at":1700000000123}`,
		`{ "a": {"at": 1} }`:          `{ "a": {"at": 1} ,"at":1700000000123}`,
		`{"at": "x" , "b": [1,2]}`:    `{"at": 1700000000123 , "b": [1,2]}`,
		" {\"b\":1.0,\"at\":\n{} }\n": " {\"b\":1.0,\"at\":\n1700000000123 }\n",
		`[1]`:                         `[1]`,
		`{"a":`:                       `{"a":`,
		`{"a":1`:                      `{"a":1`,
		`a=b`:                         `a=b`,
		``:                            ``,
	} {
		if got := string(withTime([]byte(payload), "at", at)); got != want {
			t.Errorf("withTime(%s) = %s, want %s", payload, got, want)
		}
	}
}
