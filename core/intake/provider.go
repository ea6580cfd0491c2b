package intake

import "strings"

// A provider is the data about one kind of sender: where it puts the event type and the
// delivery id. All names of headers are canonical.
type provider struct {
	name       string   // as in Source.Provider
	typeHeader string   // has the event type; trusted for every webhook source
	spaced     bool     // the header's types have blanks, which become "_"
	typeField  string   // member of the body with the event type
	partial    bool     // typeField is less specific than the header, or not signed: the header goes first
	wrapper    string   // value of "type" that means: see typeField of the member "event"
	idHeaders  []string // have the delivery id, the first that is present; trusted for the provider's own sources
	idField    string   // member of the body with the delivery id
}

// providers is the table of all providers. Their headers are kept with the event.
//
// GitLab's names of events have blanks, such as "Merge Request Hook". Slack's outer type is
// always "event_callback". Read like those of the others, all events would have that type,
// or no valid one. GitHub's action is the change of the object that the header names:
// "opened" is the action of issues and of pull requests. GitLab signs no body.
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

// providerCalled returns the conventions of a provider, or empty ones if the name is
// unknown.
func providerCalled(name string) provider {
	for _, p := range providers {
		if p.name == name {
			return p
		}
	}
	return provider{}
}

// kept are the headers that stay with an event, beside ce-*: canonical names and the names
// under which they are stored. It lists the headers to keep and never the headers to leave
// out: an unknown header may be a credential.
var kept = keptHeaders()

// keptHeaders adds the headers of all providers, since a source without a provider may
// receive from any of them.
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
