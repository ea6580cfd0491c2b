//go:build linux

package e2e

import (
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core/verify"
)

// canaryConfig has a secret in each field that can hold one. A variable holds the secret
// <name>, and the file itself holds <!name>.
const canaryConfig = `
server:
  host: 127.0.0.1
  port: ${PORT}
  public_url: http://127.0.0.1:${PORT}
  allow_private_urls: true
  echo: true
api:
  auth_token: "<api.auth_token>"
  tokens:
    - {name: reader, token: "<api.tokens.reader>", role: read}
    - {name: sender, token: ["<api.tokens.sender>", "<!api.tokens.sender old>"], role: send}
worker: {drain_timeout_secs: 5}
delivery:
  timeout: 5s
  signing_secret: ["<delivery.signing_secret>", "<!delivery.signing_secret old>"]
  default_retry: {max: 1, backoff: fixed, interval: 50ms}
sources:
  app: {type: event}
  other: {type: event}
  strict: {type: event, schema: {type: object, required: [id], properties: {id: {type: integer}}}}
  topic: {type: sns, skip_verify: true}
  genuine: {type: sns}
  clock: {type: cron, schedule: "*/5 * * * * *"}
<sources>
handlers:
  works: {source: app, url: "${RECEIVER}/works?key=<handlers.works.url>", headers: {authorization: "Bearer <handlers.works.headers>", x-key: "<!handlers.works.headers x-key>"}}
  signs: {source: app, url: "${RECEIVER}/signs", signing_secret: "<handlers.signs.signing_secret>"}
  fails: {source: app, url: "${RECEIVER}/fails?key=<handlers.fails.url>", headers: {x-key: "<handlers.fails.headers>"}, retry: {max: 2}}
  repeats: {source: app, url: "${RECEIVER}/repeats?key=<handlers.repeats.url>", headers: {x-key: "<handlers.repeats.headers>"}}
  leads: {source: app, url: "${RECEIVER}/leads?key=<handlers.leads.url>"}
  absent: {source: app, url: "http://127.0.0.1:1/?key=<handlers.absent.url>", headers: {x-key: "<handlers.absent.headers>"}}
  nameless: {source: app, url: "http://gateway.invalid/?key=<handlers.nameless.url>"}
  metadata: {source: app, url: "http://169.254.169.254/?key=<handlers.metadata.url>"}
  untrusted: {source: app, url: "${TLS}/?key=<handlers.untrusted.url>", headers: {x-key: "<handlers.untrusted.headers>"}}
  unframed: {source: app, url: "${RAW}/?key=<handlers.unframed.url>"}
  slow: {source: app, url: "${RECEIVER}/slow?key=<handlers.slow.url>", timeout: 200ms}
  mistaken: {source: app, url: "${RECEIVER}/mistaken", transform: '{"n": {{ $.none.of.it }}}'}
  plaintext: {source: app, type: grpc, url: "${RECEIVER}", headers: {x-key: "<handlers.plaintext.headers>"}}
  uncalled: {source: app, type: grpc, url: "https://127.0.0.1:1", headers: {x-key: "<handlers.uncalled.headers>"}}
  own: {source: other, url: "http://127.0.0.1:${PORT}/_echo?key=<handlers.own.url>", headers: {x-key: "<handlers.own.headers>"}}
queues:
  pulled: {source: app, api_key: "<queues.pulled.api_key>", max_attempts: 2}
  open: {source: app}
alerts:
  - {url: "${RECEIVER}/alert/generic/<alerts.generic path>?key=<alerts.generic query>", signing_secret: "<alerts.signing_secret>", on: [dlq, verification_failure]}
  - {url: "${RECEIVER}/alert/slack/<!alerts.slack>", type: slack, on: [dlq, verification_failure]}
  - {url: "${RECEIVER}/alert/discord/<alerts.discord>", type: discord, on: [dlq, verification_failure]}
  - {url: "http://127.0.0.1:1/<alerts.absent>", on: [dlq]}
  - {url: "${TLS}/<alerts.untrusted>", on: [dlq]}
workflows:
  order:
    source: app
    events: [order]
    params: [{name: items, type: array}]
    steps:
      - {name: call, url: "${RECEIVER}/call?key=<workflows.call.url>", headers: {x-key: "<workflows.call.headers>", x-other: "<!workflows.call.headers literal>"}, result_path: $.called}
      - {name: ask, type: callback, url: "${RECEIVER}/ask?key=<workflows.ask.url>", headers: {x-key: "<workflows.ask.headers>"}, callback_timeout: 600, result_path: $.answer}
      - name: both
        type: parallel
        result_path: $.both
        branches:
          - {name: one, url: "${RECEIVER}/branch?key=<workflows.branch.url>", headers: {x-key: "<workflows.branch.headers>"}}
          - {name: many, steps: [{name: each, type: map, items_path: $.items, iterator: {url: "${RECEIVER}/item?key=<workflows.item.url>", headers: {x-key: "<workflows.item.headers>"}}}]}
      - {name: fail, url: "${RECEIVER}/failing-step?key=<workflows.fail.url>", headers: {x-key: "<workflows.fail.headers>"}, retry: {max: 2, interval: 50ms}, end: true}
  lost:
    source: app
    events: [order]
    steps: [{name: lose, url: "http://127.0.0.1:1/?key=<workflows.lose.url>", headers: {x-key: "<workflows.lose.headers>"}, end: true}]
`

// canaryOverlay is the configuration's overlay for the environment canary.
const canaryOverlay = `
api: {metrics_auth_token: "<!api.metrics_auth_token>"}
`

// canaryDotEnv is the .env file of that environment.
const canaryDotEnv = `
OTEL_RESOURCE_ATTRIBUTES=deployment.environment=test
SOME_PASSWORD=<!dotenv>
`

// canarySources returns a source for each scheme of signatures.
func canarySources() string {
	var b strings.Builder
	for _, name := range verify.Names() {
		secret := "<sources." + name + ".secret>"
		if strings.HasPrefix(name, "standard") {
			secret = "whsec_" + secret // valid base64
		}
		fmt.Fprintf(&b, "  %s: {type: webhook, verify: %s, secret: [\"%s\", \"%s\"]}\n", name, name, secret, strings.Replace(secret, ".secret>", ".secret new>", 1))
	}
	return b.String()
}

var blank = regexp.MustCompile(`<(!?)([^<>]+)>`)

// fill puts the canaries into a text, and returns the variables that the text refers to.
func (h *haul) fill(text string) (filled string, env []string) {
	filled = blank.ReplaceAllStringFunc(strings.Replace(text, "<sources>", canarySources(), 1), func(s string) string {
		parts := blank.FindStringSubmatch(s)
		secret := h.secret(parts[2])
		if parts[1] == "!" {
			return secret
		}
		name := "C_" + regexp.MustCompile(`[^A-Za-z0-9]`).ReplaceAllString(parts[2], "_")
		env = append(env, name+"="+secret)
		return "${" + name + "}"
	})
	slices.Sort(env)
	return filled, slices.Compact(env)
}

// furnish writes the configuration, its overlay and its .env file into a gateway's folder.
func (h *haul) furnish(g *gateway, database string) {
	g.t.Helper()
	next := strings.Replace(canaryConfig, `'{"n": {{ $.none.of.it }}}'`, `'{"n": 1}'`, 1) // for a preview
	for name, text := range map[string]string{"gateway.yaml": canaryConfig + database, "next.yaml": next + database, "gateway.canary.yaml": canaryOverlay, ".env.canary": canaryDotEnv} {
		filled, env := h.fill(text)
		g.env = append(g.env, env...)
		write(g.t, filepath.Join(g.dir, name), filled)
	}
	g.env = append(g.env, "GATEWAY_ENV=canary")
}

// blandFields hold no secrets: names, choices and settings. A new field of text must be added
// here or get a canary.
var blandFields = strings.Fields(`
	Database.driver Database.account_id Database.database_id Server.host Server.public_url Token.name Token.role Retry.backoff
	Source.type Source.verify Source.dedup Source.signature_header Source.topic_arns Source.webhook_origins Source.schedule Source.timezone Source.schema
	Delivery.record Handler.record Handler.source Handler.events Handler.type Handler.method Handler.idempotency_key Handler.filter Handler.transform CircuitBreaker.count
	Queue.source Queue.events Queue.filter Queue.idempotency_key Lines.key Lines.on_dead Alert.type Alert.on
	Workflow.source Workflow.events Workflow.on_failure Param.name Param.type Step.name Step.type Step.method Step.on_failure Step.error Step.message Step.input
	Step.result_path Step.output Step.goto Step.timestamp_path Step.default Step.items_path StepRetry.backoff StepRetry.errors
	Catch.errors Catch.goto Choice.when Choice.goto Branch.name Branch.method`)

// texts visits all text fields below v with their values. For a nil pointer or an empty list
// or map it visits the fields that an element would have, with "".
func texts(v reflect.Value, field string, visit func(field, text string)) {
	seen := map[reflect.Type]bool{}
	var walk func(v reflect.Value, field string, real bool)
	walk = func(v reflect.Value, field string, real bool) {
		switch v.Kind() {
		case reflect.String:
			visit(field, v.String())
		case reflect.Struct:
			if strings.HasPrefix(v.Type().Name(), "Parsed[") { // config.Parsed: its value is made of its text
				visit(field, v.FieldByName("Text").String())
				return
			}
			if !real && seen[v.Type()] {
				return
			}
			seen[v.Type()] = true
			for i := range v.NumField() {
				if f := v.Type().Field(i); f.IsExported() && f.Name != "Name" || f.Tag.Get("yaml") == "name" {
					tag, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
					walk(v.Field(i), v.Type().Name()+"."+tag, real)
				}
			}
		case reflect.Pointer:
			if !v.IsNil() {
				walk(v.Elem(), field, real)
			}
			walk(reflect.New(v.Type().Elem()).Elem(), field, false)
		case reflect.Slice, reflect.Map:
			for _, e := range v.Seq2() {
				walk(e, field, real)
			}
			walk(reflect.New(v.Type().Elem()).Elem(), field, false)
		}
	}
	walk(v, field, true)
}

// TestEveryFieldHasACanary: each field of the configuration that can hold a secret has one,
// including fields added later.
func TestEveryFieldHasACanary(t *testing.T) {
	t.Parallel()
	h := newHaul()
	bare := map[string]bool{} // fields, and whether they lack a canary
	for _, database := range []string{
		"database: {driver: postgres, url: \"postgres://u:<database.url>@127.0.0.1/d\"}\n",
		"database: {driver: hosted_sql, hosted_sql_endpoint: \"https://127.0.0.1/?key=<database.hosted_sql_endpoint>\", api_token: \"<database.api_token>\"}\n",
	} {
		g := newGateway(t, "", nil)
		h.furnish(g, database)
		g.env = append(g.env, "RECEIVER=http://127.0.0.1:2", "TLS=https://127.0.0.1:3", "RAW=http://127.0.0.1:4")
		c, err := loadConfig(g.command("start"))
		if err != nil {
			t.Fatal(err)
		}
		texts(reflect.ValueOf(*c), "Config", func(field, text string) {
			held := slices.ContainsFunc(h.all(), func(c canary) bool { return strings.Contains(text, c.text) })
			without, known := bare[field]
			bare[field] = !held && (without || !known)
		})
	}
	for field, without := range bare {
		if without == slices.Contains(blandFields, field) {
			continue
		}
		t.Errorf("field %s: no canary in it: %v; put one into canaryConfig, or the field among blandFields", field, without)
	}
	for _, field := range blandFields {
		if _, known := bare[field]; !known {
			t.Errorf("field %s is not one of the configuration", field)
		}
	}
}

func (h *haul) all() (all []canary) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.canaries {
		all = append(all, c)
	}
	return all
}
