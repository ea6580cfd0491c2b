package verify_test

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/verify"
)

// macOf returns the MAC of a text, computed without the package under test.
func macOf(h func() hash.Hash, key, text string) []byte {
	m := hmac.New(h, []byte(key))
	m.Write([]byte(text))
	return m.Sum(nil)
}

func hexMAC(key, text string) string { return hex.EncodeToString(macOf(sha256.New, key, text)) }

func base64MAC(h func() hash.Hash, key, text string) string {
	return base64.StdEncoding.EncodeToString(macOf(h, key, text))
}

// vectors are requests signed by other implementations. A published vector is in the provider's
// documentation or tests. A frozen vector was made once with another implementation, since its
// provider publishes none that can be recomputed.
var vectors = map[string]struct {
	scheme, secret string
	message        verify.Message
	headers        []string
	at             int64 // Unix seconds, 0 if no time is signed
	verifyOnly     bool  // Sign makes another proof: of other versions, or spelled otherwise
}{
	// Published: docs.github.com, "Validating webhook deliveries".
	"github": {scheme: "github", secret: secret, message: verify.Message{Body: []byte(body)},
		headers: []string{"X-Hub-Signature-256", "sha256=" + digits}},
	// From the tests of octokit/webhooks-methods.js.
	"github, octokit": {scheme: "github", secret: "mysecret", message: verify.Message{Body: []byte(`{"foo":"bar"}`)},
		headers: []string{"X-Hub-Signature-256", "sha256=4864d2759938a15468b5df9ade20bf161da9b4f737ea61794142f3484236bda3"}},
	"hmac": {scheme: "hmac", secret: secret, message: verify.Message{Body: []byte(body)},
		headers: []string{"X-Webhook-Signature", "sha256=" + digits}},
	// Frozen.
	"stripe": {scheme: "stripe", secret: "whsec_test_secret", at: 1614265330,
		message: verify.Message{Body: []byte(`{"id":"evt_test_webhook","object":"event","type":"invoice.paid"}`)},
		headers: []string{"Stripe-Signature", "t=1614265330,v1=94a95a585251b387d383b81fdde1a4608d680d84c35b091be61e884cfac66034"}},
	// Published: docs.slack.dev, "Verifying requests from Slack".
	"slack": {scheme: "slack", secret: "8f742231b10e8888abcd99yyyzzz85a5", at: 1531420618, message: verify.Message{Body: []byte(slackBody)},
		headers: []string{"X-Slack-Request-Timestamp", "1531420618",
			"X-Slack-Signature", "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"}},
	// Frozen.
	"shopify": {scheme: "shopify", secret: "hush", message: verify.Message{Body: []byte(`{"id":820982911946154508}`)},
		headers: []string{"X-Shopify-Hmac-Sha256", "qBvrsZF7RfB1iS6BX6IHqJTp5L911P7intnPeTPsH0I="}},
	"shopify, newer events": {scheme: "shopify", secret: "hush", message: verify.Message{Body: []byte(`{"id":820982911946154508}`)},
		headers: []string{"Shopify-Hmac-Sha256", "qBvrsZF7RfB1iS6BX6IHqJTp5L911P7intnPeTPsH0I="}, verifyOnly: true},
	// Published: standard-webhooks/standard-webhooks, libraries/go/webhook_test.go.
	"standard-webhooks v1": {scheme: "standard-webhooks", secret: standardSecret, at: 1614265330, message: standardMessage,
		headers: []string{"Webhook-Id", standardMessage.ID, "Webhook-Timestamp", "1614265330",
			"Webhook-Signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}},
	"standard-webhooks v1, Svix's names": {scheme: "standard-webhooks", secret: standardSecret[len("whsec_"):], at: 1614265330, message: standardMessage,
		headers: []string{"Svix-Id", standardMessage.ID, "Svix-Timestamp", "1614265330",
			"Svix-Signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}, verifyOnly: true},
	// Published: svix/svix-webhooks, server/svix-server/src/worker.rs; the public key
	// was computed of the private one.
	"standard-webhooks v1a": {scheme: "standard-webhooks", secret: standardPrivate, at: 1614265330, message: standardMessage,
		headers: []string{"Webhook-Id", standardMessage.ID, "Webhook-Timestamp", "1614265330", "Webhook-Signature", standardV1a}},
	"standard-webhooks v1a, public key": {scheme: "standard-webhooks", secret: standardPublic, at: 1614265330, message: standardMessage,
		headers: []string{"Webhook-Id", standardMessage.ID, "Webhook-Timestamp", "1614265330", "Webhook-Signature", standardV1a}, verifyOnly: true},
	// GitLab's token is no signature.
	"gitlab": {scheme: "gitlab", secret: secret, message: verify.Message{Body: []byte(body)}, headers: []string{"X-Gitlab-Token", secret}},
	// Frozen; Linear signs as GitHub does, without the prefix.
	"linear": {scheme: "linear", secret: secret, at: 1614265330, message: verify.Message{Body: []byte(linearBody)},
		headers: []string{"Linear-Signature", "5b5b712e869083094db7d265c8abeaca8bae45c166b408ee026db29b6612f555"}},
	// Frozen, with openssl dgst -sha256 -hmac.
	"paddle": {scheme: "paddle", secret: "pdl_ntfset_test_secret", at: 1614265330, message: verify.Message{Body: []byte(`{"event_type":"transaction.paid"}`)},
		headers: []string{"Paddle-Signature", "ts=1614265330;h1=" + paddleVector}},
	// Published: the tests of Twilio's libraries; the first in several of them, the
	// others in twilio/twilio-go, client/request_validator_test.go.
	"twilio": {scheme: "twilio", secret: "12345", message: twilioForm("https://mycompany.com/myapp.php?foo=1&bar=2", "+12349013030"),
		headers: []string{"X-Twilio-Signature", "0/KCTR6DLpKmkAf8muzZqo1nDgQ="}},
	"twilio, Go": {scheme: "twilio", secret: "12345", message: twilioForm(twilioURL, "+14158675309"),
		headers: []string{"X-Twilio-Signature", "RSOYDt4T1cUTdK1PDd93/VVr8B8="}},
	"twilio, signed without the port": {scheme: "twilio", secret: "12345", message: twilioForm("https://mycompany.com:1234/myapp.php?foo=1&bar=2", "+14158675309"),
		headers: []string{"X-Twilio-Signature", "RSOYDt4T1cUTdK1PDd93/VVr8B8="}, verifyOnly: true},
	"twilio, signed with the default port": {scheme: "twilio", secret: "12345", message: twilioForm(twilioURL, "+14158675309"),
		headers: []string{"X-Twilio-Signature", "kvajT1Ptam85bY51eRf/AJRuM3w="}, verifyOnly: true},
	"twilio, http without port": {scheme: "twilio", secret: "12345", message: twilioForm("http://mycompany.com/myapp.php?foo=1&bar=2", "+14158675309"),
		headers: []string{"X-Twilio-Signature", "0ZXoZLH/DfblKGATFgpif+LLRf4="}, verifyOnly: true},
	"twilio, http with port": {scheme: "twilio", secret: "12345", message: twilioForm("http://mycompany.com:1234/myapp.php?foo=1&bar=2", "+14158675309"),
		headers: []string{"X-Twilio-Signature", "Zmvh+3yNM1Phv2jhDCwEM3q5ebU="}},
	"twilio, JSON": {scheme: "twilio", secret: "12345", message: twilioJSON(twilioURL + "&bodySHA256=" + twilioSum),
		headers: []string{"X-Twilio-Signature", "a9nBmqA0ju/hNViExpshrM61xv4="}},
	"twilio, JSON without other parameters": {scheme: "twilio", secret: "12345", message: twilioJSON("https://mycompany.com/myapp.php?bodySHA256=" + twilioSum),
		headers: []string{"X-Twilio-Signature", "y77kIzt2vzLz71DgmJGsen2scGs="}},
}

const (
	linearBody = `{"action":"create","type":"Issue","webhookTimestamp":1614265330000}`

	slackBody = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA" +
		"&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554" +
		"%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"

	standardPrivate = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
	standardPublic  = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="
	standardV1a     = "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg=="

	paddleVector = "f7d56422ec6396c9f08c52fb9106587e385b33447758dc30134ebde0df9d24b2"

	twilioURL = "https://mycompany.com/myapp.php?foo=1&bar=2"
	twilioSum = "0a1ff7634d9ab3b95db5c9a2dfe9416e41502b283a80c7cf19632632f96e6620"
	formType  = "application/x-www-form-urlencoded"
)

var standardMessage = verify.Message{ID: "msg_p5jXN8AQM9LWM0D4loKWxJek", Body: []byte(`{"test": 2432232314}`)}

func twilioForm(url, number string) verify.Message {
	number = strings.ReplaceAll(number, "+", "%2B")
	return verify.Message{URL: url, ContentType: formType + "; charset=UTF-8",
		Body: []byte("To=%2B18005551212&CallSid=CA1234567890ABCDE&Caller=" + number + "&Digits=1234&From=" + number)}
}

func twilioJSON(url string) verify.Message {
	return verify.Message{URL: url, ContentType: "application/json", Body: []byte(`{"property": "value", "boolean": true}`)}
}

func TestVectors(t *testing.T) {
	for name, v := range vectors {
		s := newScheme(t, v.scheme, v.secret)
		at := now
		if v.at != 0 {
			at = time.Unix(v.at, 0)
		}
		if err := s.Verify(posted(v.message, v.headers...).request(), at); err != nil {
			t.Errorf("%s: Verify() = %v, want nil", name, err)
		}
		if v.verifyOnly {
			continue
		}
		want := map[string]string{}
		for i := 0; i < len(v.headers); i += 2 {
			want[strings.ToLower(v.headers[i])] = v.headers[i+1]
		}
		got, err := s.Sign(v.message, at)
		lower := map[string]string{}
		for name, value := range got {
			lower[strings.ToLower(name)] = value
		}
		if err != nil || !maps.Equal(lower, want) {
			t.Errorf("%s: Sign() = %v, %v, want %v", name, got, err, want)
		}
	}
}

// A refusal is the expected result of a scheme for its message with these headers.
type refusal struct {
	headers []string
	want    core.Kind // 0: accepted
}

func check(t *testing.T, scheme string, m verify.Message, secrets []string, cases map[string]refusal) {
	t.Helper()
	s := newScheme(t, scheme, secrets...)
	for name, c := range cases {
		err := s.Verify(posted(m, c.headers...).request(), now)
		if got := kind(t, err); got != c.want {
			t.Errorf("%s, %s: Verify() = %v, of kind %d, want %d", scheme, name, err, got, c.want)
		}
	}
}

func TestBodySchemes(t *testing.T) {
	const gh, generic = "X-Hub-Signature-256", "X-Webhook-Signature"
	zeros := strings.Repeat("0", 64)
	m := verify.Message{Body: []byte(body)}
	check(t, "github", m, []string{secret}, map[string]refusal{
		"right":             {[]string{gh, "sha256=" + digits}, 0},
		"other case":        {[]string{"x-hub-signature-256", "sha256=" + strings.ToUpper(digits)}, 0},
		"only SHA-1":        {[]string{"X-Hub-Signature", "sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59"}, core.Unauthorized},
		"other header":      {[]string{generic, "sha256=" + digits}, core.Unauthorized},
		"wrong":             {[]string{gh, "sha256=" + zeros}, core.Unauthorized},
		"no prefix":         {[]string{gh, digits}, core.Invalid},
		"other prefix":      {[]string{gh, "sha1=" + digits}, core.Invalid},
		"capital prefix":    {[]string{gh, "SHA256=" + digits}, core.Invalid},
		"empty":             {[]string{gh, ""}, core.Invalid},
		"no digits":         {[]string{gh, "sha256="}, core.Invalid},
		"not digits":        {[]string{gh, "sha256=" + strings.Repeat("g", 64)}, core.Invalid},
		"odd":               {[]string{gh, "sha256=" + digits[1:]}, core.Invalid},
		"short":             {[]string{gh, "sha256=" + digits[2:]}, core.Invalid},
		"long":              {[]string{gh, "sha256=" + digits + "00"}, core.Invalid},
		"space before":      {[]string{gh, " sha256=" + digits}, core.Invalid},
		"NUL after":         {[]string{gh, "sha256=" + digits + "\x00"}, core.Invalid},
		"joined":            {[]string{gh, "sha256=" + digits + ", sha256=" + digits}, core.Invalid},
		"right and wrong":   {[]string{gh, "sha256=" + digits, gh, "sha256=" + zeros}, core.Invalid},
		"wrong and right":   {[]string{gh, "sha256=" + zeros, gh, "sha256=" + digits}, core.Invalid},
		"right, then empty": {[]string{gh, "sha256=" + digits, gh, ""}, core.Invalid},
	})
	check(t, "hmac", m, []string{secret}, map[string]refusal{
		"right":           {[]string{generic, "sha256=" + digits}, 0},
		"no prefix":       {[]string{generic, digits}, 0},
		"prefix twice":    {[]string{generic, "sha256=sha256=" + digits}, core.Invalid},
		"GitHub's header": {[]string{gh, "sha256=" + digits}, core.Unauthorized},
	})
}

func TestLinear(t *testing.T) {
	const header = "Linear-Signature"
	at := func(time string) string { return `{"type":"Issue","webhookTimestamp":` + time + `}` }
	ms := func(off int64) string { return at(strconv.FormatInt(now.UnixMilli()+off, 10)) }
	for name, c := range map[string]struct {
		body string
		want core.Kind
	}{
		"right":              {ms(0), 0},
		"60 s ago":           {ms(-60_000), 0},
		"60.001 s ago":       {ms(-60_001), core.Unauthorized},
		"in 60 s":            {ms(60_000), 0},
		"in 60.001 s":        {ms(60_001), core.Unauthorized},
		"seconds":            {at("1614265330"), core.Unauthorized},
		"the end of time":    {at("9223372036854775807"), core.Unauthorized},
		"too large a number": {at("9223372036854775808"), core.Invalid},
		"negative":           {at("-1"), core.Invalid},
		"fraction":           {at("1614265330000.5"), core.Invalid},
		"text":               {at(`"1614265330000"`), core.Invalid},
		"null":               {at("null"), core.Invalid},
		"object":             {at("{}"), core.Invalid},
		"absent":             {`{"type":"Issue"}`, core.Invalid},
		"further in":         {`{"data":` + ms(0) + `}`, core.Invalid},
		"array":              {"[" + ms(0) + "]", core.Invalid},
		"not JSON":           {body, core.Invalid},
		"cut short":          {ms(0)[:40], core.Invalid},
		"empty":              {"", core.Invalid},
	} {
		m := verify.Message{Body: []byte(c.body)}
		right := hexMAC(secret, c.body)
		check(t, "linear", m, []string{secret}, map[string]refusal{
			name:                   {[]string{header, right}, c.want},
			name + ", with prefix": {[]string{header, "sha256=" + right}, core.Invalid},
			// A body with a wrong signature is not read.
			name + ", wrong":    {[]string{header, strings.Repeat("0", 64)}, core.Unauthorized},
			name + ", unsigned": {nil, core.Unauthorized},
			name + ", empty":    {[]string{header, ""}, core.Invalid},
		})
	}
	_, err := newScheme(t, "linear", secret).Sign(verify.Message{Body: []byte(`{}`)}, now)
	if err == nil || !strings.Contains(err.Error(), "webhookTimestamp of the body is absent") {
		t.Errorf("Sign() of a body without a time = %v, want an error that says so", err)
	}
}

func TestShopify(t *testing.T) {
	const header, newer = "X-Shopify-Hmac-Sha256", "Shopify-Hmac-Sha256"
	right := base64MAC(sha256.New, secret, body)
	other := base64MAC(sha256.New, "other", body)
	check(t, "shopify", verify.Message{Body: []byte(body)}, []string{secret}, map[string]refusal{
		"right":                {[]string{header, right}, 0},
		"right, newer":         {[]string{newer, right}, 0},
		"both":                 {[]string{newer, right, header, right}, 0},
		"both, differing":      {[]string{header, right, newer, other}, core.Invalid},
		"wrong":                {[]string{header, other}, core.Unauthorized},
		"wrong, newer":         {[]string{newer, other}, core.Unauthorized},
		"hexadecimal":          {[]string{header, hexMAC(secret, body)}, core.Invalid},
		"no padding":           {[]string{header, strings.TrimRight(right, "=")}, core.Invalid},
		"URL alphabet":         {[]string{header, "_" + right[1:]}, core.Invalid},
		"line break":           {[]string{header, right[:10] + "\n" + right[10:]}, core.Invalid},
		"line break for digit": {[]string{header, right[:10] + "\n" + right[11:]}, core.Invalid},
		"empty":                {[]string{header, ""}, core.Invalid},
	})
}

func TestSignatureHeader(t *testing.T) {
	s, err := verify.New("hmac", verify.Options{Secrets: []string{secret}, SignatureHeader: "x-acme-proof"})
	if err != nil {
		t.Fatal(err)
	}
	m := verify.Message{Body: []byte(body)}
	if err := s.Verify(posted(m, "X-Acme-Proof", digits).request(), now); err != nil {
		t.Errorf("Verify() with the configured header = %v, want nil", err)
	}
	if got := kind(t, s.Verify(posted(m, verify.DefaultSignatureHeader, digits).request(), now)); got != core.Unauthorized {
		t.Errorf("Verify() with the default header refuses with kind %d, want %d", got, core.Unauthorized)
	}
	if got, err := s.Sign(m, now); err != nil || got["x-acme-proof"] != "sha256="+digits {
		t.Errorf("Sign() = %v, %v, want %q under the configured header", got, err, "sha256="+digits)
	}
}

// TestTimedLists covers Stripe and Paddle, which differ in punctuation only.
func TestTimedLists(t *testing.T) {
	for _, c := range []struct{ scheme, header, between, time, proof, joint, other string }{
		{"stripe", "Stripe-Signature", ",", "t", "v1", ".", "v0"},
		{"paddle", "Paddle-Signature", ";", "ts", "h1", ":", "h0"},
	} {
		at := strconv.FormatInt(now.Unix(), 10)
		proofOf := func(key, at string) string { return c.proof + "=" + hexMAC(key, at+c.joint+body) }
		right, wrong := proofOf(secret, at), proofOf("other", at)
		list := func(entries ...string) []string { return []string{c.header, strings.Join(entries, c.between)} }
		timed := func(at string) []string { return list(c.time+"="+at, proofOf(secret, at)) }
		stamp := func(off int64) string { return strconv.FormatInt(now.Unix()+off, 10) }
		cases := map[string]refusal{
			"right":                         {list(c.time+"="+at, right), 0},
			"time last":                     {list(right, c.time+"="+at), 0},
			"several":                       {list(c.time+"="+at, wrong, right), 0},
			"several, first":                {list(c.time+"="+at, right, wrong), 0},
			"others ignored":                {list(c.time+"="+at, c.other+"=zz", right, "x=y"), 0},
			"unreadable passed over":        {list(c.time+"="+at, c.proof+"=zz", right), 0},
			"16 signatures":                 {list(append([]string{c.time + "=" + at, right}, slices.Repeat([]string{wrong}, 15)...)...), 0},
			"17 signatures":                 {list(append([]string{c.time + "=" + at, right}, slices.Repeat([]string{wrong}, 16)...)...), core.Invalid},
			"wrong":                         {list(c.time+"="+at, wrong), core.Unauthorized},
			"wrong and unreadable":          {list(c.time+"="+at, wrong, c.proof+"=zz"), core.Unauthorized},
			"other time":                    {list(c.time+"="+stamp(1), right), core.Unauthorized},
			"right under other version":     {list(c.time+"="+at, c.other+"="+right[3:]), core.Invalid},
			"right and wrong version":       {list(c.time+"="+at, wrong, c.other+"="+right[3:]), core.Unauthorized},
			"only unreadable":               {list(c.time+"="+at, c.proof+"=zz"), core.Invalid},
			"only empty":                    {list(c.time+"="+at, c.proof+"="), core.Invalid},
			"no signature":                  {list(c.time + "=" + at), core.Invalid},
			"no time":                       {list(right), core.Invalid},
			"time twice":                    {list(c.time+"="+at, c.time+"="+at, right), core.Invalid},
			"two times":                     {list(c.time+"="+stamp(-9999), c.time+"="+at, right), core.Invalid},
			"empty":                         {[]string{c.header, ""}, core.Invalid},
			"no list":                       {[]string{c.header, right[3:]}, core.Invalid},
			"entry without name":            {list(c.time+"="+at, right, "x"), core.Invalid},
			"entry with two =":              {list(c.time+"="+at, right, "x=y="), core.Invalid},
			"ends in separator":             {list(c.time+"="+at, right, ""), core.Invalid},
			"blank after separator":         {list(c.time+"="+at, " "+right), core.Invalid},
			"300 s ago":                     {timed(stamp(-300)), 0},
			"301 s ago":                     {timed(stamp(-301)), core.Unauthorized},
			"in 300 s":                      {timed(stamp(300)), 0},
			"in 301 s":                      {timed(stamp(301)), core.Unauthorized},
			"largest time":                  {timed("9223372036854775807"), core.Unauthorized},
			"too large a time":              {timed("9223372036854775808"), core.Invalid},
			"time, longer than any":         {timed(strings.Repeat("9", 400)), core.Invalid},
			"time 2^64 later":               {timed(plus2to64(now.Unix())), core.Invalid},
			"time with +":                   {timed("+" + at), core.Invalid},
			"time with -":                   {timed("-" + at), core.Invalid},
			"time with blank":               {timed(at + " "), core.Invalid},
			"time with underscore":          {timed(at[:4] + "_" + at[4:]), core.Invalid},
			"time with fraction":            {timed(at + ".0"), core.Invalid},
			"time in hexadecimal":           {timed("0x6a1e"), core.Invalid},
			"time in other digits":          {timed("١٧٦٣٦٢٩٢٠٠"), core.Invalid},
			"no time at all":                {timed(""), core.Invalid},
			"NaN":                           {timed("NaN"), core.Invalid},
			"wrong, and from too long ago":  {list(c.time+"="+stamp(-301), wrong), core.Unauthorized},
			"unreadable, from too long ago": {list(c.time+"="+stamp(-301), c.proof+"=zz"), core.Invalid},
		}
		check(t, c.scheme, verify.Message{Body: []byte(body)}, []string{"old", secret}, cases)
	}
}

// plus2to64 returns n + 2^64 as a text, which is n again if arithmetic overflows.
func plus2to64(n int64) string {
	high, low := uint64(18446744073), uint64(709551616)+uint64(n)
	return fmt.Sprintf("%d%09d", high+low/1e9, low%1e9)
}

func TestSlack(t *testing.T) {
	const proof, stamp = "X-Slack-Signature", "X-Slack-Request-Timestamp"
	at := strconv.FormatInt(now.Unix(), 10)
	signed := func(at string) []string { return []string{stamp, at, proof, "v0=" + hexMAC(secret, "v0:"+at+":"+body)} }
	right := signed(at)
	check(t, "slack", verify.Message{Body: []byte(body)}, []string{"old", secret}, map[string]refusal{
		"right":                       {right, 0},
		"wrong":                       {[]string{stamp, at, proof, "v0=" + hexMAC("other", "v0:"+at+":"+body)}, core.Unauthorized},
		"no version":                  {[]string{stamp, at, proof, right[3][3:]}, core.Invalid},
		"other version":               {[]string{stamp, at, proof, "v1=" + right[3][3:]}, core.Invalid},
		"not hexadecimal":             {[]string{stamp, at, proof, "v0=" + strings.Repeat("g", 64)}, core.Invalid},
		"short":                       {[]string{stamp, at, proof, right[3][:65]}, core.Invalid},
		"empty":                       {[]string{stamp, at, proof, ""}, core.Invalid},
		"no time":                     {right[2:], core.Unauthorized},
		"no proof":                    {right[:2], core.Unauthorized},
		"two times":                   {append([]string{stamp, "1"}, right...), core.Invalid},
		"other time":                  {[]string{stamp, strconv.FormatInt(now.Unix()+1, 10), proof, right[3]}, core.Unauthorized},
		"301 s ago":                   {signed(strconv.FormatInt(now.Unix()-301, 10)), core.Unauthorized},
		"in 301 s":                    {signed(strconv.FormatInt(now.Unix()+301, 10)), core.Unauthorized},
		"time with +":                 {signed("+" + at), core.Invalid},
		"time with fraction":          {signed(at + ".5"), core.Invalid},
		"time is empty":               {signed(""), core.Invalid},
		"too large a time":            {signed("9223372036854775808"), core.Invalid},
		"not a time, and wrong proof": {[]string{stamp, "x", proof, right[3]}, core.Invalid},
	})
}

func TestStandardWebhooks(t *testing.T) {
	at := strconv.FormatInt(now.Unix(), 10)
	key, _ := base64.StdEncoding.DecodeString(standardSecret[len("whsec_"):])
	v1 := func(key, id, at string) string { return "v1," + base64MAC(sha256.New, key, id+"."+at+"."+body) }
	of := func(family, id, at, signature string) []string {
		return []string{family + "-id", id, family + "-timestamp", at, family + "-signature", signature}
	}
	right, wrong := v1(string(key), "msg_1", at), v1("other", "msg_1", at)
	stamped := func(at string) []string { return of("webhook", "msg_1", at, v1(string(key), "msg_1", at)) }
	named := func(id string) []string { return of("webhook", id, at, v1(string(key), id, at)) }
	v1a := sent(t, newScheme(t, "standard-webhooks", standardPrivate), verify.Message{ID: "msg_1", Body: []byte(body)}).header.Get("Webhook-Signature")
	otherV1a := sent(t, newScheme(t, "standard-webhooks", "whsk_"+base64.StdEncoding.EncodeToString(make([]byte, 32))),
		verify.Message{ID: "msg_1", Body: []byte(body)}).header.Get("Webhook-Signature")

	cases := map[string]refusal{
		"v1":                           {of("webhook", "msg_1", at, right), 0},
		"v1a":                          {of("webhook", "msg_1", at, v1a), 0},
		"Svix's names":                 {of("svix", "msg_1", at, right), 0},
		"both names":                   {append(of("svix", "msg_1", at, right), of("webhook", "msg_1", at, right)...), 0},
		"Svix's are not looked at":     {append(of("svix", "x", "x", "x"), of("webhook", "msg_1", at, right)...), 0},
		"several":                      {of("webhook", "msg_1", at, wrong+" "+right), 0},
		"several, first":               {of("webhook", "msg_1", at, right+" "+wrong), 0},
		"both versions":                {of("webhook", "msg_1", at, otherV1a+" "+right), 0},
		"both versions, other":         {of("webhook", "msg_1", at, wrong+" "+v1a), 0},
		"unknown versions ignored":     {of("webhook", "msg_1", at, "v2,xx "+right+" v1b,yy x"), 0},
		"unreadable passed over":       {of("webhook", "msg_1", at, "v1,zz  "+right), 0},
		"16 signatures":                {of("webhook", "msg_1", at, strings.Repeat(wrong+" ", 15)+right), 0},
		"17 signatures":                {of("webhook", "msg_1", at, strings.Repeat(otherV1a+" ", 16)+v1a), core.Invalid},
		"wrong":                        {of("webhook", "msg_1", at, wrong), core.Unauthorized},
		"v1a of another":               {of("webhook", "msg_1", at, otherV1a), core.Unauthorized},
		"v1 called v1a":                {of("webhook", "msg_1", at, "v1a"+right[2:]), core.Invalid},
		"v1a called v1":                {of("webhook", "msg_1", at, "v1"+v1a[3:]), core.Invalid},
		"only unknown versions":        {of("webhook", "msg_1", at, "v2"+right[2:]), core.Invalid},
		"only unreadable":              {of("webhook", "msg_1", at, "v1,zz"), core.Invalid},
		"wrong and unreadable":         {of("webhook", "msg_1", at, wrong+" v1,zz"), core.Unauthorized},
		"no version":                   {of("webhook", "msg_1", at, right[3:]), core.Invalid},
		"no padding":                   {of("webhook", "msg_1", at, strings.TrimRight(right, "=")), core.Invalid},
		"hexadecimal":                  {of("webhook", "msg_1", at, "v1,"+hexMAC(string(key), "msg_1."+at+"."+body)), core.Invalid},
		"empty":                        {of("webhook", "msg_1", at, ""), core.Invalid},
		"other id":                     {of("webhook", "msg_2", at, right), core.Unauthorized},
		"other time":                   {of("webhook", "msg_1", strconv.FormatInt(now.Unix()+1, 10), right), core.Unauthorized},
		"no id":                        {of("webhook", "msg_1", at, right)[2:], core.Unauthorized},
		"no time":                      {slices.Delete(of("webhook", "msg_1", at, right), 2, 4), core.Unauthorized},
		"no signature":                 {of("webhook", "msg_1", at, right)[:4], core.Unauthorized},
		"an unsigned id beside Svix's": {append(of("svix", "msg_1", at, right), "webhook-id", "msg_2"), core.Unauthorized},
		"two ids":                      {append(of("webhook", "msg_1", at, right), "webhook-id", "msg_2"), core.Invalid},
		"id is empty":                  {named(""), core.Invalid},
		"id with a full stop":          {named("msg.1"), core.Invalid},
		"300 s ago":                    {stamped(strconv.FormatInt(now.Unix()-300, 10)), 0},
		"301 s ago":                    {stamped(strconv.FormatInt(now.Unix()-301, 10)), core.Unauthorized},
		"in 301 s":                     {stamped(strconv.FormatInt(now.Unix()+301, 10)), core.Unauthorized},
		"time with +":                  {stamped("+" + at), core.Invalid},
		"time in milliseconds":         {stamped(at + "000"), core.Unauthorized},
		"time with fraction":           {stamped(at + ".0"), core.Invalid},
		"time is empty":                {stamped(""), core.Invalid},
		"too large a time":             {stamped("9223372036854775808"), core.Invalid},
	}
	check(t, "standard-webhooks", verify.Message{Body: []byte(body)}, []string{standardPublic, standardSecret}, cases)

	// Symmetric keys do not make up for an asymmetric signature, nor the other way.
	check(t, "standard-webhooks", verify.Message{Body: []byte(body)}, []string{standardPublic}, map[string]refusal{
		"v1": {of("webhook", "msg_1", at, right), core.Unauthorized}, "v1a": {of("webhook", "msg_1", at, v1a), 0},
	})
	check(t, "standard-webhooks", verify.Message{Body: []byte(body)}, []string{standardSecret}, map[string]refusal{
		"v1": {of("webhook", "msg_1", at, right), 0}, "v1a": {of("webhook", "msg_1", at, v1a), core.Unauthorized},
	})
}

// TestStandardKeys: the forms of a secret of Standard Webhooks. Its base64 is the key, with
// or without whsec_ and padding. For any other text the bytes are the key.
func TestStandardKeys(t *testing.T) {
	const key = "It's a key of thirty-one bytes." // 31 bytes, so that its base64 has padding
	text := base64.StdEncoding.EncodeToString([]byte(key))
	at := strconv.FormatInt(now.Unix(), 10)
	for secret, key := range map[string]string{
		"whsec_" + text:                         key,
		"whsec_" + strings.TrimRight(text, "="): key,
		text:                                    key,
		strings.TrimRight(text, "="):            key,
		"k3y-of-the-source":                     "k3y-of-the-source",
		strings.Repeat("0f", 32):                string(must(base64.StdEncoding.DecodeString(strings.Repeat("0f", 32)))),
	} {
		proof := base64MAC(sha256.New, key, "msg_1."+at+"."+body)
		check(t, "standard-webhooks", verify.Message{Body: []byte(body)}, []string{secret}, map[string]refusal{
			secret: {[]string{"Webhook-Id", "msg_1", "Webhook-Timestamp", at, "Webhook-Signature", "v1," + proof}, 0},
		})
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// TestShiftedStop: an id with a full stop is refused. With it, the same signed text could be
// cut into another id and body.
func TestShiftedStop(t *testing.T) {
	s := newScheme(t, "standard-webhooks", standardSecret)
	at := strconv.FormatInt(now.Unix(), 10)
	p := sent(t, s, verify.Message{ID: "msg_1", Body: []byte(`{"at":"1.` + at + `.0"}`)})
	p.header.Set("Webhook-Id", "msg_1."+at+`.{"at":"1`)
	p.body = []byte(`0"}`)
	if got := kind(t, s.Verify(p.request(), now)); got != core.Invalid {
		t.Errorf("Verify() of a message cut elsewhere refuses with kind %d, want %d", got, core.Invalid)
	}
}

func TestStandardWebhooksSigns(t *testing.T) {
	m := verify.Message{ID: "msg_1", Body: []byte(body)}
	public := newScheme(t, "standard-webhooks", standardPublic, standardSecret)
	if headers, err := public.Sign(m, now); err == nil || !strings.Contains(err.Error(), "whsk_") {
		t.Errorf("Sign() with a public key = %v, %v, want an error that says what to do", headers, err)
	}
	seed, _ := base64.StdEncoding.DecodeString(standardPrivate[len("whsk_"):])
	short := newScheme(t, "standard-webhooks", "whsk_"+base64.RawStdEncoding.EncodeToString(seed[:32]))
	if err := public.Verify(sent(t, short, m).request(), now); err != nil {
		t.Errorf("Verify() with the public key of a seed = %v, want nil", err)
	}
	for _, id := range []string{"", "a.b"} {
		if headers, err := short.Sign(verify.Message{ID: id}, now); err == nil {
			t.Errorf("Sign() of the id %q = %v, want an error", id, headers)
		}
	}
}

func TestGitLab(t *testing.T) {
	const header = "X-Gitlab-Token"
	check(t, "gitlab", verify.Message{Body: []byte(body)}, []string{"old", secret}, map[string]refusal{
		"right":      {[]string{header, secret}, 0},
		"old":        {[]string{header, "old"}, 0},
		"wrong":      {[]string{header, "other"}, core.Unauthorized},
		"beginning":  {[]string{header, secret[:5]}, core.Unauthorized},
		"longer":     {[]string{header, secret + " "}, core.Unauthorized},
		"other case": {[]string{header, strings.ToLower(secret)}, core.Unauthorized},
		"empty":      {[]string{header, ""}, core.Unauthorized},
		"two tokens": {[]string{header, secret, header, "other"}, core.Invalid},
	})
}

func TestTwilio(t *testing.T) {
	const header = "X-Twilio-Signature"
	const address = "https://hooks.example.com/webhooks/tel"
	signed := func(signed string) []string { return []string{header, base64MAC(sha1.New, secret, signed)} }
	sum := sha256.Sum256([]byte("{}"))
	hexSum := hex.EncodeToString(sum[:])
	for name, c := range map[string]struct {
		url, contentType, body string
		headers                []string
		want                   core.Kind
	}{
		"form":                      {address, formType, "B=2&A=1", signed(address + "A1B2"), 0},
		"form, capital type":        {address, "Application/X-WWW-Form-Urlencoded ; charset=utf-8", "B=2&A=1", signed(address + "A1B2"), 0},
		"capitals come first":       {address, formType, "a=1&B=2", signed(address + "B2a1"), 0},
		"a name twice":              {address, formType, "A=2&B=x&A=1&A=2", signed(address + "A1A2Bx"), 0},
		"escaped":                   {address, formType, "A=%C3%A4+%26%3D", signed(address + "Aä &="), 0},
		"empty value":               {address, formType, "A=&B", signed(address + "AB"), 0},
		"no body":                   {address, "", "", signed(address), 0},
		"query":                     {address + "?x=1&y=%20", formType, "A=1", signed(address + "?x=1&y=%20A1"), 0},
		"IPv6":                      {"https://[::1]/x", formType, "A=1", signed("https://[::1]:443/xA1"), 0},
		"IPv6 with port":            {"https://[::1]:8/x", formType, "A=1", signed("https://[::1]/xA1"), 0},
		"http, default port":        {"http://h/x", formType, "A=1", signed("http://h:80/xA1"), 0},
		"other port":                {address, formType, "A=1", signed("https://hooks.example.com:8443/webhooks/telA1"), core.Unauthorized},
		"other host":                {address, formType, "A=1", signed("https://hooks.example.org/webhooks/telA1"), core.Unauthorized},
		"other path":                {address, formType, "A=1", signed(address + "/A1"), core.Unauthorized},
		"other scheme":              {address, formType, "A=1", signed("http" + address[5:] + "A1"), core.Unauthorized},
		"other query":               {address + "?x=1", formType, "A=1", signed(address + "?x=2A1"), core.Unauthorized},
		"field left out":            {address, formType, "A=1", signed(address + "A1B2"), core.Unauthorized},
		"field put in":              {address, formType, "A=1&B=2", signed(address + "A1"), core.Unauthorized},
		"JSON":                      {address + "?bodySHA256=" + hexSum, "application/json", "{}", signed(address + "?bodySHA256=" + hexSum), 0},
		"JSON, other":               {address + "?bodySHA256=" + hexSum, "application/json", "[]", signed(address + "?bodySHA256=" + hexSum), core.Unauthorized},
		"JSON, no body":             {address + "?bodySHA256=" + hexSum, "application/json", "", signed(address + "?bodySHA256=" + hexSum), core.Unauthorized},
		"JSON, short sum":           {address + "?bodySHA256=00", "application/json", "{}", signed(address + "?bodySHA256=00"), core.Invalid},
		"JSON, two sums":            {address + "?bodySHA256=" + hexSum + "&bodySHA256=" + hexSum, "application/json", "{}", signed(address + "?bodySHA256=" + hexSum + "&bodySHA256=" + hexSum), core.Invalid},
		"JSON that nothing covers":  {address, "application/json", "{}", signed(address), core.Unauthorized},
		"text that nothing covers":  {address, "", "{}", signed(address), core.Unauthorized},
		"form that cannot be read":  {address, formType, "A=%zz", signed(address + "A%zz"), core.Invalid},
		"form that cannot be split": {address, formType, "A=1;B=2", signed(address + "A1;B2"), core.Invalid},
		"proof in hexadecimal":      {address, formType, "A=1", []string{header, hex.EncodeToString(macOf(sha1.New, secret, address+"A1"))}, core.Invalid},
		"proof with SHA-256":        {address, formType, "A=1", []string{header, base64MAC(sha256.New, secret, address+"A1")}, core.Invalid},
		"empty proof":               {address, formType, "A=1", []string{header, ""}, core.Invalid},
	} {
		check(t, "twilio", verify.Message{URL: c.url, ContentType: c.contentType, Body: []byte(c.body)}, []string{"old", secret},
			map[string]refusal{name: {c.headers, c.want}})
	}
}

func TestTwilioNeedsAnAddress(t *testing.T) {
	s := newScheme(t, "twilio", secret)
	for _, url := range []string{"", "/webhooks/tel", "https://h/%zz"} {
		m := verify.Message{URL: url}
		if headers, err := s.Sign(m, now); err == nil {
			t.Errorf("Sign() for the address %q = %v, want an error", url, headers)
		}
		err := s.Verify(posted(m, "X-Twilio-Signature", base64MAC(sha1.New, secret, url)).request(), now)
		if err == nil || core.IsKind(err, core.Unauthorized) || core.IsKind(err, core.Invalid) {
			t.Errorf("Verify() for the address %q = %v, want an error that does not blame the sender", url, err)
		}
	}
	if headers, err := s.Sign(verify.Message{URL: twilioURL, ContentType: "application/json", Body: []byte("{}")}, now); err == nil {
		t.Errorf("Sign() of JSON that the address does not cover = %v, want an error", headers)
	}
}
