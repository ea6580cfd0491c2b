package main

import (
	"net/http"
	"time"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/units"
)

// A sendDelay is the user's choice of when the jobs of an event are due. Both are "" for at once.
type sendDelay struct {
	delay     string // a duration, from the gateway's receipt on
	deliverAt string // a time
}

// given reports whether the user chose a time.
func (d sendDelay) given() bool { return d.delay != "" || d.deliverAt != "" }

// check refuses a choice that the gateway would refuse.
func (d sendDelay) check(now time.Time) error {
	switch {
	case d.delay != "" && d.deliverAt != "":
		return usagef("give --delay or --deliver-at, not both")
	case d.delay != "":
		if span, err := units.ParseDuration(d.delay); err != nil || span.Duration > core.MaxDelay {
			return usagef("--delay must be a duration from 0s to 365d, such as 90s, 30m, 2h or 1d; not %q", terminal.Clip(d.delay, 40))
		}
	case d.deliverAt != "":
		if at, err := core.ParseTime(d.deliverAt); err != nil || at.After(now.Add(core.MaxDelay)) {
			return usagef("--deliver-at must be a time such as 2006-01-02T15:04:05Z or 2006-01-02T15:04:05+09:00, at most 365 days from now; not %q", terminal.Clip(d.deliverAt, 40))
		}
	}
	return nil
}

// permitted refuses a delay for a source whose senders cannot ask for one: a signature does not
// cover the header.
func (d sendDelay) permitted(source config.Source) error {
	if !d.given() || source.Type == "event" {
		return nil
	}
	return core.Refuse(core.Unsupported, "source %q is of type %s, and only senders of a source of type event can delay their events; delay: on a handler or queue delays those of every source", source.Name, source.Type)
}

// write adds the header of the choice.
func (d sendDelay) write(h http.Header) {
	switch {
	case d.delay != "":
		h.Set("X-Gateway-Delay", d.delay)
	case d.deliverAt != "":
		h.Set("X-Gateway-Deliver-At", d.deliverAt)
	}
}
