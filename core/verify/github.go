package verify

import "errors"

// newGitHub makes the scheme of GitHub's webhooks: HMAC-SHA256 of the body in
// X-Hub-Signature-256, always with "sha256=" before the digits. The older
// X-Hub-Signature, SHA-1, is not looked at. See
// https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries.
func newGitHub(o Options) (Scheme, error) {
	if o.SignatureHeader != "" {
		return nil, errors.New("signature_header is for verify: hmac only")
	}
	return &bodyHMAC{header: "X-Hub-Signature-256", prefix: true, keys: keys(o.Secrets)}, nil
}
