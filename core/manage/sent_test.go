package manage

import (
	"context"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core"
)

// Event returns the event of a job, whose payload is "payload".
func (d *drawer) Event(_ context.Context, id core.ID) (core.Event, error) {
	return core.Event{ID: id, Payload: []byte("payload")}, d.err
}

// sent is an attempt that sent a body.
func sent(number int, body string, change func(*core.Exchange)) core.Attempt {
	x := &core.Exchange{Method: "POST", URL: "http://r.example/in", Headers: map[string]string{"Authorization": core.Masked}, BodySize: len(body), BodySHA256: HashOf([]byte(body))}
	change(x)
	return core.Attempt{Number: number, Exchange: x}
}

// TestCurl: the command has the kept body, or the payload of the event if that was sent. Without the
// same bytes there is no command.
func TestCurl(t *testing.T) {
	j, d := office()
	same := func(*core.Exchange) {}
	d.attempts[id(1)] = []core.Attempt{
		{Number: 1}, // an earlier one with the number
		sent(1, "kept", func(x *core.Exchange) { x.KeptBody = x.BodySize }),
		sent(2, "payload", same),
		sent(3, "made of it", same),
		sent(4, "made of it", func(x *core.Exchange) { x.KeptBody = 4 }),
		sent(5, "", func(x *core.Exchange) { x.BodySHA256 = "" }),
		sent(6, "payload", func(x *core.Exchange) { x.Method = "/gateway.v1.Receiver/Deliver" }),
		{Number: 7},
	}
	for _, c := range []struct {
		id     core.ID
		number int
		want   string // begins the command
		kind   core.Kind
		refuse string
	}{
		{id(1), 1, "printf %s 'kept' | curl -i -X POST", 0, ""},
		{id(1), 2, "printf %s 'payload' | curl -i -X POST", 0, ""},
		{id(1), 3, "", core.Invalid, "attempt 3 sent 10 bytes that are not the payload"},
		{id(1), 4, "", core.Invalid, "attempt 4 sent 10 bytes that are not the payload"},
		{id(1), 5, "curl -i -X POST", 0, ""},
		{id(1), 6, "", core.Invalid, "attempt 6 was a gRPC call, which curl cannot make"},
		{id(1), 7, "", core.NotFound, "attempt 7 did not record its request; with delivery.record: headers"},
		{id(1), 8, "", core.NotFound, "has no record of attempt 8; there are 1, 1, 2, 3, 4, 5, 6, 7"},
		{id(2), 1, "", core.NotFound, "has no recorded attempt"},
		{id(9), 1, "", core.NotFound, "job not found"},
	} {
		command, err := j.Curl(t.Context(), c.id, c.number)
		if c.refuse != "" {
			if !core.IsKind(err, c.kind) || !strings.Contains(err.Error(), c.refuse) {
				t.Errorf("Curl(%s, %d) = %v, want %s", c.id, c.number, err, c.refuse)
			}
			continue
		}
		if err != nil || !strings.Contains(command.Text(), "\n"+c.want) || len(command.Variables) != 1 || command.Variables[0].Name != "GATEWAY_HEADER_AUTHORIZATION" {
			t.Errorf("Curl(%s, %d) = %+v, %v, want %s", c.id, c.number, command, err, c.want)
		}
	}
}
