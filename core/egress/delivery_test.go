package egress

import (
	"cmp"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/expr"
)

// A request as a handler sees it.
type request struct {
	method, path, host, body string
	length                   int64
	header                   map[string]string
}

// deliver makes one delivery at 1614265330.9 s and returns the received request.
func deliver(t *testing.T, target Target, job core.TakenJob) request {
	t.Helper()
	arrived := make(chan request, 1)
	target.URL = serve(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		header := map[string]string{}
		for name, values := range r.Header {
			header[strings.ToLower(name)] = strings.Join(values, " | ")
		}
		arrived <- request{r.Method, r.RequestURI, r.Host, string(body), r.ContentLength, header}
	}) + target.URL
	client := newClient(t)
	client.clock = func() time.Time { return time.UnixMilli(1_614_265_330_900) }
	if got := send(t, newSender(t, client, target), job); !got.OK {
		t.Fatalf("Send() = %+v, want it delivered", got)
	}
	got := <-arrived
	if "http://"+got.host+strings.TrimPrefix(target.URL, "http://"+got.host) != target.URL {
		t.Errorf("Host: %s, want that of %s", got.host, target.URL)
	}
	return got
}

// TestDeliveryGolden holds every header of a delivery.
func TestDeliveryGolden(t *testing.T) {
	job := taken("01HZY8Q4000000000000000JOB", vectorBody)
	job.Event.Headers = map[string]string{
		"traceparent":      "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"tracestate":       "vendor=1",
		"x-github-event":   "push",
		"x-other-provider": "kept with the event, not sent",
	}
	got := deliver(t, Target{
		Name: "billing", URL: "/hook?token=abc", Headers: map[string]string{"x-api-key": "k", "Authorization": "Bearer t"},
		Secrets: []string{vectorSecret},
	}, job)
	signer, _ := newSigner([]string{vectorSecret})
	want := request{
		method: "POST", path: "/hook?token=abc", host: got.host, body: vectorBody, length: int64(len(vectorBody)),
		header: map[string]string{
			"content-length":       "20",
			"content-type":         "application/json",
			"user-agent":           "gateway/1.2.3",
			"x-gateway-event-id":   "01HZY8Q4000000000000000EVT",
			"x-gateway-job-id":     "01HZY8Q4000000000000000JOB",
			"x-gateway-handler":    "billing",
			"x-gateway-attempt":    "2",
			"x-gateway-hops":       "1",
			"x-gateway-event-type": "order.created",
			"x-gateway-source":     "shop",
			"ce-specversion":       "1.0",
			"ce-id":                "01HZY8Q4000000000000000EVT",
			"ce-source":            "/sources/shop",
			"ce-type":              "order.created",
			"ce-time":              "2024-06-10T06:13:20.120Z",
			"traceparent":          "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
			"tracestate":           "vendor=1",
			"webhook-id":           "01HZY8Q4000000000000000JOB",
			"webhook-timestamp":    vectorTimestamp,
			"webhook-signature":    signer.sign("01HZY8Q4000000000000000JOB", vectorTimestamp, []byte(vectorBody)),
			"x-api-key":            "k",
			"authorization":        "Bearer t",
		},
	}
	if diff := gocmp.Diff(want, got, gocmp.AllowUnexported(request{})); diff != "" {
		t.Errorf("delivered (-want +got):\n%s", diff)
	}
}

// TestDeliveredSignature holds the published vector of Standard Webhooks, over the network.
func TestDeliveredSignature(t *testing.T) {
	got := deliver(t, Target{Secrets: []string{vectorSecret, "old"}}, taken(vectorID, vectorBody))
	signatures := strings.Fields(got.header["webhook-signature"])
	if len(signatures) != 2 || signatures[0] != vectorSignature {
		t.Errorf("webhook-signature: %s, want %s and another", got.header["webhook-signature"], vectorSignature)
	}
}

func TestMethods(t *testing.T) {
	for _, method := range []string{"", "POST", "PUT", "PATCH", "DELETE"} {
		got := deliver(t, Target{Method: method}, taken("J", "{}"))
		if got.method != cmp.Or(method, "POST") || got.body != "{}" || got.header["content-length"] != "2" {
			t.Errorf("method %q: delivered %+v", method, got)
		}
	}
	got := deliver(t, Target{Method: "GET", Secrets: []string{"s"}}, taken("J", "{}"))
	signer, _ := newSigner([]string{"s"})
	if got.method != "GET" || got.body != "" || got.header["content-type"] != "" || got.header["content-length"] != "" ||
		got.header["webhook-signature"] != signer.sign("J", vectorTimestamp, nil) {
		t.Errorf("GET: delivered %+v, want no body and the signature of none", got)
	}
	if got := deliver(t, Target{}, taken("J", "")); got.header["content-length"] != "0" {
		t.Errorf("empty payload: delivered %+v, want content-length: 0", got)
	}
}

func TestContentType(t *testing.T) {
	for _, c := range []struct{ given, payload, want string }{
		{"text/csv", "a,b", "text/csv"},
		{"", `{"a":1}`, "application/json"},
		{"", "hello", "text/plain; charset=utf-8"},
		{"", "", "text/plain; charset=utf-8"},
		{"text/plain\r\nx: y", "{}", "application/json"},
	} {
		job := taken("J", c.payload)
		job.Event.ContentType = c.given
		if got := deliver(t, Target{}, job).header["content-type"]; got != c.want {
			t.Errorf("content type %q, payload %q: delivered as %q, want %q", c.given, c.payload, got, c.want)
		}
	}
}

// TestOpaquePayloads: bytes are delivered as they came; an event without data has no body and no
// content type of the gateway's own.
func TestOpaquePayloads(t *testing.T) {
	for _, c := range []struct{ payload, contentType, want string }{
		{"\x89PNG\x00\xff", "image/png", "image/png"},
		{"\x89PNG\x00\xff", "", "application/octet-stream"},
	} {
		job := taken("J", c.payload)
		job.Event.Binary, job.Event.ContentType = true, c.contentType
		if got := deliver(t, Target{}, job); got.body != c.payload || got.header["content-type"] != c.want {
			t.Errorf("%q: delivered %q as %q, want %q", c.payload, got.body, got.header["content-type"], c.want)
		}
	}
	template, err := expr.ParseTemplate(`{"all": {{$}}}`)
	if err != nil {
		t.Fatal(err)
	}
	job := taken("J", "\xff")
	job.Event.Binary = true
	if got := deliver(t, Target{Transform: template}, job); got.body != `{"all": null}` || got.header["content-type"] != "application/json" {
		t.Errorf("a transform of bytes: delivered %+v, want null", got)
	}
	job = taken("J", "")
	job.Event.ContentType = ""
	job.Event.Headers = map[string]string{"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/s", "ce-type": "t"}
	got := deliver(t, Target{}, job)
	if _, there := got.header["content-type"]; there || got.body != "" || got.header["content-length"] != "0" {
		t.Errorf("no data: delivered %+v, want neither body nor content type", got)
	}
	job.Event.ContentType = "application/json"
	if got := deliver(t, Target{}, job); got.header["content-type"] != "application/json" {
		t.Errorf("no data of a type: delivered as %q, want the type that it came with", got.header["content-type"])
	}
}

func TestCloudEvents(t *testing.T) {
	own := map[string]string{
		"ce-specversion": "1.0", "ce-id": "01HZY8Q4000000000000000EVT", "ce-source": "/sources/shop",
		"ce-type": "order.created", "ce-time": "2024-06-10T06:13:20.120Z",
	}
	foreign := map[string]string{
		"ce-specversion": "1.0", "ce-id": "A234-1234-1234", "ce-source": "https://github.com/cloudevents",
		"ce-type": "com.example.someevent", "ce-tenant": "Caf%C3%A9 %25", "ce-subject": "123",
	}
	with := func(m map[string]string, pairs ...string) map[string]string {
		m = maps.Clone(m)
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = pairs[i+1]
		}
		return m
	}
	without := func(m map[string]string, name string) map[string]string {
		m = maps.Clone(m)
		delete(m, name)
		return m
	}
	for name, c := range map[string]struct{ headers, want map[string]string }{
		"not a CloudEvent":             {nil, own},
		"a CloudEvent":                 {foreign, foreign},
		"a CloudEvent with a time":     {with(foreign, "ce-time", "2018-04-05T17:31:00Z"), with(foreign, "ce-time", "2018-04-05T17:31:00Z")},
		"datacontenttype":              {with(foreign, "ce-datacontenttype", "text/xml"), foreign},
		"not a name":                   {with(foreign, "ce-", "x", "ce-a b", "x", "ce-a-b", "x", "ce-é", "x"), foreign},
		"not a value":                  {with(foreign, "ce-note", "a\r\nx: é"), with(foreign, "ce-note", "a%0D%0Ax: %C3%A9")},
		"many extensions":              {with(foreign, extensions()...), with(foreign, extensions()...)},
		"only a type":                  {map[string]string{"ce-type": "x", "ce-time": "y"}, own},
		"only a type and an extension": {map[string]string{"ce-type": "x", "ce-tenant": "t"}, with(own, "ce-tenant", "t")},
		"no id":                        {without(foreign, "ce-id"), with(own, "ce-tenant", "Caf%C3%A9 %25", "ce-subject", "123")},
		"no specversion":               {without(foreign, "ce-specversion"), with(own, "ce-tenant", "Caf%C3%A9 %25", "ce-subject", "123")},
	} {
		t.Run(name, func(t *testing.T) {
			job := taken("J", "{}")
			job.Event.Headers = c.headers
			got := deliver(t, Target{}, job).header
			maps.DeleteFunc(got, func(name, _ string) bool { return !strings.HasPrefix(name, "ce-") })
			if diff := gocmp.Diff(c.want, got); diff != "" {
				t.Errorf("delivered (-want +got):\n%s", diff)
			}
		})
	}
}

// extensions returns more CloudEvents extensions than a delivery allocates room for.
func extensions() (pairs []string) {
	for c := 'a'; c <= 'z'; c++ {
		pairs = append(pairs, "ce-x"+string(c), string(c))
	}
	return pairs
}

func TestTraceContext(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, c := range []struct{ parent, state, wantParent, wantState string }{
		{"", "", "", ""},
		{"", "a=1", "", ""},
		{parent, "", parent, ""},
		{parent, "a=1,b=2", parent, "a=1,b=2"},
		{parent, strings.Repeat("a", 513), parent, ""},
		{parent, "a=\x00", parent, ""},
		{parent[:54], "a=1", "", ""},
		{parent + "-00", "a=1", "", ""},
		{"cc" + parent[2:] + "-what-the-future-brings", "a=1", "cc" + parent[2:] + "-what-the-future-brings", "a=1"},
		{"cc" + parent[2:] + ".no", "a=1", "", ""},
		{"ff" + parent[2:], "a=1", "", ""},
		{strings.ToUpper(parent), "a=1", "", ""},
		{"00-00000000000000000000000000000000-b7ad6b7169203331-01", "a=1", "", ""},
		{"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", "a=1", "", ""},
		{"00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333g-01", "a=1", "", ""},
		{"00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01", "a=1", "", ""},
	} {
		job := taken("J", "{}")
		job.Event.Headers = map[string]string{"traceparent": c.parent, "tracestate": c.state}
		got := deliver(t, Target{}, job).header
		if got["traceparent"] != c.wantParent || got["tracestate"] != c.wantState {
			t.Errorf("traceparent %q, tracestate %q: delivered %q, %q", c.parent, c.state, got["traceparent"], got["tracestate"])
		}
	}
}

func TestOwnHeadersWin(t *testing.T) {
	got := deliver(t, Target{Headers: map[string]string{
		"content-type": "application/vnd.acme+json", "USER-AGENT": "acme", "ce-type": "mine", "x-gateway-source": "", "idempotency-key": "k",
	}}, taken("J", "{}")).header
	for name, want := range map[string]string{
		"content-type": "application/vnd.acme+json", "user-agent": "acme", "ce-type": "mine", "x-gateway-source": "", "idempotency-key": "k",
	} {
		if got[name] != want {
			t.Errorf("%s: %q, want the handler's own %q", name, got[name], want)
		}
	}
}

func TestTargetRefused(t *testing.T) {
	client := newClient(t)
	for name, target := range map[string]Target{
		"url":              {URL: "ftp://example.com"},
		"credentials":      {URL: "http://user:s3cret@example.com"},
		"unparsable url":   {URL: "http://example.com/%zz?s3cret"},
		"odd host":         {URL: "http://0x7f.1/?s3cret"},
		"method":           {URL: "http://example.com", Method: "TRACE"},
		"method's case":    {URL: "http://example.com", Method: "post"},
		"reserved header":  {URL: "http://example.com", Headers: map[string]string{"host": "s3cret"}},
		"header injection": {URL: "http://example.com", Headers: map[string]string{"x": "s3cret\r\ny: z"}},
		"blank secret":     {URL: "http://example.com", Secrets: []string{" "}},
		"one bad secret":   {URL: "http://example.com", Secrets: []string{"good", "whsec_s3cret!"}},
	} {
		target.Name = "billing"
		_, err := client.HTTP(target)
		if err == nil || !strings.HasPrefix(err.Error(), `handler "billing": `) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: HTTP() = %v, want an error that names the handler and tells no secret", name, err)
		}
	}
}

// TestConcurrentDeliveries: deliveries of one handler share only values that never change.
func TestConcurrentDeliveries(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if id := r.Header.Get("X-Gateway-Job-Id"); id != string(body) || r.Header.Get("Webhook-Id") != id {
			w.WriteHeader(http.StatusConflict)
		}
		w.Write(body)
	})
	s := newSender(t, newClient(t), Target{URL: url, Secrets: []string{"s"}})
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for n := range 50 {
				id := strings.Repeat(string(rune('A'+worker)), n+1)
				if got := send(t, s, taken(core.ID(id), id)); !got.OK || got.Response != id {
					t.Errorf("Send(%s) = %+v", id, got)
				}
			}
		})
	}
	wg.Wait()
}
