// Package sns opens the envelopes that Amazon SNS posts to HTTP endpoints. It verifies
// them, confirms subscriptions, and returns the published messages.
//
// The idea to know: a signature proves that some topic of Amazon sent a message, and anyone
// may own a topic. Only the list of topics in [Options].TopicARNs selects the operator's
// own. The envelope does not prove either where its certificate comes from. That proof is
// the fetch from exactly the host of the topic's own region. The file contains no chain to
// check, and the name in it differs between regions and is not checked.
//
// An envelope is checked in this order, and the first check that fails ends it:
//
//	JSON and fields ─▶ type ─▶ topic listed ─▶ form of signature and addresses
//	  ─▶ certificate ─▶ signature ─▶ SubscribeURL ─▶ confirmation
//
// All checks that need no fetch come before the first fetch. No fetch goes to an address of
// the sender's choice: the address of a certificate has a fixed form, and this package
// builds the address of a confirmation. Only SkipVerify, for emulators, permits others.
//
// Only verified data is used. The envelope is decoded once, with exact names, and refused
// if a name occurs twice. All signed fields except the message itself must be single lines:
// the signed text separates fields by line breaks without escaping. A publisher could
// otherwise move a line break, and give a message another id. MessageAttributes are not
// signed and not read.
//
// The age of a message is not limited: Amazon documents no bound, and a repeated message is
// found by its ID.
//
// sns knows nothing of HTTP except addresses. It imports core, core/endpoint, core/once,
// golang.org/x/sync and the standard library, without net/http.
//
// Source: https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html
package sns

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/eventgateway/gateway/core"
)

const (
	confirmTimeout = 10 * time.Second
	maxConfirm     = 64 << 10 // bytes of the answer to a confirmation
)

// ErrConfirmation is wrapped by the error of a genuine message whose subscription could not
// be confirmed. Amazon SNS sends the message again.
var ErrConfirmation = errors.New("subscription confirmation failed")

// A Fetch gets a URL and returns the status and the body. It follows no redirects, fails if
// the body is longer than limit bytes, and returns when ctx ends. Its errors contain
// nothing of the URL's query.
type Fetch func(ctx context.Context, url string, limit int64) (status int, body []byte, err error)

// Options of a Topic.
type Options struct {
	// TopicARNs are the topics whose messages are accepted; empty means the topics of every
	// owner.
	TopicARNs []string

	// SkipVerify accepts messages without checking their signature, and confirms a
	// subscription at any address that the message names. It is for emulators.
	SkipVerify bool

	// AllowPrivate is server.allow_private_urls. With SkipVerify it permits http://
	// addresses of confirmations. The dialler decides which hosts are permitted.
	AllowPrivate bool

	// Certificates are shared by all topics. Not needed with SkipVerify.
	Certificates *Certificates

	// Fetch makes the call that confirms a subscription.
	Fetch Fetch

	// Clock determines whether certificates are valid. Nil means the machine's clock.
	Clock core.Clock
}

// Type is the kind of a message.
type Type string

// The types of messages.
const (
	Notification             Type = "Notification"             // something was published
	SubscriptionConfirmation Type = "SubscriptionConfirmation" // a subscription, which Open has confirmed
	UnsubscribeConfirmation  Type = "UnsubscribeConfirmation"  // the subscription has ended
)

// A Message is the content of an envelope. All of it was signed, unless verification was
// skipped. All fields but Text are free of control characters.
type Message struct {
	Type      Type
	ID        string // the same when the message is sent again; not empty
	TopicARN  string // not empty
	Subject   string // of Notification only; empty if there is none
	Text      string // the published text of a Notification, in any format; otherwise a sentence for people
	Timestamp string // as it was sent, such as 2026-03-06T19:53:21.424Z
}

// A Topic opens envelopes. It is safe for concurrent use.
type Topic struct {
	options       Options
	confirmations budgets
}

// NewTopic makes a Topic.
func NewTopic(o Options) *Topic {
	if o.Clock == nil {
		o.Clock = core.SystemClock
	}
	return &Topic{options: o}
}

// Open decodes an envelope and verifies it. If the message asks for it, Open confirms the
// subscription, which takes up to 10 seconds. Confirming twice does no harm. The caller
// bounds the length of the body, and passes the client's address. The calls that a message
// causes, for its certificate and its confirmation, count against the budget of that
// address.
//
// A [core.Refusal] of kind Invalid or Unauthorized says that the envelope is not genuine.
// An error that wraps [ErrConfirmation] says that it is genuine, but that the subscription
// was not confirmed. Any other error says that the check itself failed.
func (t *Topic) Open(ctx context.Context, from netip.Addr, body []byte) (Message, error) {
	e, err := decode(body)
	if err != nil {
		return Message{}, err
	}
	if err := e.check(!t.options.SkipVerify); err != nil {
		return Message{}, err
	}
	if !t.takes(e["TopicArn"]) {
		return Message{}, forged("topic %.300q is not listed in topic_arns", e["TopicArn"])
	}
	if !t.options.SkipVerify {
		if err := t.verify(ctx, clientOf(from), e); err != nil {
			return Message{}, err
		}
	}
	if e.kind() == SubscriptionConfirmation {
		if err := t.confirm(ctx, clientOf(from), e); err != nil {
			return Message{}, err
		}
	}
	return e.message(), nil
}

func (t *Topic) takes(topic string) bool {
	return len(t.options.TopicARNs) == 0 || slices.Contains(t.options.TopicARNs, topic)
}

// confirm calls the address that confirms a subscription. Anyone can own a topic and repeat
// its messages, so confirmations have a budget.
func (t *Topic) confirm(ctx context.Context, from client, e envelope) error {
	url, err := t.confirmation(e)
	if err != nil {
		return err
	}
	if _, ok := t.confirmations.take(from, t.options.Clock()); !ok {
		return fmt.Errorf("%w: topic %.300q: %w", ErrConfirmation, e["TopicArn"], errNoBudget)
	}
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	status, _, err := t.options.Fetch(ctx, url, maxConfirm)
	if err == nil && status != 200 {
		err = fmt.Errorf("status %d", status)
	}
	if err != nil {
		return fmt.Errorf("%w: topic %.300q: %w", ErrConfirmation, e["TopicArn"], err)
	}
	return nil
}

// confirmation returns the address that confirms a subscription.
func (t *Topic) confirmation(e envelope) (string, error) {
	if t.options.SkipVerify {
		return givenConfirmation(e["SubscribeURL"], t.options.AllowPrivate)
	}
	return ownConfirmation(e)
}

// invalid refuses a body that is not a message of Amazon SNS.
func invalid(format string, args ...any) error {
	return refuse(core.Invalid, "Invalid SNS message", format, args...)
}

// unreadable refuses a signature with an invalid format.
func unreadable(format string, args ...any) error {
	return refuse(core.Invalid, "Invalid signature", format, args...)
}

// forged refuses a message with a wrong signature.
func forged(format string, args ...any) error {
	return refuse(core.Unauthorized, "Invalid signature", format, args...)
}

// refuse gives every caller the same few words, and the reason to the log.
func refuse(k core.Kind, message, format string, args ...any) error {
	return &core.Refusal{Kind: k, Message: message, Cause: fmt.Errorf(format, args...)}
}
