package intake

// maxChallenge bounds what is echoed, in bytes.
const maxChallenge = 1 << 10

// challenge is the text Slack wants to read back before it sends events to a URL,
// "" if the request is none of that. It comes after the signature was verified. See
// https://api.slack.com/events/url_verification.
func (e *envelope) challenge() string {
	if e.name != "slack" || stringMember(e.request.Body, "type") != "url_verification" {
		return ""
	}
	if c := stringMember(e.request.Body, "challenge"); clean(c, maxChallenge) {
		return c
	}
	return ""
}
