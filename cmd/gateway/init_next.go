package main

import (
	"slices"
	"strings"

	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/once"
)

// printNextSteps prints the next steps after init has written the files: commands that work as
// they are printed.
func (a *app) printNextSteps(dir, template string, cfg *config.Config) {
	a.Notef("next:")
	if dir != "." {
		a.Notef("  cd %s", shellQuote(dir))
	}
	a.Notef("  %s start --env local", a.programName())
	if source, eventType, ok := firstEvent(cfg); ok {
		a.Notef("and then, in another terminal:")
		a.Notef("  %s send --env local -s %s -t %s '{\"total\": 42}'", a.programName(), source, eventType)
	} else {
		a.Notef("and then, in another terminal, watch the events that its schedule makes:")
		a.Notef("  %s tail --env local", a.programName())
	}
	a.Notef("without --env local, as in production, these variables must be set: %s", strings.Join(neededVariables(template), ", "))
}

// firstEvent returns an event that can be sent and that matches a handler. It is not ok if all
// sources are of type cron.
func firstEvent(cfg *config.Config) (source, eventType string, ok bool) {
	for _, s := range cfg.SortedSources() {
		if s.Type == "cron" {
			continue
		}
		for _, h := range cfg.SortedHandlers() {
			if h.Source == s.Name {
				return s.Name, firstType(h.Events), true
			}
		}
	}
	return "", "", false
}

// firstType returns a type that a list of event types accepts.
func firstType(events []string) string {
	if len(events) == 0 {
		return "order.created"
	}
	return strings.ReplaceAll(events[0], "*", "created")
}

// neededVariable matches a variable without a default.
var neededVariable = once.Regexp(`\$\{(\w+)\}`)

// neededVariables returns the variables that gateway.yaml of a template needs without its
// overlay, in the order of the file.
func neededVariables(template string) (names []string) {
	text, _ := templates.ReadFile("templates/" + template + ".yaml") // embedded: cannot fail
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		for _, m := range neededVariable().FindAllStringSubmatch(line, -1) {
			if !slices.Contains(names, m[1]) {
				names = append(names, m[1])
			}
		}
	}
	return names
}
