//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/eventgateway/gateway/core/verify"
	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// sendAll sends valid requests to each kind of source.
func (c *cage) sendAll() {
	c.t.Helper()
	payload := fmt.Sprintf(`{"items": [1, 2], "card": "%s"}`, c.haul.secret("sent payload"))
	a := c.do("/events/{source}/{event_type}", "POST", "/events/app/order?key="+c.haul.secret("sent query"), payload, append(c.token(),
		"Cookie", "session="+c.haul.secret("sent cookie"), "X-Api-Key", c.haul.secret("sent x-api-key"), "X-Unheard-Of", c.haul.secret("sent unknown header"),
		"Proxy-Authorization", c.haul.secret("sent proxy-authorization"), "Referer", "http://a.example/?key="+c.haul.secret("sent referer"),
		"X-Hub-Signature-256", c.haul.secret("sent signature"), "User-Agent", c.haul.secret("sent user-agent"), "X-Forwarded-For", c.haul.secret("sent x-forwarded-for"),
		"Idempotency-Key", c.haul.secret("sent idempotency-key"), "Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "/a", "Ce-Type", "order", "Ce-Extension", c.haul.secret("sent ce-extension"))...)
	if a.status != http.StatusAccepted {
		c.t.Fatalf("sent: %d %s", a.status, a.body)
	}
	c.ids["events"] = a.eventID()
	a = c.do("/events/{source}/{event_type}", "POST", "/events/other/echo", fmt.Sprintf("%q", c.haul.secret("echoed payload")), c.token()...)
	if a.status != http.StatusAccepted {
		c.t.Fatalf("sent to be echoed: %d %s", a.status, a.body)
	}
	sources := []string{"app", "topic", "github"}
	if c.everyForm() {
		sources = append([]string{"app", "topic"}, verify.Names()...)
	}
	for _, source := range sources {
		if r := c.sayOnce("send", "-s", source, "-t", "hello", `{"id": 1}`); r.code != 0 {
			c.t.Errorf("gateway send -s %s: %s", source, r.stderr)
		}
		c.sayOnce("send", "-s", source, "-t", "hello", "--dry-run")
	}
}

// sendWrong sends a request for each reason of a refusal.
func (c *cage) sendWrong() {
	c.t.Helper()
	wrong := c.haul.secret("wrong token")
	c.do("/events/{source}/{event_type}", "POST", "/events/app/order", `{}`, bearer(wrong)...)
	c.do("/events/{source}/{event_type}", "POST", "/events/app/order", `{}`, "Authorization", "Basic "+wrong)
	c.do("/events/{source}/{event_type}", "POST", "/events/app/order", "\xff"+wrong, c.token()...)
	c.do("/events/{source}/{event_type}", "POST", "/events/app/"+strings.Repeat("x", 129), `{}`, c.token()...)
	c.do("/events/{source}/{event_type}", "POST", "/events/strict/order", fmt.Sprintf(`{"id": "%s"}`, c.haul.secret("refused payload")), c.token()...)
	c.do("/events/{source}/{event_type}", "POST", "/events/app/order", fmt.Sprintf(`{"items": "%s"}`, c.haul.secret("refused payload")), c.token()...)
	c.do("/events/{source}/{event_type}", "POST", "/events/"+c.haul.secret("unknown source")+"/order", `{}`, c.token()...)
	c.do("/webhooks/{source}", "POST", "/webhooks/"+c.haul.secret("unknown source"), `{}`)
	c.do("/sns/{source}", "POST", "/sns/"+c.haul.secret("unknown source"), `{}`)
	c.sendWrongMessages()
	c.sendWrongSignatures()
	c.getLost()
}

// sendWrongMessages sends invalid messages of a topic.
func (c *cage) sendWrongMessages() {
	c.t.Helper()
	for _, message := range []string{
		`{"Type": "Notification", "MessageId": "1", "TopicArn": "arn:aws:sns:eu-west-1:1:t", "Message": "<>", "Timestamp": "2024-10-01T10:00:00.000Z", "SignatureVersion": "2", "Signature": "<>", "SigningCertURL": "https://a.example/?key=<>"}`,
		`{"Type": "Notification", "MessageId": "1", "TopicArn": "arn:aws:sns:eu-west-1:1:t", "Message": "<>", "Timestamp": "2024-10-01T10:00:00.000Z", "SignatureVersion": "2", "Signature": "aaaa", "SigningCertURL": "https://sns.eu-west-1.amazonaws.com/<>.pem"}`,
		`{"Type": "SubscriptionConfirmation", "MessageId": "1", "TopicArn": "arn:aws:sns:eu-west-1:1:t", "Message": "<>", "Token": "<>", "SubscribeURL": "http://127.0.0.1:1/?Token=<>", "Timestamp": "2024-10-01T10:00:00.000Z", "SignatureVersion": "2", "Signature": "aaaa", "SigningCertURL": "https://sns.eu-west-1.amazonaws.com/a.pem"}`,
		`{"Type": "SubscriptionConfirmation", "MessageId": "1", "TopicArn": "arn:aws:sns:eu-west-1:1:t", "Message": "<>", "Token": "<>", "SubscribeURL": "https://127.0.0.1:1/?Token=<>", "Timestamp": "2024-10-01T10:00:00.000Z", "SignatureVersion": "2", "Signature": "aaaa", "SigningCertURL": "https://sns.eu-west-1.amazonaws.com/a.pem"}`,
		`{"Type": "<>"}`,
	} {
		message = strings.ReplaceAll(message, "<>", c.haul.secret("refused topic message"))
		c.do("/sns/{source}", "POST", "/sns/genuine", message)
		if !strings.Contains(message, `"Notification"`) {
			c.do("/sns/{source}", "POST", "/sns/topic", message)
		}
	}
}

// sendWrongSignatures sends webhooks whose signatures have a wrong form or value.
func (c *cage) sendWrongSignatures() {
	c.t.Helper()
	headers := []string{"X-Hub-Signature-256", "Stripe-Signature", "X-Shopify-Hmac-Sha256", "X-Webhook-Signature", "X-Slack-Signature", "Webhook-Signature",
		"X-Gitlab-Token", "Linear-Signature", "Paddle-Signature", "X-Twilio-Signature"}
	for _, form := range []string{"<>", "sha256=<>", "t=1,v1=<>", "v0=<>", "v1,<>", "ts=1;h1=<>"} {
		all := []string{"X-Slack-Request-Timestamp", fmt.Sprint(time.Now().Unix()), "Webhook-Id", "1", "Webhook-Timestamp", fmt.Sprint(time.Now().Unix())}
		for _, name := range headers {
			all = append(all, name, strings.ReplaceAll(form, "<>", c.haul.secret("wrong signature")))
		}
		for _, source := range verify.Names() {
			if a := c.do("/webhooks/{source}", "POST", "/webhooks/"+source, `{"secret": "`+c.haul.secret("refused payload")+`"}`, all...); a.status < 400 {
				c.t.Errorf("%s took a wrong signature: %d %s", source, a.status, a.body)
			}
		}
	}
}

// getLost requests unknown paths.
func (c *cage) getLost() {
	c.t.Helper()
	lost := c.haul.secret("path")
	for _, path := range []string{"/" + lost, "/callback/" + lost, "/api/" + lost, "/api/events/" + lost, "/health?key=" + lost, "/api/queues/pulled/messages?wait=" + lost} {
		for _, method := range []string{"GET", "POST", lost} {
			a, err := fetch(oneShot, request{method: method, url: c.url(path), headers: c.token()})
			if err != nil {
				c.t.Fatal(err)
			}
			if !strings.Contains(path, "wait=") { // the answer quotes the parameter to its sender
				c.haul.add("answer of an unknown path", a.body+written(a.header))
			}
		}
	}
}

// work waits until all sent events are settled, with a callback and consumers of queues.
func (c *cage) work() {
	c.t.Helper()
	asked := c.receiver.Await(c.t, 20*time.Second, "/ask", 1)[0]
	var notice struct {
		Token string `json:"token"`
		URL   string `json:"callback_url"`
	}
	if err := json.Unmarshal([]byte(asked.Body), &notice); err != nil || len(notice.Token) < clue || !strings.Contains(notice.URL, notice.Token) {
		c.t.Fatalf("asked with %s: %v", asked.Body, err)
	}
	c.haul.learn("callback", notice.Token)
	path := strings.TrimPrefix(notice.URL, c.url(""))
	c.do("/callback/{token}", "GET", path, "")
	c.do("/callback/{token}", "POST", path, "\xff")
	if a := c.do("/callback/{token}", "POST", path, `{"by": "desk"}`); a.status != http.StatusOK {
		c.t.Fatalf("callback: %d %s", a.status, a.body)
	}
	c.do("/callback/{token}", "POST", path, "{}")
	wait.For(c.t, 30*time.Second, "jobs of handlers and runs are settled", func() bool {
		r := run(c.t, c.command("jobs", "list", "--json", "--limit", "1000"))
		c.haul.add("command jobs list", r.stdout+r.stderr)
		var list struct{ Jobs []job }
		if json.Unmarshal([]byte(r.stdout), &list) != nil {
			return false
		}
		return !slices.ContainsFunc(list.Jobs, func(j job) bool {
			return j.Status != "completed" && j.Status != "dead" && !strings.HasPrefix(j.Handler, "queue/") && !strings.HasPrefix(j.Handler, "alert")
		})
	})
	for path, n := range map[string]int{"/alert/generic/": 1, "/alert/slack/": 1, "/alert/discord/": 1} {
		wait.For(c.t, 20*time.Second, "alerts at "+path, func() bool { return len(below(c.receiver, path)) > n })
	}
	c.pull()
}

// below returns the deliveries to paths with this prefix.
func below(r *receiver.Receiver, path string) (all []receiver.Delivery) {
	for _, d := range r.All() {
		if strings.HasPrefix(d.Path, path) {
			all = append(all, d)
		}
	}
	return all
}

// pull consumes messages with the right key and with wrong ones.
func (c *cage) pull() {
	c.t.Helper()
	key := bearer(c.haul.secret("queues.pulled.api_key"))
	for i := range 2 {
		a := c.do("/api/queues/{name}/messages", "GET", "/api/queues/pulled/messages?batch=1", "", key...)
		var got struct{ Messages []message }
		if err := json.Unmarshal([]byte(a.body), &got); err != nil || len(got.Messages) != 1 {
			c.t.Fatalf("received %s: %v", a.body, err)
		}
		m := got.Messages[0]
		_, lease, _ := strings.Cut(m.Receipt, ":")
		if i == 1 {
			c.haul.learn("receipt", lease)
			c.do("/api/queues/{name}/extend", "POST", "/api/queues/pulled/extend", fmt.Sprintf(`{"ids": [%q], "visibility_timeout": "1h"}`, m.Receipt), key...)
			continue // it is held until the end
		}
		for _, action := range []string{"extend", "nack", "ack"} {
			for _, k := range [][]string{key, bearer(c.haul.secret("wrong key")), nil} {
				c.do("/api/queues/{name}/"+action, "POST", "/api/queues/pulled/"+action, fmt.Sprintf(`{"ids": [%q]}`, m.Receipt), k...)
			}
		}
	}
	for range 2 { // max_attempts
		a := c.do("/api/queues/{name}/messages", "GET", "/api/queues/pulled/messages?batch=100", "", key...)
		var got struct{ Messages []message }
		if err := json.Unmarshal([]byte(a.body), &got); err != nil {
			c.t.Fatalf("received %s: %v", a.body, err)
		}
		for _, m := range got.Messages {
			c.do("/api/queues/{name}/nack", "POST", "/api/queues/pulled/nack", fmt.Sprintf(`{"ids": [%q]}`, m.ID), key...)
		}
	}
	c.do("/api/queues/{name}/messages", "GET", "/api/queues/pulled/messages", "", bearer(c.haul.secret("wrong key"))...)
}

// newest returns the id of the newest record in a list.
func (c *cage) newest(field string, args ...string) string {
	c.t.Helper()
	var list map[string]json.RawMessage
	c.runJSON(&list, append(args, "--limit", "1")...)
	var records []struct{ ID string }
	if err := json.Unmarshal(list[field], &records); err != nil || len(records) != 1 {
		c.t.Fatalf("gateway %v: %s, %v", args, list[field], err)
	}
	return records[0].ID
}

// operate runs every command.
func (c *cage) operate() {
	c.t.Helper()
	c.ids["jobs"] = c.newest("jobs", "jobs", "list", "--handler", "fails")
	c.ids["workflow-runs"] = c.newest("workflow_runs", "workflow-runs", "list", "--workflow", "order")
	c.ids["queues"] = "pulled"
	for _, line := range []string{
		"validate", "preview -c next.yaml", "doctor", "status", "topology", "series", "console --print", "version", "breaker reset fails", "schedules fire clock", "hold queue/open --reason maintenance", "holds", "release queue/open", "audit", "lines list fails", "lines inspect fails 7", "jobs skip " + c.ids["jobs"], "migrate status", "migrate up", "workflow graph order", "completion bash", "init --dir made --force", "man",
		"events list", "events list --source nobody", "inspect " + c.ids["events"], "inspect 01J90000000000000000000001",
		"queues dlq pulled", "jobs list --status dead", "jobs errors", "jobs list --handler fails", "jobs retry " + c.ids["jobs"], "jobs retry --handler absent", "jobs retry",
		"events replay --dry-run", "events replay --source other -y", "events replay -y --limit 3", "events cancel 01J90000000000000000000001",
		"operations begin retry --handler fails --dry-run", "operations begin replay --source other --match $.a -y", "operations list", "operations inspect 01J90000000000000000000001", "operations watch 01J90000000000000000000001", "operations cancel 01J90000000000000000000001",
		"queues list", "queues inspect pulled", "queues peek pulled --limit 100", "queues peek open --limit 100", "queues retry pulled",
		"workflow-runs list", "workflow-runs inspect " + c.ids["workflow-runs"], "workflow-runs inspect --data " + c.ids["workflow-runs"],
		"workflow-runs redrive --from failed " + c.ids["workflow-runs"], "workflow-runs cancel " + c.ids["workflow-runs"],
		"export events", "__complete inspect ", "__complete events cancel ", "__complete jobs retry ", "__complete events list -t ", "--help",
	} {
		args := strings.Split(line, " ")
		if strings.HasPrefix(line, "__complete") || line == "man" || line == "--help" {
			c.sayOnce(args...)
			continue
		}
		c.say(args...)
	}
	for _, more := range [][]string{nil, {"--json"}, {"--url", c.url(""), "--token-file", c.tokenFile()}} {
		args := append([]string{"tail", "--since", "1h"}, more...)
		c.follow("command "+c.shown(args), "fails", args...)
	}
	c.listen()
	if c.everyForm() {
		c.operateWrong()
	}
}

// operateWrong runs commands with wrong tokens and invalid addresses.
func (c *cage) operateWrong() {
	c.t.Helper()
	exported := filepath.Join(c.dir, "exported")
	write(c.t, exported, c.run("export", "events", "--source", "app"))
	c.sayOnce("replay-local", exported, "-y")
	c.sayOnce("replay-local", exported, "-y", "--target", "http://127.0.0.1:1/?key="+c.haul.secret("target"))
	c.sayOnce("replay-local", exported, "-y", "--target", "http://user:"+c.haul.secret("target")+"@127.0.0.1:1")
	wrong := filepath.Join(c.dir, "wrong")
	write(c.t, wrong, c.haul.secret("wrong token"))
	for _, args := range [][]string{
		{"jobs", "list", "--token-file", wrong}, {"doctor", "--token-file", wrong}, {"replay-local", exported, "-y", "--token-file", wrong},
		{"send", "-s", "app", "-t", "hello", "--token-file", wrong}, {"tail", "--token-file", wrong}, {"export", "events", "--token-file", wrong},
		{"listen", "--to", "http://127.0.0.1:1", "--token-file", wrong},
	} {
		if args[0] != "replay-local" && args[0] != "send" {
			args = append(args, "--url", c.url(""))
		}
		if r := c.sayOnce(args...); r.code == 0 {
			c.t.Errorf("gateway %v went well with a wrong token:\n%s", args, r.stdout)
		}
	}
	for _, address := range []string{"http://user:<>@127.0.0.1:1", "http://127.0.0.1:1/?key=<>", "ftp://<>", "http://127.0.0.1:1/<>", "http://127.0.0.1:1#<>", "://<>"} {
		address = strings.ReplaceAll(address, "<>", c.haul.secret("address"))
		for _, command := range []string{"jobs list", "doctor", "export events"} {
			r := run(c.t, c.command(append(strings.Split(command, " "), "--url", address, "--token-file", wrong)...))
			c.haul.add("command "+command+" at an odd address", strings.ReplaceAll(r.stdout+r.stderr, "/"+c.haul.secret("address"), "/path"))
		}
	}
}

// listen posts events to a server that takes them, to one that fails and to none, with secrets in the
// flags and as handlers of the configuration.
func (c *cage) listen() {
	c.t.Helper()
	for to, more := range map[string][]string{
		c.receiver.URL() + "/works": {"--handler", "works"},
		c.receiver.URL() + "/fails": {"--handler", "signs", "--json"},
		c.receiver.URL() + "/leads": {"--secret", c.haul.secret("listen --secret")},
		"http://127.0.0.1:1/none":   {"--wait", "1ms", "--source", "app"},
	} {
		args := append([]string{"listen", "--since", "1h", "--url", c.url(""), "--token-file", c.tokenFile(), "--to", to + "?key=" + c.haul.secret("listen --to")}, more...)
		last := "order"
		if more[0] == "--secret" {
			last = "echo" // the events of all sources, this one after the order
		}
		c.follow("command listen "+more[0], last, args...)
	}
}

// follow runs a command that does not end by itself until it has printed a text.
func (c *cage) follow(place, text string, args ...string) {
	c.t.Helper()
	line := c.command(args...)
	line.whole = true
	p := spawn(c.t, line)
	wait.For(c.t, 10*time.Second, args[0]+" prints "+text, func() bool { return strings.Contains(p.log.String(), text) })
	p.signal(syscall.SIGINT)
	p.wait(10 * time.Second)
	c.haul.add(place, p.log.String())
}

// everyCommand requires that all commands were run, including commands added later.
func (c *cage) everyCommand(path ...string) {
	c.t.Helper()
	help := c.sayOnce(append(slices.Clone(path), "--help")...).stdout
	help, _, _ = strings.Cut(help, "\nFlags:")
	help, _, _ = strings.Cut(help, "\nManual:") // its topics are no commands
	if len(path) > 3 {
		c.t.Fatalf("gateway %s --help lists commands below a command that has none", strings.Join(path, " "))
	}
	below := regexp.MustCompile(`(?m)^  ([a-z-]+)  +[A-Z]`).FindAllStringSubmatch(help[strings.Index(help, "Usage:"):], -1)
	for _, m := range below {
		c.everyCommand(append(slices.Clone(path), m[1])...)
	}
	name := strings.Join(path, " ")
	if len(below) == 0 && name != "start" && !c.haul.caught("command "+name, name+" --help") {
		c.t.Errorf("gateway %s was not run", name)
	}
}

// everyRoute calls every route of the API description, with the right token, a wrong token and
// none. Routes that delete are left for the end.
func (c *cage) everyRoute() {
	c.t.Helper()
	var described struct {
		Paths map[string]map[string]json.RawMessage
	}
	a := c.do("/openapi.json", "GET", "/openapi.json", "", c.token()...)
	if err := json.Unmarshal([]byte(a.body), &described); err != nil || len(described.Paths) < 30 {
		c.t.Fatalf("GET /openapi.json: %d paths, %v", len(described.Paths), err)
	}
	for route, methods := range described.Paths {
		if strings.HasSuffix(route, "/drain") || route == "/api/events/{id}/cancel" {
			continue
		}
		path := strings.NewReplacer(
			"{source}", "app", "{event_type}", "hello", "{token}", "none", "{name}", "pulled",
			"{id}", c.ids[strings.Split(route+"//", "/")[2]]).Replace(route)
		for method := range methods {
			method = strings.ToUpper(method)
			if method != "GET" && method != "POST" {
				continue
			}
			body := map[string]string{"POST": "{}"}[method]
			a := c.do(route, method, path+"?include_attempts=true", body, c.token()...)
			if a.status >= 400 {
				a = c.do(route, method, path, body, c.token()...)
			}
			if a.status >= 500 {
				c.t.Errorf("%s %s = %d %s", method, path, a.status, a.body)
			}
			c.do(route, method, path, body, bearer(c.haul.secret("wrong token"))...)
			c.do(route, method, path, body, bearer(c.haul.secret("api.tokens.sender"))...)
			c.do(route, method, path, body)
			c.do(route, method, path+"?limit=x", "\xff", c.token()...)
		}
	}
	a = c.do("/metrics", "GET", "/metrics", "", bearer(c.haul.secret("api.metrics_auth_token"))...)
	if !strings.Contains(a.body, "gateway_deliveries_total") {
		c.t.Errorf("GET /metrics = %d %s", a.status, a.body)
	}
	c.do("/api/queues/{name}/messages", "GET", "/api/queues/open/messages?batch=100", "")
	c.do("/api/config", "GET", "/api/config", "", c.token()...)
	c.do("/api/topology", "GET", "/api/topology", "", c.token()...)
	c.do("/api/tail", "GET", "/api/tail?event=01J90000000000000000000001", "", c.token()...)
}

// empty drains the queues and cancels an event, after the test's last look at them.
func (c *cage) empty() {
	c.t.Helper()
	c.sayOnce("queues", "drain", "open", "--force", "--json")
	c.do("/api/queues/{name}/drain", "POST", "/api/queues/open/drain", "{}", c.token()...)
	c.say("events", "cancel", c.ids["events"])
	c.do("/api/events/{id}/cancel", "POST", "/api/events/"+c.ids["events"]+"/cancel", "{}", c.token()...)
}
