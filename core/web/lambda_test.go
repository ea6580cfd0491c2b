package web_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/eventgateway/gateway/core/web/lambda"
)

// A door is one of AWS's before a function, as far as requests and replies go: each
// request becomes an event, and each answer a reply.
type door struct {
	handler http.Handler
	url     bool   // it is a function's own URL, not an HTTP API
	stage   string // of the HTTP API, $default if empty
}

func (d door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "incomplete", http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), 30*time.Second)
	defer cancel()
	answer, err := lambda.Answer(ctx, d.handler, d.event(r, body), slog.New(slog.DiscardHandler))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	replyWith(w, answer)
}

// event returns the event of a request, in payload format 2.0. An HTTP API sends text as it is, and
// a function URL sends it in base64.
func (d door) event(r *http.Request, body []byte) []byte {
	stage, path, _ := "$default", r.RequestURI, ""
	path, _, _ = strings.Cut(path, "?")
	if d.stage != "" {
		stage, path = d.stage, "/"+d.stage+path
	}
	header := map[string]string{"host": r.Host}
	for name, values := range r.Header {
		header[strings.ToLower(name)] = strings.Join(values, ",")
	}
	var cookies []string
	for _, line := range r.Header["Cookie"] {
		cookies = append(cookies, strings.Split(line, "; ")...)
	}
	if !d.url {
		delete(header, "cookie")
	}
	address, _, _ := net.SplitHostPort(r.RemoteAddr)
	event := map[string]any{
		"version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": r.URL.RawQuery,
		"headers": header, "cookies": cookies, "body": string(body), "isBase64Encoded": false,
		"requestContext": map[string]any{
			"accountId": "123456789012", "apiId": "abc", "domainName": "abc.example.com", "stage": stage, "timeEpoch": 1,
			"http": map[string]any{"method": r.Method, "path": path, "protocol": "HTTP/1.1", "sourceIp": address},
		},
	}
	if d.url || !utf8.Valid(body) {
		event["body"], event["isBase64Encoded"] = base64.StdEncoding.EncodeToString(body), true
	}
	text, err := json.Marshal(event)
	if err != nil {
		panic(err)
	}
	return text
}

// replyWith sends the answer of a function as a reply.
func replyWith(w http.ResponseWriter, answer []byte) {
	var a struct {
		StatusCode      int
		Headers         map[string]string
		Cookies         []string
		Body            string
		IsBase64Encoded bool
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		panic(err)
	}
	body := []byte(a.Body)
	if a.IsBase64Encoded {
		body, _ = base64.StdEncoding.DecodeString(a.Body)
	}
	for name, value := range a.Headers {
		w.Header().Set(name, value)
	}
	for _, c := range a.Cookies {
		w.Header().Add("Set-Cookie", c)
	}
	w.WriteHeader(a.StatusCode)
	_, _ = w.Write(body)
}

// atTheDoor are requests of which a function sees nothing, or something else, and why.
var atTheDoor = map[string]string{
	"a body that is malformed, and a token that is not good":        "who cannot read a body has none to pass on",
	"a chunked body that is not":                                    "who cannot read a body has none to pass on",
	"the token is asked for before anything is told":                "the door waits for the body, which does not come",
	"far above the limit: refused unread, and nothing more is read": "the door waits for the body, which does not come",
	"the client waits before it sends":                              "the door has it sent",
	"two keys":                                                      "the door makes one line of them",
}

// TestTranscriptsOfFunctions plays the transcripts to a function behind each kind of
// front door: the replies are the same, byte for byte, except for the headers that the door writes
// for its own connection.
func TestTranscriptsOfFunctions(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("transcripts: %v, %v", files, err)
	}
	behind := map[string]bool{}
	doors := map[string]door{"api": {}, "stage": {stage: "prod"}, "url": {url: true}}
	for name, d := range doors {
		for _, file := range files {
			t.Run(name+"/"+strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { playBehind(t, d, file, behind) })
		}
	}
	for name := range atTheDoor {
		if !behind[name] {
			t.Errorf("no transcript has a request %q", name)
		}
	}
}

func playBehind(t *testing.T, d door, file string, behind map[string]bool) {
	transcript, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	serve := func(settings ...string) string {
		d.handler = newWorld(t, settings...).handler()
		return serveHandler(t, d)
	}
	address := serve()
	var name, reply string
	for _, section := range transcript.Files {
		switch section.Name {
		case "setup":
			address = serve(strings.Split(strings.TrimSpace(string(section.Data)), "\n")...)
		case "reply":
			want, got := unconnected(string(section.Data)), unconnected(reply)
			if diff := cmp.Diff(want, got); diff != "" && !behind[name] {
				t.Errorf("%s (-directly +by a function):\n%s", name, diff)
			}
		default:
			name = section.Name
			if behind[name] = atTheDoor[name] != ""; !behind[name] {
				reply = exchange(t, address, section)
			}
		}
	}
}

// ofConnection are the headers that the holder of the connection writes.
var ofConnection = regexp.MustCompile(`(?m)^(Connection|Content-Length): .*\n`)

// unconnected returns a reply without the headers of its connection.
func unconnected(reply string) string {
	head, body, _ := strings.Cut(reply, "\n\n")
	return ofConnection.ReplaceAllString(head+"\n", "") + "\n" + body
}
