// Package endpoint checks the format of users' settings for outgoing calls: addresses,
// headers and signing keys. The same functions run when a configuration is loaded and
// before each use. So a handler that passed at load cannot fail at each job.
//
// The idea to know: formats that resolvers and URL parsers read differently are refused,
// since a guard would then judge another host than the dialled one. The dialler in
// core/egress decides which addresses are permitted. No error quotes a URL or a header's
// value: they may contain credentials.
//
// endpoint is pure; it imports core/once and the standard library only.
package endpoint

import (
	"errors"
	"net/netip"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/eventgateway/gateway/core/once"
)

// ParseURL reads an address for requests. It is http or https, without user information and
// zone. Its host is an IPv6 address in brackets, an IPv4 address of four plain decimal
// parts, or a name whose last label is not a number: 2130706433, 0x7f.1 and 127.1 are
// addresses to some resolvers and names to others. That is the WHATWG URL Standard's rule
// for a host that ends in a number (https://url.spec.whatwg.org/#ends-in-a-number-checker).
func ParseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil: // a url.Error would quote all of it
		return nil, errors.New("is not a valid address; write one such as https://example.com/hooks")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("must start with http:// or https://")
	case u.Hostname() == "":
		return nil, errors.New("has no host; write an address such as https://example.com/hooks")
	case u.User != nil:
		return nil, errors.New("must not hold a user name or password; send them as a header")
	}
	if err := checkPort(u); err != nil {
		return nil, err
	}
	if err := checkHost(u.Hostname(), strings.HasPrefix(u.Host, "[")); err != nil {
		return nil, err
	}
	return u, nil
}

// CheckURL returns the error of ParseURL for an address.
func CheckURL(raw string) error {
	_, err := ParseURL(raw)
	return err
}

func checkPort(u *url.URL) error {
	if u.Port() == "" {
		if strings.HasSuffix(u.Host, ":") {
			return errors.New("has a colon but no port")
		}
		return nil
	}
	if port, err := strconv.Atoi(u.Port()); err != nil || port < 1 || port > 65535 {
		return errors.New("has a port outside 1 to 65535")
	}
	return nil
}

// CheckHost checks a host that stands alone, without brackets and port. It returns nil if
// the host is valid.
func CheckHost(host string) error { return checkHost(host, false) }

// checkHost checks a host without its brackets.
func checkHost(host string, bracketed bool) error {
	if bracketed {
		if addr, err := netip.ParseAddr(host); err != nil || !addr.Is6() || addr.Zone() != "" {
			return errors.New("has brackets around something other than an IPv6 address without a zone")
		}
		return nil
	}
	name := strings.TrimSuffix(host, ".")
	labels := strings.Split(name, ".")
	if numberLabel().MatchString(labels[len(labels)-1]) {
		if _, err := netip.ParseAddr(host); err != nil {
			return errors.New("has a host that is almost an IPv4 address; write four numbers from 0 to 255 without leading zeros")
		}
		return nil
	}
	if slices.ContainsFunc(labels, asciiPunycode().MatchString) {
		return errors.New("has a host whose xn-- form stands for plain letters; write those")
	}
	tooLong := func(label string) bool { return len(label) > 63 }
	if len(name) > 253 || slices.ContainsFunc(labels, tooLong) || !hostForm().MatchString(name) {
		return errors.New("has a host that is not a name of letters, digits, - and dots; write other scripts in their xn-- form")
	}
	return nil
}

var (
	// Underscores are not for host names (RFC 952), but container networks have them. The
	// length of a label is checked separately: counted repetitions take long to compile.
	hostForm = once.Regexp(`^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*$`)

	// numberLabel is a last label that makes resolvers read the whole host as an IPv4
	// address.
	numberLabel = once.Regexp(`^([0-9]+|0[xX][0-9A-Fa-f]*)$`)

	// asciiPunycode is a label whose decoded form is plain ASCII (CVE-2026-39821).
	asciiPunycode = once.Regexp(`(?i)^xn--(.*-)?$`)
)

// reserved are the headers that a handler cannot set. They are the headers of the connection
// (RFC 9110, section 7.6.1), the headers that net/http makes from the request, the signature,
// and the header that ends loops between gateways.
var reserved = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade", "Host", "Content-Length", "Expect",
	"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature", "X-Gateway-Hops",
}

// CheckHeader returns why a configured header cannot be sent; nil if it can.
func CheckHeader(name, value string) error {
	switch {
	case !IsHeaderName(name):
		return errors.New("is not a header name; one has letters, digits and - but no blanks or colons")
	case slices.Contains(reserved, textproto.CanonicalMIMEHeaderKey(name)):
		return errors.New("is set by the gateway itself and cannot be changed")
	case strings.ContainsFunc(value, isControl):
		return errors.New("holds a line break or another control character")
	}
	return nil
}

// IsHeaderName reports whether s is a token of RFC 9110, section 5.6.2.
func IsHeaderName(s string) bool { return tokenForm().MatchString(s) }

var tokenForm = once.Regexp("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
