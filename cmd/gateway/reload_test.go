package main

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/store/storetest"
)

// cursed is a configuration whose code panics.
type cursed struct{ configSource }

func (cursed) load(context.Context) (*config.Config, error) { panic("not thought of") }
func (cursed) changed(context.Context) (bool, error)        { panic("not thought of either") }
func (cursed) name() string                                 { return "gateway.yaml" }

// A panic while a configuration is read, or asked for changes, makes the program ignore it.
func TestReloadOutlivesPanics(t *testing.T) {
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, nil))
	p, err := gateway.NewProgram(config.Default(), gateway.Deps{Store: storetest.NewModel(core.SystemClock), Clock: core.SystemClock, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	r := &reloader{source: cursed{}, log: log, program: p}
	r.reload(t.Context(), core.BySignal)
	if got := said.String(); !strings.Contains(got, "configuration ignored: it has errors") || !strings.Contains(got, "panic: not thought of") {
		t.Errorf("log %q, want the configuration to be ignored, and why", got)
	}
	r.look(t.Context())
	if got := said.String(); !strings.Contains(got, "configuration cannot be read") || !strings.Contains(got, "panic: not thought of either") {
		t.Errorf("log %q, want the look to have failed, and why", got)
	}
}
