package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/eventgateway/gateway/cmd/gateway/internal/remote"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/verify"
)

// A letter is the request that a sender of a source would post.
type letter struct {
	path   []string // escaped segments
	query  string
	header http.Header
	body   []byte
}

// letter makes the request for a payload in the form of its source, without token or
// signature.
func (a *app) letter(source config.Source, eventType string, payload []byte) (letter, error) {
	// The form depends on the type of the source alone. Nothing here checks the source: the
	// gateway does, and send shows its answer.
	l := letter{header: http.Header{"Content-Type": {contentType(source, payload)}}, body: payload}
	switch source.Type {
	case "sns":
		return a.notification(source, eventType, payload)
	// A webhook has its type in a header; see typeHeader.
	case "webhook":
		l.path = []string{"webhooks", source.Name}
		l.header.Set(typeHeader(source), eventType)
		if source.Verify == "linear" {
			l.body = withTime(payload, linearTime, a.clock())
		}
		if source.Verify == "twilio" && l.header.Get("Content-Type") != formType {
			// Twilio signs the address and the fields of a form. For other bodies the address
			// holds their hash.
			sum := sha256.Sum256(payload)
			l.query = "bodySHA256=" + hex.EncodeToString(sum[:])
		}
	default:
		l.path = []string{"events", source.Name, remote.Segment(eventType)}
	}
	return l, nil
}

// linearTime is the member of Linear's webhooks with the time of sending.
const linearTime = "webhookTimestamp"

// withTime sets a member of a JSON object to a time in Unix milliseconds, and leaves the rest
// of the text unchanged. A payload that is no JSON object stays as it is.
func withTime(payload []byte, name string, at time.Time) []byte {
	d := json.NewDecoder(bytes.NewReader(payload))
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return payload
	}
	// The decoder gives the first and last byte of the value. Only these bytes are replaced,
	// since a test may be about spaces or the order of fields.
	value, members := strconv.FormatInt(at.UnixMilli(), 10), 0
	from, to := -1, -1
	for ; d.More(); members++ {
		key, err := d.Token()
		var raw json.RawMessage
		if err != nil || d.Decode(&raw) != nil {
			return payload
		}
		if key == name {
			to = int(d.InputOffset())
			from = to - len(raw)
		}
	}
	if _, err := d.Token(); err != nil {
		return payload
	}
	if from < 0 {
		from = int(d.InputOffset()) - 1
		to = from
		value = fmt.Sprintf("%q:%s", name, value)
		if members > 0 {
			value = "," + value
		}
	}
	return slices.Concat(payload[:from], []byte(value), payload[to:])
}

// target returns the URL of a letter below the address of the gateway.
func (l letter) target(base *url.URL) *url.URL {
	u := base.JoinPath(l.path...)
	u.RawQuery = l.query
	return u
}

const (
	// formType is the content type of a form. ceType is the header with the type of a
	// CloudEvent.
	formType = "application/x-www-form-urlencoded"
	ceType   = "Ce-Type"
)

// contentType returns the type of a payload. Text that is not JSON counts as a form if the
// provider sends forms.
func contentType(source config.Source, payload []byte) string {
	switch {
	case json.Valid(payload):
		return "application/json"
	case source.Verify == "twilio" || source.Verify == "slack":
		return formType
	case !utf8.Valid(payload):
		return "application/octet-stream"
	}
	return "text/plain; charset=utf-8"
}

// typeHeader returns the header for the type of a webhook. It is the provider's header, or the
// header of a CloudEvent for providers that have the type in the payload, since send does not
// change payloads.
func typeHeader(source config.Source) string {
	switch source.Verify {
	case "github":
		return "X-Github-Event"
	case "gitlab":
		return "X-Gitlab-Event"
	case "shopify":
		return "X-Shopify-Topic"
	}
	return ceType
}

// A notification is the envelope of Amazon SNS, with the fields that an emulator sets. Only
// Amazon can sign one.
type notification struct {
	Type      string
	MessageID string `json:"MessageId"`
	TopicARN  string `json:"TopicArn"`
	Subject   string
	Message   string
	Timestamp string
}

// anyTopic begins the topic of a notification for a source without configured topics.
const anyTopic = "arn:aws:sns:us-east-1:000000000000:"

// notification makes an envelope. The event type is its subject, where the gateway looks for
// the type if the payload has none.
func (a *app) notification(source config.Source, eventType string, payload []byte) (letter, error) {
	if !utf8.Valid(payload) {
		return letter{}, core.Refuse(core.Invalid, "the payload of a notification must be UTF-8")
	}
	topic := anyTopic + source.Name
	if len(source.TopicARNs) > 0 {
		topic = source.TopicARNs[0]
	}
	now := a.clock()
	n := notification{
		Type: "Notification", MessageID: string(core.NewIDs(a.clock).Next()), TopicARN: topic,
		Subject: eventType, Message: string(payload), Timestamp: now.UTC().Format("2006-01-02T15:04:05.000Z"),
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(n); err != nil {
		return letter{}, fmt.Errorf("put the payload into a notification: %w", err)
	}
	header := http.Header{}
	header.Set("Content-Type", "text/plain; charset=UTF-8")
	header.Set("X-Amz-Sns-Message-Type", n.Type)
	header.Set("X-Amz-Sns-Message-Id", n.MessageID)
	header.Set("X-Amz-Sns-Topic-Arn", n.TopicARN)
	return letter{path: []string{"sns", source.Name}, header: header, body: bytes.TrimSpace(b.Bytes())}, nil
}

// prove adds the proof that the source asks for: a token for an event source, a signature for
// a webhook.
func (a *app) prove(ctx context.Context, cfg *config.Config, source config.Source, l letter) error {
	switch {
	case source.Type == "event":
		given, err := a.token(ctx)
		if err != nil {
			return err
		}
		if token := cmp.Or(given, cfg.API.Granting(core.RoleSend).First()); token != "" {
			l.header.Set("Authorization", "Bearer "+token)
		}
	case source.Verify != "":
		if err := l.sign(cfg, source, core.NewIDs(a.clock).Next(), a.clock()); err != nil {
			return fmt.Errorf("sign for source %q: %w", source.Name, err)
		}
	}
	return nil
}

// sign signs a letter with the source's scheme.
func (l letter) sign(cfg *config.Config, source config.Source, id core.ID, now time.Time) error {
	// The first secret signs, like that of a sender; the others are accepted while secrets
	// change.
	secrets := make([]string, len(source.Secret))
	for i, s := range source.Secret {
		secrets[i] = s.Reveal()
	}
	scheme, err := verify.New(source.Verify, verify.Options{
		Secrets:         secrets,
		SignatureHeader: source.SignatureHeader,
		PublicURL:       cfg.Server.PublicURL != "",
	})
	if err != nil {
		return err
	}
	m := verify.Message{ID: string(id), ContentType: l.header.Get("Content-Type"), Body: l.body}
	// Some schemes sign the address as the sender knows it, which is the public one.
	if public, err := url.Parse(cfg.Server.PublicURL); err == nil && public.Host != "" {
		m.URL = l.target(public).String()
	}
	headers, err := scheme.Sign(m, now)
	if err != nil {
		return err
	}
	for name, value := range headers {
		l.header.Set(name, value)
	}
	return nil
}
