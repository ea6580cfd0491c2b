package sns

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/infra/test/snsrig"
)

const (
	awsTopic       = "arn:aws:sns:us-west-2:131990247566:dongie-standard-topic"
	awsCertificate = "https://sns.us-west-2.amazonaws.com/SimpleNotificationService-7506a1e35b36ef5a444dd1a8e7cc3ed8.pem"
)

// inMarch is a time at which Amazon's certificate was valid.
func inMarch() time.Time { return time.Date(2026, 3, 6, 20, 5, 0, 0, time.UTC) }

func aws(t testing.TB, name string) []byte {
	t.Helper()
	file, err := os.ReadFile(filepath.Join("testdata", "aws", name))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// A web answers addresses from a table, and all others with 404.
type web struct {
	mu     sync.Mutex
	pages  map[string]string
	visits []string
}

func (w *web) fetch(_ context.Context, url string, _ int64) (int, []byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.visits = append(w.visits, url)
	if page, ok := w.pages[url]; ok {
		return 200, []byte(page), nil
	}
	return 404, nil, nil
}

// nothing returns a Fetch that fails the test if it is called.
func nothing(t testing.TB) Fetch {
	return func(_ context.Context, url string, _ int64) (int, []byte, error) {
		t.Errorf("a connection was made for %s", url)
		return 0, nil, errors.New("unexpected")
	}
}

func topic(f Fetch, clock core.Clock) *Topic {
	return NewTopic(Options{Certificates: NewCertificates(f, clock), Fetch: f, Clock: clock})
}

// checkRefusal requires the kind of an error and the message that the sender gets.
func checkRefusal(t *testing.T, what string, err error, k core.Kind, message string) {
	t.Helper()
	refusal, ok := errors.AsType[*core.Refusal](err)
	if !ok || refusal.Kind != k || refusal.Message != message {
		t.Errorf("Open(%s) = %v, want %q of kind %d", what, err, message, k)
	}
}

func TestOpenAmazonsOwn(t *testing.T) {
	const token = "2336412f37fb687f5d51e6e2425929f52e8e353134fe72d55ef8b330217d82da14007cbccefffd35b695feb8f0294d01fd9644f41e1ddfad261519a2c0bac743ff375eeb64530147d2da57f3acc54739da14c8dbd48a9d58ce996eff0d498ea6b4b9f58720d8959b52b99b8de148081720d7da17434e376614a00c992e7823e4"
	confirmed := "https://sns.us-west-2.amazonaws.com/?Action=ConfirmSubscription&Token=" + token + "&TopicArn=arn%3Aaws%3Asns%3Aus-west-2%3A131990247566%3Adongie-standard-topic"
	w := &web{pages: map[string]string{
		awsCertificate: string(aws(t, "SimpleNotificationService-7506a1e35b36ef5a444dd1a8e7cc3ed8.pem")),
		confirmed:      "<ConfirmSubscriptionResponse/>",
	}}
	topic := topic(w.fetch, inMarch)
	for file, want := range map[string]Message{
		"test-notification-no-subject.json": {Type: Notification, ID: "c0e5a280-53c9-5a98-93bb-c0a560b3d192",
			Text: "This notification has no subject.", Timestamp: "2026-03-06T19:55:38.903Z"},
		"test-notification-with-subject.json": {Type: Notification, ID: "26858270-545e-5848-82a2-e05566af3dcf",
			Subject: "My message subject", Text: "Hello! This message has a subject.", Timestamp: "2026-03-06T19:53:21.424Z"},
		"test-notification-signature-v2.json": {Type: Notification, ID: "9d2c5580-b61d-550c-8583-37a582870907",
			Text: "This message uses signature version 2.", Timestamp: "2026-03-06T20:00:26.893Z"},
		"test-subscription-confirmation.json": {Type: SubscriptionConfirmation, ID: "f3f2fc87-c426-4c2f-9044-b55890c0939c",
			Text: "You have chosen to subscribe to the topic " + awsTopic + ".\nTo confirm the subscription, visit the SubscribeURL included in this message.", Timestamp: "2026-03-06T19:31:32.895Z"},
		"test-unsubscribe-confirmation.json": {Type: UnsubscribeConfirmation, ID: "0b71e34e-42c3-486a-9e32-b1928ec994b5",
			Text: "You have chosen to deactivate subscription " + awsTopic + ":b24e11a2-06bd-4e73-aa29-0ed2de3b41b5.\nTo cancel this operation and restore the subscription, visit the SubscribeURL included in this message.", Timestamp: "2026-03-06T20:02:25.038Z"},
	} {
		want.TopicARN = awsTopic
		got, err := topic.Open(t.Context(), sender, aws(t, file))
		if err != nil {
			t.Errorf("Open(%s) = %v", file, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Open(%s) (-want +got):\n%s", file, diff)
		}
	}
	slices.Sort(w.visits)
	if diff := cmp.Diff([]string{confirmed, awsCertificate}, w.visits); diff != "" {
		t.Errorf("fetched (-want +got):\n%s", diff)
	}
}

// TestOpenOutsideTheCertificatesTime: a certificate that is not valid now is no refusal of the
// message, since the gateway's own clock may be wrong.
func TestOpenOutsideTheCertificatesTime(t *testing.T) {
	w := &web{pages: map[string]string{awsCertificate: string(aws(t, "SimpleNotificationService-7506a1e35b36ef5a444dd1a8e7cc3ed8.pem"))}}
	for now, ok := range map[string]bool{
		"2025-11-09T23:59:59": false, "2025-11-10T00:00:00": true, "2026-10-14T23:59:59": true, "2026-10-15T00:00:00": false,
	} {
		clock := func() time.Time { at, _ := core.ParseTime(now); return at }
		_, err := topic(w.fetch, clock).Open(t.Context(), sender, aws(t, "test-notification-with-subject.json"))
		if _, refused := errors.AsType[*core.Refusal](err); refused || (err == nil) != ok {
			t.Errorf("Open() at %s = %v, want success %v, or an error that is no refusal", now, err, ok)
		}
	}
}

var types = []string{"Notification", "SubscriptionConfirmation", "UnsubscribeConfirmation"}

func TestOpen(t *testing.T) {
	rig := snsrig.New(t)
	topic := topic(rig.Fetch, time.Now)
	for _, kind := range types {
		for _, version := range []string{"1", "2"} {
			m := rig.Message(kind, version, "line\nline \u2028 \"quoted\" \x00", "")
			got, err := topic.Open(t.Context(), sender, m.JSON())
			if err != nil || string(got.Type) != kind || got.Text != m["Message"] || got.ID != m["MessageId"] || got.TopicARN != rig.ARN {
				t.Errorf("Open(%s, version %s) = %+v, %v", kind, version, got, err)
			}
		}
	}
	confirmed := "https://" + rig.Host + "/?Action=ConfirmSubscription&Token=2336412f37fb687f5d51e6e2425929f52e8e&TopicArn=arn%3Aaws%3Asns%3Aeu-west-1%3A123456789012%3Aorders"
	want := []string{rig.CertificateURL(), confirmed, confirmed}
	if diff := cmp.Diff(want, rig.Visits()); diff != "" {
		t.Errorf("visits (-want +got):\n%s", diff)
	}
}

// TestOpenForged changes one character of one member, for each member in turn.
func TestOpenForged(t *testing.T) {
	rig := snsrig.New(t)
	topic := topic(rig.Fetch, time.Now)
	for _, kind := range types {
		for _, version := range []string{"1", "2"} {
			genuine := rig.Message(kind, version, "published", "subject")
			for name := range genuine {
				if name == "UnsubscribeURL" || name == "Type" || name == "SignatureVersion" {
					continue
				}
				value := genuine[name].(string)
				for _, at := range []int{0, len(value) / 2, len(value) - 4} {
					m := maps.Clone(genuine)
					m[name] = value[:at] + other(value[at]) + value[at+1:]
					_, err := topic.Open(t.Context(), sender, m.JSON())
					checkRefusal(t, kind+" with "+name+" changed", err, core.Unauthorized, "Invalid signature")
				}
			}
		}
	}
	if n := len(rig.Visits()); n != 1 {
		t.Errorf("%d visits, want that for the certificate only: %q", n, rig.Visits())
	}
}

// other returns a character of the same kind that is not c.
func other(c byte) string {
	if c == 'b' || c == '1' {
		return "2"
	}
	if '0' <= c && c <= '9' {
		return "1"
	}
	return "b"
}

// TestOpenRefuses holds the refusal for each changed message. Some messages are signed again
// after the change.
func TestOpenRefuses(t *testing.T) {
	rig := snsrig.New(t)
	const (
		bad      = "Invalid SNS message"
		sig      = "Invalid signature"
		invalid  = core.Invalid
		unproven = core.Unauthorized
	)
	set := func(name string, value any) func(snsrig.Message) { return func(m snsrig.Message) { m[name] = value } }
	drop := func(name string) func(snsrig.Message) { return func(m snsrig.Message) { delete(m, name) } }
	signed := func(change func(snsrig.Message)) func(snsrig.Message) {
		return func(m snsrig.Message) { change(m); rig.Sign(m) }
	}
	both := func(a, b func(snsrig.Message)) func(snsrig.Message) { return func(m snsrig.Message) { a(m); b(m) } }
	for what, c := range map[string]struct {
		kind    string
		change  func(snsrig.Message)
		want    core.Kind
		message string
	}{
		"no Type":                   {"Notification", signed(drop("Type")), invalid, bad},
		"no MessageId":              {"Notification", signed(drop("MessageId")), invalid, bad},
		"empty MessageId":           {"Notification", signed(set("MessageId", "")), invalid, bad},
		"no TopicArn":               {"Notification", signed(drop("TopicArn")), invalid, bad},
		"no Message":                {"Notification", signed(drop("Message")), invalid, bad},
		"no Timestamp":              {"Notification", signed(drop("Timestamp")), invalid, bad},
		"no Signature":              {"Notification", drop("Signature"), invalid, bad},
		"no SignatureVersion":       {"Notification", drop("SignatureVersion"), invalid, bad},
		"no SigningCertURL":         {"Notification", drop("SigningCertURL"), invalid, bad},
		"null Message":              {"Notification", set("Message", nil), invalid, bad},
		"Message is an object":      {"Notification", set("Message", map[string]any{"a": 1}), invalid, bad},
		"Message is a number":       {"Notification", set("Message", 1), invalid, bad},
		"Subject is a number":       {"Notification", set("Subject", 1), invalid, bad},
		"Type is a list":            {"Notification", set("Type", []string{"Notification"}), invalid, bad},
		"member in another case":    {"Notification", both(drop("Message"), set("message", "published")), invalid, bad},
		"MessageId of two lines":    {"Notification", signed(set("MessageId", "a\nb")), invalid, bad},
		"Subject of two lines":      {"Notification", signed(set("Subject", "a\nb")), invalid, bad},
		"MessageId with NUL":        {"Notification", signed(set("MessageId", "a\x00")), invalid, bad},
		"both spellings":            {"Notification", set("SigningCertUrl", "https://evil.example/"), invalid, bad},
		"Notification with Token":   {"Notification", signed(set("Token", "1")), invalid, bad},
		"Notification to subscribe": {"Notification", signed(set("SubscribeURL", "https://evil.example/")), invalid, bad},
		"unknown Type":              {"Notification", signed(set("Type", "Notice")), invalid, "Unknown message type"},
		"Type in small letters":     {"Notification", signed(set("Type", "notification")), invalid, "Unknown message type"},
		"version 0":                 {"Notification", set("SignatureVersion", "0"), invalid, sig},
		"version 3":                 {"Notification", set("SignatureVersion", "3"), invalid, sig},
		"version 01":                {"Notification", set("SignatureVersion", "01"), invalid, sig},
		"other version":             {"Notification", set("SignatureVersion", "2"), unproven, sig},
		"signature not base64":      {"Notification", set("Signature", "!"), invalid, sig},
		"sloppy base64": {"Notification", func(m snsrig.Message) {
			s := m["Signature"].(string) // 256 bytes leave four bits unused
			m["Signature"] = s[:341] + string(s[341]+1) + "=="
		}, invalid, sig},
		"signature of two lines":       {"Notification", set("Signature", "AAAA\nAAAA"), invalid, bad},
		"signature too short":          {"Notification", set("Signature", "AAAA"), unproven, sig},
		"Subject added":                {"Notification", set("Subject", "new"), unproven, sig},
		"empty Subject added":          {"Notification", set("Subject", ""), unproven, sig},
		"no SubscribeURL":              {"SubscriptionConfirmation", signed(drop("SubscribeURL")), invalid, "Missing SubscribeURL"},
		"empty SubscribeURL":           {"SubscriptionConfirmation", signed(set("SubscribeURL", "")), invalid, "Missing SubscribeURL"},
		"no Token":                     {"SubscriptionConfirmation", signed(drop("Token")), invalid, bad},
		"unsubscribe, no SubscribeURL": {"UnsubscribeConfirmation", signed(drop("SubscribeURL")), invalid, "Missing SubscribeURL"},
		"end made a beginning":         {"UnsubscribeConfirmation", set("Type", "SubscriptionConfirmation"), unproven, sig},
		"beginning made an end":        {"SubscriptionConfirmation", set("Type", "UnsubscribeConfirmation"), unproven, sig},
		"topic of another region":      {"Notification", signed(set("TopicArn", "arn:aws:sns:eu-west-2:123456789012:orders")), unproven, sig},
		"topic of a secret partition":  {"Notification", signed(set("TopicArn", "arn:aws-iso:sns:us-iso-east-1:123456789012:orders")), unproven, sig},
		"topic is no ARN":              {"Notification", signed(set("TopicArn", "orders")), unproven, sig},
		"region is a bucket's host":    {"Notification", signed(set("TopicArn", "arn:aws:sns:s3-us-west-2:123456789012:orders")), unproven, sig},
	} {
		m := rig.Message(c.kind, "1", "published", "")
		c.change(m)
		_, err := topic(rig.Fetch, time.Now).Open(t.Context(), sender, m.JSON())
		checkRefusal(t, what, err, c.want, c.message)
	}
	for _, url := range rig.Visits() {
		if url != rig.CertificateURL() {
			t.Errorf("a refused message led to %s", url)
		}
	}
}

func TestOpenRefusesBodies(t *testing.T) {
	genuine := string(aws(t, "test-notification-no-subject.json"))
	for body, want := range map[string]string{
		"":                  "Invalid SNS message",
		"raw delivery":      "Invalid SNS message",
		"null":              "Invalid SNS message",
		`"text"`:            "Invalid SNS message",
		"{}":                "Invalid SNS message",
		"[" + genuine + "]": "Invalid SNS message",
		genuine + "{}":      "Invalid SNS message",
		genuine + "x":       "Invalid SNS message",
		genuine + "}":       "Invalid SNS message",
		genuine + ",":       "Invalid SNS message",
		strings.TrimSuffix(strings.TrimSpace(genuine), "}"):                                                 "Invalid SNS message",
		strings.TrimSuffix(strings.TrimSpace(genuine), "}") + "]":                                           "Invalid SNS message",
		strings.TrimSuffix(strings.TrimSpace(genuine), "}") + ",}":                                          "Invalid SNS message",
		strings.Replace(genuine, ",", ",,", 1):                                                              "Invalid SNS message",
		strings.Replace(genuine, ":", " ", 1):                                                               "Invalid SNS message",
		strings.Replace(genuine, "{", "{,", 1):                                                              "Invalid SNS message",
		genuine[:100]:                                                                                       "Invalid SNS message",
		strings.Replace(genuine, "{", `{"Message":"first",`, 1):                                             "Invalid SNS message",
		strings.Replace(genuine, "{", `{"\u004dessage":"first",`, 1):                                        "Invalid SNS message",
		strings.Replace(genuine, "{", `{"Subject":null,"Subject":null,`, 1):                                 "Invalid SNS message",
		strings.Replace(genuine, "{", `{"x":1,"x":1,`, 1):                                                   "Invalid SNS message",
		strings.Replace(genuine, "has no subject", "has no \xff", 1):                                        "Invalid UTF-8",
		strings.Replace(genuine, "{", `{"x":`+strings.Repeat("[", 20000)+strings.Repeat("]", 20000)+",", 1): "Invalid SNS message",
	} {
		_, err := topic(nothing(t), inMarch).Open(t.Context(), sender, []byte(body))
		checkRefusal(t, body[:min(len(body), 60)], err, core.Invalid, want)
	}
}

// TestOpenReadsFewMembers: a message of many members costs as much as its first 64 members,
// since an attacker needs no signature to send one.
func TestOpenReadsFewMembers(t *testing.T) {
	genuine := string(aws(t, "test-notification-no-subject.json"))
	body := func(members int) []byte {
		var b strings.Builder
		b.WriteString("{")
		for i := range members {
			fmt.Fprintf(&b, `"%06d":"",`, i)
		}
		return []byte(b.String() + genuine[1:])
	}
	const own = 9 // members of the genuine one
	w := &web{pages: map[string]string{awsCertificate: string(aws(t, "SimpleNotificationService-7506a1e35b36ef5a444dd1a8e7cc3ed8.pem"))}}
	if _, err := topic(w.fetch, inMarch).Open(t.Context(), sender, body(maxMembers-own)); err != nil {
		t.Errorf("Open(%d members) = %v", maxMembers, err)
	}
	few, many := body(maxMembers+1-own), body(110_000)
	topic := topic(nothing(t), inMarch)
	for _, body := range [][]byte{few, many} {
		_, err := topic.Open(t.Context(), sender, body)
		checkRefusal(t, fmt.Sprint(len(body), " bytes"), err, core.Invalid, "Invalid SNS message")
	}
	allocations := func(body []byte) float64 {
		return testing.AllocsPerRun(10, func() { _, _ = topic.Open(t.Context(), sender, body) })
	}
	if a, b := allocations(few), allocations(many); b > 2*a {
		t.Errorf("Open(%d bytes) allocates %v times, Open(%d bytes) %v times", len(many), b, len(few), a)
	}
	// Members beyond the bound are not read, so the JSON error there is not found.
	broken := append(body(110_000), '}', '}')
	_, err := topic.Open(t.Context(), sender, broken)
	if checkRefusal(t, "broken behind", err, core.Invalid, "Invalid SNS message"); err == nil || !strings.Contains(err.Error(), "more than 64 members") {
		t.Errorf("Open(broken behind) = %v, want it to stop at the members", err)
	}
}

// TestOpenTakesOtherWritings accepts other JSON spellings of the same message.
func TestOpenTakesOtherWritings(t *testing.T) {
	w := &web{pages: map[string]string{awsCertificate: string(aws(t, "SimpleNotificationService-7506a1e35b36ef5a444dd1a8e7cc3ed8.pem"))}}
	topic := topic(w.fetch, inMarch)
	genuine := string(aws(t, "test-notification-no-subject.json"))
	for what, body := range map[string]string{
		"Lambda's spelling": strings.NewReplacer("SigningCertURL", "SigningCertUrl", "UnsubscribeURL", "UnsubscribeUrl").Replace(genuine),
		"null Subject":      strings.Replace(genuine, "{", `{"Subject":null,`, 1),
		"other members":     strings.Replace(genuine, "{", `{"MessageAttributes":{"Type":{"Type":"String","Value":"x"}},"SequenceNumber":"1","message":"other",`, 1),
		"escapes":           strings.Replace(genuine, "This", `\u0054his`, 1),
		"compact":           strings.ReplaceAll(genuine, "\n  ", ""),
	} {
		m, err := topic.Open(t.Context(), sender, []byte(body))
		if err != nil || m.Text != "This notification has no subject." || m.Subject != "" {
			t.Errorf("Open(%s) = %+v, %v", what, m, err)
		}
	}
}

// TestOpenHoldsFieldsToALine: a publisher with one signed message cannot make a second message
// of it by moving line breaks between members.
func TestOpenHoldsFieldsToALine(t *testing.T) {
	rig := snsrig.New(t)
	m := rig.Message("Notification", "2", "hello\nMessageId\n11111111-1111-1111-1111-111111111111", "")
	if _, err := topic(rig.Fetch, time.Now).Open(t.Context(), sender, m.JSON()); err != nil {
		t.Fatalf("Open() of a message with lines = %v", err)
	}
	m["MessageId"] = "11111111-1111-1111-1111-111111111111\nMessageId\n" + m["MessageId"].(string)
	m["Message"] = "hello" // the signed text is the same as before
	_, err := topic(rig.Fetch, time.Now).Open(t.Context(), sender, m.JSON())
	checkRefusal(t, "moved line breaks", err, core.Invalid, "Invalid SNS message")
}

func TestOpenTakesListedTopicsOnly(t *testing.T) {
	rig := snsrig.New(t)
	open := func(o Options, fetch Fetch) error {
		o.Certificates, o.Fetch = NewCertificates(fetch, nil), fetch
		_, err := NewTopic(o).Open(t.Context(), sender, rig.Message("SubscriptionConfirmation", "1", "", "").JSON())
		return err
	}
	others := []string{rig.ARN + "2", strings.ToUpper(rig.ARN), rig.ARN[:len(rig.ARN)-1]}
	if err := open(Options{TopicARNs: append(others, rig.ARN)}, rig.Fetch); err != nil {
		t.Errorf("Open() of a listed topic = %v", err)
	}
	checkRefusal(t, "unlisted", open(Options{TopicARNs: others}, nothing(t)), core.Unauthorized, "Invalid signature")
	checkRefusal(t, "unlisted, unverified", open(Options{TopicARNs: others, SkipVerify: true}, nothing(t)), core.Unauthorized, "Invalid signature")
}

// TestOpenUnverified: without verification, messages of emulators are accepted. Emulators sign
// with their own keys, or not at all.
func TestOpenUnverified(t *testing.T) {
	body := func(kind, subscribe string) []byte {
		return snsrig.Message{"Type": kind, "MessageId": "1", "TopicArn": "arn:aws:sns:us-east-1:000000000000:t",
			"Message": "{}", "Subject": "s", "Token": "t", "SubscribeURL": subscribe}.JSON()
	}
	const (
		secure = "https://localhost.localstack.cloud:4566/?Action=ConfirmSubscription&TopicArn=t&Token=1"
		plain  = "http://localhost:4566/?Action=ConfirmSubscription&TopicArn=t&Token=1"
	)
	for _, c := range []struct {
		kind, subscribe string
		private         bool
		want            string // refusal
		visits          int
	}{
		{"Notification", "", false, "", 0},
		{"Notification", plain, false, "", 0},
		{"UnsubscribeConfirmation", plain, false, "", 0},
		{"UnsubscribeConfirmation", "", false, "", 0},
		{"SubscriptionConfirmation", secure, false, "", 1},
		{"SubscriptionConfirmation", plain, true, "", 1},
		{"SubscriptionConfirmation", plain, false, "Invalid SubscribeURL", 0},
		{"SubscriptionConfirmation", "", true, "Missing SubscribeURL", 0},
		{"SubscriptionConfirmation", "file:///etc/passwd", true, "Invalid SubscribeURL", 0},
		{"SubscriptionConfirmation", "//localhost:4566/", true, "Invalid SubscribeURL", 0},
		{"SubscriptionConfirmation", "https://user:secret@localhost/", true, "Invalid SubscribeURL", 0},
		{"SubscriptionConfirmation", "https://2130706433/", true, "Invalid SubscribeURL", 0},
		{"SubscriptionConfirmation", "gopher://localhost/", true, "Invalid SubscribeURL", 0},
	} {
		w := &web{pages: map[string]string{secure: "", plain: ""}}
		m, err := NewTopic(Options{SkipVerify: true, AllowPrivate: c.private, Fetch: w.fetch}).Open(t.Context(), sender, body(c.kind, c.subscribe))
		if c.want != "" {
			checkRefusal(t, c.kind+" "+c.subscribe, err, core.Invalid, c.want)
		} else if err != nil || string(m.Type) != c.kind || m.Text != "{}" || (m.Subject == "s") != (c.kind == "Notification") {
			t.Errorf("Open(%s %s) = %+v, %v", c.kind, c.subscribe, m, err)
		}
		if len(w.visits) != c.visits {
			t.Errorf("Open(%s %s, private %v) fetched %q", c.kind, c.subscribe, c.private, w.visits)
		}
	}
}

func TestOpenCannotConfirm(t *testing.T) {
	rig := snsrig.New(t)
	body := rig.Message("SubscriptionConfirmation", "2", "", "").JSON()
	for what, answer := range map[string]func() (int, []byte, error){
		"403":        func() (int, []byte, error) { return 403, nil, nil },
		"redirect":   func() (int, []byte, error) { return 302, nil, nil },
		"no content": func() (int, []byte, error) { return 204, nil, nil },
		"no answer":  func() (int, []byte, error) { return 0, nil, errors.New("connect: connection refused") },
	} {
		fetch := func(context.Context, string, int64) (int, []byte, error) { return answer() }
		_, err := NewTopic(Options{Certificates: NewCertificates(rig.Fetch, nil), Fetch: fetch}).Open(t.Context(), sender, body)
		if _, refused := errors.AsType[*core.Refusal](err); refused || !errors.Is(err, ErrConfirmation) || strings.Contains(err.Error(), "2336412f37") {
			t.Errorf("Open() answered with %s = %v, want ErrConfirmation without the token", what, err)
		}
	}
}

func TestOpenGivesUp(t *testing.T) {
	silence := func(ctx context.Context, _ string, _ int64) (int, []byte, error) {
		<-ctx.Done()
		return 0, nil, ctx.Err()
	}
	pem := string(aws(t, "SimpleNotificationService-7506a1e35b36ef5a444dd1a8e7cc3ed8.pem"))
	certificate := (&web{pages: map[string]string{awsCertificate: pem}}).fetch
	body := aws(t, "test-subscription-confirmation.json")
	for _, c := range []struct {
		certificate Fetch
		confirm     bool
		after       time.Duration
	}{{silence, false, 5 * time.Second}, {certificate, true, 10 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			_, err := NewTopic(Options{Certificates: NewCertificates(c.certificate, inMarch), Fetch: silence, Clock: inMarch}).Open(t.Context(), sender, body)
			if took := time.Since(start); took != c.after || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrConfirmation) != c.confirm {
				t.Errorf("Open() without an answer = %v after %s, want a timeout after %s", err, took, c.after)
			}
		})
	}
}
