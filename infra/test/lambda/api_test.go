//go:build linux

package lambda

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	signer "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/eventgateway/gateway/infra/test/wait"
)

// signed returns a call of the Invoke API, signed by AWS's own library.
func signed(t *testing.T, s *Service, function, payload, secret string) *http.Request {
	t.Helper()
	r, err := http.NewRequest("POST", s.URL+"/2015-03-31/functions/"+url.PathEscape(function)+"/invocations", strings.NewReader(payload))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(payload))
	who := aws.Credentials{AccessKeyID: AccessKey, SecretAccessKey: secret, SessionToken: Session}
	if err := signer.NewSigner().SignHTTP(context.Background(), who, r, hex.EncodeToString(sum[:]), "lambda", Region, time.Now()); err != nil {
		t.Fatal(err)
	}
	return r
}

func send(t *testing.T, r *http.Request) (int, string) {
	t.Helper()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// TestInvokeAPI checks the answers to calls with valid and invalid credentials, names and
// payloads.
func TestInvokeAPI(t *testing.T) {
	t.Parallel()
	f := deploy(t, Options{Name: "worker"})
	s := f.service
	for _, tt := range []struct {
		name, function, payload, secret string
		change                          func(*http.Request)
		status                          int
		body                            string
	}{
		{name: "by name", function: "worker", payload: `{"a":1}`, status: 200, body: `{"a":1}`},
		{name: "by ARN", function: f.ARN(), payload: `{"a":1}`, status: 200, body: `{"a":1}`},
		{name: "function fails", function: "worker", payload: `{"do":"fail"}`, status: 200, body: "as ordered"},
		{name: "unknown", function: "other", payload: `{}`, status: 404, body: "other"},
		{name: "no JSON", function: "worker", payload: `{`, status: 400, body: "no JSON"},
		{name: "another secret", function: "worker", payload: `{}`, secret: "another", status: 403, body: "does not match"},
		{name: "another body", function: "worker", payload: `{}`, status: 403, body: "does not match",
			change: func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("[]")) }},
		{name: "another function", function: "other", payload: `{}`, status: 403, body: "does not match",
			change: func(r *http.Request) { r.URL.Path, r.URL.RawPath = "/2015-03-31/functions/worker/invocations", "" }},
		{name: "no session", function: "worker", payload: `{}`, status: 403, body: "x-amz-security-token",
			change: func(r *http.Request) { r.Header.Del("X-Amz-Security-Token") }},
		{name: "unsigned", function: "worker", payload: `{}`, status: 403, body: "authorization",
			change: func(r *http.Request) { r.Header.Del("Authorization") }},
	} {
		if tt.secret == "" {
			tt.secret = SecretKey
		}
		r := signed(t, s, tt.function, tt.payload, tt.secret)
		if tt.change != nil {
			tt.change(r)
		}
		if status, body := send(t, r); status != tt.status || !strings.Contains(body, tt.body) {
			t.Errorf("%s: %d %s, want %d and %q", tt.name, status, body, tt.status, tt.body)
		}
	}
	if calls := s.Calls(); len(calls) != 10 || calls[1].Refused != "" || calls[9].Refused == "" {
		t.Errorf("calls %+v, want all ten, with those that were refused", calls)
	}
}

// TestInvokeAPIAsync: the answer to an asynchronous call is 202 without a body.
func TestInvokeAPIAsync(t *testing.T) {
	t.Parallel()
	f := deploy(t, Options{Name: "worker"})
	r := signed(t, f.service, "worker", `{"nudge":true}`, SecretKey)
	r.Header.Set("X-Amz-Invocation-Type", "Event")
	if status, body := send(t, r); status != 202 || body != "" {
		t.Errorf("answer %d %q, want 202", status, body)
	}
	wait.For(t, 10*time.Second, "it ran", func() bool { rs := f.Results(); return len(rs) == 1 && string(rs[0].Payload) == `{"nudge":true}` })
}

// TestSecrets checks the answers of the extension.
func TestSecrets(t *testing.T) {
	t.Parallel()
	s := NewSecrets(t)
	s.Parameters["/gateway/token"], s.Secrets["db"], s.Secrets["closed"] = "t0ken", `{"password":"p"}`, "x"
	s.Denied["closed"] = true
	for _, tt := range []struct {
		path, token string
		status      int
		want        string
	}{
		{"/systemsmanager/parameters/get?withDecryption=true&name=%2Fgateway%2Ftoken", Session, 200, `"Value":"t0ken"`},
		{"/systemsmanager/parameters/get?name=%2Fgateway%2Ftoken", Session, 200, `"Value":"AQICAHg"`},
		{"/secretsmanager/get?secretId=db", Session, 200, `"SecretString":"{\"password\":\"p\"}"`},
		{"/secretsmanager/get?secretId=closed", Session, 400, "AccessDenied"},
		{"/secretsmanager/get?secretId=nobody", Session, 400, "not found"},
		{"/secretsmanager/get?secretId=db", "", 401, "unauthorized"},
		{"/other", Session, 404, ""},
	} {
		r, err := http.NewRequest("GET", s.server.URL+tt.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Aws-Parameters-Secrets-Token", tt.token)
		if status, body := send(t, r); status != tt.status || !strings.Contains(body, tt.want) {
			t.Errorf("GET %s = %d %s, want %d and %q", tt.path, status, body, tt.status, tt.want)
		}
	}
}
