package verify

// newLinear makes the scheme of Linear's webhooks: HMAC-SHA256 of the body in
// hexadecimal in Linear-Signature. See https://linear.app/developers/webhooks.
//
// Linear has the time of sending in the body, as webhookTimestamp. It is not looked
// at, since nothing parses the body here: what protects against a replay is the
// delivery id.
func newLinear(o Options) (Scheme, error) {
	return &bodyHMAC{headers: []string{"Linear-Signature"}, text: inHex, keys: newKeys(o.Secrets)}, nil
}
