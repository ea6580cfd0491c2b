//go:build linux

package e2e

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/infra/test/receiver"
)

// brokenConfigs each have a secret in the middle of a mistake, and the field that the error
// must name. The secret replaces <>.
var brokenConfigs = []struct{ config, names string }{
	{`api: {auth_token: [["<>"]]}`, "api.auth_token"},
	{`api: {auth_token: {is: "<>"}}`, "api.auth_token"},
	{`api: {tokens: [{name: a, token: {is: "<>"}, role: read}]}`, "api.tokens[0].token"},
	{`api: {auth_token: "<>", tokens: [{name: a, token: "<>", role: read}]}`, "api.tokens[0].token"},
	{`api: {tokens: {a: "<>"}}`, "api.tokens"},
	{`api: {auth_tokn: "<>"}`, "api.auth_tokn"},
	{`api: "<>"`, "api"},
	{"api:\n  auth_token: \"<>\"\n  auth_token: \"<>\"", "auth_token"},
	{"api:\n  auth_token: \"<>", "gateway.yaml"},
	{"api:\n  auth_token: <>: <>", "gateway.yaml"},
	{"api:\n  auth_token: !secret <>", "gateway.yaml:"},
	{"api:\n  auth_token: *<>", "gateway.yaml"},
	{"api:\n\tauth_token: <>", "gateway.yaml"},
	{"api:\n  auth_token: \"${<>\"", "api.auth_token"},
	{"api:\n  auth_token: \"${NONE:-<>\"", "api.auth_token"},
	{`delivery: {signing_secret: [{old: "<>"}]}`, "delivery.signing_secret"},
	{`handlers: {h: {source: app, url: "http://a.example", signing_secret: "whsec_<>!"}}`, "handlers.h.signing_secret"},
	{`delivery: {signing_secret: ["whsec_<>!"]}`, "delivery.signing_secret"},
	{`sources: {app: {type: webhook, verify: standard-webhooks, secret: "whsec_<>!"}}`, "sources.app.secret"},
	{`sources: {app: {type: webhook, verify: standard-webhooks, secret: ["whsk_<>", ""]}}`, "sources.app.secret"},
	{`sources: {app: {type: webhook, verify: github, secret: {"<>": 1}}}`, "sources.app.secret"},
	{`sources: {app: {type: event, verify: github, secret: "<>"}}`, "sources.app"},
	{`handlers: {h: {source: app, url: "http://user:<>@a.example/"}}`, "handlers.h.url"},
	{`handlers: {h: {source: app, url: "ftp://a.example/?key=<>"}}`, "handlers.h.url"},
	{`handlers: {h: {source: app, url: "http://a.example:port/?key=<>"}}`, "handlers.h.url"},
	{`handlers: {h: {source: app, url: "http://a.example/%zz?key=<>"}}`, "handlers.h.url"},
	{`handlers: {h: {source: app, url: "http://a b/?key=<>"}}`, "handlers.h.url"},
	{`handlers: {h: {source: app, url: "http://a.example/?key=<>", method: "GOT"}}`, "handlers.h.method"},
	{`handlers: {h: {source: app, type: grpc, url: "http://a.example/path?key=<>"}}`, "handlers.h.url"},
	{`handlers: {h: {source: app, url: "http://a.example", headers: {"x y": "<>"}}}`, "handlers.h.headers"},
	{`handlers: {h: {source: app, url: "http://a.example", headers: {host: "<>"}}}`, "handlers.h.headers"},
	{`handlers: {h: {source: app, url: "http://a.example", headers: {webhook-signature: "<>"}}}`, "handlers.h.headers"},
	{`handlers: {h: {source: app, url: "http://a.example", headers: {x-key: "<>\r\nx: 1"}}}`, "handlers.h.headers"},
	{`handlers: {h: {source: app, url: "http://a.example", headers: {x-key: ["<>"]}}}`, "handlers.h.headers"},
	{`handlers: {h: {source: app, url: "http://a.example", headers: ["x-key: <>"]}}`, "handlers.h.headers"},
	{`handlers: {h: {source: app, url: "http://a.example", headers: "x-key: <>"}}`, "handlers.h.headers"},
	{`handlers: {h: {source: app, url: "http://a.example", signing_secret: {"<>": 1}}}`, "handlers.h.signing_secret"},
	{`queues: {q: {source: app, api_key: [["<>"]]}}`, "queues.q.api_key"},
	{`queues: {q: {source: nobody, api_key: "<>"}}`, "queues.q.source"},
	{`alerts: {url: "<>", on: [dlq]}`, "alerts"},
	{`alerts: {url: "ftp://a.example/<>", on: [dlq]}`, "alerts"},
	{`alerts: {url: "https://user:<>@a.example/", on: [dlq]}`, "alerts"},
	{`alerts: {url: "https://a.example:port/<>", on: [dlq]}`, "alerts"},
	{`alerts: {url: "https://a.example/%zz<>", on: [dlq]}`, "alerts"},
	{`alerts: {url: ["https://a.example/<>"], on: [dlq]}`, "alerts"},
	{`alerts: {url: "https://a.example/<>", on: [dql]}`, "alerts"},
	{`database: {driver: postgres, url: "<>"}`, "database.url"},
	{`database: {driver: postgres, url: "postgres://u:<>@127.0.0.1:port/d"}`, "database.url"},
	{`database: {driver: postgres, url: "postgres://u:<>%zz@127.0.0.1/d"}`, "database.url"},
	{`database: {driver: postgres, url: "postgres://u:<>@127.0.0.1/d?sslmode=maybe"}`, "database.url"},
	{`database: {driver: postgres, url: "host=127.0.0.1 password=<> port=x"}`, "database.url"},
	{`database: {driver: mysql, url: "mysql://u:<>@127.0.0.1:port/d"}`, "database.url"},
	{`database: {driver: mysql, url: "u:<>@tcp(127.0.0.1/d"}`, "database.url"},
	{`database: {driver: mysql, url: "u:<>@nowhere(127.0.0.1)/d"}`, "database"},
	{`database: {driver: mysql, url: "u:<>@tcp(127.0.0.1)/d?tls=maybe"}`, "database.url"},
	{`database: {driver: sqlite, url: "postgres://u:<>@127.0.0.1/d"}`, "database.url"},
	{`database: {driver: hosted_sql, api_token: "<>"}`, "database.account_id"},
	{`database: {driver: hosted_sql, api_token: ["<>"], hosted_sql_endpoint: "https://a.example"}`, "database.api_token"},
	{`database: {driver: hosted_sql, hosted_sql_endpoint: "ftp://a.example/?key=<>"}`, "database.hosted_sql_endpoint"},
	{`database: {driver: hosted_sql, hosted_sql_endpoint: "https://u:<>@a.example/"}`, "database.hosted_sql_endpoint"},
	{`workflows: {w: {source: app, steps: [{name: s, url: "http://u:<>@a.example"}]}}`, "workflows.w.steps"},
	{`workflows: {w: {source: app, steps: [{name: s, url: "http://a.example:port/?key=<>"}]}}`, "workflows.w.steps"},
	{`workflows: {w: {source: app, steps: [{name: s, url: "http://a.example", headers: {host: "<>"}}]}}`, "workflows.w.steps"},
	{`workflows: {w: {source: app, steps: [{name: s, type: callback, method: GET, url: "http://a.example/?key=<>"}]}}`, "workflows.w.steps"},
}

// TestBrokenConfigsKeepSecrets: an error names the field of a mistake and not its value. Each mistake
// meets start, and one of the other commands in turn, which all load the configuration by one function.
func TestBrokenConfigsKeepSecrets(t *testing.T) {
	t.Parallel()
	others := [][]string{{"validate"}, {"validate", "--json"}, {"doctor"}, {"jobs", "list"}, {"send", "-s", "app", "-t", "a"}}
	for i, tt := range brokenConfigs {
		t.Run(tt.config, func(t *testing.T) {
			t.Parallel()
			h := newHaul()
			config := strings.ReplaceAll(tt.config, "<>", h.secret("<>")) + "\n"
			config = "server:\n  host: 127.0.0.1\n  port: ${PORT}\n" + config
			if !strings.Contains(config, "sources:") {
				config += "sources: {app: {type: event}}\n"
			}
			g := newGateway(t, config, nil)
			for _, args := range [][]string{{"start"}, others[i%len(others)]} {
				r := run(t, g.command(args...))
				if args[0] == "start" && (r.code != 1 || !strings.Contains(r.stderr, tt.names)) {
					t.Errorf("gateway start: exit code %d, want 1, for %s:\n%s%s", r.code, tt.names, r.stdout, r.stderr)
				}
				h.add(strings.Join(args, " ")+":\n"+r.stdout+r.stderr, r.stdout+r.stderr)
			}
			for _, wrong := range h.judge(nil) {
				t.Error(wrong)
			}
		})
	}
}

// TestBrokenDotEnvKeepsSecrets: errors about a broken .env file show no value of it.
func TestBrokenDotEnvKeepsSecrets(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"A=\"<>\n", "<>\n", "A B=<>\n", "=<>", "A='<>", "export <> <>"} {
		h := newHaul()
		g := newGateway(t, plainConfig, receiver.New(t))
		write(t, filepath.Join(g.dir, ".env.prod"), strings.ReplaceAll(file, "<>", h.secret("<>")))
		for _, args := range [][]string{{"validate"}, {"doctor"}, {"jobs", "list"}} {
			r := run(t, g.command(append(args, "--env", "prod")...))
			h.add(strings.Join(args, " ")+":\n"+r.stdout+r.stderr, r.stdout+r.stderr)
		}
		for _, wrong := range h.judge(nil) {
			t.Errorf("%q: %s", file, wrong)
		}
	}
}

// TestUnreachableDatabasesKeepSecrets: the errors of start and of read-only commands about a
// database do not show its password.
func TestUnreachableDatabasesKeepSecrets(t *testing.T) {
	t.Parallel()
	forbidding := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "you sent "+r.Header.Get("Authorization"), http.StatusForbidden)
	}))
	t.Cleanup(forbidding.Close)
	leading := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:1/?token="+r.Header.Get("Authorization"), http.StatusFound)
	}))
	t.Cleanup(leading.Close)
	for _, database := range []string{
		`{driver: postgres, url: "postgres://u:<>@127.0.0.1:1/d"}`,
		`{driver: postgres, url: "postgres://u:<>@gateway.invalid/d"}`,
		`{driver: postgres, url: "postgres://u@127.0.0.1:1/d?password=<>"}`,
		`{driver: postgres, url: "postgres://u:<>@127.0.0.1:1/d?nonsense=1&sslmode=disable"}`,
		`{driver: mysql, url: "mysql://u:<>@127.0.0.1:1/d"}`,
		`{driver: mysql, url: "u:<>@tcp(gateway.invalid:1)/d"}`,
		`{driver: hosted_sql, api_token: "<>", hosted_sql_endpoint: "http://127.0.0.1:1"}`,
		`{driver: hosted_sql, api_token: "<>", hosted_sql_endpoint: "` + forbidding.URL + `"}`,
		`{driver: hosted_sql, api_token: "<>", hosted_sql_endpoint: "` + leading.URL + `"}`,
		`{driver: hosted_sql, api_token: "<>", account_id: a, database_id: b}`,
		`{driver: hosted_sql, api_token: t, hosted_sql_endpoint: "http://127.0.0.1:1/?key=<>"}`,
		`{driver: hosted_sql, api_token: t, hosted_sql_endpoint: "http://127.0.0.1:1/#<>"}`,
	} {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			h := newHaul()
			g := newGateway(t, plainConfig+"database: "+strings.ReplaceAll(database, "<>", h.secret("<>"))+"\n", receiver.New(t))
			g.env = append(g.env, "GATEWAY_HOSTED_SQL_API="+forbidding.URL, "GATEWAY_LOG=trace", "GATEWAY_DATABASE_WAIT=1s")
			for _, args := range [][]string{{"start"}, {"doctor"}, {"doctor", "--json"}, {"jobs", "list"}, {"export", "events"}} {
				r := run(t, g.command(args...))
				if r.code != 1 {
					t.Errorf("gateway %v: exit code %d, want 1:\n%s%s", args, r.code, r.stdout, r.stderr)
				}
				h.add(strings.Join(args, " ")+":\n"+r.stdout+r.stderr, r.stdout+r.stderr)
			}
			for _, wrong := range h.judge(nil) {
				t.Error(wrong)
			}
		})
	}
}

// TestTroubledTracesKeepSecrets: a log line about an unusable collector does not show its
// credentials.
func TestTroubledTracesKeepSecrets(t *testing.T) {
	t.Parallel()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "you sent "+r.Header.Get("Authorization"), http.StatusForbidden)
	}))
	t.Cleanup(refusing.Close)
	for _, endpoint := range []string{"http://u:<>@127.0.0.1:1", "http://127.0.0.1:1/?key=<>", "http://127.0.0.1:port/?key=<>", "<>", "http://127.0.0.1/%zz<>", refusing.URL + "/?key=<>"} {
		t.Run(endpoint, func(t *testing.T) {
			t.Parallel()
			h, r := newHaul(), receiver.New(t)
			g := newGateway(t, plainConfig, r)
			g.env = append(g.env, "GATEWAY_LOG=trace", "OTEL_EXPORTER_OTLP_ENDPOINT="+strings.ReplaceAll(endpoint, "<>", h.secret("endpoint")),
				"OTEL_EXPORTER_OTLP_HEADERS=authorization="+h.secret("headers")+",%zz="+h.secret("more headers"), "OTEL_BSP_SCHEDULE_DELAY=50", "OTEL_TRACES_SAMPLER=always")
			g.start()
			g.send("/events/order", "{}")
			r.Await(t, 10e9, "/ok", 1)
			g.stop()
			h.add("log:\n"+g.log.String(), g.log.String())
			for _, wrong := range h.judge(nil) {
				t.Error(wrong)
			}
		})
	}
}

// TestSubscriptionsKeepSecrets: only Amazon sees the token that confirms a subscription to a
// topic, also after an error.
func TestSubscriptionsKeepSecrets(t *testing.T) {
	t.Parallel()
	h, a := newHaul(), newAmazon(t)
	g := newGateway(t, snsConfig, receiver.New(t))
	g.env = append(g.env, "GATEWAY_LOG=trace")
	a.start(g)
	subscribe := func(id string, status int) {
		t.Helper()
		token := h.secret("token")
		m := a.message("SubscriptionConfirmation", "2", id, "Token", token, "SubscribeURL", "https://"+a.Host+"/?Action=ConfirmSubscription&TopicArn="+a.ARN+"&Token="+token)
		m["SigningCertURL"] = a.CertificateURL()
		answer := g.postSNS("topic", m)
		if answer.status != status {
			t.Errorf("a subscription is answered %d %s, want %d", answer.status, answer.body, status)
		}
		h.add("answer", answer.body+written(answer.header))
	}
	subscribe("m-1", http.StatusOK)
	if visits := strings.Join(a.Visits(), " "); !strings.Contains(visits, h.secret("token")) {
		t.Errorf("Amazon was visited at %s, without the token", visits)
	}
	g.postSNS("topic", a.message("Notification", "2", "m-2", "UnsubscribeURL", "https://"+a.Host+"/?SubscriptionArn="+h.secret("unsubscribe")))
	a.Answer(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no "+r.URL.RawQuery, http.StatusForbidden)
	})
	subscribe("m-3", http.StatusInternalServerError)
	a.Answer(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/again?"+r.URL.RawQuery, http.StatusFound)
	})
	subscribe("m-4", http.StatusInternalServerError)
	g.stop()
	h.add("log", g.log.String())
	for column, values := range g.ledger().values("") {
		h.add("database "+column, values)
	}
	for _, wrong := range h.judge(nil) {
		t.Error(wrong)
	}
}
