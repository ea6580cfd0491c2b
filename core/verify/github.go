package verify

// newGitHub makes the scheme of GitHub's webhooks: HMAC-SHA256 of the body in
// X-Hub-Signature-256, always with "sha256=" before the digits. The older
// X-Hub-Signature, SHA-1, is not looked at. See
// https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries.
func newGitHub(o Options) (Scheme, error) {
	return &bodyHMAC{headers: []string{"X-Hub-Signature-256"}, prefix: "sha256=", text: inHex, keys: newKeys(o.Secrets)}, nil
}
