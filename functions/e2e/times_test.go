//go:build linux

package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/lambda"
	"github.com/eventgateway/gateway/infra/test/receiver"
)

// TestTimes measures and prints the duration of invocations on each database. It requires
// nothing: the machine may be busy.
func TestTimes(t *testing.T) {
	for _, p := range places {
		t.Run(p.name, func(t *testing.T) {
			db := p.make(t)
			d := deploy{config: storyConfig, receiver: receiver.New(t), env: []string{"GATEWAY_NUDGE="}}.new(t, db)
			const cold, warm = 5, 20
			for range cold {
				d.intake.Kill()
				d.send("/events/order.created", `{}`)
			}
			for range warm {
				d.send("/events/order.created", `{}`)
			}
			d.tick(d.worker) // the ticks below find no due job
			d.worker.Kill()
			for _, f := range []*lambda.Function{d.worker, d.cron} {
				for range cold {
					f.Kill()
					d.tick(f)
				}
				for range warm {
					d.tick(f)
				}
			}
			for _, f := range []*lambda.Function{d.intake, d.worker, d.cron} {
				t.Logf("%-7s init %v, first invocation %v, warm %v", f.Name,
					median(f, func(r lambda.Result) (time.Duration, bool) { return r.Init, r.Cold }),
					median(f, func(r lambda.Result) (time.Duration, bool) { return r.Took, r.Cold }),
					median(f, func(r lambda.Result) (time.Duration, bool) { return r.Took, !r.Cold }))
			}
		})
	}
}

// median returns the median of the durations that of returns with true.
func median(f *lambda.Function, of func(lambda.Result) (time.Duration, bool)) time.Duration {
	var all []time.Duration
	for _, r := range f.Results() {
		if d, ok := of(r); ok {
			all = append(all, d)
		}
	}
	slices.Sort(all)
	if len(all) == 0 {
		return 0
	}
	return all[len(all)/2].Round(100 * time.Microsecond)
}
