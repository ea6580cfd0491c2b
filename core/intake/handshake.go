package intake

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/eventgateway/gateway/core"
)

// ErrNoHandshake is the refusal of a handshake for a source without webhook_origins.
var ErrNoHandshake = core.Refuse(core.Unsupported, "handshakes are answered for sources with webhook_origins only")

// maxOrigin is the maximum length of a sender's name in bytes, as in DNS.
const maxOrigin = 253

// Handshake answers a sender of CloudEvents that asks whether it may send to a source:
// https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/http-webhook.md#4-abuse-protection.
// It returns the name to allow: the sender's, or * if the source allows all. The comparison
// of names ignores case. A sender that is not listed is refused as [core.Forbidden]. The
// handshake proves nothing, and deliveries do not depend on it. It protects the sender,
// which an attacker could otherwise direct at a stranger's server.
func (in *Intake) Handshake(k Kind, source, origin string, from netip.Addr) (allowed string, err error) {
	s, err := in.admit(k, source, from)
	switch {
	case err != nil:
		return "", err
	case len(s.Origins) == 0:
		return "", ErrNoHandshake
	case origin == "" || strings.Contains(origin, ",") || !clean(origin, maxOrigin): // HTTP joins values by commas
		return "", malformed("WebHook-Request-Origin must be one name of 1 to %d bytes", maxOrigin)
	case slices.Contains(s.Origins, "*"):
		return "*", nil
	case slices.ContainsFunc(s.Origins, func(o string) bool { return strings.EqualFold(o, origin) }):
		return origin, nil
	}
	return "", &core.Refusal{
		Kind: core.Forbidden, Cause: ErrMalformed,
		Message: fmt.Sprintf("the sender %q is not in webhook_origins of this source", origin),
	}
}
