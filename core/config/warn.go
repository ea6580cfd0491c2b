package config

import (
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/endpoint"
)

// shortSecret is the length in bytes below which a secret can be guessed; Standard Webhooks
// asks for 24 to 64.
const shortSecret = 24

// Warnings returns valid but doubtful settings, sorted by file and line.
func (c *Config) Warnings() []Problem {
	r := &report{}
	w := warner{checker{Config: c, report: r}}
	// The notes were made while the files were read.
	if c.origin != nil {
		r.problems = append(r.problems, c.origin.notes...)
	}
	w.database()
	w.tokens()
	w.server()
	w.sources()
	w.handlers()
	w.queues()
	w.workflows()
	for i, a := range c.Alerts {
		w.url(w.alertPath(i)+".url", a.URL.Reveal())
		if path := w.alertPath(i) + ".signing_secret"; w.origin.set(path) {
			w.signingKeys(path, a.SigningSecret)
		}
	}
	return r.sorted()
}

// A warner finds valid but doubtful settings. It reports like a checker.
type warner struct{ checker }

// databaseFields lists which drivers need which fields.
var databaseFields = []struct {
	field   string
	drivers []string
}{
	{"url", []string{"sqlite", "postgres", "mysql"}},
	{"max_connections", []string{"postgres", "mysql", "hosted_sql"}},
	{"account_id", []string{"hosted_sql"}},
	{"database_id", []string{"hosted_sql"}},
	{"api_token", []string{"hosted_sql"}},
	{"hosted_sql_endpoint", []string{"hosted_sql"}},
}

// hostedBody is the largest body that always fits into a row of hosted_sql: 2,000,000 bytes
// less the largest size of headers and ids.
const hostedBody = 1_900_000

// database warns of fields that the driver does not read, and of a proxy without protection.
func (w warner) database() {
	db := w.Database
	for _, f := range databaseFields {
		if path := "database." + f.field; w.origin.given(path) && !slices.Contains(f.drivers, db.Driver) {
			w.problem(path, "has no effect for driver %s", db.Driver)
		}
	}
	if db.Driver != "hosted_sql" {
		return
	}
	if db.HostedSQLEndpoint != "" {
		// A proxy in a private network may need no token.
		if db.APIToken == "" {
			w.problem("database.api_token", "not set: the proxy is called without a token")
		}
		if u, err := url.Parse(db.HostedSQLEndpoint); err == nil && u.Scheme == "http" && !isLoopback(u.Hostname()) {
			w.problem("database.hosted_sql_endpoint", "is not https: the token and every event can be read on the network")
		}
		for _, f := range []string{"account_id", "database_id"} {
			if w.origin.given("database." + f) {
				w.problem("database."+f, "has no effect with hosted_sql_endpoint: the proxy knows its database")
			}
		}
	}
	if w.Server.MaxBodySize > hostedBody {
		w.problem("server.max_body_size", "is more than a row of hosted_sql holds: events above about %d bytes are refused with 413", hostedBody)
	}
}

// isLoopback reports whether a host is this machine.
func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// server warns of weak secrets of the whole gateway, and of settings without an effect.
func (w warner) server() {
	w.secrets("api.metrics_auth_token", w.API.MetricsAuthToken...)
	w.signingKeys("delivery.signing_secret", w.Delivery.SigningSecret)
	if len(w.Server.TrustedProxies) > 0 && !w.Server.TrustProxy {
		w.problem("server.trusted_proxies", "has no effect unless server.trust_proxy is true")
	}
	w.lease("delivery.timeout", w.Delivery.Timeout)
	if len(w.Sources) == 0 {
		w.problem("sources", "no source is configured: no event can come in")
	}
}

// lease warns if a job could count as stuck while it is still being delivered.
func (w warner) lease(path string, timeout Duration) {
	if stale := w.Worker.StaleThresholdSecs; w.Worker.Lease(timeout.Duration) > time.Duration(stale)*time.Second {
		w.problem("worker.stale_threshold_secs", "%d s is less than %s (%s) plus %.0f s; the longer time is used", stale, path, timeout, leaseMargin.Seconds())
	}
}

// Recipes for secrets.
const (
	tokenRecipe   = "openssl rand -hex 32"
	signingRecipe = "echo whsec_$(openssl rand -base64 32)"
)

// secrets warns of secrets that are easy to guess, or that a copy may have damaged.
func (w warner) secrets(path string, secrets ...Secret) {
	w.guessable(path, tokenRecipe, secrets)
}

// guessable warns of secrets that are short, published, or have blanks around them. recipe is a
// command that makes a better one.
func (w warner) guessable(path, recipe string, secrets []Secret) {
	for _, s := range secrets {
		if text := s.Reveal(); text != "" && len(text) < shortSecret {
			w.problem(path, "is short (%d bytes); use at least %d random ones", len(text), shortSecret)
		}
		// Such a secret may be long enough, and is still known to everyone.
		if publishedSecrets[s.Reveal()] {
			w.problem(path, "is a sample that was published, so everyone knows it; make another with: %s", recipe)
		}
		// Blanks usually come from a copy, or from a file with a line break at its end.
		if text := s.Reveal(); strings.TrimSpace(text) != text {
			w.problem(path, "starts or ends with a blank or a line break, which counts as part of it")
		}
	}
}

// signingKeys warns of secrets that the libraries of Standard Webhooks would not accept, or
// would read differently.
func (w warner) signingKeys(path string, secrets Secrets) {
	w.guessable(path, signingRecipe, secrets)
	for _, s := range secrets {
		// Both sides must agree on the bytes of the key.
		if text := s.Reveal(); endpoint.PlainKey(text) && !publishedSecrets[text] {
			w.problem(path, "is not base64, so its own bytes are the key, which libraries of Standard Webhooks do not take; make another with: %s", signingRecipe)
		}
	}
	if slices.ContainsFunc(secrets, func(s Secret) bool { return endpoint.LooksHex(s.Reveal()) }) {
		w.problem(path, "looks like hexadecimal, but libraries of Standard Webhooks, and the gateway, read it as base64; if the other side takes other bytes as its key, signatures do not match; make another with: %s", signingRecipe)
	}
}

// sources warns of sources that accept unsigned events, and of events without a receiver.
func (w warner) sources() {
	consumed := w.consumed()
	for _, s := range w.SortedSources() {
		path := join("sources", s.Name)
		switch {
		case s.Type == "webhook" && s.Verify == "" && len(s.Secret) > 0:
			w.problem(path+".secret", "has no effect, since verify is null: everyone may send webhooks to this source")
		case s.Type == "webhook" && s.Verify == "":
			w.problem(path+".verify", "not set: everyone may send webhooks to this source")
		case s.SkipVerify:
			w.problem(path+".skip_verify", "is on: everyone may send notifications to this source")
		}
		// Anyone with an AWS account can subscribe this address to a topic.
		if s.Type == "sns" && len(s.TopicARNs) == 0 {
			w.problem(path+".topic_arns", "not set: notifications of every topic are accepted, of other accounts too")
		}
		if s.Verify == "standard-webhooks" {
			w.signingKeys(path+".secret", s.Secret)
		} else {
			w.secrets(path+".secret", s.Secret...)
		}
		w.clients(path+".allowed_ips", s.AllowedIPs)
		// Its events are stored, but nothing happens with them.
		if !consumed[s.Name] {
			w.problem(path, "no handler, queue or workflow takes this source's events")
		}
	}
}

// clients warns of networks without any client.
func (w warner) clients(path string, networks []Network) {
	for i, n := range networks {
		// 0.0.0.0 without /0 usually means every address.
		if n.IsSingleIP() && n.Addr().IsUnspecified() {
			w.problem(index(path, i), "%s is not the address of a client, so no client is accepted; did you mean %s/0?", n.Addr(), n.Addr())
		}
	}
}

// consumed returns the sources with a handler, queue or workflow for their events. A source
// without one is usually forgotten, or misspelt in the handler.
func (w warner) consumed() map[string]bool {
	all := map[string]bool{}
	for _, h := range w.Handlers {
		all[h.Source] = true
	}
	for _, q := range w.Queues {
		all[q.Source] = true
	}
	for _, f := range w.Workflows {
		all[f.Source] = true
	}
	return all
}

// handlers warns of handlers that get no events or whose address is refused, and of weak keys.
func (w warner) handlers() {
	for _, h := range w.SortedHandlers() {
		path := join("handlers", h.Name)
		w.events(path+".events", h.Source, h.Events)
		w.url(path+".url", h.URL)
		// Without its own timeout the handler has that of delivery, which was checked once.
		if w.origin.set(path + ".timeout") {
			w.lease(path+".timeout", h.Timeout)
		}
		if w.origin.set(path + ".signing_secret") {
			w.signingKeys(path+".signing_secret", h.SigningSecret)
		}
	}
}

// events warns of event types that a cron source does not make.
func (w warner) events(path, source string, types []string) {
	if w.Sources[source].Type == "cron" && len(types) > 0 && !slices.ContainsFunc(types, takesTick) {
		w.problem(path, "none of these comes from source %s, which is of type cron; take %s, or leave events out", quote(source), core.CronTick)
	}
}

// takesTick reports whether a type, possibly with stars, matches the type of cron's events.
// That type has no slash, at which path.Match would stop.
func takesTick(pattern string) bool {
	matched, _ := path.Match(pattern, core.CronTick)
	return matched
}

// url warns of an address that the gateway will refuse to dial.
func (w warner) url(path, raw string) {
	if why := refusal(raw, w.Server.AllowPrivateURLs); why != "" {
		w.problem(path, "%s", why)
	}
}

// queues warns of messages that never end, and of queues that are open to everyone.
func (w warner) queues() {
	for _, q := range w.SortedQueues() {
		path := join("queues", q.Name)
		w.events(path+".events", q.Source, q.Events)
		switch {
		case q.MaxAttempts > 0:
		case q.Lines.Limit == 1:
			w.problem(path+".max_attempts", "not set: a message that no consumer can process is delivered again for ever, and the messages behind it in its line wait")
		default:
			w.problem(path+".max_attempts", "not set: a message that no consumer can process is delivered again for ever")
		}
		if len(q.APIKey) == 0 {
			w.problem(path+".api_key", "not set: everyone may read and remove this queue's messages")
		}
		w.secrets(path+".api_key", q.APIKey...)
	}
}
