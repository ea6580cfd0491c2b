package gateway

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/sqlite"
)

// TestRetiredHearNothing: the bell has listeners of the newest generation only. Otherwise the
// number of listeners would grow with each reload.
func TestRetiredHearNothing(t *testing.T) {
	conn, err := sqlite.Open(filepath.Join(t.TempDir(), "gateway.db"))
	if err != nil {
		t.Fatal(err)
	}
	s := store.New(conn, store.SQLite, core.SystemClock)
	defer s.Close()
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	load := func(name string) *config.Config {
		yaml := "sources: {shop: {type: event}}\nhandlers: {" + name + ": {source: shop, url: 'https://handler.example/'}}\nqueues: {" + name + ": {source: shop}}\n"
		c, err := config.Load(config.Options{FS: fstest.MapFS{"gateway.yaml": {Data: []byte(yaml)}}, Path: "gateway.yaml"})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	p, err := NewProgram(load("a"), Deps{Store: s, Clock: core.SystemClock, Log: slog.New(slog.DiscardHandler), SoleTaker: true})
	if err != nil {
		t.Fatal(err)
	}
	reload := func(name string) {
		t.Helper()
		if result, err := p.Reload(t.Context(), core.BySignal, "", load(name)); result != core.ReloadApplied {
			t.Fatal(result, err)
		}
	}
	reload("b") // before it serves
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- p.Serve(ctx, l) }()
	reload("c")
	reload("d")
	if err := p.makeRoom(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	bell := p.now.Load().shared.bell
	others := bell.Listen()
	bell.Others(others)
	var want []core.Lane
	for _, name := range []string{"a", "b", "c"} {
		want = append(want, core.HandlerLane(name), core.QueueLane(name))
	}
	for _, lane := range append(want, core.HandlerLane("d"), core.QueueLane("d")) {
		bell.Ring(lane)
	}
	slices.Sort(want)
	if got := others.Rung(); !slices.Equal(got, want) {
		t.Errorf("lanes that nobody listens to: %q, want those of the configurations before, %q", got, want)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
