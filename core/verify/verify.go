// Package verify verifies the sender of a received request.
//
// A [Scheme] is the proof of one provider: the header of the proof, its encoding, and the
// parts of the request that it covers. Each scheme has its own file, and its documented
// name in one map. The idea to know: a scheme sees the bytes as they came over the wire,
// before any parser reads them. It compares decoded bytes in constant time with every
// secret, so that neither the answer's text nor its time reveals how close a guess was.
//
// There are two ways to fail, and callers see the same words for both. A proof that cannot
// be read is [core.Invalid]; an absent or wrong proof is [core.Unauthorized]. The cause,
// for the log, names the header. It never contains a secret or a value computed from one
// (in hookaido it did: GHSA-cpfq-rj4r-hh5c).
//
// Some proofs cover a time in a header, so Verify and Sign get the time. Such a proof is
// valid for 300 s before and after that time. With Linear it is valid for 60 s, and the
// time is in the body, which is read only after the signature was verified. A proof that
// covers the address of the request needs [Request.URL].
//
// If a header contains several signatures, one that matches is enough. Signatures of
// unknown versions, and unreadable ones, are ignored, so that a sender may change to a new
// version. If no readable signature is left, the header is Invalid. If none of the readable
// ones matches, the request is Unauthorized.
//
// verify is pure: it imports core, core/endpoint for the keys of Standard Webhooks, and the
// standard library without net/http and os.
package verify

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A Request is the part of a request that a scheme may read.
type Request struct {
	// Header returns every value of the named header, in order. The name's case
	// does not matter; [net/http.Header.Values] is such a function.
	Header func(name string) []string

	// Body as received, byte for byte.
	Body []byte

	// URL is the address of the request, as its sender sees it: server.public_url with the
	// path and query of the request. It is empty if that is unknown.
	URL string
}

// A Message is a request to be signed, as a sender would send it.
type Message struct {
	ID          string // the sender's id of it, which standard-webhooks signs
	URL         string // its address, with the public name of the receiver
	ContentType string // for twilio, which covers the fields of a form
	Body        []byte
}

// A Scheme verifies and signs requests in one provider's way. It is safe for
// concurrent use.
type Scheme interface {
	// Verify returns nil if the holder of one of the secrets sent the request. Otherwise it
	// returns a [core.Refusal]: Invalid if the proof cannot be read, Unauthorized if the
	// proof is absent, wrong, or outside its time. Any other error says that the check
	// itself failed.
	Verify(r Request, now time.Time) error

	// Sign returns the headers that prove a message to Verify, made with the first secret.
	// It fails if that secret can only verify, or if the message lacks data that the scheme
	// covers.
	Sign(m Message, now time.Time) (map[string]string, error)
}

// Options of a scheme.
type Options struct {
	// Secrets shared with the sender; at least one, none of them blank. A request
	// proven with any of them passes, so that they can be rotated.
	Secrets []string

	// SignatureHeader replaces the header of the scheme "hmac"; no other scheme
	// takes it. Empty means [DefaultSignatureHeader].
	SignatureHeader string

	// PublicURL says that [Request.URL] will be set. The scheme "twilio" needs it; others
	// ignore it.
	PublicURL bool
}

// A Cover is the part of a request that the proof of a scheme covers. It determines how an
// attacker can reuse a captured request.
type Cover struct {
	// Window is for how long a proof is valid, before and after the time that it covers. 0
	// means that it covers no time and never expires.
	Window time.Duration

	// BodyAlone says that the proof covers the body, byte for byte, and nothing else. So
	// equal proofs have equal bodies.
	BodyAlone bool

	// DeliveryID says that the proof covers the sender's id of a delivery. So a captured
	// request comes again with the same id.
	DeliveryID bool
}

// Windows of the schemes that cover a time.
const (
	usualWindow  = window * time.Second
	linearWindow = 60 * time.Second
)

// A kind has the constructor of a scheme and the cover of its proofs.
type kind struct {
	newScheme func(Options) (Scheme, error)
	cover     Cover
}

// schemes by their names in the documentation.
var schemes = map[string]kind{
	"github":            {newGitHub, Cover{BodyAlone: true}},
	"gitlab":            {newGitLab, Cover{}},
	"hmac":              {newHMAC, Cover{BodyAlone: true}},
	"linear":            {newLinear, Cover{Window: linearWindow, BodyAlone: true}},
	"paddle":            {newPaddle, Cover{Window: usualWindow, DeliveryID: true}},
	"shopify":           {newShopify, Cover{BodyAlone: true}},
	"slack":             {newSlack, Cover{Window: usualWindow, DeliveryID: true}},
	"standard-webhooks": {newStandardWebhooks, Cover{Window: usualWindow, DeliveryID: true}},
	"stripe":            {newStripe, Cover{Window: usualWindow, DeliveryID: true}},
	"twilio":            {newTwilio, Cover{}},
}

// aliases are other names of schemes.
var aliases = map[string]string{
	"provider_a":        "github",
	"provider_b":        "stripe",
	"provider_c":        "shopify",
	"standard_webhooks": "standard-webhooks",
}

// kindCalled returns the scheme with a name or an alias.
func kindCalled(name string) (kind, bool) {
	k, ok := schemes[cmp.Or(aliases[name], name)]
	return k, ok
}

// CoverOf returns the cover of the scheme with this name, and the zero Cover if there is no
// such scheme.
func CoverOf(name string) Cover {
	k, _ := kindCalled(name)
	return k.cover
}

// Names lists the names New accepts, aliases included, in alphabetical order.
func Names() []string {
	return slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Keys(schemes)), slices.Collect(maps.Keys(aliases)))))
}

// Schemes lists the names in the documentation, in alphabetical order. It lists the schemes
// whose cover suits, or all if suits is nil.
func Schemes(suits func(Cover) bool) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(schemes)) {
		if suits == nil || suits(schemes[name].cover) {
			names = append(names, name)
		}
	}
	return names
}

// New makes the scheme with this name. An unknown name is an error, never a scheme that
// accepts every request. Errors name the faulty option, and never quote a secret.
func New(name string, o Options) (Scheme, error) {
	k, ok := kindCalled(name)
	if !ok {
		return nil, fmt.Errorf("verify must be one of %s; not %q", strings.Join(Names(), ", "), name)
	}
	if err := checkSecrets(o.Secrets); err != nil {
		return nil, err
	}
	if o.SignatureHeader != "" && name != "hmac" {
		return nil, errors.New("signature_header is for verify: hmac only")
	}
	return k.newScheme(o)
}

// checkSecrets refuses empty secrets: with an empty key, anyone could make a valid signature.
func checkSecrets(secrets []string) error {
	if len(secrets) == 0 {
		return errors.New("secret is missing")
	}
	for _, s := range secrets {
		if strings.TrimSpace(s) == "" {
			return errors.New("secret is empty")
		}
	}
	return nil
}

// malformed refuses a proof that cannot be read.
func malformed(header, why string) error { return refuse(core.Invalid, header, why) }

// mismatch refuses a proof that is absent or wrong.
func mismatch(header, why string) error { return refuse(core.Unauthorized, header, why) }

// tooMany refuses a header with more than maxProofs signatures.
func tooMany(header string) error {
	return malformed(header, fmt.Sprintf("holds more than %d signatures", maxProofs))
}

// refuse returns a refusal that says nothing to the sender but that the signature is invalid.
// The cause is for the log.
func refuse(k core.Kind, header, why string) error {
	return &core.Refusal{Kind: k, Message: "Invalid signature", Cause: errors.New(header + " " + why)}
}

// single returns the one value of a header, which may also have an older name. A repeated
// header must have the same value each time: another reader of the request might use the
// other value.
func single(r Request, names ...string) (string, error) {
	var value string
	found := false
	for _, name := range names {
		for _, v := range r.Header(name) {
			if found && v != value {
				return "", malformed(names[0], "is there twice with different values")
			}
			value, found = v, true
		}
	}
	if !found {
		return "", mismatch(names[0], "is absent")
	}
	return value, nil
}
