package boot

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/eventgateway/gateway/core/gateway"
)

// TestLogs: each line is JSON and has the id of the invocation, also a line without a context.
func TestLogs(t *testing.T) {
	f, log := newTest(t, gateway.IntakeRoutes, minimal, nil)
	withStore(t, f)
	ctx := lambdacontext.NewContext(context.Background(), &lambdacontext.LambdaContext{AwsRequestID: "request-1"})
	if _, err := (&server{f}).Invoke(ctx, post("/events/app/order.created", "{}")); err != nil {
		t.Fatal(err)
	}
	f.log.WithGroup("of").With("a", 1).Info("another")
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	for _, line := range lines {
		var said struct {
			Msg       string
			RequestID string `json:"request_id"`
			Of        struct {
				RequestID string `json:"request_id"`
			}
		}
		if err := json.Unmarshal([]byte(line), &said); err != nil || said.RequestID+said.Of.RequestID != "request-1" {
			t.Errorf("%s: %v, want JSON that names the invocation", line, err)
		}
	}
	if len(lines) < 2 {
		t.Errorf("%d lines, want what happened to the event too", len(lines))
	}
}

func TestLogSettings(t *testing.T) {
	for _, tt := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{"GATEWAY_LOG_FORMAT": "text"}, "level=INFO msg=hello"},
		{map[string]string{"GATEWAY_LOG": "warn"}, ""},
		{map[string]string{"RUST_LOG": "error"}, ""},
		{map[string]string{"GATEWAY_LOG": "loud"}, `"loud\" is not one of`},
	} {
		f, log := newTest(t, gateway.IntakeRoutes, minimal, tt.env)
		f.log.Info("hello")
		if got := log.String(); !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%v: %q, want %q", tt.env, got, tt.want)
		}
	}
}

// TestUnquoted: the standard logger still reports errors, but no data that a server sent
// without a request.
func TestUnquoted(t *testing.T) {
	var said bytes.Buffer
	before := log.Writer()
	log.SetOutput(unquoted{&said})
	defer log.SetOutput(before)
	ours, theirs := net.Pipe()
	client := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return ours, nil }}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buffer := make([]byte, 4096)
		_, _ = theirs.Read(buffer)
		_, _ = io.WriteString(theirs, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok, and s3cret")
		_, _ = theirs.Read(buffer) // until the client has closed the connection
		log.Print("trouble")
	}()
	request, err := http.NewRequest(http.MethodGet, "http://example.com/", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	answer.Body.Close()
	<-done
	if got := said.String(); !strings.HasSuffix(got, " trouble\n") || strings.Contains(got, "s3cret") {
		t.Errorf("%q, want the trouble alone", got)
	}
}
