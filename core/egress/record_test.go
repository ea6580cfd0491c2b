package egress

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/expr"
)

// TestRecord: an exchange has the request that the receiver got, except for the texts that are masked.
func TestRecord(t *testing.T) {
	var got http.Header
	var body []byte
	var uri string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got, uri = r.Header.Clone(), r.RequestURI
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("Retry-After", "7")
		w.Header().Add("X-Seen", "the token t0k3n-of-billing is wrong")
		w.Header().Add("X-Seen", "twice")
		w.Header().Set("Set-Cookie", "sid=1234")
		w.WriteHeader(503)
	})
	job := taken("01HZY8Q4000000000000000JOB", `{"id": 7}`)
	s := newSender(t, newClient(t), Target{
		Name: "billing", URL: url + "/in?key=qu3ry-key&v=1&flag", Secrets: []string{vectorSecret}, Record: core.RecordHeaders,
		Headers: map[string]string{"Authorization": "Bearer t0k3n-of-billing", "X-Tenant": "a", "Accept": "application/json"},
	})
	x := send(t, s, job).Exchange
	if x == nil {
		t.Fatal("no exchange")
	}
	if want := url + "/in?key=***&v=***&***"; x.URL != want || x.Method != "POST" || x.Cut {
		t.Errorf("exchange = %s %s, cut %v, want POST %s", x.Method, x.URL, x.Cut, want)
	}
	if uri != "/in?key=qu3ry-key&v=1&flag" {
		t.Errorf("the receiver got %s", uri)
	}
	masked := map[string]bool{"Authorization": true, "X-Tenant": true}
	delete(got, "Content-Length") // net/http adds these two
	delete(got, "Accept-Encoding")
	for name, values := range got {
		want := strings.Join(values, ", ")
		if masked[name] {
			want = core.Masked
		}
		if x.Headers[name] != want {
			t.Errorf("recorded header %s = %q, want %q", name, x.Headers[name], want)
		}
	}
	if len(x.Headers) != len(got) {
		t.Errorf("recorded headers = %v, want those of %v", x.Headers, got)
	}
	for name, want := range map[string]string{"Retry-After": "7", "X-Seen": "the token *** is wrong, twice", "Set-Cookie": core.Masked} {
		if x.ReplyHeaders[name] != want {
			t.Errorf("header %s of the reply = %q, want %q", name, x.ReplyHeaders[name], want)
		}
	}
	sum := sha256.Sum256(body)
	if x.BodySize != len(body) || x.BodySHA256 != hex.EncodeToString(sum[:]) || x.KeptBody != 0 || x.Body != "" {
		t.Errorf("body = %d bytes, SHA-256 %s, kept %d %q; the receiver got %q", x.BodySize, x.BodySHA256, x.KeptBody, x.Body, body)
	}
}

// TestRecordBodies: only record all keeps a body, and only a body that is not the payload.
func TestRecordBodies(t *testing.T) {
	url := serve(t, func(http.ResponseWriter, *http.Request) {})
	template, err := expr.ParseTemplate(`{"t": {{ $.text }}}`)
	if err != nil {
		t.Fatal(err)
	}
	long := `{"text": "` + strings.Repeat("é", core.MaxSentBody) + `"}`
	for name, c := range map[string]struct {
		target  Target
		payload string
		size    int // of the body
		kept    int
	}{
		"none":           {Target{Record: core.RecordNone, Transform: template}, `{"text": "a"}`, -1, 0},
		"headers":        {Target{Record: core.RecordHeaders, Transform: template}, `{"text": "a"}`, 10, 0},
		"payload":        {Target{Record: core.RecordAll}, `{"text": "a"}`, 13, 0},
		"transform":      {Target{Record: core.RecordAll, Transform: template}, `{"text": "a"}`, 10, 10},
		"made elsewhere": {Target{Record: core.RecordAll, MadeBody: true}, `{"text": "a"}`, 13, 13},
		"no body":        {Target{Record: core.RecordAll, Method: "GET", MadeBody: true}, `{"text": "a"}`, 0, 0},
		"no text":        {Target{Record: core.RecordAll, MadeBody: true}, "a\xff\x00", 3, 0},
		"long":           {Target{Record: core.RecordAll, MadeBody: true}, long, len(long), core.MaxSentBody},
		"long and odd":   {Target{Record: core.RecordAll, MadeBody: true}, "x" + long, len(long) + 1, core.MaxSentBody - 1},
	} {
		c.target.URL = url
		x := send(t, newSender(t, newClient(t), c.target), taken("01HZY8Q4000000000000000JOB", c.payload)).Exchange
		switch {
		case c.size < 0 && x != nil:
			t.Errorf("%s: exchange = %+v, want none", name, *x)
		case c.size < 0:
		case x == nil:
			t.Errorf("%s: no exchange", name)
		case x.BodySize != c.size || x.KeptBody != c.kept || len(x.Body) != c.kept || c.kept > 0 && c.target.Transform == nil && !strings.HasPrefix(c.payload, x.Body):
			t.Errorf("%s: size %d, kept %d of %d, want %d and %d", name, x.BodySize, len(x.Body), x.KeptBody, c.size, c.kept)
		}
	}
}

// TestRecordTellsMasksApart: an exchange says where three asterisks were sent as they are. A value with
// both asterisks and a secret is masked whole.
func TestRecordTellsMasksApart(t *testing.T) {
	r := newRecorder(core.RecordHeaders, map[string]string{"X-Own": "***", "X-Token": "t0k3n-of-billing"}, nil)
	header := map[string][]string{"X-Own": {"***"}, "Cookie": {"***"}, "X-Stars": {"a", "***"}, "X-Echo": {"t0k3n-of-billing"}, "X-Both": {"*** t0k3n-of-billing"}, "X-Plain": {"**"}}
	for u, want := range map[string][]string{
		"https://example.com/a?k=***":                   {"X-Stars"},
		"https://example.com/***?k=1":                   {"X-Stars", core.UnmaskedURL},
		"https://example.com/a?***=1":                   {"X-Stars", core.UnmaskedURL},
		"https://example.com/t0k3n-of-billing/***?k=12": {"X-Stars"},
	} {
		parsed, err := url.Parse(u)
		if err != nil {
			t.Fatal(err)
		}
		x := r.sent("POST", parsed, header, nil, false)
		if !slices.Equal(x.Unmasked, want) {
			t.Errorf("%s: unmasked = %q, want %q", u, x.Unmasked, want)
		}
		for name, value := range map[string]string{"X-Own": core.Masked, "Cookie": core.Masked, "X-Stars": "a, ***", "X-Echo": core.Masked, "X-Both": core.Masked, "X-Plain": "**"} {
			if x.Headers[name] != value {
				t.Errorf("%s: header %s = %q, want %q", u, name, x.Headers[name], value)
			}
		}
	}
}

// TestRecordWithoutReply: the request of an attempt without a reply is kept. Of a secret URL only
// the host is.
func TestRecordWithoutReply(t *testing.T) {
	s := newSender(t, newClient(t), Target{URL: "http://127.0.0.1:1/services/T0/s3cret", Record: core.RecordAll, SecretURL: true})
	x := send(t, s, taken("01HZY8Q4000000000000000JOB", "{}")).Exchange
	if x == nil || x.URL != "http://127.0.0.1:1/***" || x.ReplyHeaders != nil {
		t.Errorf("exchange = %+v, want one with the host alone and without a reply", x)
	}
}

// TestRecordIsBounded: however much a receiver sends, an exchange stays small, and says so.
func TestRecordIsBounded(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("A-Long", strings.Repeat("é\xff", 5000))
		for _, c := range "abcdefghijklmnop" {
			w.Header().Set("X-"+string(c), strings.Repeat("x", 1000))
		}
	})
	x := send(t, newSender(t, newClient(t), Target{URL: url + "/" + strings.Repeat("p", 3000), Record: core.RecordHeaders}), taken("01HZY8Q4000000000000000JOB", "{}")).Exchange
	size := 0
	for name, value := range x.ReplyHeaders {
		size += len(name) + len(value)
	}
	if !x.Cut || size > core.MaxHeaders || size < core.MaxHeaders/2 || len(x.URL) != core.MaxSentURL || len(x.ReplyHeaders["A-Long"]) > core.MaxHeaderValue {
		t.Errorf("cut %v, %d bytes of headers, %d of the URL", x.Cut, size, len(x.URL))
	}
}

// TestNoSecretIsRecorded: no stored text contains a configured secret, wherever a receiver or a
// transform repeats it.
func TestNoSecretIsRecorded(t *testing.T) {
	secret := rapid.StringMatching(`[A-Za-z0-9+/=_.~-]{6,40}`)
	rapid.Check(t, func(t *rapid.T) {
		token, key, query, name := secret.Draw(t, "token"), secret.Draw(t, "key"), secret.Draw(t, "query"), rapid.SampledFrom([]string{"Authorization", "X-Custom", "Cookie", "x-lower"}).Draw(t, "name")
		prefix := rapid.SampledFrom([]string{"", "Bearer ", "Basic  "}).Draw(t, "prefix")
		how := rapid.SampledFrom([]core.Recording{core.RecordHeaders, core.RecordAll}).Draw(t, "how")
		r := newRecorder(how, map[string]string{name: prefix + token}, []string{key})
		u := parsed(t, "https://example.com/"+rapid.SampledFrom([]string{"in", token}).Draw(t, "path")+"?k="+strings.ReplaceAll(query, "+", "%2B"))
		echo := rapid.SampledFrom([]string{token, key, query, prefix + token, "x" + token + key + query + "y", u.String()})
		x := r.sent("POST", u, map[string][]string{name: {prefix + token}, "X-Other": {echo.Draw(t, "other")}}, []byte("<"+echo.Draw(t, "body")+">"), true)
		r.answered(x, u, map[string][]string{"Location": {echo.Draw(t, "location"), echo.Draw(t, "again")}, "X-" + token: {"name"}})
		stored, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{token, key, query} {
			if strings.Contains(string(stored), s) && !strings.Contains(`{"Method":"POST","URL":"https://example.com/in?k=***","Headers":{"Authorization":"***","X-Custom":"***","Cookie":"***","x-lower":"***","X-Other":""},"ReplyHeaders":{"Location":"","X-***":"name"},"Cut":false,"BodySize":2,"BodySHA256":"`+x.BodySHA256+`","KeptBody":0,"Body":""}`, s) {
				t.Fatalf("%q is in %s", s, stored)
			}
		}
	})
}

// parsed returns a URL as the configuration gives it.
func parsed(t *rapid.T, text string) *url.URL {
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// BenchmarkRecord measures the cost of an attempt's exchange, without storing it: a signed
// delivery of 1 KB with 19 headers, and a reply with 7.
func BenchmarkRecord(b *testing.B) {
	u, _ := url.Parse("https://example.com/in")
	sent, reply := http.Header{}, http.Header{}
	for i := range 19 {
		sent["X-Gateway-Header-"+string(rune('a'+i))] = []string{"01HZY0000000000000000000JB"}
	}
	for i := range 7 {
		reply["X-Reply-Header-"+string(rune('a'+i))] = []string{"text/plain; charset=utf-8"}
	}
	body := []byte(strings.Repeat("x", 1024))
	for _, how := range []core.Recording{core.RecordNone, core.RecordHeaders, core.RecordAll} {
		b.Run(string(how), func(b *testing.B) {
			r := newRecorder(how, map[string]string{"Authorization": "Bearer t0k3n-of-billing"}, []string{vectorSecret})
			b.ReportAllocs()
			for b.Loop() {
				x := r.sent("POST", u, sent, body, true)
				r.answered(x, u, reply)
			}
		})
	}
}
