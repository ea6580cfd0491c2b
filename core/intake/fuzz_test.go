package intake

import (
	"bytes"
	"errors"
	"log/slog"
	"net/textproto"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/expr"
)

// FuzzReceive: each request either is refused with a text for its sender, or leaves an event that
// every store can hold and that keeps no credentials.
func FuzzReceive(f *testing.F) {
	add := func(source int, contentType, name, value, body string) {
		f.Add(source, contentType, name, value, []byte(body))
	}
	add(0, "application/json", "X-Github-Event", "push", `{"action":"opened"}`)
	add(1, "application/x-www-form-urlencoded", "X-Gitlab-Event", "Push Hook", `payload=%7B%22type%22%3A1%7D`)
	add(5, "application/json", "X-Slack-Signature", "v0=1", `{"type":"event_callback","event":{"type":"message"}}`)
	add(5, "application/json", "Cookie", "a=b", `{"type":"url_verification","challenge":"x"}`)
	add(9, "application/cloudevents+json", "Ce-Id", "1", `{"specversion":"1.0","id":"1","source":"/","type":"t","data_base64":"aGk="}`)
	add(11, "text/plain", "X-Amz-Sns-Message-Type", "Notification", envelopeOf(f, nil))
	add(11, "text/plain", "Ce-Id", "1", envelopeOf(f, map[string]string{"Type": "SubscriptionConfirmation", "SubscribeURL": "https://a.example/", "Token": "t"}))
	add(10, "text/plain", "Ce-Tenant", "%ff", "\x00")
	add(10, "application/cloudevents-batch+json", "Idempotency-Key", "k", "[]")
	stateless := append(providerSources(), Source{Name: "plain", Kind: Webhook}, Source{Name: "own", Kind: Event})
	f.Fuzz(func(t *testing.T, n int, contentType, name, value string, body []byte) {
		// A topic of its own for each input: confirmations have a budget, which many inputs use up.
		sources := append(slices.Clone(stateless), topicSource(nil))
		s := sources[(n%len(sources)+len(sources))%len(sources)]
		var log bytes.Buffer
		d := newDoor(sources, Consumer{Lane: "handler/a", Source: s.Name, MaxAttempts: 1, Key: keyed, Lines: Lines{Key: keyed, Limit: 1}})
		r := request(s.Kind, s.Name, string(body), "Content-Type", contentType, name, value, "Authorization", "Bearer x")
		d.Log = slog.New(slog.NewTextHandler(&log, nil))
		result, err := d.Receive(t.Context(), r)
		if lines := bytes.Count(log.Bytes(), []byte("\n")); lines > 2 {
			t.Fatalf("one request left %d lines in the log:\n%.500s", lines, log.String())
		}
		if err != nil {
			var refusal *core.Refusal
			if !errors.As(err, &refusal) || refusal.Message == "" || !utf8.ValidString(refusal.Message) || len(d.inbox.got) != 0 {
				t.Fatalf("Receive() = %v with %d stored, want a refusal and none", err, len(d.inbox.got))
			}
			return
		}
		if result.Answer != "" {
			if s.Provider != "slack" && s.Kind != Topic || len(d.inbox.got) != 0 {
				t.Fatalf("answered %q to %q, %d stored", result.Answer, body, len(d.inbox.got))
			}
			return
		}
		e := d.inbox.got[0].Event
		if !ValidType(e.Type) || !readable(e.Payload) || !clean(e.DeliveryID, maxDeliveryID) || !clean(e.ContentType, maxContentType) || !clean(d.inbox.got[0].Jobs[0].Key, maxDeliveryID) || !clean(d.inbox.got[0].Jobs[0].Line.Key, core.MaxLineKey) {
			t.Fatalf("stored %+v", e)
		}
		for name, value := range e.Headers {
			if _, known := kept[textproto.CanonicalMIMEHeaderKey(name)]; !known && !strings.HasPrefix(name, "ce-") && !strings.HasPrefix(name, "x-amz-sns-") || !clean(value, maxHeaderBytes) || name != strings.ToLower(name) {
				t.Fatalf("kept header %q: %q", name, value)
			}
		}
	})
}

var keyed = mustPath("$.id")

func mustPath(s string) *expr.Path {
	p, err := expr.ParsePath(s)
	if err != nil {
		panic(err)
	}
	return p
}
