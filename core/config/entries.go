package config

import (
	"github.com/eventgateway/gateway/core/cron"
	"github.com/eventgateway/gateway/core/expr"
)

// Source is an entrance for events.
type Source struct {
	// Name is the entry's key.
	Name string `yaml:"-"`
	// Type is webhook, event, sns or cron; required.
	Type string `yaml:"type" required:"" oneof:"webhook event sns cron"`
	// Verify is the signature scheme of a webhook, default none. Secret is required with it.
	// Given and empty it is an error, since everyone could send then; null is none, so that an
	// overlay can take it back.
	Verify string `yaml:"verify" filled:"" oneof:"github stripe shopify hmac slack standard-webhooks gitlab linear paddle twilio" also:"provider_a=github provider_b=stripe provider_c=shopify standard_webhooks=standard-webhooks"`
	// Secret is the key of the scheme, or several of which any may match.
	Secret Secrets `yaml:"secret"`
	// SignatureHeader is the header that scheme hmac reads, default X-Webhook-Signature.
	SignatureHeader string `yaml:"signature_header"`
	// Dedup is body if two requests with the same body are the same delivery, also if their
	// headers differ. By default the sender's own id of a delivery decides. Dedup is only for
	// schemes that sign the body and nothing else.
	Dedup string `yaml:"dedup" oneof:"body"`
	// SkipVerify accepts topic notifications unverified, for emulators; default false.
	SkipVerify bool `yaml:"skip_verify"`
	// TopicARNs are the only topics from which notifications are accepted, default any.
	TopicARNs []string `yaml:"topic_arns"`
	// Schedule is when a cron source fires: five fields, or six with seconds, or a word such as
	// @daily; required for cron.
	Schedule Parsed[cron.Schedule] `yaml:"schedule"`
	// Timezone is the zone of Schedule: UTC (default), a name such as Europe/Berlin, or a fixed
	// offset such as +09:00.
	Timezone string `yaml:"timezone"`
	// Binary accepts payloads that are no UTF-8 text, byte for byte; default false. Filters,
	// transforms and workflows see null in place of such a payload.
	Binary bool `yaml:"binary"`
	// Schema is the JSON text of a schema that payloads must match, as expr.ParseSchema takes
	// it, default none. The file may give a mapping, a text of JSON or YAML, or the name of a
	// file beside it.
	Schema Parsed[*expr.Schema] `yaml:"schema" schema:""`
	// WebhookOrigins are the names of the senders whose CloudEvents handshake is answered, or *
	// for all; default none. A handshake proves nothing, so deliveries are not held to the
	// names.
	WebhookOrigins []string `yaml:"webhook_origins"`
	// AllowedIPs are the only client addresses accepted, default any.
	AllowedIPs []Network `yaml:"allowed_ips"`
}

// Handler is a URL to which events are delivered.
type Handler struct {
	// Name is the entry's key.
	Name string `yaml:"-"`
	// Source is the name of a source; required.
	Source string `yaml:"source" required:""`
	// Events are the accepted event types, exact or with * wildcards; none means all.
	Events []string `yaml:"events"`
	// URL is an http or https address; required.
	URL string `yaml:"url" required:""`
	// Type is http (default) or grpc.
	Type string `yaml:"type" oneof:"http grpc"`
	// Method is GET, POST (default), PUT, PATCH or DELETE.
	Method string `yaml:"method" oneof:"GET POST PUT PATCH DELETE"`
	// Retry is the effective policy: missing fields of the entry come from
	// delivery.default_retry.
	Retry Retry `yaml:"retry"`
	// Timeout is the effective limit of one attempt, 1ms to 1h, default delivery.timeout.
	Timeout Duration `yaml:"timeout" range:"1ms 1h"`
	// SigningSecret is the key that signs deliveries, default delivery.signing_secret.
	SigningSecret Secrets `yaml:"signing_secret"`
	// Record says how much of the sent request an attempt keeps: none, headers or all; default
	// delivery.record.
	Record string `yaml:"record" oneof:"none headers all"`
	// IdempotencyKey is a singular JSONPath (expr.ParsePath) to a key of which only the first
	// event is delivered, default none.
	IdempotencyKey Parsed[*expr.Path] `yaml:"idempotency_key" filled:""`
	// Delay is how long each job waits before it is due, 0s to 365d, default 0s: not at all.
	Delay Duration `yaml:"delay" range:"0s 365d"`
	// Lines order and limit the deliveries of events with the same value, default none.
	Lines Lines `yaml:"lines" filled:""`
	// RateLimit is deliveries per second, 1 to 1000000, default 0: no limit.
	RateLimit int `yaml:"rate_limit" range:"1 1000000"`
	// CircuitBreaker sets when deliveries pause because they fail. The file may give the word
	// off.
	CircuitBreaker CircuitBreaker `yaml:"circuit_breaker" off:""`
	// Filter is a condition on the payload, default none.
	Filter Parsed[*expr.Filter] `yaml:"filter" filled:""`
	// Transform is a template of the body sent, default none: the payload itself.
	Transform Parsed[*expr.Template] `yaml:"transform" filled:""`
	// Headers are added to each delivery. Values are Secrets because they often carry tokens.
	Headers map[string]Secret `yaml:"headers"`
}

// CircuitBreaker sets when deliveries to a handler pause because they fail.
type CircuitBreaker struct {
	// Off is for a handler without a circuit breaker; the other fields mean nothing then.
	Off bool `yaml:"-"`
	// Failures is how many deliveries in a row must fail to open it, 1 to 1000, default 5.
	Failures int `yaml:"failures" range:"1 1000"`
	// Cooldown is how long it stays open before one delivery is tried, 1s to 1d, default 60s.
	Cooldown Duration `yaml:"cooldown" range:"1s 1d"`
	// Count lists the failures that count: 5xx, 4xx (any other answer that is not 2xx), timeout
	// and network; default all.
	Count []string `yaml:"count" oneof:"5xx 4xx timeout network"`
}

// Lines say how jobs with the same value in their payloads wait for each other. See [core.Line].
type Lines struct {
	// Key is a singular JSONPath (expr.ParsePath) to the value; required.
	Key Parsed[*expr.Path] `yaml:"key" required:"" filled:""`
	// Limit is how many jobs of one line are admitted at a time, 1 to 100 (core.MaxLineLimit),
	// default 1. It is 0 for a handler or queue without lines.
	Limit int `yaml:"limit" range:"1 100"`
	// OnDead says whether a dead job stops its line: hold stops the line, which needs a limit of
	// 1, and skip lets the line go on. It is by default hold with a limit of 1, else skip.
	OnDead string `yaml:"on_dead" oneof:"hold skip"`
}

// onDeadHold is the value of on_dead for a line that stops at a dead job.
const onDeadHold = "hold"

// StopsAtDead reports whether a dead job stops its line, as [core.Outcome] takes it.
func (l Lines) StopsAtDead() bool { return l.OnDead == onDeadHold }

// Queue is a queue from which consumers receive messages.
type Queue struct {
	// Name is the entry's key.
	Name string `yaml:"-"`
	// Source is the name of a source; required.
	Source string `yaml:"source" required:""`
	// Events are the accepted event types, exact or with * wildcards; none means all.
	Events []string `yaml:"events"`
	// Filter is a condition on the payload, default none.
	Filter Parsed[*expr.Filter] `yaml:"filter" filled:""`
	// IdempotencyKey is a singular JSONPath (expr.ParsePath) to a key of which only the first
	// event is queued, default none.
	IdempotencyKey Parsed[*expr.Path] `yaml:"idempotency_key" filled:""`
	// Delay is how long each message waits before it is visible, 0s to 365d, default 0s: not at
	// all.
	Delay Duration `yaml:"delay" range:"0s 365d"`
	// Lines order and limit the messages with the same value, default none.
	Lines Lines `yaml:"lines" filled:""`
	// VisibilityTimeout is how long a received message stays invisible, 1ms to 7d, default 30s.
	VisibilityTimeout Duration `yaml:"visibility_timeout" range:"1ms 7d"`
	// MaxAttempts is after how many receives a message is dead, 1 to 1000, default 0: never.
	MaxAttempts int `yaml:"max_attempts" range:"1 1000"`
	// APIKey is the bearer token of the queue's consumers, or several of which each is
	// accepted; unset leaves the queue open.
	APIKey Secrets `yaml:"api_key"`
}

// Alert is a place to which alerts are posted.
type Alert struct {
	// URL is posted to; required. It is a Secret because chat services put the credential into
	// it.
	URL Secret `yaml:"url" required:""`
	// Type is the body's format: generic (default), slack or discord.
	Type string `yaml:"type" oneof:"generic slack discord" also:"chat_a=slack chat_b=discord"`
	// SigningSecret is the key that signs alerts of type generic, as it signs deliveries;
	// default delivery.signing_secret. Chat services verify no signature, so alerts of their
	// types are not signed.
	SigningSecret Secrets `yaml:"signing_secret"`
	// On lists the kinds of alerts: dlq, verification_failure, circuit_opened, circuit_closed,
	// lag, held, quiet, operation_finished; required.
	On []string `yaml:"on" required:"" oneof:"dlq verification_failure circuit_opened circuit_closed lag held quiet operation_finished"`
	// Interval is the shortest time between two alerts that the same breaker opened, or that
	// the same consumer lags, 0s to 1d, default 600s.
	Interval Duration `yaml:"interval" range:"0s 1d"`
	// Lag says when a consumer lags; required for the kind lag.
	Lag Lag `yaml:"lag"`
	// Held says which holds cause an alert.
	Held Held `yaml:"held"`
	// Quiet has, by the name of a source, the time without an event after which an alert is
	// posted, 1s to 365d each; required for the kind quiet.
	Quiet map[string]Duration `yaml:"quiet" range:"1s 365d"`
}

// Lag says when a consumer lags.
type Lag struct {
	// OlderThan is the age of its oldest due job, 1s to 365d; required.
	OlderThan Duration `yaml:"older_than" required:"" range:"1s 365d"`
}

// Held says which holds cause an alert.
type Held struct {
	// OlderThan is the age of the hold, 1s to 365d, default 86400s.
	OlderThan Duration `yaml:"older_than" range:"1s 365d"`
}
