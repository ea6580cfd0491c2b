package curl

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core"
)

// TestCurlSendsTheSame: a shell and curl send the recorded request byte for byte, also if its
// values are hostile to a shell.
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
		c := Of(&core.Exchange{Method: "PUT", URL: server.URL + "/a/../b[1-2]/***?k=***&api.key=***&api-key=***&***", Headers: map[string]string{
			"Authorization": core.Masked, "Home": core.Masked, "X-A": core.Masked, "X_A": core.Masked, "X-Parts": "a *** and ***", "X-Stars": "*** $HOME",
			"X-Odd": "a'b\"c $(id) ;", "X-Empty": "", "Content-Type": "text/x", "User-Agent": "gateway/1",
		}, Unmasked: []string{"X-Stars", core.UnmaskedURL}})
		c.Send(event)
		command := exec.Command("sh", "-c", c.Text())
		command.Env = append(command.Environ(), "HOME=/home/of-the-operator")
		for variable, value := range map[string]string{
			"HEADER_AUTHORIZATION": "Bearer it's", "HEADER_HOME": "h", "HEADER_X_A": "dash", "HEADER_X_A_2": "line", "HEADER_X_PARTS": "1", "HEADER_X_PARTS_2": "2",
			"QUERY_K": "s3cret", "QUERY_API_KEY": "it's", "QUERY_API_KEY_2": "other", "QUERY": "flag",
		} {
			command.Env = append(command.Env, "GATEWAY_"+variable+"="+value)
		}
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s\n%s", name, err, c.Text(), out)
		}
		got := <-received
		got.header.Del("Content-Length")
		want := http.Header{"Authorization": {"Bearer it's"}, "Home": {"h"}, "X-A": {"dash"}, "X_a": {"line"}, "X-Parts": {"a 1 and 2"}, "X-Stars": {"*** $HOME"}, "X-Odd": {"a'b\"c $(id) ;"}, "X-Empty": {""}, "Content-Type": {"text/x"}, "User-Agent": {"gateway/1"}}
		if !reflect.DeepEqual(got.header, want) || got.uri != "PUT /a/../b[1-2]/***?k=s3cret&api.key=it's&api-key=other&flag" {
			t.Errorf("%s: received %s %v, want %v", name, got.uri, got.header, want)
		}
		if string(got.body) != string(event.Payload) {
			t.Errorf("%s: received body %q, want %q", name, got.body, event.Payload)
		}
	}
}

// TestCurlSaysWhatToSet: a comment names each variable and the value that it stands for. A shell in
// which a variable is not set sends nothing.
func TestCurlSaysWhatToSet(t *testing.T) {
	c := Of(&core.Exchange{Method: "GET", URL: "http://127.0.0.1:1/***?k=***&***", Headers: map[string]string{"Home": core.Masked, "X-\u001b***": "a"}})
	const want = `# Set these first. Their values are masked in the record:
#   GATEWAY_HEADER_HOME    the value of header Home
#   GATEWAY_HEADER_X_____  a part of header X-\x1b***
#   GATEWAY_PATH           a part of the path
#   GATEWAY_QUERY_K        the value of k in the query
#   GATEWAY_QUERY          a value in the query
`
	if got := c.comments(); got != want {
		t.Errorf("comments:\n%s\nwant:\n%s", got, want)
	}
	out, err := exec.Command("sh", "-c", c.Text()).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "GATEWAY_HEADER_HOME") || strings.Contains(string(out), "curl:") {
		t.Errorf("the command without its variables: %v, %s; want that the shell names the first one", err, out)
	}
}
