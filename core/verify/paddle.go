package verify

// newPaddle makes the scheme of Paddle's webhooks: HMAC-SHA256 of "ts:body" in
// hexadecimal:
//
//	Paddle-Signature: ts=1614265330;h1=94a95a58…[;h1=…]
//
// Paddle's own libraries allow 5 s for the way. The window here is that of the other
// schemes: a clock is off by more soon. See
// https://developer.paddle.com/webhooks/signature-verification.
func newPaddle(o Options) (Scheme, error) {
	return &timedList{header: "Paddle-Signature", between: ";", time: "ts", proof: "h1", joint: ":", keys: newKeys(o.Secrets)}, nil
}
