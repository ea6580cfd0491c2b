package web_test

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// TestCrossSite: a request that a browser sends for a page of another origin changes nothing.
// Requests of other programs, and of the gateway's own pages, are accepted as before.
func TestCrossSite(t *testing.T) {
	const subscription = `{"Type":"SubscriptionConfirmation","MessageId":"1","Token":"t","TopicArn":"arn:aws:sns:us-east-1:000000000000:local",` +
		`"Message":"m","Timestamp":"2026-11-20T12:00:00.000Z","SubscribeURL":"http://192.0.2.1/internal"}`
	for _, c := range []struct {
		name, method, path, body string
		header                   []string
		refused                  bool
	}{
		{"webhook", "POST", "/webhooks/plain", "{}", []string{"Sec-Fetch-Site", "cross-site"}, true},
		{"topic that is not verified", "POST", "/sns/topic", subscription, []string{"Sec-Fetch-Site", "cross-site", "Content-Type", "text/plain"}, true},
		{"topic, of an older browser", "POST", "/sns/topic", subscription, []string{"Origin", "https://evil.example", "Content-Type", "text/plain"}, true},
		{"sandboxed frame", "POST", "/events/a", "{}", []string{"Origin", "null"}, true},
		{"another subdomain", "POST", "/events/a", "{}", []string{"Sec-Fetch-Site", "same-site"}, true},
		{"something new", "POST", "/events/a", "{}", []string{"Sec-Fetch-Site", "moon"}, true},
		{"no route", "POST", "/nowhere", "{}", []string{"Sec-Fetch-Site", "cross-site"}, true},
		{"messages", "GET", "/api/queues/work/messages", "", []string{"Sec-Fetch-Site", "cross-site"}, true},
		{"ack", "POST", "/api/queues/work/ack", `{"ids":[]}`, []string{"Sec-Fetch-Site", "cross-site"}, true},

		{"no browser", "POST", "/webhooks/plain", "{}", nil, false},
		{"own origin", "POST", "/webhooks/plain", "{}", []string{"Sec-Fetch-Site", "same-origin", "Origin", "http://example.com"}, false},
		{"own origin behind a proxy", "POST", "/webhooks/plain", "{}", []string{"Sec-Fetch-Site", "same-origin", "Origin", "https://events.example"}, false},
		{"own origin, of an older browser", "POST", "/webhooks/plain", "{}", []string{"Origin", "http://example.com"}, false},
		{"typed by a person", "POST", "/webhooks/plain", "{}", []string{"Sec-Fetch-Site", "none"}, false},
		{"a link to what only looks", "GET", "/health", "", []string{"Sec-Fetch-Site", "cross-site"}, false},
		{"messages, typed by a person", "GET", "/api/queues/work/messages", "", []string{"Sec-Fetch-Site", "none"}, false},
		{"callback, whose token no page knows", "POST", "/callback/x", "{}", []string{"Sec-Fetch-Site", "cross-site"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
			for i := 0; i < len(c.header); i += 2 {
				r.Header.Set(c.header[i], c.header[i+1])
			}
			w := httptest.NewRecorder()
			newWorld(t).handler().ServeHTTP(w, r)
			explained := strings.Contains(w.Body.String(), "for a page of another origin")
			if (w.Code == 403) != c.refused || explained != c.refused {
				t.Errorf("%s %s = %d %s, refused should be %v", c.method, c.path, w.Code, w.Body, c.refused)
			}
		})
	}
}
