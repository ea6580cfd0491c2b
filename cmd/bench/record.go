package main

import (
	"context"
	"fmt"

	"github.com/eventgateway/gateway/cmd/bench/internal/proc"
)

// recordings are the values of delivery.record, the default first.
var recordings = []string{"none", "headers", "all"}

// record measures from end to end with each value of delivery.record. The handler has a transform that
// leaves the event as it is, so that an attempt keeps the body if the value is "all".
func (b *bench) record(ctx context.Context) error {
	if !b.opts.measures(gatewayName) {
		return nil
	}
	var systems []system
	for _, how := range recordings {
		systems = append(systems, b.systems[0].recording(how))
	}
	counts, events := b.load()
	for _, conns := range counts {
		err := inTurns(b.opts.rounds, systems, func(s system) error {
			f, err := b.run(ctx, s, shape{slots: mainSlots, conns: conns, events: events, warm: warm(events)})
			if err != nil {
				return err
			}
			for i, recorded := range systems[1:] {
				if s.name != systems[0].name && s.name != recorded.name {
					continue
				}
				label, beside := fmt.Sprintf("end to end, %d connections, record none or %s: ", conns, recordings[i+1]), []string{recorded.name}
				b.add(measure{label + "rate", "events/s", none, beside}, s, f.endToEndRate())
				b.add(measure{label + "CPU an event, with server", "us", none, beside}, s, f.cpuPerEvent())
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// recording returns the system with a value of delivery.record. The default keeps the name.
func (s system) recording(how string) system {
	name := s.name
	if how != recordings[0] {
		name += ", record: " + how
	}
	return system{name, func(o setup) (proc.Spec, error) {
		o.record = how
		return s.start(o)
	}}
}
