package sns

import (
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/infra/test/snsrig"
)

const file = "/SimpleNotificationService-0123456789abcdef0123456789abcdef.pem"

// hostileCertificates are addresses where a forger could place a certificate, or that two URL
// parsers read differently. The topic is in eu-west-1.
var hostileCertificates = []string{
	"",
	"https://evil.example" + file,
	"http://sns.eu-west-1.amazonaws.com" + file,
	"HTTPS://sns.eu-west-1.amazonaws.com" + file,
	"ftp://sns.eu-west-1.amazonaws.com" + file,
	"file://sns.eu-west-1.amazonaws.com" + file,
	"//sns.eu-west-1.amazonaws.com" + file,
	"sns.eu-west-1.amazonaws.com" + file,
	" https://sns.eu-west-1.amazonaws.com" + file,
	"https:/sns.eu-west-1.amazonaws.com" + file,
	"https:///sns.eu-west-1.amazonaws.com" + file,
	`https:\\sns.eu-west-1.amazonaws.com` + file,
	"data:application/x-pem-file;base64,AAAA",

	// Buckets and other Amazon hosts whose content customers control.
	"https://sns.s3-us-west-2.amazonaws.com" + file,
	"https://sns.s3.amazonaws.com" + file,
	"https://sns.s3-eu-west-1.amazonaws.com" + file,
	"https://sns.s3.eu-west-1.amazonaws.com" + file,
	"https://sns.s3-website-eu-west-1.amazonaws.com" + file,
	"https://s3.amazonaws.com/sns" + file,
	"https://s3.eu-west-1.amazonaws.com/sns" + file,
	"https://evil.s3.amazonaws.com" + file,
	"https://sns.eu-west-1.elb.amazonaws.com" + file,
	"https://sns.execute-api.eu-west-1.amazonaws.com" + file,
	"https://sqs.eu-west-1.amazonaws.com" + file,
	"https://evil.sns.eu-west-1.amazonaws.com" + file,

	// Amazon hosts of another region or partition.
	"https://sns.amazonaws.com" + file,
	"https://sns.eu-west-2.amazonaws.com" + file,
	"https://sns.us-east-1.amazonaws.com" + file,
	"https://sns.eu-west-1.amazonaws.com.cn" + file,
	"https://sns.eu-west-1.amazonaws.eu" + file,

	// Names that look alike.
	"https://sns.eu-west-1.amazonaws.com.evil.example" + file,
	"https://sns.eu-west-1.amazonaws.co" + file,
	"https://sns.eu-west-1.amazonaws.comm" + file,
	"https://sns-eu-west-1.amazonaws.com" + file,
	"https://snsxeu-west-1.amazonaws.com" + file,
	"https://sns.eu-west-1xamazonaws.com" + file,
	"https://xsns.eu-west-1.amazonaws.com" + file,
	"https://sns.eu-west-1.arnazonaws.com" + file,
	"https://sns.eu-west-1.am\u0430zonaws.com" + file, // a Cyrillic a
	"https://sns.eu-west-1.xn--mazonaws-3fg.com" + file,
	"https://sns.eu-west-1.amazonaws\uff0ecom" + file, // a full-width dot
	"https://sns.eu-west-1.amazonaws.com." + file,
	"https://SNS.eu-west-1.amazonaws.com" + file,
	"https://sns.EU-WEST-1.amazonaws.com" + file,
	"https://sns.eu-west-1.amazonaws.com\u200b" + file,

	// The right host with a port or user information, or within another host.
	"https://sns.eu-west-1.amazonaws.com:443" + file,
	"https://sns.eu-west-1.amazonaws.com:8443" + file,
	"https://sns.eu-west-1.amazonaws.com:" + file,
	"https://user@sns.eu-west-1.amazonaws.com" + file,
	"https://user:secret@sns.eu-west-1.amazonaws.com" + file,
	"https://@sns.eu-west-1.amazonaws.com" + file,
	"https://sns.eu-west-1.amazonaws.com@evil.example" + file,
	"https://sns.eu-west-1.amazonaws.com%40evil.example" + file,
	"https://sns.eu-west-1.amazonaws.com%2f@evil.example" + file,
	"https://sns.eu-west-1.amazonaws.com%00.evil.example" + file,
	`https://sns.eu-west-1.amazonaws.com\@evil.example` + file,
	"https://evil.example#sns.eu-west-1.amazonaws.com" + file,
	"https://evil.example?sns.eu-west-1.amazonaws.com" + file,
	"https://evil.example/sns.eu-west-1.amazonaws.com" + file,
	"https://[::1]" + file,
	"https://[::ffff:127.0.0.1]" + file,
	"https://127.0.0.1" + file,
	"https://169.254.169.254" + file,
	"https://localhost" + file,

	// The right host with another file.
	"https://sns.eu-west-1.amazonaws.com/",
	"https://sns.eu-west-1.amazonaws.com/evil.pem",
	"https://sns.eu-west-1.amazonaws.com/SimpleNotificationService.pem",
	"https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-.pem",
	"https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0123456789abcdef0123456789abcdef",
	"0123456789abcdef0123456789abcdef.pem",
	"https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0123456789abcdef0123456789abcde.pem",
	"https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0123456789abcdef0123456789abcdef0.pem",
	"https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0123456789ABCDEF0123456789ABCDEF.pem",
	"https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0123456789abcdef0123456789abcdeg.pem",
	"https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0123456789abcdef../x/../9abcdef.pem",
	"https://sns.eu-west-1.amazonaws.com/simplenotificationservice-0123456789abcdef0123456789abcdef.pem",
	"https://sns.eu-west-1.amazonaws.com/evil" + file,
	"https://sns.eu-west-1.amazonaws.com/evil/.." + file,
	"https://sns.eu-west-1.amazonaws.com/" + file,
	"https://sns.eu-west-1.amazonaws.com%2f" + file[1:],
	"https://sns.eu-west-1.amazonaws.com" + file + "?x=1",
	"https://sns.eu-west-1.amazonaws.com" + file + "?",
	"https://sns.eu-west-1.amazonaws.com" + file + "#x",
	"https://sns.eu-west-1.amazonaws.com" + file + "/",
	"https://sns.eu-west-1.amazonaws.com" + file + "%00",
	"https://sns.eu-west-1.amazonaws.com" + file + " ",
	"https://sns.eu-west-1.amazonaws.com" + file + ".pem",
	"https://sns.eu-west-1.amazonaws.com/?Action=GetSigningCertificate" + file,
}

func TestHostileCertificates(t *testing.T) {
	rig := snsrig.New(t)
	topic := topic(nothing(t), time.Now)
	for _, url := range hostileCertificates {
		m := rig.Message("Notification", "1", "published", "")
		m["SigningCertURL"] = url
		_, err := topic.Open(t.Context(), sender, m.JSON())
		if url == "" {
			checkRefusal(t, url, err, core.Invalid, "Invalid SNS message")
		} else {
			checkRefusal(t, url, err, core.Unauthorized, "Invalid signature")
		}
	}
}

// TestHostileConfirmations: even in a message with a valid signature, the only address that is
// called is the confirmation of the message's own subscription.
func TestHostileConfirmations(t *testing.T) {
	rig := snsrig.New(t)
	topic := topic(rig.Fetch, time.Now)
	genuine := rig.Message("SubscriptionConfirmation", "1", "", "")["SubscribeURL"].(string)
	replace := func(old, new string) string { return strings.Replace(genuine, old, new, 1) }
	urls := []string{
		replace("https", "http"), replace("https:", ""), replace("https://", "https://user@"), replace(".com/", ".com:443/"),
		replace("eu-west-1.", "eu-west-2."), replace("sns.eu", "sns.s3-eu"), replace(".com/", ".com./"), replace(".com/", ".com.evil.example/"),
		replace(".com/", ".com/x/"), replace(".com/", ".com"), replace("/?", "?"), replace("sns", "SNS"),
		replace("ConfirmSubscription", "DeleteTopic"), replace("Action=", "action="), replace("orders", "other"), replace("Token=2", "Token=3"),
		genuine + "&AuthenticateOnUnsubscribe=true", genuine + "&Token=1", genuine + "&Action=DeleteTopic", genuine + "#x", genuine + ";x=1", genuine + "&x=%zz", genuine[len("https://sns.eu-west-1.amazonaws.com/?"):],
		genuine + "%zz", replace("&Token=2336412f37fb687f5d51e6e2425929f52e8e", ""), "https://" + rig.Host + "/", "https://evil.example/" + genuine,
		"http://169.254.169.254/latest/meta-data/", "http://localhost:6379/", "file:///etc/passwd", "x",
	}
	for _, url := range urls {
		m := rig.Message("SubscriptionConfirmation", "1", "", "")
		m["SubscribeURL"] = url
		rig.Sign(m)
		_, err := topic.Open(t.Context(), sender, m.JSON())
		checkRefusal(t, url, err, core.Invalid, "Invalid SubscribeURL")
	}
	if n := len(rig.Visits()); n != 1 {
		t.Errorf("%d visits, want that for the certificate only: %q", n, rig.Visits())
	}
}

// TestConfirmationInOtherWriting: another escaping or order of parameters is the same address.
func TestConfirmationInOtherWriting(t *testing.T) {
	e := envelope{"TopicArn": "arn:aws:sns:eu-west-1:123456789012:orders", "Token": "23"}
	const want = "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&Token=23&TopicArn=arn%3Aaws%3Asns%3Aeu-west-1%3A123456789012%3Aorders"
	for _, url := range []string{want, "https://sns.eu-west-1.amazonaws.com/?Token=23&TopicArn=arn:aws:sns:eu-west-1:123456789012:orders&Action=ConfirmSubscription"} {
		e["SubscribeURL"] = url
		if got, err := ownConfirmation(e); got != want || err != nil {
			t.Errorf("ownConfirmation(%s) = %s, %v", url, got, err)
		}
	}
}

func TestHostOf(t *testing.T) {
	for topic, want := range map[string]string{
		"arn:aws:sns:eu-west-1:123456789012:orders":                      "sns.eu-west-1.amazonaws.com",
		"arn:aws:sns:ap-southeast-4:123456789012:a_b-C.fifo":             "sns.ap-southeast-4.amazonaws.com",
		"arn:aws:sns:mx-central-1:123456789012:orders":                   "sns.mx-central-1.amazonaws.com",
		"arn:aws-us-gov:sns:us-gov-west-1:123456789012:t":                "sns.us-gov-west-1.amazonaws.com",
		"arn:aws-cn:sns:cn-northwest-1:123456789012:t":                   "sns.cn-northwest-1.amazonaws.com.cn",
		"arn:aws-eusc:sns:eusc-de-east-1:123456789012:t":                 "sns.eusc-de-east-1.amazonaws.eu",
		"arn:aws-iso:sns:us-iso-east-1:123456789012:t":                   "",
		"arn:aws:sns:s3-us-west-2:123456789012:t":                        "",
		"arn:aws:sns:us-s3-west-2:123456789012:t":                        "",
		"arn:aws:sns:euwest1:123456789012:t":                             "",
		"arn:aws:sns:eu-west-1:123456789012:" + strings.Repeat("t", 257): "",
		"arn:aws:sns:s3:123456789012:t":                                  "",
		"arn:aws:sns:eu-west-1.evil.example/:123456789012:t":             "",
		"arn:aws:sns:eu-west-1@evil:123456789012:t":                      "",
		"arn:aws:sns:EU-WEST-1:123456789012:t":                           "",
		"arn:aws:sns::123456789012:t":                                    "",
		"arn:aws:sqs:eu-west-1:123456789012:t":                           "",
		"arn:aws:sns:eu-west-1:12345678901:t":                            "",
		"arn:aws:sns:eu-west-1:123456789012:":                            "",
		"arn:aws:sns:eu-west-1:123456789012:t:1":                         "",
		"arn:aws:sns:eu-west-1:123456789012:t\n":                         "",
		"arn:aws:sns:eu-west-1:123456789012:t.fifo.fifo":                 "",
		"x arn:aws:sns:eu-west-1:123456789012:t":                         "",
		"":                                                               "",
	} {
		if got, err := hostOf(topic); got != want || (err == nil) != (want != "") {
			t.Errorf("hostOf(%q) = %q, %v, want %q", topic, got, err, want)
		}
		if IsTopic(topic) != (want != "") {
			t.Errorf("IsTopic(%q) = %v", topic, want == "")
		}
	}
}
