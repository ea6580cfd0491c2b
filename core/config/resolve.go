package config

import "strings"

// resolve fills in the values that a field takes from another one. It asks the origin whether a
// field is given, and not the value, so that "retry: {max: 3}" keeps the default interval.
func (c *Config) resolve() {
	if c.Database.Driver == "sqlite" && c.Database.URL == "" {
		c.Database.URL = sqliteFile
	}
	c.Server.PublicURL = strings.TrimRight(c.Server.PublicURL, "/")
	// Entries of a map cannot be changed in place.
	for name, h := range c.Handlers {
		c.resolveHandler(&h)
		c.Handlers[name] = h
	}
	for q := range edited(c.Queues) {
		q.Lines.resolve()
	}
	c.resolveAlerts()
	for name, w := range c.Workflows {
		c.resolveSteps(join("workflows", name)+".steps", w.Steps)
	}
}

// resolveHandler fills in the values that a handler takes from delivery.
func (c *Config) resolveHandler(h *Handler) {
	path := join("handlers", h.Name)
	// Each field of retry is resolved by itself.
	fallback := c.Delivery.DefaultRetry
	if !c.origin.set(path + ".retry.max") {
		h.Retry.Max = fallback.Max
	}
	if !c.origin.set(path + ".retry.backoff") {
		h.Retry.Backoff = fallback.Backoff
	}
	if !c.origin.set(path + ".retry.interval") {
		h.Retry.Interval = fallback.Interval
	}
	if !c.origin.set(path + ".timeout") {
		h.Timeout = c.Delivery.Timeout
	}
	if !c.origin.set(path + ".signing_secret") {
		h.SigningSecret = c.Delivery.SigningSecret
	}
	if !c.origin.set(path + ".record") {
		h.Record = c.Delivery.Record
	}
	h.Lines.resolve()
}

// resolve fills in the effect of a dead job. Only with a limit of 1 is there an order to keep.
func (l *Lines) resolve() {
	switch {
	case l.OnDead != "" || l.Limit == 0:
	case l.Limit == 1:
		l.OnDead = onDeadHold
	default:
		l.OnDead = "skip"
	}
}

// resolveAlerts gives alerts of type generic the signing secret of all deliveries.
func (c *Config) resolveAlerts() {
	for i := range c.Alerts {
		a, path := &c.Alerts[i], index("alerts", i)
		if !c.origin.set(path) {
			path = "alerts" // a single alert without a list has no number
		}
		if a.Type == "generic" && !c.origin.set(path+".signing_secret") {
			a.SigningSecret = c.Delivery.SigningSecret
		}
	}
}

// resolveSteps gives every step the default spacing of retries, but not their number: by
// default a step is tried once.
func (c *Config) resolveSteps(path string, steps []Step) {
	for i := range steps {
		c.resolveStep(index(path, i), &steps[i])
	}
}

// resolveStep resolves a step and the steps in it.
func (c *Config) resolveStep(path string, s *Step) {
	if !c.origin.set(path + ".retry.backoff") {
		s.Retry.Backoff = c.Delivery.DefaultRetry.Backoff
	}
	if !c.origin.set(path + ".retry.interval") {
		s.Retry.Interval = c.Delivery.DefaultRetry.Interval
	}
	// Steps inside are resolved in the same way, at any depth.
	for i := range s.Branches {
		c.resolveSteps(index(path+".branches", i)+".steps", s.Branches[i].Steps)
	}
	if s.Iterator == nil {
		return
	}
	if s.Iterator.Name == "" {
		s.Iterator.Name = iteratorName
	}
	c.resolveStep(path+".iterator", s.Iterator)
}
