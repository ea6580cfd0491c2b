package gateway

import (
	"fmt"
	"net/netip"
	"net/textproto"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/egress"
	"github.com/eventgateway/gateway/core/intake"
	"github.com/eventgateway/gateway/core/verify"
	"github.com/eventgateway/gateway/core/worker"
)

// sources are the configured sources as intake knows them.
func sources(c *config.Config, clock core.Clock) ([]intake.Source, error) {
	var all []intake.Source
	for _, s := range c.SortedSources() {
		source := intake.Source{Name: s.Name, Kind: kinds[s.Type], Provider: s.Verify, Allowed: prefixes(s.AllowedIPs)}
		if s.Verify != "" {
			scheme, err := verify.New(s.Verify, verify.Options{Secrets: reveal(s.Secret), SignatureHeader: s.SignatureHeader})
			if err != nil {
				return nil, fmt.Errorf("sources.%s: %w", s.Name, err)
			}
			source.Verify = func(r intake.Request) error {
				return scheme.Verify(verify.Request{Header: values(r.Header), Body: r.Body}, clock())
			}
		}
		all = append(all, source)
	}
	return all, nil
}

var kinds = map[string]intake.Kind{"webhook": intake.Webhook, "event": intake.Event}

// Consumers are those who get jobs for events, in the order of their names. The
// dry run of the command line asks for them too.
func Consumers(c *config.Config) []intake.Consumer {
	var all []intake.Consumer
	for _, h := range c.SortedHandlers() {
		all = append(all, intake.Consumer{
			Lane:        core.HandlerLane(h.Name),
			Source:      h.Source,
			Events:      h.Events,
			MaxAttempts: h.Retry.Max,
		})
	}
	return all
}

// targets are the configured handlers as the worker knows them.
func targets(c *config.Config, client *egress.Client) ([]worker.Target, error) {
	var all []worker.Target
	for _, h := range c.SortedHandlers() {
		sender, err := client.HTTP(egress.Target{
			Name:    h.Name,
			URL:     h.URL,
			Method:  h.Method,
			Headers: headers(h.Headers),
			Secrets: signingSecrets(c, h),
		})
		if err != nil {
			return nil, err
		}
		timeout := h.Timeout.Duration
		all = append(all, worker.Target{
			Lane:    core.HandlerLane(h.Name),
			Sender:  sender,
			Retry:   retryOf(h.Retry),
			Timeout: timeout,
			Hold:    c.Worker.Lease(timeout),
		})
	}
	return all, nil
}

// signingSecrets are the handler's own if it has any, else those of all.
func signingSecrets(c *config.Config, h config.Handler) []string {
	if len(h.SigningSecret) > 0 {
		return reveal(h.SigningSecret)
	}
	return reveal(c.Delivery.SigningSecret)
}

func retryOf(r config.Retry) core.Retry {
	return core.Retry{Max: r.Max, Interval: r.Interval.Duration, Fixed: r.Backoff == "fixed"}
}

func prefixes(networks []config.Network) []netip.Prefix {
	var plain []netip.Prefix
	for _, n := range networks {
		plain = append(plain, n.Prefix)
	}
	return plain
}

func reveal(secrets config.Secrets) []string {
	plain := make([]string, len(secrets))
	for i, s := range secrets {
		plain[i] = s.Reveal()
	}
	return plain
}

func headers(h map[string]config.Secret) map[string]string {
	plain := make(map[string]string, len(h))
	for name, value := range h {
		plain[name] = value.Reveal()
	}
	return plain
}

// values reads all values of a header whose name may be in any case.
func values(h intake.Header) func(string) []string {
	return func(name string) []string { return h[textproto.CanonicalMIMEHeaderKey(name)] }
}
