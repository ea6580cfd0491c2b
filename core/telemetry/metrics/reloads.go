package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventgateway/gateway/core"
)

// reloads counts the configurations that were read again while the process runs.
type reloads struct {
	results words
	last    prometheus.Gauge
}

var reloadResults = []core.ReloadResult{core.ReloadApplied, core.ReloadInvalid, core.ReloadForbidden, core.ReloadUnreachable}

func newReloads(f factory) reloads {
	results := f.counter("config_reloads_total", "Changed configurations that were read again, by the result.", "result")
	last := f.gauge("config_last_reload_successful", "1 if the newest configuration is followed, 0 if it is ignored.").WithLabelValues()
	last.Set(1)
	return reloads{wording(results, reloadResults), last}
}

// reloaded counts a reload. An unchanged configuration is not counted, but it sets the gauge to
// 1.
func (r *reloads) reloaded(f core.Reloaded) {
	followed := 0.0
	if f.Result == core.ReloadApplied || f.Result == core.ReloadUnchanged {
		followed = 1
	}
	r.last.Set(followed)
	if f.Result != core.ReloadUnchanged {
		r.results.count(string(f.Result))
	}
}
