package gateway

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/alert"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/cron"
	"github.com/eventgateway/gateway/core/egress"
	"github.com/eventgateway/gateway/core/intake"
	"github.com/eventgateway/gateway/core/sns"
	"github.com/eventgateway/gateway/core/verify"
	"github.com/eventgateway/gateway/core/worker"
)

// sources returns the configured sources for intake.
func (g *Gateway) sources(c *config.Config) ([]intake.Source, error) {
	// All topics share the cache of certificates: the topics of a region are signed with the same one.
	certificates := sns.NewCertificates(g.client.Get, g.Machine)
	var all []intake.Source
	for _, s := range c.SortedSources() {
		source := intake.Source{Name: s.Name, Kind: kinds[s.Type], Provider: s.Verify, Allowed: prefixes(s.AllowedIPs), Schedule: s.Schedule.Text, Schema: s.Schema.Value, ByBody: s.Dedup == "body", Binary: s.Binary, Origins: s.WebhookOrigins}
		var err error
		if source.Verify, err = verifier(c, s, g.Machine); err != nil {
			return nil, fmt.Errorf("sources.%s: %w", s.Name, err)
		}
		// A topic confirms its subscription and verifies its messages itself, so it needs a clock and
		// a client. The other kinds have a plain function or none.
		if source.Kind == intake.Topic {
			source.Topic = sns.NewTopic(sns.Options{
				TopicARNs:    s.TopicARNs,
				SkipVerify:   s.SkipVerify,
				AllowPrivate: c.Server.AllowPrivateURLs,
				Certificates: certificates,
				Fetch:        g.client.Get,
				Clock:        g.Machine,
			})
		}
		all = append(all, source)
	}
	return all, nil
}

// kinds translates the types of sources. A configuration that was loaded has no other type.
var kinds = map[string]intake.Kind{"webhook": intake.Webhook, "event": intake.Event, "sns": intake.Topic, "cron": intake.Tick}

// verifier returns the function that verifies the requests of a source; nil if the source
// does not verify.
func verifier(c *config.Config, s config.Source, clock core.Clock) (func(intake.Request) error, error) {
	if s.Verify == "" {
		return nil, nil
	}
	// The scheme is made once. Each request then costs a computation and no parsing of secrets.
	scheme, err := verify.New(s.Verify, verify.Options{
		Secrets:         reveal(s.Secret),
		SignatureHeader: s.SignatureHeader,
		PublicURL:       c.Server.PublicURL != "",
	})
	if err != nil {
		return nil, err
	}
	// Some schemes sign the URL to which the sender posted. Behind a proxy only the configured
	// public URL is that address, so without one such a scheme gets none and refuses.
	public := strings.TrimSuffix(c.Server.PublicURL, "/")
	return func(r intake.Request) error {
		// The time is the machine's: senders sign with a time that NTP keeps right, and the clock of
		// the database may differ.
		seen := verify.Request{Header: values(r.Header), Body: r.Body}
		if public != "" {
			seen.URL = public + r.Target
		}
		return scheme.Verify(seen, clock())
	}, nil
}

// cronSources returns the configured cron sources.
func cronSources(c *config.Config) []cron.Source {
	var all []cron.Source
	for _, s := range c.SortedSources() {
		if s.Type == "cron" {
			all = append(all, cron.Source{Name: s.Name, Text: s.Schedule.Text + " " + s.Timezone, Schedule: s.Schedule.Value})
		}
	}
	return all
}

// Consumers returns the consumers of events: the handlers in the order of their names, then
// the queues, then the workflows. The dry run of the command line uses them too.
func Consumers(c *config.Config) ([]intake.Consumer, error) {
	var all []intake.Consumer
	for _, h := range c.SortedHandlers() {
		consumer := intake.Consumer{
			Lane: core.HandlerLane(h.Name), Source: h.Source, Events: h.Events, Filter: h.Filter.Value, Key: h.IdempotencyKey.Value,
			Lines: linesOf(h.Lines), Reads: h.Transform.Value != nil, MaxAttempts: h.Retry.Max, Delay: h.Delay.Duration,
		}
		all = append(all, consumer)
	}
	for _, q := range c.SortedQueues() {
		consumer := intake.Consumer{
			Lane: core.QueueLane(q.Name), Source: q.Source, Events: q.Events, Filter: q.Filter.Value, Key: q.IdempotencyKey.Value,
			Lines: linesOf(q.Lines), MaxAttempts: cmp.Or(q.MaxAttempts, core.Unlimited), Delay: q.Delay.Duration,
		}
		all = append(all, consumer)
	}
	begun, err := workflowConsumers(c)
	return append(all, begun...), err
}

// linesOf translates the lines of a handler or queue for the intake.
func linesOf(l config.Lines) intake.Lines {
	return intake.Lines{Key: l.Key.Value, Limit: l.Limit}
}

// places returns the places to which alerts are posted.
func places(c *config.Config) []alert.Place {
	var all []alert.Place
	for _, a := range c.Alerts {
		place := alert.Place{Lane: alert.Lane(a.URL.Reveal()), Health: alert.Thresholds{
			Interval: a.Interval.Duration, Lag: a.Lag.OlderThan.Duration, Held: a.Held.OlderThan.Duration, Quiet: map[string]time.Duration{}}}
		for source, after := range a.Quiet {
			place.Health.Quiet[source] = after.Duration
		}
		for _, word := range a.On {
			place.On = append(place.On, alert.Kind(word))
		}
		all = append(all, place)
	}
	return all
}

// shown returns how the places of alerts are shown.
func shown(c *config.Config) core.Places {
	all := make(core.Places, len(c.Alerts))
	for i, a := range c.Alerts {
		place := core.Place{Lane: core.AlertLane(strconv.Itoa(i + 1))}
		if u, err := url.Parse(a.URL.Reveal()); err == nil {
			place.Host = u.Hostname()
		}
		all[alert.Lane(a.URL.Reveal())] = place
	}
	return all
}

// alertTargets returns the places of alerts as targets of the worker.
func alertTargets(c *config.Config, client *egress.Client) ([]worker.Target, error) {
	var all []worker.Target
	places := shown(c)
	for _, a := range c.Alerts {
		// The lane follows from the URL and not from the position in the list: alerts that wait
		// keep their lane when another place is added or removed.
		lane := alert.Lane(a.URL.Reveal())
		sender, err := client.HTTP(egress.Target{Name: string(places.Shown(lane)), URL: a.URL.Reveal(), Secrets: reveal(a.SigningSecret),
			Record: core.Recording(c.Delivery.Record), SecretURL: true, MadeBody: a.Type != alert.Generic})
		if err != nil {
			return nil, fmt.Errorf("alerts: %w", err)
		}
		timeout := c.Delivery.Timeout.Duration
		all = append(all, worker.Target{
			Lane:   lane,
			Sender: alert.Sender(sender, a.Type),
			Retry:  retryOf(c.Delivery.DefaultRetry),
			// The services of chats refuse faster posts.
			Interval: alert.Pace(a.Type),
			Timeout:  timeout,
			Hold:     c.Worker.Lease(timeout),
		})
	}
	return all, nil
}

// targets returns the configured handlers as targets of the worker.
func targets(c *config.Config, client *egress.Client) ([]worker.Target, error) {
	var all []worker.Target
	for _, h := range c.SortedHandlers() {
		sender, err := Sender(c, h, client)
		if err != nil {
			return nil, err
		}
		timeout := h.Timeout.Duration
		target := worker.Target{
			Lane:    core.HandlerLane(h.Name),
			Sender:  sender,
			Retry:   retryOf(h.Retry),
			Breaker: breakerOf(h.CircuitBreaker),
			Lines:   lineRules(h.Lines),
			Timeout: timeout,
			Hold:    c.Worker.Lease(timeout),
		}
		// The worker keeps starts apart instead of counting them, so a rate has no bursts.
		if h.RateLimit > 0 {
			target.Interval = time.Second / time.Duration(h.RateLimit)
		}
		all = append(all, target)
	}
	return all, nil
}

// Sender returns the sender of a handler's deliveries, which makes their requests and signatures. The
// command listen uses it as well, with another URL.
func Sender(c *config.Config, h config.Handler, client *egress.Client) (worker.Sender, error) {
	t := egress.Target{
		Name:      h.Name,
		URL:       h.URL,
		Headers:   headers(h.Headers),
		Transform: h.Transform.Value,
		Secrets:   signingSecrets(c, h),
		Record:    core.Recording(h.Record),
	}
	// A gRPC handler has no method: it is always the Receiver service.
	if h.Type == "grpc" {
		return client.GRPC(t)
	}
	t.Method = h.Method
	return client.HTTP(t)
}

// signingSecrets returns the handler's own secrets if it has any, else the secrets of all
// handlers.
func signingSecrets(c *config.Config, h config.Handler) []string {
	if len(h.SigningSecret) > 0 {
		return reveal(h.SigningSecret)
	}
	return reveal(c.Delivery.SigningSecret)
}

// breakerOf returns a handler's circuit breaker for the worker; nil if it is switched off.
func breakerOf(b config.CircuitBreaker) *worker.Breaker {
	if b.Off {
		return nil
	}
	all := &worker.Breaker{Breaker: core.Breaker{Failures: b.Failures, Cooldown: b.Cooldown.Duration}}
	for _, class := range b.Count {
		all.Counts = append(all.Counts, core.ErrorClass(class))
	}
	return all
}

// retryOf translates the retry settings of a handler or of alerts.
func retryOf(r config.Retry) core.Retry {
	return core.Retry{Max: r.Max, Interval: r.Interval.Duration, Fixed: r.Backoff == "fixed"}
}

// prefixes returns the networks as prefixes of addresses.
func prefixes(networks []config.Network) []netip.Prefix {
	var plain []netip.Prefix
	for _, n := range networks {
		plain = append(plain, n.Prefix)
	}
	return plain
}

// reveal returns the secrets in plain text, in their order.
func reveal(secrets config.Secrets) []string {
	plain := make([]string, len(secrets))
	for i, s := range secrets {
		plain[i] = s.Reveal()
	}
	return plain
}

// headers returns the headers of a handler in plain text, by name.
func headers(h map[string]config.Secret) map[string]string {
	plain := make(map[string]string, len(h))
	for name, value := range h {
		plain[name] = value.Reveal()
	}
	return plain
}

// values returns a function that reads all values of a header by a name in any case.
func values(h intake.Header) func(string) []string {
	return func(name string) []string { return h[textproto.CanonicalMIMEHeaderKey(name)] }
}
