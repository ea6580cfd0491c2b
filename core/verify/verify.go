// Package verify answers one question about a received request: who sent this?
//
// A [Scheme] is how one provider proves it: which header carries the proof, how
// it is written, what it covers. Each has its own file and its documented name
// in one map. The idea to know: a scheme sees the bytes as they came over the
// wire, before anything parses them, and it compares decoded bytes in constant
// time with every secret, so that neither the answer's text nor its time tells
// how close a guess was.
//
// There are two ways to fail, and callers see the same words for both. A proof
// that is there but cannot be read is [core.Invalid]; one that is absent or
// wrong is [core.Unauthorized]. The cause, for the log, names the header and
// never a secret or anything computed with one (hookaido GHSA-cpfq-rj4r-hh5c
// did).
//
// A scheme whose proof covers a time has it beside the body: that is why Verify
// and Sign are told the time. One that covers more than headers and body gets
// another field in [Request].
//
// verify is pure: it imports core and the standard library, of that neither
// net/http nor os.
package verify

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A Request is what a scheme may look at.
type Request struct {
	// Header returns every value of the named header, in order. The name's case
	// does not matter; [net/http.Header.Values] is such a function.
	Header func(name string) []string

	// Body as received, byte for byte.
	Body []byte
}

// A Scheme verifies and signs requests in one provider's way. It is safe for
// concurrent use.
type Scheme interface {
	// Verify returns nil if the holder of one of the secrets sent the request. It
	// returns a [core.Refusal] otherwise: Invalid if the proof cannot be read,
	// Unauthorized if it is absent, wrong, or outside the time it is good for.
	Verify(r Request, now time.Time) error

	// Sign returns the headers that prove the body to Verify, made with the first
	// secret.
	Sign(body []byte, now time.Time) map[string]string
}

// Options of a scheme.
type Options struct {
	// Secrets shared with the sender; at least one, none of them blank. A request
	// proven with any of them passes, so that they can be rotated.
	Secrets []string

	// SignatureHeader replaces the header of the scheme "hmac"; no other scheme
	// takes it. Empty means [DefaultSignatureHeader].
	SignatureHeader string
}

// schemes by every name that configuration accepts.
var schemes = map[string]func(Options) (Scheme, error){
	"github":     newGitHub,
	"hmac":       newHMAC,
	"provider_a": newGitHub, // alias of github
}

// Names lists the names New accepts, aliases included, in alphabetical order.
func Names() []string { return slices.Sorted(maps.Keys(schemes)) }

// New makes the scheme with this name. An unknown name is an error, never a
// scheme that lets everything pass.
func New(name string, o Options) (Scheme, error) {
	newScheme, ok := schemes[name]
	if !ok {
		return nil, fmt.Errorf("verify must be one of %s; not %q", strings.Join(Names(), ", "), name)
	}
	if err := checkSecrets(o.Secrets); err != nil {
		return nil, err
	}
	return newScheme(o)
}

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

func refuse(k core.Kind, header, why string) error {
	return &core.Refusal{Kind: k, Message: "Invalid signature", Cause: errors.New(header + " " + why)}
}

// single returns the one value of a header. A header may be repeated, but only
// with the same value: which of two would another reader of the request believe?
func single(r Request, header string) (string, error) {
	values := r.Header(header)
	if len(values) == 0 {
		return "", mismatch(header, "is absent")
	}
	for _, v := range values[1:] {
		if v != values[0] {
			return "", malformed(header, "is there twice with different values")
		}
	}
	return values[0], nil
}
