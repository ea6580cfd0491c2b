package main

import (
	"cmp"
	"context"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/store"
)

const doctorLong = `Check that everything is ready: the configuration, what it leaves open, the
database, the server, whether each handler, each step of a workflow and each place
for alerts answers, which circuit breakers are open, and what waits for a handler or
queue that is configured no more. Each line says what was found and, if need be, what to
do about it. Exits with 1 if a check failed.

It can be run before the gateway is started and beside one that runs. It changes
nothing: the database's schema is not brought up to date, and what it writes to
prove that writing works is taken back. Handlers, steps and places for alerts are
sent a HEAD request, without an event, a signature or configured headers; gRPC
handlers are connected to and not called. An address that several steps call is
looked at once.

With --url it looks at a running gateway from outside, and needs no configuration:
whether it is well, whether its management API asks for a token and takes the one
given, its clock, and which circuit breakers are open.`

func newDoctor(a *app) *cobra.Command {
	return remotely(&cobra.Command{
		Use:   "doctor",
		Short: "Check that everything is ready",
		Long:  doctorLong,
		Example: `  gateway doctor
  gateway doctor -c /etc/gateway/gateway.yaml --env production
  gateway doctor --url https://events.example.com --token-file token
  gateway doctor --json | jq '.checks[] | select(.status == "failed")'`,
		GroupID: groupServe,
		Args:    noArguments,
		RunE:    func(c *cobra.Command, _ []string) error { return a.doctor(c.Context()) },
	})
}

// A verdict is the result of a check.
type verdict string

const (
	fine    verdict = "ok"
	warning verdict = "warning" // works, but the user should know
	failed  verdict = "failed"
	skipped verdict = "skipped" // there is nothing to check
)

// A check is one line of doctor's output. The remedy is empty if the user has nothing to do,
// or if the detail says it.
type check struct {
	name           string
	verdict        verdict
	detail, remedy string
	moot           bool // it could not be made, and another line has the reason
}

// examinations are the parts of doctor, in the order of the output. Each returns one or
// several checks. The function needs returns the reason why the examination cannot be made, or
// "".
var examinations = []struct {
	name  string
	needs func(*patient) (without string)
	look  func(*patient, context.Context) []check
}{
	{"configuration", nothing, (*patient).configuration},
	{"security", settings, (*patient).security},
	{"database", settings, (*patient).database},
	{"schema", database, (*patient).schema},
	{"writable", tables, (*patient).writable},
	{"atomic", writes, (*patient).atomic},
	{"durability", database, (*patient).durability},
	{"clock", database, (*patient).clock},
	{"server", settings, (*patient).server},
	{"handlers", settings, (*patient).handlers},
	{"workflows", settings, (*patient).workflows},
	{"breakers", tables, (*patient).breakers},
	{"leftovers", tables, (*patient).leftovers},
	{"alerts", settings, (*patient).alerts},
}

// A patient is the gateway under examination, with results that later examinations need.
type patient struct {
	*app
	cfg      *config.Config // nil if it cannot be read
	warnings []config.Problem

	conn    store.Conn // nil if there is none
	dialect store.Dialect
	checkup store.Checkup
	writes  error // the reason why writing fails
	halves  error // the reason why batches are not atomic
	resting bool  // no server runs
}

func nothing(*patient) string { return "" }

func settings(p *patient) string {
	if p.cfg == nil {
		return "the configuration cannot be read"
	}
	return ""
}

func database(p *patient) string {
	if without := settings(p); without != "" {
		return without
	}
	if p.conn == nil {
		return "there is no database to ask"
	}
	return ""
}

func tables(p *patient) string {
	without := database(p)
	if without == "" && p.fromNewer() {
		return "the tables are a newer version's"
	}
	return without
}

func writes(p *patient) string {
	without := tables(p)
	if without == "" && p.writes != nil {
		return "nothing can be written"
	}
	return without
}

func (a *app) doctor(ctx context.Context) error {
	if a.remote() {
		return a.doctorRemote(ctx)
	}
	p := &patient{app: a}
	defer p.close()
	var checks []check
	for _, e := range examinations {
		var found []check
		if without := e.needs(p); without != "" {
			found = []check{{verdict: skipped, detail: without, moot: true}}
		} else {
			found = e.look(p, ctx)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for _, c := range found {
			c.name = cmp.Or(c.name, e.name) // handlers and alerts have names of their own
			checks = append(checks, c)
		}
	}
	return a.printChecks(checks)
}

func (p *patient) close() {
	if p.conn != nil {
		p.conn.Close()
	}
}

// configuration makes the checks of validate, without the warnings that the security
// examination shows.
func (p *patient) configuration(ctx context.Context) (found []check) {
	cfg, problems, err := p.check(ctx)
	if err != nil {
		return []check{{verdict: failed, detail: err.Error()}}
	}
	for _, problem := range problems {
		found = append(found, check{verdict: failed, detail: problem.String()})
	}
	if p.cfg = cfg; cfg == nil {
		return found
	}
	if len(found) == 0 {
		found = append(found, check{verdict: fine, detail: p.configName() + ": " + inventory(cfg)})
	}
	p.warnings = cfg.Warnings()
	return append(found, p.warned(false)...)
}

// warned returns the warnings about security, or all other warnings.
func (p *patient) warned(security bool) (found []check) {
	for _, w := range p.warnings {
		if isSecurity(w) == security {
			found = append(found, check{verdict: warning, detail: w.String(), remedy: remedyOf(w)})
		}
	}
	return found
}

// guards are the fields that restrict access.
var guards = []string{
	"api.auth_token", "api.metrics_auth_token", "database.api_token", "delivery.signing_secret",
	"sources.*.secret", "sources.*.verify", "sources.*.skip_verify", "sources.*.topic_arns",
	"handlers.*.signing_secret", "alerts*.signing_secret", "queues.*.api_key", "workflows.*.headers.*",
}

func isSecurity(w config.Problem) bool {
	for _, g := range guards {
		if ok, _ := path.Match(g, w.Path); ok {
			return true
		}
	}
	return false
}

// random is the remedy for a missing token.
const random = "set it to something random, such as the output of: openssl rand -hex 32"

// remedies are the remedies for warnings that state only the problem.
var remedies = []struct{ path, begins, remedy string }{
	{"api.auth_token", "not set", random},
	{"queues.*.api_key", "not set", random},
	{"queues.*.max_attempts", "not set", "set it: after so many receives a message is kept for you to look at"},
	{"sources.*.verify", "not set", "set verify and secret to what the sender signs with, or allowed_ips to where it sends from"},
	{"sources.*.secret", "has no effect", "set verify to what the sender signs with"},
	{"sources.*.skip_verify", "", "leave it out unless an emulator sends"},
	{"sources.*.topic_arns", "not set", "list the topics that may send"},
	{"sources.*", "no handler", "add a handler, a queue or a workflow with this source, or remove it"},
}

func remedyOf(w config.Problem) string {
	for _, r := range remedies {
		if ok, _ := path.Match(r.path, w.Path); ok && strings.HasPrefix(w.Message, r.begins) {
			return r.remedy
		}
	}
	return ""
}
