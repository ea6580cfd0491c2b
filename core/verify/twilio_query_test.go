package verify_test

import (
	"crypto/sha1"
	"testing"
	"time"
)

// TestTwilioQueries: Twilio signs an address with its own spelling of the query. Its library
// for Node.js accepts three spellings: the received one, a browser's (%27 for an apostrophe),
// and the one of the module querystring.
func TestTwilioQueries(t *testing.T) {
	const host = "https://mycompany.com"
	for _, tt := range []struct {
		came, signed string
		want         bool
	}{
		{"/a?Body=It's%20ok", "/a?Body=It's%20ok", true},
		{"/a?Body=It's%20ok", "/a?Body=It%27s%20ok", true},
		{"/a?Body=It%27s%20ok", "/a?Body=It's%20ok", true},
		{"/a?Body=It%27s+ok", "/a?Body=It's%20ok", true},
		{"/a?b=%2b1&b=2&c", "/a?b=%2B1&b=2&c=", true},
		{"/a?b=(1)*~!&c=%C3%A4%2F%3A", "/a?b=(1)*~!&c=%C3%A4%2F%3A", true},
		{"/a?b=%281%29%2A%7E%21&c=/:", "/a?b=(1)*~!&c=%2F%3A", true},
		{"/a?b=[1]|{}", "/a?b=%5B1%5D%7C%7B%7D", true},
		{"/a?b=\"<>", "/a?b=%22%3C%3E", true},
		{"/a?&b=1&&c=2&", "/a?b=1&c=2", true},
		{"/a?b=1=2", "/a?b=1%3D2", true},
		{"/a?b=It's", ":443/a?b=It%27s", true},
		{"/a?b=It%27s", ":443/a?b=It's", true},
		{"/it's", "/it%27s", false}, // the path is as it came
		{"/a?b=1&c=2", "/a?c=2&b=1", false},
		{"/a?b=1", "/a?b=2", false},
		{"/a?b=1", "/a", false},
		{"/a?b=1", "/a?b=1&c=", false},
		{"/a?b=%zz", "/a?b=%25zz", false}, // its meaning is not known
	} {
		s := newScheme(t, "twilio", "12345")
		m := twilioForm(host+tt.came, "+14158675309")
		fields := "CallSidCA1234567890ABCDECaller+14158675309Digits1234From+14158675309To+18005551212"
		proof := base64MAC(sha1.New, "12345", host+tt.signed+fields)
		err := s.Verify(posted(m, "X-Twilio-Signature", proof).request(), now)
		if (err == nil) != tt.want {
			t.Errorf("%s, signed as %s: Verify() = %v, want it taken: %v", tt.came, tt.signed, err, tt.want)
		}
	}
}

// TestTwilioBodySumInAnotherSpelling: the body's sum is read from the received address, also if
// the signature covers another spelling of it.
func TestTwilioBodySumInAnotherSpelling(t *testing.T) {
	const url = "https://mycompany.com/a?n=It's&bodySHA256="
	s := newScheme(t, "twilio", "12345")
	proof := base64MAC(sha1.New, "12345", "https://mycompany.com/a?n=It%27s&bodySHA256="+twilioSum)
	m := twilioJSON(url + twilioSum)
	if err := s.Verify(posted(m, "X-Twilio-Signature", proof).request(), now); err != nil {
		t.Errorf("Verify() = %v, want nil", err)
	}
	m.Body = append(m.Body, ' ')
	if err := s.Verify(posted(m, "X-Twilio-Signature", proof).request(), time.Time{}); err == nil {
		t.Error("another body was taken")
	}
}
