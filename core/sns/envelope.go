package sns

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/eventgateway/gateway/core"
)

// An envelope holds the known members of a posted message, under their usual names. Members
// that were absent or null are not in it.
type envelope map[string]string

// signed lists the members that the signature of each type covers, in the order of the
// signed text. Amazon's pages on the two confirmations leave out SubscribeURL and Token;
// the real signatures cover both.
var signed = map[Type][]string{
	Notification:             {"Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"},
	SubscriptionConfirmation: confirmation,
	UnsubscribeConfirmation:  confirmation,
}

var confirmation = []string{"Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"}

// usual maps the names of members to their usual ones. Messages that passed through AWS
// Lambda spell some of them in another way.
var usual = map[string]string{
	"Message": "Message", "MessageId": "MessageId", "Subject": "Subject", "Timestamp": "Timestamp",
	"TopicArn": "TopicArn", "Type": "Type", "Token": "Token",
	"SubscribeURL": "SubscribeURL", "SubscribeUrl": "SubscribeURL",
	"SigningCertURL": "SigningCertURL", "SigningCertUrl": "SigningCertURL",
	"Signature": "Signature", "SignatureVersion": "SignatureVersion",
}

// maxMembers bounds the members of a message that are read before its signature is
// verified. Amazon's messages have about ten.
const maxMembers = 64

// decode reads an envelope.
//
// It reads token by token, because json.Unmarshal matches the names of a struct's fields in
// any case, and uses the last of two equal names. Another reader of the same bytes could
// then see another message. It does not read beyond the last permitted member.
func decode(body []byte) (envelope, error) {
	if !utf8.Valid(body) {
		return nil, core.Refuse(core.Invalid, "Invalid UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil, invalid("the body is not a JSON object")
	}
	e, err := members(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != nil {
		return nil, invalid("the body is not JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, invalid("something follows the JSON object")
	}
	return e, nil
}

// members reads all members of an object, up to its end.
func members(d *json.Decoder) (envelope, error) {
	e, seen := envelope{}, map[string]bool{}
	for d.More() {
		if len(seen) == maxMembers {
			return nil, invalid("the body has more than %d members", maxMembers)
		}
		var value json.RawMessage
		token, err := d.Token()
		if err == nil {
			err = d.Decode(&value)
		}
		if err != nil {
			return nil, invalid("the body is not JSON: %w", err)
		}
		name, _ := token.(string)
		known := usual[name]
		if known != "" {
			name = known
		}
		if seen[name] {
			return nil, invalid("%.64q is there twice", name)
		}
		seen[name] = true
		if known == "" {
			continue
		}
		if err := e.set(name, value); err != nil {
			return nil, err
		}
	}
	return e, nil
}

func (e envelope) set(name string, value json.RawMessage) error {
	if string(value) == "null" {
		return nil
	}
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		return invalid("%s is not a string", name)
	}
	if name != "Message" && strings.ContainsFunc(text, isControl) {
		return invalid("%s holds a control character", name)
	}
	e[name] = text
	return nil
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }

// check checks that a message has all members of its type, and none of another type.
func (e envelope) check(verified bool) error {
	required := []string{"Type", "MessageId", "TopicArn"}
	if verified {
		required = append(required, "Timestamp", "SignatureVersion", "Signature", "SigningCertURL")
	}
	for _, name := range required {
		if e[name] == "" {
			return invalid("%s is missing", name)
		}
	}
	if _, ok := e["Message"]; !ok {
		return invalid("Message is missing")
	}
	if signed[e.kind()] == nil {
		return refuse(core.Invalid, "Unknown message type", "Type is %.64q", e["Type"])
	}
	if e.kind() == Notification {
		return e.checkNotification(verified)
	}
	return e.checkConfirmation(verified)
}

// checkNotification refuses members of a confirmation, because the signature does not cover
// them.
func (e envelope) checkNotification(verified bool) error {
	for _, name := range []string{"Token", "SubscribeURL"} {
		if e[name] != "" && verified {
			return invalid("a Notification has no %s", name)
		}
	}
	return nil
}

func (e envelope) checkConfirmation(verified bool) error {
	if e["SubscribeURL"] == "" && (verified || e.kind() == SubscriptionConfirmation) {
		return core.Refuse(core.Invalid, "Missing SubscribeURL")
	}
	if e["Token"] == "" && verified {
		return invalid("Token is missing")
	}
	return nil
}

func (e envelope) kind() Type { return Type(e["Type"]) }

// message returns the content of the envelope. It leaves out a Subject that the signature
// of its type does not cover.
func (e envelope) message() Message {
	m := Message{
		Type:      e.kind(),
		ID:        e["MessageId"],
		TopicARN:  e["TopicArn"],
		Text:      e["Message"],
		Timestamp: e["Timestamp"],
	}
	if m.Type == Notification {
		m.Subject = e["Subject"]
	}
	return m
}

// text returns the signed text: names and values, each on a line.
func (e envelope) text() []byte {
	var b bytes.Buffer
	for _, name := range signed[e.kind()] {
		if value, ok := e[name]; ok {
			b.WriteString(name + "\n" + value + "\n")
		}
	}
	return b.Bytes()
}
