package verify

// newShopify makes the scheme of Shopify's webhooks: HMAC-SHA256 of the body under
// the app's client secret, in base64. Its newer events leave out the "X-" of the
// header; both names are read. See
// https://shopify.dev/docs/apps/build/webhooks/verify-deliveries.
func newShopify(o Options) (Scheme, error) {
	headers := []string{"X-Shopify-Hmac-Sha256", "Shopify-Hmac-Sha256"}
	return &bodyHMAC{headers: headers, text: inBase64, keys: newKeys(o.Secrets)}, nil
}
