//go:build linux

package e2e

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/snsrig"
	"github.com/eventgateway/gateway/infra/test/wait"
)

const snsConfig = `
server:
  host: 127.0.0.1
  port: ${PORT}
  allow_private_urls: true
delivery: {timeout: 5s, default_retry: {max: 50, backoff: fixed, interval: 100ms}}
sources:
  topic: {type: sns, topic_arns: ["${TOPIC}"]}
  anyone: {type: sns}
  emulator: {type: sns, skip_verify: true}
handlers:
  topic: {source: topic, url: "${RECEIVER}/topic"}
  emulator: {source: emulator, url: "${RECEIVER}/emulator"}
`

// lookAlikes are hosts that an attacker can have, or could once have.
var lookAlikes = []string{
	"sns.s3-us-west-2.amazonaws.com", "sns.eu-west-1.amazonaws.com.attacker.example", "sns-eu-west-1.amazonaws.com",
	"attacker.example", "s3.amazonaws.com", "sns.us-east-1.amazonaws.com",
}

// An amazon plays Amazon's hosts for one gateway. Its server has the names of Amazon's hosts
// and of some other hosts, and listens on port 443. The gateway has its own /etc/hosts, which
// leads to this server.
type amazon struct {
	*snsrig.Topic
	address     string // an IP address, without the port
	connections atomic.Int64
}

// newAmazon needs the right to listen on port 443, and to mount for the gateway.
func newAmazon(t *testing.T) *amazon {
	t.Helper()
	_, err := exec.LookPath("unshare")
	need(t, "unshare (util-linux)", err)
	need(t, "the right to mount", exec.Command("unshare", "-m", "true").Run())
	a := &amazon{Topic: snsrig.New(t)}
	// Every address of this network is this machine, so each test has its own address.
	ip := fmt.Sprintf("127.%d.%d.%d", 64+rand.IntN(64), rand.IntN(256), 1+rand.IntN(254))
	l, err := net.Listen("tcp", ip+":443")
	need(t, "the right to listen on port 443", err)
	a.address = ip
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // the listener is closed
			}
			a.connections.Add(1)
			go a.forward(c)
		}
	}()
	return a
}

// forward forwards a connection to the server, which listens elsewhere.
func (a *amazon) forward(c net.Conn) {
	defer c.Close()
	server, err := a.Dial(context.Background(), "tcp", "")
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, c)
		server.Close()
	}()
	_, _ = io.Copy(c, server)
}

// start starts a gateway for which this server is Amazon.
func (a *amazon) start(g *gateway) {
	g.t.Helper()
	hosts, root := filepath.Join(g.dir, "hosts"), filepath.Join(g.dir, "root.pem")
	names := strings.Join(append([]string{a.Host}, lookAlikes...), " ")
	for path, content := range map[string]string{hosts: "127.0.0.1 localhost\n" + a.address + " " + names + "\n", root: string(a.RootPEM)} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			g.t.Fatal(err)
		}
	}
	const script = `mount --bind "$1" /etc/hosts && exec "$2" start`
	c := g.command("-m", "sh", "-c", script, "sh", hosts, binary)
	c.name = "unshare"
	c.env = append(c.env, "SSL_CERT_FILE="+root, "TOPIC="+a.ARN)
	g.env = append(g.env, "TOPIC="+a.ARN) // for the commands that use the same configuration
	g.process = spawn(g.t, c)
	g.awaitReady()
}

func newSNS(t *testing.T) (*gateway, *receiver.Receiver, *amazon) {
	t.Helper()
	a := newAmazon(t)
	r := receiver.New(t)
	g := newGateway(t, snsConfig, r)
	a.start(g)
	return g, r, a
}

// message signs a message with the given id. The members are name, value pairs that are set
// before the signature; nil removes a member.
func (a *amazon) message(kind, version, id string, members ...any) snsrig.Message {
	m := a.Message(kind, version, `{"type":"order.paid", "total": 1.50}`, "")
	m["MessageId"] = id
	a.change(m, members...)
	a.Sign(m)
	return m
}

func (a *amazon) change(m snsrig.Message, members ...any) {
	for i := 0; i+1 < len(members); i += 2 {
		if name := members[i].(string); members[i+1] == nil {
			delete(m, name)
		} else {
			m[name] = members[i+1]
		}
	}
}

func (g *gateway) postSNS(source string, m snsrig.Message) answer {
	g.t.Helper()
	return g.post("/sns/"+source, string(m.JSON()), "Content-Type", "text/plain; charset=UTF-8", "X-Amz-Sns-Message-Type", fmt.Sprint(m["Type"]))
}

// TestSNS follows a subscription from its confirmation over its notifications to its end. The
// certificate is valid, from an authority that the gateway trusts.
func TestSNS(t *testing.T) {
	t.Parallel()
	g, r, a := newSNS(t)
	wantAnswer(t, "a subscription", g.postSNS("topic", a.message("SubscriptionConfirmation", "1", "m-1")), 200, "Subscription confirmed")
	if visits := a.Visits(); len(visits) != 2 || visits[0] != a.CertificateURL() || !strings.Contains(visits[1], "Action=ConfirmSubscription") {
		t.Errorf("fetched %q, want the certificate, then the confirmation", visits)
	}
	notes := []struct {
		version, message, subject string
		eventType, payload        string
	}{
		{"1", `{"type":"order.paid", "total": 1.50}`, "", "order.paid", `{"type":"order.paid", "total": 1.50}`},
		{"2", `{"detail-type":"EC2 state", "id":"7"}`, "a subject", "EC2_state", `{"detail-type":"EC2 state", "id":"7"}`},
		{"2", "plain text, \"quoted\" in \u20ac\n", "note.written", "note.written", `"plain text, \"quoted\" in €\n"`},
		{"1", "", "", "event", `""`},
	}
	for i, n := range notes {
		m := a.message("Notification", n.version, fmt.Sprintf("n-%d", i), "Message", n.message)
		if n.subject != "" {
			m = a.message("Notification", n.version, fmt.Sprintf("n-%d", i), "Message", n.message, "Subject", n.subject)
		}
		first := g.postSNS("topic", m)
		wantAnswer(t, fmt.Sprintf("notification %d", i), first, 200, "Event received")
		again := g.postSNS("topic", m)
		wantAnswer(t, fmt.Sprintf("notification %d again", i), again, 200, "Duplicate event ignored")
		if again.eventID() != first.eventID() || first.eventID() == "" {
			t.Errorf("notification %d: event ids %q and %q, want the same", i, first.eventID(), again.eventID())
		}
		e := g.inspect(first.eventID())
		if e.EventType != n.eventType || e.IdempotencyKey == nil || *e.IdempotencyKey != m["MessageId"] {
			t.Errorf("notification %d: inspect shows %+v, want type %q and the message's id", i, e, n.eventType)
		}
		if d := r.Await(t, 5*time.Second, "/topic", i+1)[i]; d.Body != n.payload {
			t.Errorf("notification %d: delivered %q, want %q", i, d.Body, n.payload)
		}
	}
	wantAnswer(t, "the end", g.postSNS("topic", a.message("UnsubscribeConfirmation", "2", "m-2")), 200, "Unsubscribe acknowledged")
	wait.For(t, 5*time.Second, "the end of a subscription is in the log", func() bool {
		log := g.log.String()
		return strings.Contains(log, "subscription has ended") && strings.Contains(log, "topic="+a.ARN)
	})
	if visits := a.Visits(); len(visits) != 2 {
		t.Errorf("fetched %q, want one certificate for all messages and one confirmation", visits)
	}
	g.stop()
	db := g.ledger()
	db.check(1)
	if n := db.count(`SELECT COUNT(*) FROM events`); n != len(notes) {
		t.Errorf("%d events are stored, want %d", n, len(notes))
	}
}

// TestForgedSNS: the gateway refuses messages without Amazon's signature, signed messages of
// another topic, and invalid messages. The refusal has the words of the specification, and the
// gateway fetches only the certificate.
func TestForgedSNS(t *testing.T) {
	t.Parallel()
	g, _, a := newSNS(t)
	const notification, subscription, end = "Notification", "SubscriptionConfirmation", "UnsubscribeConfirmation"
	tests := []struct {
		kind   string
		signed []any // changed before the signature
		forged []any // changed after the signature
		status int
		want   string
	}{
		{notification, nil, []any{"Message", "{}"}, 401, "Invalid signature"},
		{notification, nil, []any{"MessageId", "n-2"}, 401, "Invalid signature"},
		{notification, nil, []any{"Subject", "order.refunded"}, 401, "Invalid signature"},
		{notification, nil, []any{"Timestamp", "2026-11-20T09:00:00.000Z"}, 401, "Invalid signature"},
		{notification, nil, []any{"SignatureVersion", "1"}, 401, "Invalid signature"},
		{notification, nil, []any{"SignatureVersion", "3"}, 400, "Invalid signature"},
		{notification, nil, []any{"Signature", "%"}, 400, "Invalid signature"},
		{notification, []any{"TopicArn", "arn:aws:sns:eu-west-1:210987654321:orders"}, nil, 401, "Invalid signature"},
		{notification, nil, []any{"MessageId", nil}, 400, "Invalid SNS message"},
		{notification, nil, []any{"Signature", nil}, 400, "Invalid SNS message"},
		{notification, nil, []any{"Message", 7}, 400, "Invalid SNS message"},
		{"Rumour", nil, nil, 400, "Unknown message type"},
		{subscription, nil, []any{"Token", "another"}, 401, "Invalid signature"},
		{subscription, nil, []any{"SubscribeURL", "https://" + lookAlikes[0] + "/"}, 401, "Invalid signature"},
		{subscription, []any{"SubscribeURL", nil}, nil, 400, "Missing SubscribeURL"},
		{subscription, []any{"SubscribeURL", "https://" + lookAlikes[0] + "/"}, nil, 400, "Invalid SubscribeURL"},
		{end, nil, []any{"Token", "another"}, 401, "Invalid signature"},
	}
	for _, tt := range tests {
		m := a.message(tt.kind, "2", "n-1", tt.signed...)
		a.change(m, tt.forged...)
		wantAnswer(t, fmt.Sprintf("%s signed with %v, changed to %v", tt.kind, tt.signed, tt.forged), g.postSNS("topic", m), tt.status, tt.want)
	}
	for body, want := range map[string]string{"{": "Invalid SNS message", "[]": "Invalid SNS message", "": "Invalid SNS message", "\xff": "Invalid UTF-8"} {
		wantAnswer(t, fmt.Sprintf("%q", body), g.post("/sns/topic", body), 400, want)
	}
	wantAnswer(t, "another door", g.postSNS("app", a.message(notification, "2", "n-1")), 404, "Unknown source")
	if visits := a.Visits(); len(visits) != 1 || visits[0] != a.CertificateURL() {
		t.Errorf("fetched %q, want the certificate once", visits)
	}
	if got := g.events(); len(got) != 0 {
		t.Errorf("%d events are stored, want none", len(got))
	}
}

// TestHostileCertificates: the gateway connects to a certificate's address only if it is at
// the topic's own host. The signature does not change that.
func TestHostileCertificates(t *testing.T) {
	t.Parallel()
	g, _, a := newSNS(t)
	path := strings.TrimPrefix(a.CertificateURL(), "https://"+a.Host)
	urls := []string{
		"http://" + a.Host + path, "https://" + a.Host + ":443" + path, "https://user@" + a.Host + path, "https://" + a.Host + path + "?x",
		"https://" + a.Host + path + "#x", "https://" + a.Host + "/x/.." + path, "https://" + a.Host + "/other.pem", "//" + a.Host + path,
		"HTTPS://" + a.Host + path, "https://" + strings.ToUpper(a.Host) + path, "https://" + a.Host + "." + path, "https://" + a.address + path, " " + a.CertificateURL(),
		"https://" + a.Host + "@attacker.example" + path, `https://attacker.example\@` + a.Host + path,
	}
	for _, host := range lookAlikes {
		urls = append(urls, "https://"+host+path)
	}
	for _, url := range urls {
		m := a.message("Notification", "2", "n-1", "SigningCertURL", url)
		for _, source := range []string{"topic", "anyone"} {
			if got := g.postSNS(source, m); got.status != 401 || got.body != "Invalid signature" {
				t.Errorf("certificate at %q = %d %q, want 401 Invalid signature", url, got.status, got.body)
			}
		}
	}
	// A topic whose region makes its host a host outside of SNS.
	for _, region := range []string{"s3-us-west-2", "eu-west-1.amazonaws.com.attacker.example/", "EU-WEST-1", ""} {
		m := a.message("Notification", "2", "n-1", "TopicArn", "arn:aws:sns:"+region+":123456789012:orders", "SigningCertURL", "https://sns."+region+".amazonaws.com"+path)
		wantAnswer(t, fmt.Sprintf("a topic in %q", region), g.postSNS("anyone", m), 401, "Invalid signature")
	}
	if n := a.connections.Load(); n != 0 {
		t.Errorf("%d connections were made, want none", n)
	}
	// The gateway does connect to the real address, so the test would see other connections.
	wantAnswer(t, "the real address", g.postSNS("topic", a.message("Notification", "2", "n-1")), 200, "Event received")
	if n := a.connections.Load(); n != 1 {
		t.Errorf("%d connections were made for the real address, want 1", n)
	}
}

// TestSNSOutOfReach: if a check is not possible now, the answer makes Amazon send again.
func TestSNSOutOfReach(t *testing.T) {
	t.Parallel()
	g, _, a := newSNS(t)
	a.Answer(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://"+lookAlikes[0]+r.URL.Path, http.StatusFound)
	})
	for range 5 {
		wantAnswer(t, "a certificate behind a redirect", g.postSNS("topic", a.message("Notification", "2", "n-1")), 500, "Verification error")
	}
	if visits := a.Visits(); len(visits) != 1 {
		t.Errorf("fetched %q, want one attempt for five messages", visits)
	}
	g.stop()
	a.start(g) // forgets failed fetches
	a.Answer(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery != "" {
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write(a.CertificatePEM)
	})
	wantAnswer(t, "a confirmation that fails", g.postSNS("topic", a.message("SubscriptionConfirmation", "2", "m-1")), 500, "Subscription confirmation failed")
	a.Answer(nil)
	wantAnswer(t, "and comes again", g.postSNS("topic", a.message("SubscriptionConfirmation", "2", "m-1")), 200, "Subscription confirmed")
	if got := g.events(); len(got) != 0 {
		t.Errorf("%d events are stored, want none", len(got))
	}
}

// TestEmulatedSNS: with skip_verify no signature is needed, and a subscription is confirmed at
// any URL in the message.
func TestEmulatedSNS(t *testing.T) {
	t.Parallel()
	r := receiver.New(t)
	g := newGateway(t, snsConfig, r)
	g.env = append(g.env, "TOPIC=arn:aws:sns:eu-west-1:123456789012:orders")
	g.start()
	m := snsrig.Message{"Type": "SubscriptionConfirmation", "MessageId": "m-1", "TopicArn": "arn:aws:sns:us-east-1:000000000000:local",
		"Message": "confirm", "Token": "t", "SubscribeURL": r.URL() + "/confirm?Token=t"}
	wantAnswer(t, "a subscription", g.postSNS("emulator", m), 200, "Subscription confirmed")
	if n := len(r.At("/confirm")); n != 1 {
		t.Errorf("confirmed %d times, want once", n)
	}
	m["Type"], m["Message"] = "Notification", `{"type":"order.paid"}`
	a := g.postSNS("emulator", m)
	wantAnswer(t, "a notification", a, 200, "Event received")
	wantAnswer(t, "a notification again", g.postSNS("emulator", m), 200, "Duplicate event ignored")
	if d := r.Await(t, 5*time.Second, "/emulator", 1)[0]; d.Body != `{"type":"order.paid"}` || d.Header.Get("X-Gateway-Event-Type") != "order.paid" {
		t.Errorf("delivered %q of type %q, want the message and its type", d.Body, d.Header.Get("X-Gateway-Event-Type"))
	}
	if got := g.events(); !slices.Equal(got, []string{a.eventID()}) {
		t.Errorf("stored events = %v, want %s alone", got, a.eventID())
	}
}
