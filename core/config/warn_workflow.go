package config

import (
	"fmt"
	"strings"

	"github.com/eventgateway/gateway/core/once"
)

// workflows warns of steps that will fail or wait in vain. One missing public_url is one
// warning, for all callback steps.
func (w warner) workflows() {
	calledBack := ""
	for _, f := range w.SortedWorkflows() {
		path := join("workflows", f.Name)
		w.events(path+".events", f.Source, f.Events)
		w.steps(path+".steps", f.Steps)
		if calledBack == "" {
			calledBack = callbackIn(f.Steps)
		}
	}
	if calledBack != "" && w.Server.PublicURL == "" {
		w.problem("server.public_url", "not set: the callback_url that step %s sends is %s/callback/..., which only this machine can reach",
			quote(calledBack), w.Address())
	}
}

// Address returns the address at which callers from outside reach this server:
// server.public_url, or else this machine's own address, which only works on this machine. It
// has no slash at its end.
func (c *Config) Address() string {
	if c.Server.PublicURL != "" {
		return c.Server.PublicURL
	}
	return fmt.Sprintf("http://localhost:%d", c.Server.Port)
}

// callbackIn returns the name of the first callback step that sends its token, or "".
func callbackIn(steps []Step) string {
	for _, s := range steps {
		var below []Step
		for _, b := range s.Branches {
			below = append(below, b.Steps...)
		}
		if s.Iterator != nil {
			below = append(below, *s.Iterator)
		}
		if s.Type == "callback" && s.URL != "" {
			return s.Name
		}
		if name := callbackIn(below); name != "" {
			return name
		}
	}
	return ""
}

// steps warns of the steps of one list.
func (w warner) steps(path string, steps []Step) {
	for i, s := range steps {
		w.step(index(path, i), s)
	}
}

// step warns of one step and of the steps in it.
func (w warner) step(path string, s Step) {
	w.url(path+".url", s.URL)
	w.credentials(path+".headers", s.Headers)
	if s.Type == "callback" && s.URL == "" {
		w.problem(path+".url", "not set: no receiver gets the token of this step, so the step can only time out")
	}
	if w.origin.given(path+".retry") && !w.origin.set(path+".retry.max") {
		w.problem(path+".retry", "has no max, so the step is tried only once")
	}
	for i, b := range s.Branches {
		here := index(path+".branches", i)
		w.url(here+".url", b.URL)
		w.credentials(here+".headers", b.Headers)
		w.steps(here+".steps", b.Steps)
	}
	if s.Iterator != nil {
		w.step(path+".iterator", *s.Iterator)
	}
}

// credentials warns of headers of steps that look like credentials and are written out in the
// file.
func (w warner) credentials(path string, headers map[string]Secret) {
	for _, name := range names(headers) {
		here := join(path, name)
		if credential().MatchString(name) && !strings.EqualFold(name, "idempotency-key") && headers[name] != "" && w.origin.set(here) && !w.origin.marks[here].expanded {
			w.problem(here, "is written in plain text, so it is stored in the database with the workflow; take it from a variable, as in ${NAME}, and only the name is stored")
		}
	}
}

// credential matches the names of headers that usually carry a credential.
var credential = once.Regexp(`(?i)(auth|token|secret|password|passwd|cookie|credential|signature|(^|[-_])(api)?key$)`)
