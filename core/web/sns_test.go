package web_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/intake"
	"github.com/eventgateway/gateway/core/sns"
	"github.com/eventgateway/gateway/core/web"
	"github.com/eventgateway/gateway/infra/test/snsrig"
)

// TestTopicOverHTTP: a subscription, notifications and its end, signed in both
// versions, as they come over the wire; and the same with one byte changed.
func TestTopicOverHTTP(t *testing.T) {
	rig, w := snsrig.New(t), newWorld(t)
	topic := sns.NewTopic(sns.Options{Certificates: sns.NewCertificates(rig.Fetch, core.SystemClock), Fetch: rig.Fetch})
	in := intake.New(intake.Deps{
		Inbox: w.store, IDs: core.NewIDs(core.SystemClock), Clock: core.SystemClock,
		Sources: []intake.Source{{Name: "orders", Kind: intake.Topic, Topic: topic}},
	})
	server := httptest.NewServer(web.Handler(web.Settings{MaxBodySize: 1 << 20, MaxInbound: 10, Log: slog.New(slog.DiscardHandler)},
		web.Intake(web.IntakeOptions{Receiver: in})))
	t.Cleanup(server.Close)
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	post := func(body string) (int, string) {
		t.Helper()
		resp, err := client.Post(server.URL+"/sns/orders", "text/plain; charset=UTF-8", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	for _, version := range []string{"1", "2"} {
		for kind, want := range map[string]string{
			"Notification": "Event received", "SubscriptionConfirmation": "Subscription confirmed", "UnsubscribeConfirmation": "Unsubscribe acknowledged",
		} {
			m := rig.Message(kind, version, "the text of version "+version, "")
			m["MessageId"] = "message-" + version
			rig.Sign(m)
			before := len(rig.Visits())
			forged := strings.Replace(string(m.JSON()), "the text", "The text", 1)
			if status, text := post(forged); status != http.StatusUnauthorized || text != "Invalid signature" {
				t.Errorf("%s of version %s with another text = %d %s, want 401", kind, version, status, text)
			}
			for _, v := range rig.Visits()[before:] {
				if strings.Contains(v, "ConfirmSubscription") {
					t.Errorf("%s: a forged subscription was confirmed: %s", kind, v)
				}
			}
			if status, text := post(string(m.JSON())); status != http.StatusOK || text != want {
				t.Errorf("%s of version %s = %d %s, want 200 %s", kind, version, status, text, want)
			}
		}
	}
	confirmed := 0
	for _, v := range rig.Visits() {
		if strings.Contains(v, "Action=ConfirmSubscription") {
			confirmed++
		}
	}
	if confirmed != 2 {
		t.Errorf("confirmations = %d of visits %v, want 2", confirmed, rig.Visits())
	}
}
