package verify

import (
	"crypto/sha1"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	twilioProof = "X-Twilio-Signature"
	twilioBody  = "bodySHA256" // parameter of the query
	formType    = "application/x-www-form-urlencoded"
)

// newTwilio makes the scheme of Twilio's webhooks: HMAC-SHA1 under the account's auth
// token, in base64. The signed text is the address of the request, as configured at Twilio,
// with its query. For a form, each name and value follows, in the order of the names. A
// body that is not a form is covered by its SHA-256 in the address, as bodySHA256. A body
// that neither covers is refused. See
// https://www.twilio.com/docs/usage/security#validating-requests.
//
// Twilio does not treat the port in the address consistently. The signed address may lack
// the request's port, or have a default port that the request lacks. Both are accepted, as
// by Twilio's libraries.
//
// Twilio does not treat the escapes in the query consistently either. Twilio's library for
// Node.js accepts two spellings beside that of the request, and so does this scheme; see
// queriesOf. All spellings mean the same names and values.
//
// SHA-1 is Twilio's choice; its collisions do not touch an HMAC. Fields are covered,
// not bytes: their order and the way they are escaped may differ.
func newTwilio(o Options) (Scheme, error) {
	if !o.PublicURL {
		return nil, errors.New("verify: twilio needs server.public_url, since twilio signs the address it posts to")
	}
	return &twilio{newKeys(o.Secrets)}, nil
}

// A twilio verifies and signs Twilio's requests.
type twilio struct{ keys keys }

func (s *twilio) Verify(r Request, _ time.Time) error {
	value, err := single(r, twilioProof)
	if err != nil {
		return err
	}
	proof, ok := inBase64.read(value, sha1.Size)
	if !ok {
		return malformed(twilioProof, "is not 20 bytes in base64")
	}
	address, err := url.Parse(r.URL)
	if err != nil || address.Host == "" {
		return errors.New("the address of the request is not known; is server.public_url set?")
	}
	var contentType string
	if types := r.Header("Content-Type"); len(types) > 0 {
		contentType = types[0]
	}
	fields, err := twilioFields(address, contentType, r.Body)
	if err != nil {
		return err
	}
	matched := false
	for _, spelling := range queriesOf(r.URL) {
		matched = s.keys.prove(sha1.New, [][]byte{proof}, []byte(spelling), fields) || matched
		matched = s.keys.prove(sha1.New, [][]byte{proof}, []byte(otherPort(address, spelling)), fields) || matched
	}
	if !matched {
		return mismatch(twilioProof, "does not match address and body; is server.public_url what Twilio calls?")
	}
	return nil
}

// twilioFields returns the signed text after the address. It fails if nothing covers the
// body, or if the address was made for another body.
func twilioFields(address *url.URL, contentType string, body []byte) ([]byte, error) {
	if sums := address.Query()[twilioBody]; len(sums) > 0 {
		return nil, checkBodySum(sums, body)
	}
	if len(body) == 0 {
		return nil, nil
	}
	mediaType, _, _ := strings.Cut(contentType, ";")
	if !strings.EqualFold(strings.TrimSpace(mediaType), formType) {
		return nil, mismatch(twilioProof, "does not cover the body, which is not a form and has no "+twilioBody)
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, malformed(twilioProof, "covers a form that cannot be read")
	}
	var signed []byte
	for _, name := range slices.Sorted(maps.Keys(form)) {
		values := form[name]
		slices.Sort(values)
		for _, value := range slices.Compact(values) {
			signed = append(append(signed, name...), value...)
		}
	}
	return signed, nil
}

// checkBodySum checks a body that is not a form. A repeated sum is refused, since only one of
// two can be the signed one.
func checkBodySum(sums []string, body []byte) error {
	want, ok := inHex.read(sums[0], sha256.Size)
	if !ok || len(sums) > 1 {
		return malformed(twilioBody, "in the address is not 32 bytes in hexadecimal")
	}
	if sum := sha256.Sum256(body); subtle.ConstantTimeCompare(sum[:], want) == 0 {
		return mismatch(twilioBody, "in the address does not match the body")
	}
	return nil
}

// otherPort spells an address without its port, or with the default port if it has none.
// All else stays byte for byte the same.
func otherPort(address *url.URL, text string) string {
	scheme, rest, _ := strings.Cut(text, "://")
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	host := rest[:end]
	switch port := address.Port(); {
	case port != "":
		host = strings.TrimSuffix(host, ":"+port)
	case address.Scheme == "https":
		host += ":443"
	default:
		host += ":80"
	}
	return scheme + "://" + host + rest[end:]
}

// Sign signs the address as it is given, in one spelling.
func (s *twilio) Sign(m Message, _ time.Time) (map[string]string, error) {
	address, err := url.Parse(m.URL)
	if err != nil || address.Host == "" {
		return nil, errors.New("twilio signs the address, which is not known")
	}
	fields, err := twilioFields(address, m.ContentType, m.Body)
	if err != nil {
		return nil, fmt.Errorf("twilio signs forms, and addresses with a %s of the body: %w", twilioBody, err)
	}
	return map[string]string{twilioProof: inBase64.encode(s.keys.sign(sha1.New, []byte(m.URL), fields))}, nil
}
