package intake

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/sns"
)

const topic = "arn:aws:sns:eu-west-1:123456789012:orders"

// envelopeOf is an SNS envelope; nothing of it is signed.
func envelopeOf(t testing.TB, fields map[string]string) string {
	t.Helper()
	all := map[string]string{
		"Type": "Notification", "MessageId": "22b80b92", "TopicArn": topic, "Message": "hello", "Timestamp": "2026-03-06T19:53:21.424Z",
		"SignatureVersion": "1", "Signature": "AAAA", "SigningCertURL": "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-7506a1e35b36ef5a444dd1a8e7cc3ed8.pem",
	}
	for name, value := range fields {
		all[name] = value
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func topicSource(fetched error) Source {
	return Source{Name: "topic", Kind: Topic, Topic: sns.NewTopic(sns.Options{
		SkipVerify: true,
		Fetch:      func(context.Context, string, int64) (int, []byte, error) { return 200, nil, fetched },
	})}
}

func TestNotifications(t *testing.T) {
	for name, tt := range map[string]struct{ message, subject, payload, eventType string }{
		"JSON":             {`{"type":"order.created", "n":1.0}`, "", `{"type":"order.created", "n":1.0}`, "order.created"},
		"type and subject": {`{"type":"a"}`, "b", `{"type":"a"}`, "a"},
		"EventBridge":      {`{"detail-type":"EC2 Instance State-change Notification","source":"aws.ec2"}`, "", `{"detail-type":"EC2 Instance State-change Notification","source":"aws.ec2"}`, "EC2_Instance_State-change_Notification"},
		"subject":          {`{"a":1}`, "order.paid", `{"a":1}`, "order.paid"},
		"unusable subject": {`{"a":1}`, "Hello you", `{"a":1}`, "event"},
		"no type":          {`[1]`, "", `[1]`, "event"},
		"text":             {"a \"quoted\" <text>\n", "", `"a \"quoted\" <text>\n"`, "event"},
		"number":           {"12", "", "12", "event"},
		"empty":            {"", "", `""`, "event"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDoor([]Source{topicSource(nil)})
			fields := map[string]string{"Message": tt.message}
			if tt.subject != "" {
				fields["Subject"] = tt.subject
			}
			if _, err := d.Receive(t.Context(), request(Topic, "topic", envelopeOf(t, fields), "Content-Type", "text/plain; charset=UTF-8")); err != nil {
				t.Fatal(err)
			}
			e := d.inbox.got[0].Event
			if string(e.Payload) != tt.payload || e.Type != tt.eventType || e.ContentType != "application/json" || e.DeliveryID != "22b80b92" {
				t.Errorf("payload %s, type %q, content type %q, delivery id %q, want payload %s, type %q", e.Payload, e.Type, e.ContentType, e.DeliveryID, tt.payload, tt.eventType)
			}
			want := map[string]string{"x-amz-sns-message-id": "22b80b92", "x-amz-sns-topic-arn": topic}
			if diff := cmp.Diff(want, e.Headers); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSubscriptions: messages about a subscription are answered and reported, and leave no event.
func TestSubscriptions(t *testing.T) {
	for kind, want := range map[string]struct {
		answer string
		fact   core.Fact
	}{
		"SubscriptionConfirmation": {"Subscription confirmed", core.Confirmed{Source: "topic", Topic: topic}},
		"UnsubscribeConfirmation":  {"Unsubscribe acknowledged", core.Unsubscribed{Source: "topic", Topic: topic}},
	} {
		d := newDoor([]Source{topicSource(nil)})
		body := envelopeOf(t, map[string]string{"Type": kind, "Token": "t", "SubscribeURL": "https://localhost.example/"})
		result, err := d.Receive(t.Context(), request(Topic, "topic", body))
		if err != nil || result.Answer != want.answer || len(d.inbox.got) != 0 {
			t.Errorf("%s: Receive() = %+v, %v with %d stored, want answer %q", kind, result, err, len(d.inbox.got), want.answer)
		}
		if diff := cmp.Diff([]core.Fact{want.fact}, d.facts); diff != "" {
			t.Errorf("%s: facts (-want +got):\n%s", kind, diff)
		}
	}
	d := newDoor([]Source{topicSource(errors.New("nobody is there"))})
	body := envelopeOf(t, map[string]string{"Type": "SubscriptionConfirmation", "Token": "t", "SubscribeURL": "https://localhost.example/"})
	if _, err := d.Receive(t.Context(), request(Topic, "topic", body)); !errors.Is(err, sns.ErrConfirmation) || !slices.Equal(d.facts, []core.Fact{core.TurnedAway{Source: "topic"}}) {
		t.Errorf("Receive() = %v, facts %v, want that it could not be confirmed, and was turned away", err, d.facts)
	}
}

// TestForgeries: only a message that cannot be verified is a fact, and rings the alarm.
func TestForgeries(t *testing.T) {
	strict := Source{Name: "strict", Kind: Topic, Topic: sns.NewTopic(sns.Options{
		Certificates: sns.NewCertificates(func(context.Context, string, int64) (int, []byte, error) { return 0, nil, errors.New("away") }, nil),
		TopicARNs:    []string{topic},
	})}
	for name, tt := range map[string]struct {
		body   string
		kind   core.Kind
		alarms int
	}{
		"another topic":       {envelopeOf(t, map[string]string{"TopicArn": topic + "2"}), core.Unauthorized, 1},
		"another certificate": {envelopeOf(t, map[string]string{"SigningCertURL": "https://evil.example/x.pem"}), core.Unauthorized, 1},
		"no signature at all": {envelopeOf(t, map[string]string{"Signature": "?"}), core.Invalid, 1},
		"no envelope":         {"{}", core.Invalid, 0},
		"no certificate":      {envelopeOf(t, nil), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			alarms := 0
			d := newDoor([]Source{strict})
			d.Alarm = func(context.Context, core.Unverified) { alarms++ }
			_, err := d.Receive(t.Context(), request(Topic, "strict", tt.body))
			if tt.kind == 0 && !errors.Is(err, ErrVerification) || tt.kind != 0 && !core.IsKind(err, tt.kind) || alarms != tt.alarms || len(d.facts) != 1 {
				t.Errorf("Receive() = %v with %d alarms and facts %v, want kind %d, %d alarms and a fact", err, alarms, d.facts, tt.kind, tt.alarms)
			}
			if _, forged := d.facts[0].(core.Unverified); forged != (tt.alarms > 0) {
				t.Errorf("fact %#v with %d alarms", d.facts[0], tt.alarms)
			}
		})
	}
}
