package egress

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/expr"
	gatewayv1 "github.com/eventgateway/gateway/proto/gateway/v1"
)

// TestGRPCRecord: the exchange of a call has the metadata and attributes that the receiver got,
// except for the texts that are masked.
func TestGRPCRecord(t *testing.T) {
	template, err := expr.ParseTemplate(`{"id": {{$.n}}}`)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		how       core.Recording
		transform *expr.Template
		status    string
		kept      int
	}{
		"none":                 {how: core.RecordNone, status: "0"},
		"headers":              {how: core.RecordHeaders, transform: template, status: "0"},
		"all, of the payload":  {how: core.RecordAll, status: "0"},
		"all, of a transform":  {how: core.RecordAll, transform: template, status: "0", kept: len(`{"id": 7}`)},
		"headers, of an error": {how: core.RecordHeaders, status: "14"},
	} {
		t.Run(name, func(t *testing.T) {
			var metadata http.Header
			var message gatewayv1.DeliverRequest
			var path string
			url := serveH2(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if err := proto.Unmarshal(body[5:], &message); err != nil {
					t.Error(err)
				}
				metadata, path = r.Header.Clone(), r.URL.Path
				w.Header().Set("X-Seen", "the token t0k3n-of-billing is wrong")
				w.Header().Set("X-Note", r.Header.Get("X-Note"))
				w.Header().Set("X-Echo", "<"+r.Header.Get("X-Note")+">")
				w.Header().Set("Set-Cookie", "sid=1234")
				w.Header().Set(http.TrailerPrefix+"X-Left", "3")
				reply(w, c.status, success("thanks"))
			})
			job := taken("01HZY8Q4000000000000000JOB", `{"n": 7}`)
			job.Event.Headers = map[string]string{"ce-tenant": "a"}
			x := send(t, newGRPCSender(t, newClient(t), Target{
				Name: "billing", URL: url, Secrets: []string{vectorSecret}, Record: c.how, Transform: c.transform,
				Headers: map[string]string{"Authorization": "Bearer t0k3n-of-billing", "X-Note": "Caf\u00e9-token", "User-Agent": "ours/1"},
			}), job).Exchange
			if c.how == core.RecordNone {
				if x != nil {
					t.Errorf("exchange = %+v, want none", *x)
				}
				return
			}
			if x == nil {
				t.Fatal("no exchange")
			}
			if x.Method != "/gateway.v1.EventReceiver/Deliver" || x.Method != path || x.URL != url+"/" || x.Cut {
				t.Errorf("exchange = %q %s, cut %v; the receiver got %q", x.Method, x.URL, x.Cut, path)
			}
			want := map[string]string{"authorization": core.Masked, "x-note": core.Masked, "user-agent": core.Masked}
			for name, values := range metadata {
				// These are of the protocol, and the same for each call but the deadline.
				if name = strings.ToLower(name); want[name] == "" && name != "content-type" && name != "te" && name != "grpc-timeout" && name != "grpc-accept-encoding" {
					want[name] = strings.Join(values, ", ")
				}
			}
			for name, value := range message.Metadata {
				want[name] = value
			}
			sameHeaders(t, "request", x.Headers, want)
			sameHeaders(t, "reply", x.ReplyHeaders, map[string]string{
				"x-seen": "the token *** is wrong", "x-note": core.Masked, "set-cookie": core.Masked, "x-left": "3", "content-type": "application/grpc",
				"x-echo": "<" + core.Masked + ">", "date": x.ReplyHeaders["date"], "content-length": x.ReplyHeaders["content-length"],
			})
			sum := sha256.Sum256([]byte(message.Payload))
			if x.BodySize != len(message.Payload) || x.BodySHA256 != hex.EncodeToString(sum[:]) || x.KeptBody != c.kept || c.kept > 0 && x.Body != message.Payload {
				t.Errorf("body = %d bytes, SHA-256 %s, kept %d %q; the receiver got %q", x.BodySize, x.BodySHA256, x.KeptBody, x.Body, message.Payload)
			}
		})
	}
}

func sameHeaders(t *testing.T, of string, got, want map[string]string) {
	t.Helper()
	for name := range got {
		if _, is := want[name]; !is {
			t.Errorf("recorded %s has %s: %q, which was not sent", of, name, got[name])
		}
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("recorded %s has %s: %q, want %q", of, name, got[name], value)
		}
	}
}

// TestGRPCRecordWithoutReply: the request of a call without a reply is kept, and no headers of a reply.
func TestGRPCRecordWithoutReply(t *testing.T) {
	hangs := serveH2(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	for name, url := range map[string]string{"no receiver": "http://127.0.0.1:1", "a receiver that hangs": hangs} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		x := newGRPCSender(t, newClient(t), Target{URL: url, Record: core.RecordHeaders}).Send(ctx, taken("01HZY8Q4000000000000000JOB", "{}")).Exchange
		cancel()
		if x == nil || x.Headers["x-gateway-job-id"] != "01HZY8Q4000000000000000JOB" || x.ReplyHeaders != nil {
			t.Errorf("%s: exchange = %+v, want one with the request and without a reply", name, x)
		}
	}
}
