package config

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"
)

// rich has each field that Rules keep, in notations that are easily lost. Words with SECRET are
// secrets, and so are variables with such a name.
const rich = `
api: {auth_token: "SECRET-token-of-the-api-1234"}
delivery: {default_retry: {max: 7}, signing_secret: "whsec_U0VDUkVUU0VDUkVUU0VDUkVUU0VDUkVU"}
sources:
  shop: {type: event, binary: true}
  hooks: {type: webhook, verify: hmac, secret: "SECRET-of-the-source-1234567", schema: "order.json"}
  nightly: {type: cron, schedule: "0 3 * * *", timezone: "+09:00"}
handlers:
  billing:
    source: shop
    events: [order.*, "*"]
    url: "https://billing.example.com/a/${PATH}?key=SECRET"
    method: PUT
    retry: {max: "${MAX}", interval: 1m}
    idempotency_key: $.id
    delay: 90
    lines: {key: $.customer, limit: 3}
    filter: "$.total > ${LIMIT} and $.a != \"#: ${TEXT}\""
    transform: '{"price": "${{ $.price }}", "line": "a: b # c"}'
    headers: {Authorization: "Bearer SECRET", x-plain: "SECRET", x-gone: null}
  calls:
    source: shop
    type: grpc
    url: http://calls.example.com:9000
    filter: null
    transform: |
      {"a": {{ $.a }},
       "b": "two lines"}
  whole: {source: shop, url: "${URL}"}
queues:
  orders: {source: shop, events: [order.created], filter: $.total, idempotency_key: $.id, delay: 5m, max_attempts: "${MAX}", lines: {key: $.k, on_dead: skip}, api_key: "SECRET-key-of-the-queue-12"}
workflows:
  fulfil:
    source: shop
    events: [order.created]
    timeout: 3600
    max_bytes: 2097152
    params: [{name: total, type: number}, {name: note, required: false}]
    on_failure: sorry
    steps:
      - {name: reserve, url: "https://${HOST}/reserve?key=SECRET", headers: {x-key: SECRET}, result_path: "null", input: '{"a": {{ $.a }}}'}
      - name: both
        type: parallel
        branches: [{name: one, url: "${URL}", headers: {x-key: SECRET}}, {name: two, steps: [{name: each, type: map, items_path: $.items, iterator: {url: "https://x.example/?SECRET", headers: {x-key: SECRET}}}]}]
      - {name: pick, type: choice, choices: [{condition: $.total > 5, goto: sorry}], default: sorry}
      - {name: sorry, type: fail, error: oh-no}
`

func loadRich(t *testing.T) *Config {
	t.Helper()
	env := map[string]string{"PATH": "SECRET", "MAX": "4", "LIMIT": "12", "TEXT": "- {x}", "URL": "https://SECRET.example.com/x", "HOST": "SECRET.example.com"}
	c, err := Load(Options{
		FS:   fstest.MapFS{"gateway.yaml": {Data: []byte(rich)}, "order.json": {Data: []byte(`{"type": "object", "required": ["id"]}`)}},
		Path: "gateway.yaml", Lookup: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestRulesAreExact: a configuration that was made of rules has the same values in all fields that
// rules keep, but for addresses and headers.
func TestRulesAreExact(t *testing.T) {
	configs := map[string]*Config{"rich": loadRich(t)}
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("Glob(testdata/*.txtar) = %v, %v, want some", archives, err)
	}
	for _, name := range archives {
		a, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := Load(optionsOf(a)); err == nil {
			configs[name] = c // the others are about problems
		}
	}
	if len(configs) < 30 {
		t.Fatalf("%d configurations can be loaded, want 30 or more", len(configs))
	}
	for name, c := range configs {
		rules := c.Rules()
		back, err := ParseRules(rules)
		if err != nil {
			t.Errorf("%s: ParseRules: %v\n%s", name, err, rules.Text)
			continue
		}
		want, got := kept(c), kept(back)
		for path, value := range want {
			if got[path] != value {
				t.Errorf("%s: %s is %q, want %q", name, path, got[path], value)
			}
			delete(got, path)
		}
		if len(got) > 0 {
			t.Errorf("%s: beside that it has %v", name, got)
		}
		for w := range c.Workflows {
			if d := c.Definition(w).Hash; d == "" || back.Definition(w).Hash != d {
				t.Errorf("%s: the definition of %s has the hash %q, want %q", name, w, back.Definition(w).Hash, d)
			}
		}
	}
}

// kept returns the values of the fields that rules keep, by their paths.
func kept(c *Config) map[string]string {
	all := map[string]string{}
	flatten(reflect.ValueOf(c).Elem(), "", all)
	for path := range all {
		section, rest, _ := strings.Cut(path, ".")
		_, field, _ := strings.Cut(rest, ".")
		field, _, _ = strings.Cut(field, ".")
		field, _, _ = strings.Cut(field, "[")
		if !slices.Contains(ruleFields[section], field) || strings.HasSuffix(path, "url") || strings.Contains(path, "headers") {
			delete(all, path)
		}
	}
	return all
}

// TestRulesHaveNoSecret: rules contain neither secrets nor values of variables in addresses.
func TestRulesHaveNoSecret(t *testing.T) {
	c := loadRich(t)
	rules := c.Rules()
	if strings.Contains(rules.Text, "SECRET") || strings.Contains(rules.Text, "U0VDUkVU") {
		t.Errorf("the rules contain a secret:\n%s", rules.Text)
	}
	back, err := ParseRules(rules)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"billing": "https://billing.example.com/a/***?***", "calls": "http://calls.example.com:9000", "whole": "***",
	} {
		if got := back.Handlers[name].URL; got != want {
			t.Errorf("the address of %s is %s, want %s", name, got, want)
		}
	}
	own := back.Handlers["billing"].Headers
	if len(own) != 2 || own["Authorization"].Reveal() != "***" || own["x-plain"].Reveal() != "***" {
		t.Errorf("%d headers, want Authorization and x-plain, both ***", len(own))
	}
	if step := back.Workflows["fulfil"].Steps[0]; step.URL != "https://***/reserve?***" || step.Headers["x-key"].Reveal() != "***" {
		t.Errorf("the first step calls %s", step.URL)
	}
}

// notRules are the fields that Rules leave out: they hold secrets, or decide nothing about an
// event whose request is accepted already.
var notRules = map[string][]string{
	"sources":   {"verify", "secret", "signature_header", "dedup", "skip_verify", "topic_arns", "webhook_origins", "allowed_ips"},
	"handlers":  {"timeout", "signing_secret", "rate_limit", "circuit_breaker", "record"},
	"queues":    {"visibility_timeout", "api_key"},
	"workflows": {},
}

// TestEachFieldIsARuleOrNot: a new field of an entry is put into one of the two lists.
func TestEachFieldIsARuleOrNot(t *testing.T) {
	for section, entry := range map[string]any{"sources": Source{}, "handlers": Handler{}, "queues": Queue{}, "workflows": Workflow{}} {
		var fields []string
		for _, f := range reflect.VisibleFields(reflect.TypeOf(entry)) {
			if key := f.Tag.Get("yaml"); key != "-" {
				fields = append(fields, key)
			}
		}
		known := append(slices.Clone(ruleFields[section]), notRules[section]...)
		slices.Sort(fields)
		slices.Sort(known)
		if !slices.Equal(fields, known) {
			t.Errorf("%s have the fields %v, and the lists have %v", section, fields, known)
		}
	}
}

// TestParseRulesRefuses: rules of another version, or of no gateway, are refused.
func TestParseRulesRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"sources: {shop: {type: event, colour: red}}":                                            "sources.shop.colour: unknown field",
		"sources: {shop: {type: event}}\nhandlers: {h: {source: shop, url: u, filter: '$.a >'}}": "handlers.h.filter: ",
		"sources: {shop: {type: event}}\nqueues: {q: {source: other}}":                           `there is no source "other"`,
		"- a": "must be a mapping",
	} {
		if _, err := ParseRules(Rules{Text: text}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseRules(%s) = %v, want %q", text, err, want)
		}
	}
}
