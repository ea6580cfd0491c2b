package config

import (
	"errors"
	"net/netip"
	"net/textproto"
	"slices"
	"strings"

	"github.com/eventgateway/gateway/core/cron"
	"github.com/eventgateway/gateway/core/endpoint"
	"github.com/eventgateway/gateway/core/expr"
	"github.com/eventgateway/gateway/core/once"
	"github.com/eventgateway/gateway/core/sns"
	"github.com/eventgateway/gateway/core/verify"
)

// A checker makes the checks that concern more than the type of one field. It writes to the
// Config: parsed forms are set while their texts are checked. It continues after a problem, so
// that users see all problems at once.
type checker struct {
	*Config
	report      *report
	sourceNames []string
	hidden      bool // the addresses are not whole; see Rules
}

// validate reports everything that is wrong with a decoded and resolved configuration. A field
// with a reported problem is empty by now, and its emptiness is not reported again.
func (c *Config) validate(r *report) {
	// The sections are checked in the order of the documentation. The report sorts the problems
	// by line anyway.
	k := checker{Config: c, report: r, sourceNames: names(c.Sources)}
	k.database()
	k.server()
	k.tokens()
	k.console()
	k.sources()
	k.signing("delivery.signing_secret", k.Delivery.SigningSecret)
	k.handlers()
	k.queues()
	k.alerts()
	k.workflows()
}

// problem reports a fault at the position of the field, or of the nearest mapping around it.
func (k *checker) problem(path, format string, args ...any) {
	k.report.add(k.origin.at(path), path, format, args...)
}

// database checks the fields that the driver needs. Fields of other drivers are only warned of,
// so that an overlay may change the driver.
func (k *checker) database() {
	db := k.Database
	switch db.Driver {
	case "sqlite":
		if message := sqliteURL(db.URL.Reveal()); message != "" {
			k.problem("database.url", "%s", message)
		}
	// The address itself is not parsed here: each driver has its own formats.
	case "postgres", "mysql":
		k.needs("database.url", "driver "+db.Driver)
		if scheme, _, found := strings.Cut(db.URL.Reveal(), "://"); found && !slices.Contains(serverSchemes[db.Driver], scheme) {
			k.problem("database.url", "must begin with %s:// for driver %s", serverSchemes[db.Driver][0], db.Driver)
		}
	case "hosted_sql":
		// A proxy knows its database and account.
		if k.origin.given("database.hosted_sql_endpoint") {
			k.url("database.hosted_sql_endpoint", db.HostedSQLEndpoint)
			return
		}
		for _, field := range []string{"account_id", "database_id", "api_token"} {
			k.needs("database."+field, "driver hosted_sql without hosted_sql_endpoint")
		}
	}
}

// serverSchemes are the schemes of addresses, by driver. An address may also have the format of
// the driver's library, which has no scheme.
var serverSchemes = map[string][]string{"postgres": {"postgres", "postgresql"}, "mysql": {"mysql", "mariadb"}}

// needs reports a missing field that another field requires.
func (k *checker) needs(path, reason string) {
	if !k.present(path) {
		k.problem(path, "is required for %s", reason)
	}
}

// present reports whether a field has a value, or had a value with a reported problem.
func (k *checker) present(path string) bool { return k.origin.given(path) || k.reported(path) }

// reported reports whether a problem of a field was reported already.
func (k *checker) reported(path string) bool { return k.report.paths[path] }

// sqliteURL returns why an address is no file for SQLite, or "".
func sqliteURL(url string) string {
	scheme, _, found := strings.Cut(url, "://")
	switch {
	// A URL of another database shows that the driver is wrong.
	case found && scheme != "file" && scheme != "sqlite":
		return "must be a file for driver sqlite; for another database set database.driver"
	case strings.Contains(url, ":memory:"):
		return "must be a file; a database in memory would lose every event at exit"
	// The gateway sets the options of SQLite itself.
	case strings.ContainsAny(url, "?#"):
		return "must be a file without options"
	case Database{URL: Secret(url)}.SQLitePath() == "":
		return "names no file"
	}
	return ""
}

// server checks the addresses of the listener. Their bounds were checked by the decoder.
func (k *checker) server() {
	if host := k.Server.Host; host != "" {
		_, err := netip.ParseAddr(host)
		// A host with a port fails both checks.
		if err != nil && endpoint.CheckHost(host) != nil {
			k.problem("server.host", "must be an IP address or a host name, without a port")
		}
	}
	if k.Server.PublicURL == "" {
		return
	}
	k.url("server.public_url", k.Server.PublicURL)
	// Paths are appended to it.
	if strings.ContainsAny(k.Server.PublicURL, "?#") {
		k.problem("server.public_url", "must not hold a query or a fragment")
	}
}

// url checks the shape of an address.
func (k *checker) url(path, raw string) {
	if raw == "" || k.hidden {
		return
	}
	if err := endpoint.CheckURL(raw); err != nil {
		k.problem(path, "%v", err)
	}
}

// sourceFields lists which fields belong to which types of source.
var sourceFields = []struct {
	field string
	types []string
}{
	{"verify", []string{"webhook"}},
	{"secret", []string{"webhook"}},
	{"signature_header", []string{"webhook"}},
	{"dedup", []string{"webhook"}},
	{"skip_verify", []string{"sns"}},
	{"topic_arns", []string{"sns"}},
	{"schedule", []string{"cron"}},
	{"timezone", []string{"cron"}},
	{"binary", []string{"webhook", "event"}},
	{"schema", []string{"webhook", "event", "sns"}},
	{"webhook_origins", []string{"webhook", "event"}},
	{"allowed_ips", []string{"webhook", "event", "sns"}},
}

// sources checks which fields belong to the type of each source, and then their contents.
func (k *checker) sources() {
	for s := range edited(k.Sources) {
		path := join("sources", s.Name)
		// A source with an unknown type was reported already. Its fields cannot be judged.
		if s.Type != "" {
			for _, f := range sourceFields {
				if k.origin.given(path+"."+f.field) && !slices.Contains(f.types, s.Type) {
					k.problem(path+"."+f.field, "is only for sources of type %s, not %s", strings.Join(f.types, ", "), s.Type)
				}
			}
		}
		k.signature(path, *s)
		for i, arn := range s.TopicARNs {
			if here := index(path+".topic_arns", i); !sns.IsTopic(arn) && !k.reported(here) {
				k.problem(here, "must be a topic such as arn:aws:sns:eu-west-1:123456789012:orders")
			}
		}
		for i, origin := range s.WebhookOrigins {
			if here := index(path+".webhook_origins", i); origin != "*" && endpoint.CheckHost(origin) != nil && !k.reported(here) {
				k.problem(here, "must be a name that senders give in the header WebHook-Request-Origin, such as eventgrid.azure.net, or * for all")
			}
		}
		if s.Type == "cron" {
			k.schedule(path, s)
		}
	}
}

// signature checks the verification of a webhook source.
func (k *checker) signature(path string, s Source) {
	if s.Type != "webhook" {
		return
	}
	// A scheme without a secret would refuse every request.
	if s.Verify != "" {
		k.needs(path+".secret", "verify: "+s.Verify)
	}
	// The user expects the secret to protect the source. An explicit null says that it does
	// not.
	if s.Verify == "" && len(s.Secret) > 0 && !k.origin.set(path+".verify") && !k.reported(path+".verify") {
		k.problem(path+".secret", "is not used without verify, so everyone may send webhooks to this source; add verify with one of %s", listed(verify.Schemes(nil)))
	}
	if s.Verify == "twilio" && k.Server.PublicURL == "" {
		k.problem(path+".verify", "twilio signs the address it calls, so server.public_url must be set")
	}
	if secrets := plain(s.Secret); len(secrets) > 0 && s.Verify != "" && !k.reported(path+".secret") {
		// The problems of the other options are reported in this file's own words.
		_, err := verify.New(s.Verify, verify.Options{Secrets: secrets, PublicURL: true})
		if err != nil {
			k.problem(path+".secret", "%s", strings.TrimPrefix(err.Error(), "secret "))
		}
	}
	if s.Dedup != "" && !k.reported(path+".verify") {
		k.dedup(path+".dedup", s.Verify)
	}
	if header := s.SignatureHeader; header != "" {
		if !endpoint.IsHeaderName(header) {
			k.problem(path+".signature_header", "must be a header name such as X-Signature")
		}
		if s.Verify != "hmac" {
			k.problem(path+".signature_header", "is only for verify: hmac; other schemes have their own header")
		}
	}
}

// dedup checks that a source can distinguish its deliveries by their bodies.
func (k *checker) dedup(path, scheme string) {
	cover := verify.CoverOf(scheme)
	alone := listed(verify.Schemes(func(c verify.Cover) bool { return c.BodyAlone }))
	switch {
	case cover.BodyAlone:
	case scheme == "":
		k.problem(path, "body is only for a source with verify: without a signature any sender can change a body, so that a repeat looks new")
	// Such a scheme needs no dedup, since its id cannot be forged.
	case cover.DeliveryID:
		k.problem(path, "body is only for verify: %s, which sign the body alone; %s signs its own id of the delivery, which identifies repeats", alone, scheme)
	default:
		k.problem(path, "body is only for verify: %s, which sign the body alone; %s does not; give handlers and queues an idempotency_key", alone, scheme)
	}
}

// listed writes names as a message lists them: a, b or c.
func listed(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// plain returns the texts of secrets, without reported secrets.
func plain(secrets Secrets) (texts []string) {
	for _, s := range secrets {
		if s != "" {
			texts = append(texts, s.Reveal())
		}
	}
	return texts
}

// schedule checks the schedule and the zone of a cron source. Each has its own problem.
func (k *checker) schedule(path string, s *Source) {
	zone, err := cron.ParseZone(s.Timezone)
	if err != nil {
		k.problem(path+".timezone", "%v", err)
	}
	k.needs(path+".schedule", `type cron, as in "0 9 * * *"`)
	if k.report.full() { // the search for a schedule that never fires covers years
		return
	}
	// In UTC, so that a wrong zone is not reported again as a fault of the schedule.
	if err := keep(&s.Schedule, func(text string) (cron.Schedule, error) { return cron.Parse(text, "UTC") }); err != nil {
		k.problem(path+".schedule", "%v", err)
	}
	s.Schedule.Value = s.Schedule.Value.In(zone)
}

// handlers checks each handler, and parses its filter, transform and key.
func (k *checker) handlers() {
	for h := range edited(k.Handlers) {
		path := join("handlers", h.Name)
		k.subscription(path, h.Source, h.Events)
		k.receiver(path, *h)
		if k.origin.set(path + ".signing_secret") { // without it all deliveries share a secret, checked elsewhere
			k.signing(path+".signing_secret", h.SigningSecret)
		}
		// An empty list looks like a way to switch the breaker off.
		if k.origin.set(path+".circuit_breaker.count") && len(h.CircuitBreaker.Count) == 0 && !k.reported(path+".circuit_breaker.count") {
			k.problem(path+".circuit_breaker.count", "is empty, so no failure would count; write circuit_breaker: off, or leave count out so that every failure counts")
		}
		k.filter(path+".filter", &h.Filter)
		k.transform(path+".transform", &h.Transform)
		k.singularPath(path+".idempotency_key", &h.IdempotencyKey)
		k.lines(path+".lines", &h.Lines)
	}
}

// errPublicKey is the fault of a signing secret that can only verify.
var errPublicKey = errors.New("is a public key (whpk_…), which can verify but not sign; use the private key (whsk_…) or a symmetric one (whsec_…)")

// signing checks the keys with which deliveries are signed.
func (k *checker) signing(path string, secrets Secrets) {
	for _, s := range plain(secrets) {
		key, err := endpoint.ParseSigningKey(s)
		// A key that only verifies is valid for a source, but not here.
		if err == nil && !key.Signs() {
			err = errPublicKey
		}
		if err != nil {
			k.problem(path, "%v", err)
			return
		}
	}
}

// receiver checks the fields that depend on how a handler is called.
func (k *checker) receiver(path string, h Handler) {
	// An HTTP handler has a URL, a method and headers. A gRPC handler has an address and
	// metadata.
	if h.Type != "grpc" {
		k.url(path+".url", h.URL)
		k.headers(path+".headers", h.Headers, endpoint.CheckHeader)
		return
	}
	if k.origin.given(path + ".method") {
		k.problem(path+".method", "is only for handlers of type http; a gRPC call has one method, Deliver")
	}
	if h.URL != "" {
		if _, err := endpoint.ParseReceiverURL(h.URL); err != nil {
			k.problem(path+".url", "%v", err)
		}
	}
	k.headers(path+".headers", h.Headers, endpoint.CheckMetadata)
}

// queues checks each queue, and parses its filter and key.
func (k *checker) queues() {
	for q := range edited(k.Queues) {
		path := join("queues", q.Name)
		k.subscription(path, q.Source, q.Events)
		k.filter(path+".filter", &q.Filter)
		k.singularPath(path+".idempotency_key", &q.IdempotencyKey)
		k.lines(path+".lines", &q.Lines)
	}
}

// lines checks lines, and parses their key.
func (k *checker) lines(path string, l *Lines) {
	k.singularPath(path+".key", &l.Key)
	// The store keeps the slot of the dead job, so a few of them would use up a line.
	if l.StopsAtDead() && l.Limit > 1 {
		k.problem(path+".on_dead", "hold is only for limit: 1, which keeps an order; with a higher limit each dead job would use up one of the slots of its line; write skip, or limit: 1")
	}
}

// filter parses a condition and reports its fault.
func (k *checker) filter(path string, f *Parsed[*expr.Filter]) {
	k.expression(path, keep(f, expr.ParseFilter))
}

// transform parses a template and reports its fault.
func (k *checker) transform(path string, t *Parsed[*expr.Template]) {
	k.expression(path, keep(t, expr.ParseTemplate))
}

// expression reports the fault of an expression, without the value of a variable in it.
func (k *checker) expression(path string, err error) {
	switch {
	case err != nil && k.origin.marks[path].expanded:
		k.problem(path, "cannot be read with its variables filled in")
	case err != nil:
		k.problem(path, "%v", err)
	}
}

// singularPath checks a JSONPath that must lead to one value.
func (k *checker) singularPath(path string, p *Parsed[*expr.Path]) {
	if err := keep(p, expr.ParsePath); p.Text != "" {
		k.oneValue(path, err == nil && p.Value.Singular(), err)
	}
}

// oneValue reports a path that cannot be read, or that may lead to several values. The text is
// hidden if it contains the value of a variable.
func (k *checker) oneValue(path string, singular bool, err error) {
	const must = "must be a JSONPath to one value, as in $.order.id"
	switch {
	case err == nil && !singular:
		k.problem(path, must+", so it has names and indexes alone")
	case err != nil && k.origin.marks[path].expanded:
		k.problem(path, must)
	case err != nil:
		k.problem(path, must+"; %v", err)
	}
}

// eventForm has the characters of event types, and the star.
var eventForm = once.Regexp(`^[A-Za-z0-9._:/*-]+$`)

// subscription checks the source and the events of a handler, queue or workflow.
func (k *checker) subscription(path, source string, events []string) {
	// A problem of the whole section would make every name unknown.
	if _, ok := k.Sources[source]; !ok && source != "" && !k.reported("sources") {
		k.problem(path+".source", "there is no source %s%s", quote(source), k.report.suggest(source, "the sources are", k.sourceNames))
	}
	for i, event := range events {
		here := index(path+".events", i)
		if (len(event) > 128 || !eventForm().MatchString(event) || strings.Contains(event, "..")) && !k.reported(here) {
			k.problem(here, "an event type has 1 to 128 letters, digits and . _ : / - (no two dots in a row), with * for any part of it")
		}
	}
}

// alerts checks the places of alerts. Each address may appear once, since an alert's lane is
// named by its address.
func (k *checker) alerts() {
	first := map[string]int{} // by address
	for i, a := range k.Alerts {
		k.alertSigning(k.alertPath(i)+".signing_secret", a)
		k.health(k.alertPath(i), a)
		path := k.alertPath(i) + ".url"
		k.url(path, a.URL.Reveal())
		if n, known := first[a.URL.Reveal()]; known && a.URL != "" {
			k.problem(path, "is the same as %s.url; list all its kinds of alerts under one on", k.alertPath(n))
		} else {
			first[a.URL.Reveal()] = i
		}
	}
}

// alertSigning checks the key of an alert, which only alerts of type generic may have.
func (k *checker) alertSigning(path string, a Alert) {
	switch {
	case !k.origin.set(path): // the secret of all deliveries, checked elsewhere
	case a.Type == "slack" || a.Type == "discord":
		k.problem(path, "is for type generic: %s verifies no signature; remove signing_secret", a.Type)
	default:
		k.signing(path, a.SigningSecret)
	}
}

// alertPath returns the path of an alert. A single alert, given without a list, has no number.
func (k *checker) alertPath(i int) string {
	if path := index("alerts", i); k.origin.set(path) {
		return path
	}
	return "alerts"
}

// headers finds the faults of headers that would otherwise fail every delivery.
func (k *checker) headers(path string, headers map[string]Secret, check func(name, value string) error) {
	// Names of headers are compared in their canonical form: x-a and X-A are one header.
	seen := map[string]string{}
	for _, name := range names(headers) {
		here, canonical := join(path, name), textproto.CanonicalMIMEHeaderKey(name)
		if err := check(name, headers[name].Reveal()); err != nil {
			k.problem(here, "%v", err)
		} else if seen[canonical] != "" {
			k.problem(here, "is the same header as %s", seen[canonical])
		}
		seen[canonical] = name
	}
}
