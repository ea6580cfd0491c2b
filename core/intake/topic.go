package intake

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/expr"
	"github.com/eventgateway/gateway/core/sns"
)

// The replies to messages of a topic that are not notifications.
const (
	subscribed   = "Subscription confirmed"
	unsubscribed = "Unsubscribe acknowledged"
)

// receiveTopic opens an envelope of Amazon SNS. A message about the subscription has no
// event.
func (in *Intake) receiveTopic(ctx context.Context, s Source, r Request) (Result, error) {
	// Open verifies the signature, and confirms a subscription by a call to Amazon. If
	// that call fails, the sender is genuine: the error is not one of verification.
	m, err := s.Topic.Open(ctx, r.ClientIP, r.Body)
	if errors.Is(err, sns.ErrConfirmation) {
		return Result{}, err
	}
	if err := in.verified(ctx, s, r, err); err != nil {
		return Result{}, err
	}
	switch m.Type {
	case sns.SubscriptionConfirmation:
		in.Observe(core.Confirmed{Source: s.Name, Topic: m.TopicARN})
		return Result{Answer: subscribed}, nil
	case sns.UnsubscribeConfirmation:
		in.Observe(core.Unsubscribed{Source: s.Name, Topic: m.TopicARN})
		return Result{Answer: unsubscribed}, nil
	}
	// The body was parsed to verify it. take does the rest under the limit for large
	// bodies.
	return in.take(ctx, s, r, func() (letter, error) { return in.notification(s, m) })
}

// notification makes a letter of a published message: its text if that is JSON, else the
// text as a JSON string. The headers of an SNS request are not signed, so the kept headers
// come from the envelope.
func (in *Intake) notification(s Source, m sns.Message) (letter, error) {
	l := letter{
		payload: []byte(m.Text), contentType: "application/json", deliveryID: bounded(m.ID),
		headers: map[string]string{"x-amz-sns-message-id": m.ID, "x-amz-sns-topic-arn": m.TopicARN},
	}
	// Every payload of a topic is JSON, so that filters can be written for all of them.
	if !json.Valid(l.payload) {
		l.payload = []byte(expr.Canonical(m.Text))
	}
	if !readable(l.payload) {
		return letter{}, errNotUTF8
	}
	// A header that could not be stored as text is left out: the event matters more.
	for name, value := range l.headers {
		if !clean(value, maxHeaderValue) {
			delete(l.headers, name)
		}
	}
	e := envelope{source: s, log: in.Log}
	l.eventType = e.topicType(m, l.payload)
	return l, nil
}

// topicType returns the type that the payload names, or the subject. EventBridge's types
// have blanks.
func (e *envelope) topicType(m sns.Message, payload []byte) string {
	object, _ := expr.NewDocument(payload, "application/json").Value().(map[string]any)
	if t, _ := object["type"].(string); t != "" {
		return e.usable(t, "type")
	}
	if t, _ := object["detail-type"].(string); t != "" {
		return e.usable(strings.ReplaceAll(t, " ", "_"), "detail-type")
	}
	// A subject with blanks is no valid type, and becomes the fallback type.
	if m.Subject != "" {
		return e.usable(m.Subject, "Subject")
	}
	return fallbackType
}
