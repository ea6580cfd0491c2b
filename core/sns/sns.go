// Package sns opens the envelopes that Amazon SNS posts to HTTP endpoints: it
// says whether one is genuine, confirms subscriptions, and hands on what was
// published.
//
// The idea to know: a signature proves that some topic of Amazon's sent this, not
// that it was yours, and everybody may have a topic. What names you is the list
// of topics in [Options].TopicARNs. Nor does the envelope prove where its
// certificate comes from: that rests on fetching it from exactly the host of the
// topic's own region. The file holds no chain, so there is none to check, and the
// name in it differs from region to region and is not judged.
//
// An envelope is checked in this order, and the first check that fails ends it:
//
//	JSON and fields ─▶ type ─▶ topic listed ─▶ form of signature and addresses
//	  ─▶ certificate ─▶ signature ─▶ SubscribeURL ─▶ confirmation
//
// Nothing is fetched while anything is left that can be judged without it, and
// nothing ever from an address of the sender's choice: that of a certificate has a
// fixed form, and that of a confirmation is put together here. Only SkipVerify,
// for emulators, lets go of that.
//
// What is used is what was verified. The envelope is decoded once, with exact
// names, and refused if a name is there twice. All signed fields but the message
// itself are held to one line: the signed text separates fields by line breaks
// without escaping any, so whoever may publish could move one otherwise, and
// give a message another id. MessageAttributes are not signed and not read.
//
// How old a message may be is not limited: Amazon documents no bound, and a
// repeated one is found by its ID.
//
// sns knows nothing of HTTP but addresses; it imports core, core/endpoint,
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

// ErrConfirmation is wrapped by errors of subscriptions whose message was in
// order, but which could not be confirmed. Amazon SNS sends the message again.
var ErrConfirmation = errors.New("subscription confirmation failed")

// A Fetch gets a URL and returns what the answer's status line and body say. It
// follows no redirects, fails if the body is longer than limit bytes, and returns
// when ctx ends. Its errors hold nothing of the URL's query.
type Fetch func(ctx context.Context, url string, limit int64) (status int, body []byte, err error)

// Options of a Topic.
type Options struct {
	// TopicARNs are the topics whose messages are taken; empty means anybody's.
	TopicARNs []string

	// SkipVerify takes messages without looking at their signature, and confirms a
	// subscription at whatever address the message names. For emulators.
	SkipVerify bool

	// AllowPrivate is server.allow_private_urls. With SkipVerify it lets addresses
	// of confirmations be http:// ones; which hosts are connected to is decided
	// where they are dialled.
	AllowPrivate bool

	// Certificates are shared by all topics. Not needed with SkipVerify.
	Certificates *Certificates

	// Fetch makes the call that confirms a subscription.
	Fetch Fetch

	// Clock tells whether certificates are valid. Nil means the machine's.
	Clock core.Clock
}

// Type is what a message is about.
type Type string

// The types of messages.
const (
	Notification             Type = "Notification"             // something was published
	SubscriptionConfirmation Type = "SubscriptionConfirmation" // a subscription, which Open has confirmed
	UnsubscribeConfirmation  Type = "UnsubscribeConfirmation"  // the subscription has ended
)

// A Message is what was in an envelope. All of it was signed, unless verification
// was skipped. All but Text are free of control characters.
type Message struct {
	Type      Type
	ID        string // the same when the message is sent again; not empty
	TopicARN  string // not empty
	Subject   string // of Notification only; empty if there is none
	Text      string // what was published, of any form; of the others a sentence for people
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

// Open decodes an envelope, verifies it, and, if it is one that asks for it,
// confirms the subscription, which takes up to 10 seconds. Confirming twice does
// no harm. The caller bounds the length of the body, and passes the address that it came
// from. The calls that a message causes, for its certificate and its confirmation, count
// against the budget of that address.
//
// A [core.Refusal] of kind Invalid or Unauthorized says that the envelope is not a
// genuine one; an error that wraps [ErrConfirmation], that it is, but that the
// subscription was not confirmed; any other error, that this could not be found
// out now.
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

// confirm tells the sender that its messages are wanted. Anyone can own a topic and repeat
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

// confirmation is the address that confirms a subscription.
func (t *Topic) confirmation(e envelope) (string, error) {
	if t.options.SkipVerify {
		return givenConfirmation(e["SubscribeURL"], t.options.AllowPrivate)
	}
	return ownConfirmation(e)
}

// invalid refuses what is no message of Amazon SNS.
func invalid(format string, args ...any) error {
	return refuse(core.Invalid, "Invalid SNS message", format, args...)
}

// unreadable refuses a signature that is there but cannot be one.
func unreadable(format string, args ...any) error {
	return refuse(core.Invalid, "Invalid signature", format, args...)
}

// forged refuses a message that somebody else made.
func forged(format string, args ...any) error {
	return refuse(core.Unauthorized, "Invalid signature", format, args...)
}

// refuse says the same few words to every caller, and to the log the reason.
func refuse(k core.Kind, message, format string, args ...any) error {
	return &core.Refusal{Kind: k, Message: message, Cause: fmt.Errorf(format, args...)}
}
