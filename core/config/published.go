package config

// publishedSecrets are samples from public sources, which users have copied. They protect
// nothing. The first ones are from the starter files of earlier versions.
var publishedSecrets = map[string]bool{
	"local-dev-token-change-me-please":   true,
	"local-dev-signing-secret-change-me": true,
	"local-demo-secret-change-me-please": true,
	"local-github-secret-change-me":      true,
	"local-stripe-secret-change-me":      true,

	"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw": true, // Standard Webhooks, its libraries' tests
	"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw":       true,
	"It's a Secret to Everybody":             true, // docs.github.com, "Validating webhook deliveries"
	"8f742231b10e8888abcd99yyyzzz85a5":       true, // docs.slack.dev, "Verifying requests from Slack"
}
