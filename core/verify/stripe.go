package verify

// newStripe makes the scheme of Stripe's webhooks: HMAC-SHA256 of "t.body" in hexadecimal.
// The key is the endpoint's whole secret, with its whsec_:
//
//	Stripe-Signature: t=1614265330,v1=94a95a58…[,v1=…][,v0=…]
//
// The v0 that comes with events of the test mode proves nothing, and is ignored. See
// https://docs.stripe.com/webhooks#verify-manually.
func newStripe(o Options) (Scheme, error) {
	return &timedList{header: "Stripe-Signature", between: ",", time: "t", proof: "v1", joint: ".", keys: newKeys(o.Secrets)}, nil
}
