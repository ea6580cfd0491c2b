package egress

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/expr"
	"github.com/eventgateway/gateway/core/worker"
	"github.com/eventgateway/gateway/infra/test/servers"
)

func newGRPCSender(t testing.TB, c *Client, target Target) worker.Sender {
	t.Helper()
	s, err := c.GRPC(target)
	if err != nil {
		t.Fatalf("GRPC(%+v) = %v", target, err)
	}
	return s
}

// to returns the headers by which a test sets the answer of the receiver.
func to(answer map[string]any) map[string]string {
	b, _ := json.Marshal(answer)
	var ascii strings.Builder
	for _, r := range string(b) {
		if r < 0x80 {
			ascii.WriteRune(r)
		} else {
			fmt.Fprintf(&ascii, `\u%04x`, r)
		}
	}
	return map[string]string{"x-answer": ascii.String()}
}

// jobID is an ID that no other job has had, as the tests share a receiver.
func jobID() core.ID { return core.ID(fmt.Sprintf("JOB-%d", jobs.Add(1))) }

var jobs atomic.Int64

// callOf returns the received call of a job, which must be exactly one.
func callOf(t *testing.T, r *servers.Receiver, id core.ID) servers.Call {
	t.Helper()
	calls, err := r.Calls(string(id))
	if err != nil {
		t.Fatal(err)
	}
	var found []servers.Call
	for _, c := range calls {
		if c.Metadata["x-gateway-job-id"] == string(id) {
			found = append(found, c)
		}
	}
	if len(found) != 1 {
		t.Fatalf("job %s arrived %d times, want once; the receiver says: %s", id, len(found), r.Log())
	}
	return found[0]
}

// TestGRPCGolden holds all parts of a call.
func TestGRPCGolden(t *testing.T) {
	receiver := servers.GRPC(t)
	client := newClient(t)
	client.clock = func() time.Time { return time.UnixMilli(1_614_265_330_900) }
	job := taken(jobID(), `{"sign": "€", "n": 1.50}`)
	job.Event.Headers = map[string]string{
		"traceparent":      "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"tracestate":       "vendor=1",
		"ce-tenant":        "Caf%C3%A9",
		"x-other-provider": "kept with the event, not sent",
		"x-gateway-hops":   "3",
	}
	s := newGRPCSender(t, client, Target{
		Name: "billing", URL: receiver.URL() + "/", Secrets: []string{vectorSecret},
		Headers: map[string]string{"X-Api-Key": "k", "Authorization": "Bearer t", "X-Note": "Café\t1", "X-Gateway-Source": "mine", "x-answer": `{"message": "thanks"}`},
	})
	before := time.Now()
	if got, want := send(t, s, job), (worker.Reply{OK: true, Response: "thanks"}); got != want {
		t.Fatalf("Send() = %+v, want %+v", got, want)
	}
	got := callOf(t, receiver, job.ID)
	signer, _ := newSigner([]string{vectorSecret})
	var want servers.Call
	want.Request.EventID, want.Request.EventType = "01HZY8Q4000000000000000EVT", "order.created"
	want.Request.Handler, want.Request.Attempt = "billing", 2
	want.Request.Payload = `{"sign": "€", "n": 1.50}`
	want.Request.Metadata = map[string]string{
		"ce-specversion": "1.0",
		"ce-id":          "01HZY8Q4000000000000000EVT",
		"ce-source":      "/sources/shop",
		"ce-type":        "order.created",
		"ce-time":        "2024-06-10T06:13:20.120Z",
		"ce-tenant":      "Caf%C3%A9",
		"content-type":   "application/json",
	}
	want.Metadata = map[string]string{
		"user-agent":           got.Metadata["user-agent"], // see below
		"x-gateway-event-id":   "01HZY8Q4000000000000000EVT",
		"x-gateway-job-id":     string(job.ID),
		"x-gateway-handler":    "billing",
		"x-gateway-attempt":    "2",
		"x-gateway-hops":       "4",
		"x-gateway-event-type": "order.created",
		"x-gateway-source":     "mine",
		"traceparent":          "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"tracestate":           "vendor=1",
		"webhook-id":           string(job.ID),
		"webhook-timestamp":    vectorTimestamp,
		"webhook-signature":    signer.sign(string(job.ID), vectorTimestamp, job.Event.Payload),
		"x-api-key":            "k",
		"authorization":        "Bearer t",
		"x-note":               "Caf%C3%A9%091",
		"x-answer":             `{"message": "thanks"}`,
	}
	want.Deadline = got.Deadline
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("delivered (-want +got):\n%s", diff)
	}
	if agent := got.Metadata["user-agent"]; !strings.HasPrefix(agent, "gateway/1.2.3 grpc-go/") {
		t.Errorf("user-agent: %s", agent)
	}
	if d := time.UnixMilli(int64(got.Deadline)).Sub(before); d < 15*time.Second || d > 25*time.Second {
		t.Errorf("the receiver thinks it has %v, want about 20s", d)
	}
}

// TestGRPCSaysWhatHTTPSays: a gRPC receiver gets the same values as an HTTP receiver.
func TestGRPCSaysWhatHTTPSays(t *testing.T) {
	receiver := servers.GRPC(t)
	client := newClient(t)
	client.clock = func() time.Time { return time.UnixMilli(1_614_265_330_900) }
	foreign := map[string]string{
		"ce-specversion": "1.0", "ce-id": "A234-1234-1234", "ce-source": "https://github.com/cloudevents",
		"ce-type": "com.example.some%20event", "ce-subject": "a\r\nx: é", "ce-a b": "x", "ce-datacontenttype": "text/xml",
	}
	for i, c := range []struct {
		name, payload, contentType, wantType string
		headers                              map[string]string
	}{
		{name: "billing", payload: "{}", contentType: "application/json", wantType: "order.created"},
		{name: "é 100%", payload: "{}", wantType: "order.created", headers: map[string]string{"ce-type": "only.a.type"}},
		{name: "x", payload: "hello", wantType: "com.example.some%20event", headers: foreign},
		{name: "x", payload: "", contentType: "text/plain; charset=utf-8", wantType: "order.created", headers: map[string]string{"traceparent": "no", "tracestate": "a=1"}},
	} {
		job := taken(jobID(), c.payload)
		job.Event.ContentType, job.Event.Headers = c.contentType, c.headers
		target := Target{Name: c.name, Secrets: []string{"s", "t"}}
		overHTTP := deliver(t, target, job).header
		target.URL = receiver.URL()
		if got := send(t, newGRPCSender(t, client, target), job); !got.OK {
			t.Fatalf("Send() = %+v", got)
		}
		call := callOf(t, receiver, job.ID)
		if call.Request.EventType != c.wantType || call.Request.Payload != c.payload || call.Request.Handler != c.name {
			t.Errorf("job %d: request %+v", i, call.Request)
		}
		overGRPC := maps.Clone(call.Metadata)
		maps.Copy(overGRPC, call.Request.Metadata)
		for _, own := range []string{"user-agent", "content-length"} {
			delete(overHTTP, own)
			delete(overGRPC, own)
		}
		if diff := gocmp.Diff(overHTTP, overGRPC); diff != "" {
			t.Errorf("job %d (-HTTP +gRPC):\n%s", i, diff)
		}
	}
}

// TestGRPCSignature: the verifying library for receivers accepts the payload's bytes unchanged.
func TestGRPCSignature(t *testing.T) {
	receiver, library := servers.GRPC(t), servers.Clients(t)
	job := taken(jobID(), "{\"sign\": \"€\", \"n\": 1.50}\n")
	s := newGRPCSender(t, newClient(t), Target{URL: receiver.URL(), Secrets: []string{vectorSecret}})
	if got := send(t, s, job); !got.OK {
		t.Fatalf("Send() = %+v", got)
	}
	call := callOf(t, receiver, job.ID)
	if err := library.Verify("standardwebhooks", vectorSecret, servers.Signed{Headers: call.Metadata, Body: call.Request.Payload}); err != nil {
		t.Error(err)
	}
	if library.Verify("standardwebhooks", vectorSecret, servers.Signed{Headers: call.Metadata, Body: call.Request.Payload + " "}) == nil {
		t.Error("accepted with another payload")
	}
}

func TestGRPCTransform(t *testing.T) {
	receiver := servers.GRPC(t)
	template, err := expr.ParseTemplate(`{"id": {{$.n}}}`)
	if err != nil {
		t.Fatal(err)
	}
	s := newGRPCSender(t, newClient(t), Target{URL: receiver.URL(), Transform: template})
	job := taken(jobID(), `{"n": 7}`)
	job.Event.ContentType = "application/vnd.shop+json"
	if got := send(t, s, job); !got.OK {
		t.Fatalf("Send() = %+v", got)
	}
	call := callOf(t, receiver, job.ID)
	if call.Request.Payload != `{"id": 7}` || call.Request.Metadata["content-type"] != "application/json" {
		t.Errorf("delivered %+v", call.Request)
	}
}

// TestGRPCPayloadThatIsNotText: a gRPC string must be UTF-8. Intake refuses other payloads, so
// only another program can have stored one.
func TestGRPCPayloadThatIsNotText(t *testing.T) {
	got := send(t, newGRPCSender(t, newClient(t), Target{URL: "http://127.0.0.1:1"}), taken("J", "\xff"))
	if checkFailure(t, got, 0, "protocol: the payload is not UTF-8"); !got.Final {
		t.Errorf("Send() = %+v, want it final", got)
	}
}

// TestGRPCAnswers holds the outcome of an attempt for each answer of a receiver.
func TestGRPCAnswers(t *testing.T) {
	receiver := servers.GRPC(t)
	type is = map[string]any
	const retryInfo = "CA4SBGZ1bGwaMQoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIFCgMIrAI="
	long := strings.Repeat("x", 5000)
	for name, c := range map[string]struct {
		answer is
		want   worker.Reply
	}{
		"success":             {is{}, worker.Reply{OK: true}},
		"with a message":      {is{"message": "took\n\x00it"}, worker.Reply{OK: true, Response: "took\n\uFFFDit"}},
		"with a long one":     {is{"message": "é", "fill": 5000}, worker.Reply{OK: true, Response: "é" + long[:1022]}},
		"refused":             {is{"success": false, "message": "no\nmore"}, worker.Reply{Response: "no\nmore", Error: "status: refused: no more"}},
		"refused in silence":  {is{"success": false}, worker.Reply{Error: "status: refused"}},
		"refused at length":   {is{"success": false, "fill": 5000}, worker.Reply{Response: long[:1024], Error: "status: refused: " + long[:495]}},
		"almost too long":     {is{"fill": 1<<20 - 16}, worker.Reply{OK: true, Response: long[:1024]}},
		"headers first":       {is{"header": true, "code": 9, "details": "full"}, worker.Reply{Response: "full", Error: "status: FAILED_PRECONDITION: full"}},
		"code without a word": {is{"code": 13, "details": ""}, worker.Reply{Error: "status: INTERNAL"}},
		"long details":        {is{"code": 2, "details": long}, worker.Reply{Response: long[:1024], Error: "status: UNKNOWN: " + long[:495]}},
		"odd details":         {is{"code": 2, "details": "é%\r\n\x00\x1b[1m"}, worker.Reply{Response: "é%\r\n\uFFFD\x1b[1m", Error: "status: UNKNOWN: é%    [1m"}},
		"like ours":           {is{"code": 8, "details": "grpc: received message larger than max"}, worker.Reply{Response: "grpc: received message larger than max", Error: "status: RESOURCE_EXHAUSTED: grpc: received message larger than max"}},
		"an unheard-of code":  {is{"code": 99, "details": "x"}, worker.Reply{Response: "x", Error: "status: code 99: x"}},
		"retry-after": {is{"code": 14, "details": "full", "trailer": is{"retry-after": "7"}},
			worker.Reply{Response: "full", Error: "status: UNAVAILABLE: full", RetryAfter: 7 * time.Second}},
		"retry-after, odd": {is{"code": 14, "details": "full", "trailer": is{"retry-after": "soon"}},
			worker.Reply{Response: "full", Error: "status: UNAVAILABLE: full"}},
		"retry-after, no reason to": {is{"code": 9, "details": "full", "trailer": is{"retry-after": "7"}},
			worker.Reply{Response: "full", Error: "status: FAILED_PRECONDITION: full"}},
		"RetryInfo": {is{"code": 14, "details": "full", "trailer": is{"retry-after": "7", "grpc-status-details-bin": retryInfo}},
			worker.Reply{Response: "full", Error: "status: UNAVAILABLE: full", RetryAfter: 5 * time.Minute}},
		"details that are not": {is{"code": 14, "details": "full", "trailer": is{"retry-after": "7", "grpc-status-details-bin": "////"}},
			worker.Reply{Response: "full", Error: "status: UNAVAILABLE: full", RetryAfter: 7 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newGRPCSender(t, newClient(t), Target{URL: receiver.URL(), Headers: to(c.answer)})
			if diff := gocmp.Diff(c.want, send(t, s, taken("J", "{}"))); diff != "" {
				t.Errorf("Send() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGRPCCodes(t *testing.T) {
	receiver := servers.GRPC(t)
	client := newClient(t)
	for code, name := range codeNames {
		if name == "OK" {
			continue
		}
		s := newGRPCSender(t, client, Target{URL: receiver.URL(), Headers: to(map[string]any{"code": code, "details": "no"})})
		want := worker.Reply{Error: "status: " + name + ": no", Response: "no"}
		if got := send(t, s, taken("J", "{}")); got != want {
			t.Errorf("code %d: Send() = %+v, want %+v", code, got, want)
		}
	}
}

func TestGRPCSizes(t *testing.T) {
	receiver := servers.GRPC(t)
	client := newClient(t)
	for _, early := range []bool{false, true} {
		s := newGRPCSender(t, client, Target{URL: receiver.URL(), Headers: to(map[string]any{"fill": 1 << 20, "header": early})})
		checkFailure(t, send(t, s, taken("J", "{}")), 0, "protocol: received message larger than max (1048582 vs. 1048576)")
	}
	s := newGRPCSender(t, client, Target{URL: receiver.URL()})
	large := taken(jobID(), `"`+strings.Repeat("x", 3<<20)+`"`)
	if got := send(t, s, large); !got.OK {
		t.Errorf("Send() of 3 MiB = %+v", got)
	}
	if got := callOf(t, receiver, large.ID).Request.Payload; got != string(large.Event.Payload) {
		t.Errorf("%d bytes arrived, want %d", len(got), len(large.Event.Payload))
	}
	tooLarge := `"` + strings.Repeat("x", 5<<20) + `"` // more than the default limit of @grpc/grpc-js
	checkFailure(t, send(t, s, taken("J", tooLarge)), 0, "status: RESOURCE_EXHAUSTED: ")
}

func TestGRPCDeadline(t *testing.T) {
	receiver := servers.GRPC(t)
	for _, early := range []bool{false, true} {
		s := newGRPCSender(t, newClient(t), Target{URL: receiver.URL(), Headers: to(map[string]any{"hang": true, "header": early})})
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		checkFailure(t, s.Send(ctx, taken("J", "{}")), 0, "timeout: no answer within ")
		cancel()
	}
}

func TestGRPCCancelled(t *testing.T) {
	for _, early := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		url := serveH2(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/grpc")
			if early {
				w.(http.Flusher).Flush()
			}
			cancel()
			<-r.Context().Done()
		})
		got := newGRPCSender(t, newClient(t), Target{URL: url}).Send(ctx, taken("J", "{}"))
		checkFailure(t, got, 0, "timeout: given up before there was an answer")
	}
}

// due is a context whose deadline has passed, but which is not done yet.
type due struct{ context.Context }

func (due) Deadline() (time.Time, bool) { return time.Now(), true }

// TestGRPCDeadlineSeenByTheReceiverFirst: the receiver may report the end of the client's
// deadline before the client sees it. The receiver's own deadlines are statuses like others;
// see TestGRPCCodes.
func TestGRPCDeadlineSeenByTheReceiverFirst(t *testing.T) {
	for _, c := range []struct {
		code codes.Code
		want bool
	}{{codes.DeadlineExceeded, true}, {codes.Unavailable, false}} {
		if got := isLate(due{t.Context()}, status.New(c.code, "x")); got != c.want {
			t.Errorf("isLate(%v) = %v, want %v", c.code, got, c.want)
		}
	}
}

func TestGRPCTargetRefused(t *testing.T) {
	client := newClient(t)
	for name, c := range map[string]struct {
		target Target
		want   string
	}{
		"scheme":         {Target{URL: "unix:///run/s3cret"}, "url must start with http:// or https://"},
		"target scheme":  {Target{URL: "dns:///example.com"}, "url must start with http:// or https://"},
		"no scheme":      {Target{URL: "example.com:50051"}, "url must start with http:// or https://"},
		"path":           {Target{URL: "http://example.com/s3cret"}, "url must end after host and port"},
		"query":          {Target{URL: "http://example.com?s3cret"}, "url must end after host and port"},
		"fragment":       {Target{URL: "http://example.com/#s3cret"}, "url must end after host and port"},
		"credentials":    {Target{URL: "http://user:s3cret@example.com"}, "url must not hold"},
		"odd host":       {Target{URL: "http://0x7f.1"}, "url has a host that is almost an IPv4 address"},
		"method":         {Target{URL: "http://example.com", Method: "POST"}, "method is for HTTP"},
		"reserved":       {Target{URL: "http://example.com", Headers: map[string]string{"Webhook-Id": "s3cret"}}, `header "Webhook-Id" is set by the gateway itself`},
		"grpc's own":     {Target{URL: "http://example.com", Headers: map[string]string{"Grpc-Timeout": "s3cret"}}, `header "Grpc-Timeout" is set by gRPC itself`},
		"content type":   {Target{URL: "http://example.com", Headers: map[string]string{"Content-Type": "s3cret"}}, `header "Content-Type" is set by gRPC itself`},
		"binary":         {Target{URL: "http://example.com", Headers: map[string]string{"X-Trace-Bin": "s3cret"}}, `header "X-Trace-Bin" has a name that gRPC keeps for binary values`},
		"odd name":       {Target{URL: "http://example.com", Headers: map[string]string{"x~y": "s3cret"}}, `header "x~y" is not a name that gRPC can carry`},
		"pseudo-header":  {Target{URL: "http://example.com", Headers: map[string]string{":path": "s3cret"}}, `header ":path" is not a header name`},
		"line break":     {Target{URL: "http://example.com", Headers: map[string]string{"x": "s3cret\r\ny: z"}}, `header "x" holds a line break`},
		"blank secret":   {Target{URL: "http://example.com", Secrets: []string{" "}}, "signing secret is empty"},
		"one bad secret": {Target{URL: "http://example.com", Secrets: []string{"good", "whsec_s3cret!"}}, "signing secret is not base64"},
	} {
		c.target.Name = "billing"
		_, err := client.GRPC(c.target)
		if err == nil || !strings.HasPrefix(err.Error(), `handler "billing": `+c.want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: GRPC() = %v, want %q and no secret", name, err, c.want)
		}
	}
}

func TestGRPCUserAgentOfTheHandlersOwn(t *testing.T) {
	receiver := servers.GRPC(t)
	s := newGRPCSender(t, newClient(t), Target{URL: receiver.URL(), Headers: map[string]string{"User-Agent": "acme/1"}})
	job := taken(jobID(), "{}")
	send(t, s, job)
	if got := callOf(t, receiver, job.ID).Metadata["user-agent"]; !strings.HasPrefix(got, "acme/1 grpc-go/") {
		t.Errorf("user-agent: %s, want the handler's own", got)
	}
}

// FuzzGRPCRequest: a call can be made for every event and every valid configuration. gRPC can
// carry its names and values, and its message can be encoded.
func FuzzGRPCRequest(f *testing.F) {
	f.Add("shop", "order.created", "application/json", "ce-tenant", "Café", "x-api-key", "k", "{}")
	f.Add("\xff", "é\x00", "text/plain\xff", "ce-x-bin", "\r\n", "X-Bin", "\xffé", "")
	f.Add("s", "t", "\t", "ce-grpc-status", "\x7f", "grpc-timeout", "1S", "[]")
	f.Add("s", "t", "a/b", "tracestate", "é", "user-agent", "é", "[]")
	f.Add("s", "t", "a/b", "ce-type", "\xff", "te", "trailers", "[]")
	client := New(Options{})
	f.Cleanup(client.Close)
	f.Fuzz(func(t *testing.T, source, kind, contentType, inName, inValue, ownName, ownValue, payload string) {
		job := taken("J", strings.ToValidUTF8(payload, ""))
		job.Event.Source, job.Event.Type, job.Event.ContentType = source, kind, contentType
		job.Event.Headers = map[string]string{
			"ce-specversion": "1.0", "ce-id": "1", "ce-source": source, "ce-type": kind,
			"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		}
		job.Event.Headers[inName] = inValue
		s, err := client.GRPC(Target{Name: "billing", URL: "http://example.com", Headers: map[string]string{ownName: ownValue}, Secrets: []string{"s"}})
		if err != nil {
			return
		}
		letter, err := composeText(nil, &job.Event)
		if err != nil {
			t.Fatal(err)
		}
		message, metadata := s.(*grpcSender).request(&job, letter, time.Unix(0, 0))
		for name, values := range metadata {
			if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" || strings.HasSuffix(name, "-bin") ||
				strings.HasPrefix(name, "grpc-") || name == "content-type" || name == "user-agent" || name == "te" {
				t.Errorf("metadata has the name %q", name)
			}
			for _, value := range values {
				if !eachByte(value, isPrintable) {
					t.Errorf("metadata %s: %q", name, value)
				}
			}
		}
		wire, err := proto.Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(wire, job.Event.Payload) {
			t.Errorf("the message has not got the payload %q", payload)
		}
	})
}

// retryInfo is the descriptor of google.rpc.RetryInfo, built from its definition.
var retryInfo = sync.OnceValue(func() protoreflect.MessageDescriptor {
	duration := protodesc.ToFileDescriptorProto(durationpb.File_google_protobuf_duration_proto).GetName()
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("error_details.proto"), Syntax: proto.String("proto3"), Dependency: []string{duration},
		MessageType: []*descriptorpb.DescriptorProto{{
			Name: proto.String("RetryInfo"),
			Field: []*descriptorpb.FieldDescriptorProto{{
				Name: proto.String("retry_delay"), Number: proto.Int32(1), TypeName: proto.String(".google.protobuf.Duration"),
				Type: descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
			}},
		}},
	}, protoregistry.GlobalFiles)
	if err != nil {
		panic(err)
	}
	return file.Messages().Get(0)
})

// FuzzRetryDelay: for every input, the short reader of RetryInfo agrees with the protobuf
// library.
func FuzzRetryDelay(f *testing.F) {
	f.Add([]byte("\x0a\x03\x08\xac\x02"))                                 // 300 s
	f.Add([]byte("\x0a\x02\x08\x01\x0a\x04\x10\x80\xca\xb5\xee\x01"))     // in two parts
	f.Add([]byte("\x12\x01x\x0a\x02\x08\x01"))                            // after something else
	f.Add([]byte("\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")) // negative
	f.Add([]byte("\x0a\x0a\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f"))     // 292 billion years
	f.Add([]byte("\x0a\x09\x08\x01"))                                     // cut short
	f.Add([]byte("\x08\x01"))                                             // a number where the message should be
	f.Add([]byte("\x0b\x08\x01\x0c"))                                     // a group
	f.Add([]byte("\x0a\x00"))                                             // nothing
	f.Fuzz(func(t *testing.T, info []byte) {
		var want time.Duration
		message := dynamicpb.NewMessage(retryInfo())
		if proto.Unmarshal(info, message) == nil {
			var delay durationpb.Duration
			b, _ := proto.Marshal(message.Get(retryInfo().Fields().Get(0)).Message().Interface())
			if err := proto.Unmarshal(b, &delay); err != nil {
				t.Fatal(err)
			}
			want = min(max(delay.AsDuration(), 0), core.MaxBackoff)
		}
		if got := retryDelay(info); got != want {
			t.Errorf("retryDelay(%x) = %v, want %v", info, got, want)
		}
	})
}

// TestTransformWithoutNumber: a template that needs a number where the payload has none ends
// the job, with an error of class data. Nothing is sent.
func TestTransformWithoutNumber(t *testing.T) {
	template, err := expr.ParseTemplate(`{"id": {{ $.n | number }}}`)
	if err != nil {
		t.Fatal(err)
	}
	target := Target{URL: "http://127.0.0.1:1", Transform: template}
	for name, s := range map[string]worker.Sender{"http": newSender(t, newClient(t), target), "grpc": newGRPCSender(t, newClient(t), target)} {
		got := send(t, s, taken("J", `{"n": "twelve"}`))
		if checkFailure(t, got, 0, "data: transform: the hole at column 8: "); !got.Final || !got.Unsent {
			t.Errorf("%s: Send() = %+v, want it final and unsent", name, got)
		}
	}
}
