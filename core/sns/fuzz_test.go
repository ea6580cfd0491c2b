package sns

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core"
)

var awsFiles = []string{
	"test-notification-no-subject.json", "test-notification-with-subject.json", "test-notification-signature-v2.json",
	"test-subscription-confirmation.json", "test-unsubscribe-confirmation.json",
}

// genuine returns a topic that knows the one certificate of the test data and confirms every
// subscription.
func genuine(t testing.TB) *Topic {
	certificate := aws(t, certificateFile)
	return topic(func(_ context.Context, url string, _ int64) (int, []byte, error) {
		if url == awsCertificate {
			return 200, certificate, nil
		}
		if !strings.HasPrefix(url, "https://sns.us-west-2.amazonaws.com/") {
			return 0, nil, fmt.Errorf("fetched %s", url)
		}
		return 200, nil, nil
	}, inMarch)
}

// originals returns the genuine messages, by ID.
func originals(t testing.TB) map[string]Message {
	all := map[string]Message{}
	for _, file := range awsFiles {
		m, err := genuine(t).Open(t.Context(), sender, aws(t, file))
		if err != nil {
			t.Fatal(err)
		}
		all[m.ID] = m
	}
	return all
}

// FuzzEnvelope looks for a forgery. Only Amazon has the key, so each accepted message must
// equal one of the messages that Amazon signed.
func FuzzEnvelope(f *testing.F) {
	for _, file := range awsFiles {
		f.Add(aws(f, file))
	}
	original, topic := originals(f), genuine(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := topic.Open(t.Context(), sender, body)
		if err == nil && m != original[m.ID] {
			t.Errorf("Open(%q) = %+v, which nobody signed", body, m)
		}
		refusal, refused := errors.AsType[*core.Refusal](err)
		// Other addresses of certificates at SNS have empty files here.
		trouble := func(text string) bool { return strings.Contains(err.Error(), text) }
		if err != nil && !refused && !errors.Is(err, errNoBudget) && !trouble("status ") && !trouble("fetched ") && !trouble("not one certificate") {
			t.Errorf("Open(%q) = %v, which is neither a refusal nor trouble with the certificate", body, err)
		}
		if refused && (refusal.Kind != core.Invalid && refusal.Kind != core.Unauthorized || len(refusal.Error()) > 2000) {
			t.Errorf("Open(%q) = %v", body, refusal)
		}
	})
}

// TestEveryByteCounts changes each byte of each message in turn.
func TestEveryByteCounts(t *testing.T) {
	original, topic := originals(t), genuine(t)
	opened, refused := 0, 0
	for _, file := range awsFiles {
		body := aws(t, file)
		for i := range body {
			changed := bytes.Clone(body)
			changed[i] ^= 1
			m, err := topic.Open(t.Context(), sender, changed)
			if err != nil {
				refused++
			} else if opened++; m != original[m.ID] {
				t.Fatalf("Open() with byte %d of %s made %q = %+v, which nobody signed", i, file, changed[i], m)
			}
		}
	}
	// Accepted messages differ only in white space or in UnsubscribeURL.
	if opened == 0 || opened > refused/2 {
		t.Errorf("%d changed messages opened and %d were refused", opened, refused)
	}
}

// FuzzURLRule compares the rule, which compares texts without parsing them, with a rule that
// parses the address as the dialling code does.
func FuzzURLRule(f *testing.F) {
	const topic = "arn:aws:sns:eu-west-1:123456789012:orders"
	for _, u := range hostileCertificates {
		f.Add(u, topic)
	}
	for _, suffix := range []string{"aws:sns:eu-west-1", "aws-cn:sns:cn-north-1", "aws-eusc:sns:eusc-de-east-1", "aws:sns:s3-us-west-2", "aws-iso:sns:us-iso-east-1"} {
		for _, domain := range []string{"amazonaws.com", "amazonaws.com.cn", "amazonaws.eu"} {
			f.Add("https://sns."+strings.Split(suffix, ":")[2]+"."+domain+file, "arn:"+suffix+":123456789012:t")
			f.Add("https://sns."+strings.Split(suffix, ":")[2]+"."+domain+"/?Action=ConfirmSubscription&TopicArn="+"arn:"+suffix+":123456789012:t&Token=1", "arn:"+suffix+":123456789012:t")
		}
	}
	f.Fuzz(func(t *testing.T, address, topic string) {
		if host, err := hostOf(topic); err == nil && isCertificate(address, host) {
			u := checkHost(t, address, topic)
			if u.RawQuery != "" || u.ForceQuery || !regexp.MustCompile(`^/SimpleNotificationService-[0-9a-f]{32}\.pem$`).MatchString(u.EscapedPath()) {
				t.Errorf("isCertificate(%q, %q) = true", address, host)
			}
		}
		e := envelope{"SubscribeURL": address, "TopicArn": topic, "Token": "1"}
		if confirmed, err := ownConfirmation(e); err == nil {
			for _, a := range []string{address, confirmed} {
				q := checkHost(t, a, topic).Query()
				if len(q) != 3 || q.Get("Action") != "ConfirmSubscription" || q.Get("TopicArn") != topic || q.Get("Token") != "1" {
					t.Errorf("ownConfirmation(%q) = %q", e, confirmed)
				}
			}
		}
	})
}

// checkHost requires the host of the topic's region, and an address that every URL parser reads
// alike.
func checkHost(t *testing.T, address, topic string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatalf("%q was accepted and is no URL: %v", address, err)
	}
	parts := strings.Split(topic, ":")
	domain, known := strings.CutPrefix(u.Host, "sns."+parts[3]+".")
	china, eu := parts[1] == "aws-cn", parts[1] == "aws-eusc"
	known = known && (domain == "amazonaws.com" && !china && !eu || domain == "amazonaws.com.cn" && china || domain == "amazonaws.eu" && eu)
	if !known || len(parts) != 6 || strings.ContainsAny(parts[3], "./@:%#? ") || strings.HasPrefix(parts[3], "s3") {
		t.Errorf("%q was accepted for %q, host %q", address, topic, u.Host)
	}
	if u.Scheme != "https" || u.User != nil || u.Opaque != "" || u.Port() != "" || u.Fragment != "" || strings.Contains(address, "#") || u.Path == "" {
		t.Errorf("%q was accepted for %q", address, topic)
	}
	return u
}
