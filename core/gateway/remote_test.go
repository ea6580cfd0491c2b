package gateway_test

import (
	"testing"
	"testing/fstest"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
)

// If one remote configuration removes a source and a later one adds it again, the source
// admits no more addresses than before. Two changes must not have more power than one.
func TestRemoteSourcesComeBackClosed(t *testing.T) {
	p := newProgram(t, "sources: {a: {type: event}}")
	for i, step := range []struct {
		text string
		want core.ReloadResult
	}{
		{"sources: {a: {type: event, allowed_ips: [10.0.0.0/8]}, b: {type: event}}", core.ReloadApplied},
		{"sources: {b: {type: event}}", core.ReloadApplied},
		{"sources: {b: {type: event}, c: {type: event}}", core.ReloadApplied},
		{"sources: {a: {type: event}, b: {type: event}}", core.ReloadForbidden},
		{"sources: {a: {type: event, allowed_ips: [10.0.0.0/7]}, b: {type: event}}", core.ReloadForbidden},
		{"sources: {a: {type: event, allowed_ips: [10.0.0.0/9]}, b: {type: event}}", core.ReloadApplied},
	} {
		c, err := config.Load(config.Options{FS: fstest.MapFS{"gateway.yaml": {Data: []byte(step.text)}}, Path: "gateway.yaml", Remote: true})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.Reload(t.Context(), core.BySignal, "gateway.yaml", c); got != step.want {
			t.Errorf("step %d: Reload = %q, %v, want %q", i, got, err, step.want)
		}
	}
}
