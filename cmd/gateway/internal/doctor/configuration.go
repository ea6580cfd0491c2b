package doctor

import (
	"context"
	"path"
	"strings"

	"github.com/eventgateway/gateway/core/config"
)

// configuration makes the checks of "gateway validate". It leaves out the warnings that the
// security check shows.
func (l *local) configuration(ctx context.Context) (found []Check) {
	cfg, problems, err := l.Load(ctx)
	if err != nil {
		return []Check{{Status: Failed, Detail: err.Error()}}
	}
	for _, problem := range problems {
		found = append(found, Check{Status: Failed, Detail: problem.String()})
	}
	// All later checks need the configuration, and are blocked without it.
	if l.cfg = cfg; cfg == nil {
		return found
	}
	if len(found) == 0 {
		found = append(found, Check{Status: OK, Detail: l.Summary(cfg)})
	}
	l.warnings = cfg.Warnings()
	return append(found, l.warned(false)...)
}

// warned returns the warnings about security, or all other warnings.
func (l *local) warned(security bool) (found []Check) {
	for _, w := range l.warnings {
		if isSecurity(w) == security {
			found = append(found, Check{Status: Warning, Detail: w.String(), Remedy: remedyOf(w)})
		}
	}
	return found
}

// guards are the fields that restrict access.
var guards = []string{
	"api.auth_token", "api.tokens*.token", "api.metrics_auth_token", "database.api_token", "delivery.signing_secret",
	"sources.*.secret", "sources.*.verify", "sources.*.skip_verify", "sources.*.topic_arns",
	"handlers.*.signing_secret", "alerts*.signing_secret", "queues.*.api_key", "workflows.*.headers.*",
}

// isSecurity reports whether a warning is about a field that restricts access. Such warnings
// are shown by the check "security".
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

// remedyOf returns the remedy for a warning, or "" if the warning says it itself.
func remedyOf(w config.Problem) string {
	for _, r := range remedies {
		if ok, _ := path.Match(r.path, w.Path); ok && strings.HasPrefix(w.Message, r.begins) {
			return r.remedy
		}
	}
	return ""
}
