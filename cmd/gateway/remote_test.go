package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/infra/test/ports"
)

// A stub gives the same answer to every request.
type stub struct {
	status  int
	header  string // "Name: value" lines
	body    string
	foreign bool // without the header that every reply of a gateway has
}

func (s stub) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if !s.foreign {
		w.Header().Set("X-Api-Version", "1")
	}
	for line := range strings.Lines(s.header) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		w.Header().Set(name, value)
	}
	w.WriteHeader(s.status)
	io.WriteString(w, s.body)
}

const someID = "01J90000000000000000000001"

// For each answer of a server, the error of the command says how to go on.
func TestWhatAServerSays(t *testing.T) {
	for _, c := range []struct {
		name, token string
		says        stub
		command     string
		want        string // $AT is the address
	}{
		{"no token", "", stub{status: 401, body: "Invalid token"}, "jobs list",
			"the gateway at $AT asks for a token; put one of its api.auth_token or api.tokens into GATEWAY_TOKEN, or a file for --token-file"},
		{"wrong token", "wrong", stub{status: 401, body: "Invalid token"}, "jobs list",
			"the gateway at $AT refused the token; is it in api.auth_token or api.tokens of its configuration?"},
		{"low role", "reads", stub{status: 403, header: `WWW-Authenticate: Bearer error="insufficient_scope"`, body: `{"error":"token \"ci\" has the role read; this needs operate"}`}, "jobs retry",
			`the gateway at $AT refused this: token "ci" has the role read; this needs operate; put a token with the needed role into GATEWAY_TOKEN, or a file for --token-file`},
		{"not allowed", "", stub{status: 403, body: `{"error":"Forbidden"}`}, "jobs list", "Forbidden"},
		{"no such event", "", stub{status: 404, body: `{"error":"event not found"}`}, "inspect " + someID, "event not found"},
		{"no such route", "", stub{status: 404, body: `{"error":"not found"}`}, "events list",
			"the gateway at $AT does not know GET /api/events; is it of this version (devel)?"},
		{"no such method", "", stub{status: 405, body: `{"error":"method not allowed"}`}, "jobs retry",
			"the gateway at $AT does not know POST /api/jobs/retry; is it of this version (devel)?"},
		{"refused", "", stub{status: 400, body: `{"error":"limit must be 1 to 3\u001b[2J"}`}, "events list", `limit must be 1 to 3\x1b[2J`},
		{"busy", "", stub{status: 503, header: "Retry-After: 5", body: `{"error":"Too many concurrent requests"}`}, "events list",
			"the gateway at $AT cannot do that now: Too many concurrent requests; try again in 5 s"},
		{"too often", "", stub{status: 429, header: "Retry-After: 1", body: `{"error":"Too many requests"}`}, "events list",
			"the gateway at $AT cannot do that now: Too many requests; try again in 1 s"},
		{"broken", "", stub{status: 500, body: `{"error":"Internal error"}`}, "events list",
			"the gateway at $AT failed: 500 Internal Server Error: Internal error; its log says why"},
		{"a page", "", stub{status: 200, foreign: true, header: "Content-Type: text/html", body: "<html>Welcome"}, "events list",
			"the server at $AT is not a gateway: 200 OK; give the address of one with --url"},
		{"a proxy", "", stub{status: 502, foreign: true, body: "<html>Bad Gateway"}, "events list",
			"the server at $AT is not a gateway: 502 Bad Gateway; give the address of one with --url"},
		{"elsewhere", "", stub{status: 301, foreign: true, header: "Location: https://there.example/\u202e"}, "events list",
			`the server at $AT leads elsewhere (301 Moved Permanently): https://there.example/\u202e; if that is the gateway, give its address with --url`},
		{"speaks TLS", "", stub{status: 400, foreign: true, body: "Client sent an HTTP request to an HTTPS server.\n"}, "events list",
			"the server at $AT speaks TLS; is it https://$HOST?"},
		{"newer", "", stub{status: 200, header: "X-Api-Version: 2", body: "{}"}, "events list",
			"the gateway at $AT speaks version 2 of its API, and this program version 1"},
		{"no JSON", "", stub{status: 200, body: "<html>"}, "events list",
			"the reply of the gateway at $AT is not understood (invalid character '<' looking for beginning of value); is it of this version (devel)?"},
		{"no time", "", stub{status: 200, body: `{"events":[{"created_at":"noon"}]}`}, "events list",
			`the reply of the gateway at $AT is not understood ("noon" is not a time: write 2006-01-02T15:04:05 (UTC), or a date); is it of this version (devel)?`},
		{"cut off", "", stub{status: 200, header: "Content-Length: 99", body: `{"events":[`}, "events list",
			"the gateway at $AT broke off its answer: unexpected EOF"},
		{"no queue", "", stub{status: 404, body: `{"error":"queue not found"}`}, "queues dlq nothing", "queue not found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(c.says)
			defer server.Close()
			s := session{env: map[string]string{"GATEWAY_TOKEN": c.token}}
			code, stdout, stderr := s.run(t.Context(), append(strings.Fields(c.command), "--url", server.URL)...)
			at := strings.NewReplacer("$AT", server.URL, "$HOST", strings.TrimPrefix(server.URL, "http://"), "(devel)", "("+readBuild().Version+")")
			if want := "gateway: " + at.Replace(c.want) + "\n"; code != exitFailed || stdout != "" || stderr != want {
				t.Errorf("exit code %d, stdout %q, stderr\n%s, want code %d and\n%s", code, stdout, stderr, exitFailed, want)
			}
		})
	}
}

// The errors for servers that do not answer, or have no trusted certificate, say why.
func TestNoAnswer(t *testing.T) {
	secure := httptest.NewUnstartedServer(stub{status: 200, body: `{"events":[]}`})
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	plain := httptest.NewServer(stub{status: 200})
	defer plain.Close()
	nobody := "http://" + ports.Refusing(t)
	host := strings.TrimPrefix(plain.URL, "http://")
	for _, c := range []struct{ url, want string }{
		{nobody, "no gateway answers at " + nobody + " (connect: connection refused); is it running, and reachable from here?"},
		{"https://" + host, "the server at https://" + host + " speaks no TLS; is it http://" + host + "?"},
		{secure.URL, "the certificate of " + secure.URL + " is not trusted: x509: certificate signed by unknown authority; SSL_CERT_FILE may name an authority that signed it"},
	} {
		code, stdout, stderr := session{}.run(t.Context(), "events", "list", "--url", c.url)
		if want := "gateway: " + c.want + "\n"; code != exitFailed || stdout != "" || stderr != want {
			t.Errorf("%s: exit code %d, stdout %q, stderr\n%s, want\n%s", c.url, code, stdout, stderr, want)
		}
	}
	hangsUp := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer hangsUp.Close()
	code, _, stderr := session{}.run(t.Context(), "jobs", "retry", "--url", hangsUp.URL)
	if want := "gateway: no answer from the gateway at " + hangsUp.URL + ": EOF; whether it did what it was asked for is not known\n"; code != exitFailed || stderr != want {
		t.Errorf("exit code %d, stderr %q, want %q", code, stderr, want)
	}
}

// The token is sent in the header only, from each source of the token.
func TestTokens(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args, env, stdin string
		want             string // the header Authorization
		err              string
	}{
		{args: "", want: ""},
		{args: "", env: "from-env", want: "Bearer from-env"},
		{args: "--token from-flag", env: "from-env", want: "Bearer from-flag"},
		{args: "--token-file " + file, env: "from-env", want: "Bearer from-file"},
		{args: "--token-file -", stdin: "from-stdin\r\n", want: "Bearer from-stdin"},
		{args: "--token-file -", stdin: " \n", err: "--token-file standard input: it is empty"},
		{args: "--token-file -", stdin: strings.Repeat("x", maxToken+1), err: "--token-file standard input: more than 8192 bytes are no token"},
		{args: "--token-file -", stdin: "two\nlines", err: "--token-file standard input: a token is printable ASCII without blanks"},
		{args: "--token-file " + file + "x", err: "--token-file " + file + "x: no such file or directory"},
		{args: "--token sécret", err: "--token: a token is printable ASCII without blanks"},
		{env: "a\x1b", err: "GATEWAY_TOKEN: a token is printable ASCII without blanks"},
	} {
		var got string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = r.Header.Get("Authorization")
			if leaks := fmt.Sprint(r.URL); strings.Contains(leaks, "from-") {
				t.Errorf("%s has the token", leaks)
			}
			stub{status: 200, body: `{"events":[]}`}.ServeHTTP(w, r)
		}))
		s := session{stdin: strings.NewReader(c.stdin), env: map[string]string{"GATEWAY_TOKEN": c.env}}
		code, _, stderr := s.run(t.Context(), append([]string{"events", "list", "--url", server.URL}, strings.Fields(c.args)...)...)
		server.Close()
		want := "no events\n"
		if c.err != "" {
			want = "gateway: " + c.err + "\n"
		}
		if got != c.want || stderr != want || (code == exitDone) != (c.err == "") {
			t.Errorf("%q, GATEWAY_TOKEN %q, stdin %.20q: code %d, sent %q and said %q, want %q and %q", c.args, c.env, c.stdin, code, got, stderr, c.want, want)
		}
	}
}

// Empty and contradictory flags are usage errors.
func TestRemoteFlagsThatCannotBeMeant(t *testing.T) {
	for args, want := range map[string]string{
		"start --url http://h":                                   `"gateway start" works on this machine and takes no --url`,
		"workflow graph w --url http://h":                        `"gateway workflow graph" works on this machine and takes no --url`,
		"validate --token t":                                     `"gateway validate" works on this machine and takes no --token`,
		"events list --token t":                                  "--token is for the gateway that --url names",
		"events list --token-file t":                             "--token-file is for the gateway that --url names",
		"events list --url http://h --token=":                    "--token is empty",
		"events list --url http://h --token-file=":               "--token-file is empty",
		"events list --url http://h --token t --token-file f":    "give --token or --token-file, not both",
		"events list --url=":                                     "--url must be an address such as http://127.0.0.1:8888",
		"events list --url localhost:8888":                       "--url must be an address such as http://127.0.0.1:8888",
		"events list --url ftp://h":                              "--url must be an address such as http://127.0.0.1:8888",
		"events list --url http://u:p@h":                         "--url must be an address without user, password, query and fragment",
		"events list --url http://h?token=t":                     "--url must be an address without user, password, query and fragment",
		"send -s a -t b --url http://h --dry-run":                "--dry-run asks the configuration here, and takes no --url",
		"send -s a -t b -f - --url http://h --token-file -":      "standard input cannot be both the payload and the token",
		"send -s a -t b --token t --token-file f --url http://h": "give --token or --token-file, not both",
	} {
		code, stdout, stderr := session{}.run(t.Context(), strings.Fields(args)...)
		first, _, _ := strings.Cut(stderr, "\n")
		if code != exitUsage || stdout != "" || first != "gateway: "+want {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q; want code %d and %q", args, code, stdout, stderr, exitUsage, want)
		}
	}
}

// A token on an unencrypted connection causes a warning.
func TestUnencryptedTokens(t *testing.T) {
	for _, c := range []struct {
		url, token string
		warned     bool
	}{
		{"http://gateway.example:8888", "t", true},
		{"http://10.0.0.1", "t", true},
		{"http://gateway.example", "", false},
		{"https://gateway.example", "t", false},
		{"http://127.0.0.1:8888", "t", false},
		{"http://[::1]:8888", "t", false},
		{"http://localhost:8888", "t", false},
	} {
		var stderr strings.Builder
		a := newApp(session{}.system(io.Discard, &stderr))
		u, err := url.Parse(c.url)
		if err != nil {
			t.Fatal(err)
		}
		a.warnUnencrypted(u, c.token)
		want := ""
		if c.warned {
			want = "warning: the token goes to " + c.url + " unencrypted; use https\n"
		}
		if stderr.String() != want {
			t.Errorf("%s with token %q: said %q, want %q", c.url, c.token, stderr.String(), want)
		}
	}
}

func TestInterruptedWhileAServerThinks(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	asked := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	}))
	defer server.Close()
	go func() {
		<-asked
		interrupt()
	}()
	code, stdout, stderr := session{}.run(ctx, "events", "list", "--url", server.URL)
	if code != exitInterrupted || stdout != "" || stderr != "gateway: interrupted\n" {
		t.Errorf("exit code %d, stdout %q, stderr %q; want %d", code, stdout, stderr, exitInterrupted)
	}
}

// A transport answers without a network.
type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }
