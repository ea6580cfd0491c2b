package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"reflect"
	"testing"

	"github.com/eventgateway/gateway/core"
)

// TestCurlSendsTheSame: a shell and curl send what the command says, byte for byte, also if values
// are hostile to a shell.
func TestCurlSendsTheSame(t *testing.T) {
	type request struct {
		header http.Header
		uri    string
		body   []byte
	}
	received := make(chan request, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		received <- request{r.Header, r.Method + " " + r.RequestURI, body}
	}))
	defer server.Close()
	for name, event := range map[string]core.Event{
		"text":   {Payload: []byte("it's \"$HOME\" `id` \\n %s\n-x @file \u00e9\r\n")},
		"binary": {Payload: []byte{0, 255, '\'', '\n', 10}, Binary: true},
	} {
		c := curlOf(&core.Exchange{Method: "PUT", URL: server.URL + "/a/../b[1-2]?k=***&api.key=***&***", Headers: map[string]string{
			"Authorization": core.Masked, "X-Odd": "a'b\"c $(id) ;", "X-Empty": "", "Content-Type": "text/x", "User-Agent": "gateway/1",
		}})
		c.send(event)
		command := exec.Command("sh", "-c", c.text())
		command.Env = append(command.Environ(), "AUTHORIZATION=Bearer it's", "URL_K=s3cret", "URL_API_KEY=it's", "URL_SECRET=flag")
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s\n%s", name, err, c.text(), out)
		}
		got := <-received
		got.header.Del("Content-Length")
		want := http.Header{"Authorization": {"Bearer it's"}, "X-Odd": {"a'b\"c $(id) ;"}, "X-Empty": {""}, "Content-Type": {"text/x"}, "User-Agent": {"gateway/1"}}
		if !reflect.DeepEqual(got.header, want) || got.uri != "PUT /a/../b[1-2]?k=s3cret&api.key=it's&flag" {
			t.Errorf("%s: received %s %v, want %v", name, got.uri, got.header, want)
		}
		if string(got.body) != string(event.Payload) {
			t.Errorf("%s: received body %q, want %q", name, got.body, event.Payload)
		}
		if want := []string{"AUTHORIZATION", "URL_K", "URL_API_KEY", "URL_SECRET"}; !reflect.DeepEqual(c.variables, want) {
			t.Errorf("%s: variables = %q, want %q", name, c.variables, want)
		}
	}
}
