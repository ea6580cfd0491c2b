package verify

// newPaddle makes the scheme of Paddle's webhooks: HMAC-SHA256 of "ts:body" in
// hexadecimal:
//
//	Paddle-Signature: ts=1614265330;h1=94a95a58…[;h1=…]
//
// Paddle's own libraries permit 5 s between signing and receipt. The window here is the
// same as for the other schemes, since clocks often differ by more than 5 s. See
// https://developer.paddle.com/webhooks/signature-verification.
func newPaddle(o Options) (Scheme, error) {
	return &timedList{header: "Paddle-Signature", between: ";", time: "ts", proof: "h1", joint: ":", keys: newKeys(o.Secrets)}, nil
}
