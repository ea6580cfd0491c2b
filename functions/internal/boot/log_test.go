package boot

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/eventgateway/gateway/core/gateway"
)

// TestLogs: lines are JSON and name the invocation, whoever writes them.
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
