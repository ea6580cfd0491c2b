package intake

import "strings"

// A provider is what is known about one kind of sender: where it says what
// happened, and how it names a delivery. All names of headers are canonical.
type provider struct {
	name       string   // as in Source.Provider
	typeHeader string   // names the event type; believed of every webhook source
	spaced     bool     // the header's types have blanks, which become "_"
	typeField  string   // member of the body with the event type
	partial    bool     // typeField says less than the header, or is not signed: the header goes first
	wrapper    string   // value of "type" that only says: see typeField of the member "event"
	idHeaders  []string // name the delivery, the first that is there; believed of the provider's own sources
	idField    string   // member of the body that does
}

// providers is all of them. The headers named here are kept with the event.
//
// GitLab's names of events have blanks, "Merge Request Hook"; Slack's outer type is
// always "event_callback". Both would be the type of every event, or none. GitHub's action is
// the change of the object that the header names: "opened" is the action of issues and of
// pull requests. GitLab signs no body.
var providers = []provider{
	{name: "github", typeHeader: "X-Github-Event", typeField: "action", partial: true, idHeaders: []string{"X-Github-Delivery"}},
	{name: "gitlab", typeHeader: "X-Gitlab-Event", spaced: true, typeField: "object_kind", partial: true, idHeaders: []string{"Idempotency-Key"}},
	{name: "linear", typeField: "type", idHeaders: []string{"Linear-Delivery"}},
	{name: "paddle", typeField: "event_type", idField: "event_id"},
	{name: "shopify", typeHeader: "X-Shopify-Topic", typeField: "topic", idHeaders: []string{"X-Shopify-Webhook-Id", "Shopify-Webhook-Id"}},
	{name: "slack", wrapper: "event_callback", idField: "event_id"},
	{name: "standard-webhooks", idHeaders: []string{"Webhook-Id", "Svix-Id"}},
	{name: "stripe", idField: "id"},
	{name: "twilio", idHeaders: []string{"I-Twilio-Idempotency-Token"}},
}

// providerCalled returns the conventions of a provider, none if it is not known.
func providerCalled(name string) provider {
	for _, p := range providers {
		if p.name == name {
			return p
		}
	}
	return provider{}
}

// kept are the headers that stay with an event, beside ce-*: canonical names and
// the names they are stored under. It is a list of what to keep, never of what to
// leave out: a header nobody thought of may be a credential.
var kept = keptHeaders()

func keptHeaders() map[string]string {
	names := map[string]string{"Traceparent": "traceparent", "Tracestate": "tracestate"}
	for _, p := range providers {
		for _, h := range append(p.idHeaders, p.typeHeader) {
			if h != "" {
				names[h] = strings.ToLower(h)
			}
		}
	}
	return names
}
