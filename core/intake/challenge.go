package intake

// maxChallenge is the maximum length of an echoed text, in bytes.
const maxChallenge = 1 << 10

// challenge returns the text that Slack expects back before it sends events to a URL, or ""
// if the request is not such a request. It is called after the signature was verified. See
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
