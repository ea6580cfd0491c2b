package flows_test

import (
	"context"
	"slices"
	"strconv"
	"sync"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
)

// A fuse counts the effects of a gateway, and kills it at one of them: before or after a batch
// is committed, before or after a call is seen. After that, the gateway has no effect any
// more. A gateway has one effect at a time, so no other effect is half done when it dies.
type fuse struct {
	doing sync.Mutex

	mu    sync.Mutex
	left  int // points until it dies; negative for never
	count int
	what  string        // the effect before or after which it died
	dead  chan struct{} // closed when it dies
}

// newFuse makes a fuse that kills at a point, from 1. The point 0 means never.
func newFuse(point int) *fuse {
	if point == 0 {
		point = -1
	}
	return &fuse{left: point, dead: make(chan struct{})}
}

// effect calls do, unless the gateway is dead or dies before it. It reports whether the
// gateway is alive after it.
func (f *fuse) effect(what string, do func()) bool {
	f.doing.Lock()
	defer f.doing.Unlock()
	if !f.pass("before " + what) {
		return false
	}
	do()
	return f.pass("after " + what)
}

// pass passes a point, and reports whether the gateway is alive after it.
func (f *fuse) pass(what string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.alive() {
		return false
	}
	f.count++
	if f.left--; f.left == 0 {
		f.what = what
		close(f.dead)
	}
	return f.left != 0
}

func (f *fuse) alive() bool {
	select {
	case <-f.dead:
		return false
	default:
		return true
	}
}

// kill ends the gateway now.
func (f *fuse) kill() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.alive() {
		close(f.dead)
	}
}

// fused is a connection of a gateway that may die. Reads are no points: a death at a read
// equals a death after the write before it.
type fused struct {
	store.Conn
	fuse *fuse
}

var errDead = core.Refuse(core.Unavailable, "the gateway is dead")

func (c fused) Batch(ctx context.Context, stmts ...store.Stmt) ([]store.Result, error) {
	if !writes(stmts) {
		if !c.fuse.alive() {
			return nil, errDead
		}
		return c.Conn.Batch(ctx, stmts...)
	}
	var results []store.Result
	var err error
	if !c.fuse.effect(names(stmts), func() { results, err = c.Conn.Batch(ctx, stmts...) }) {
		return nil, errDead
	}
	return results, err
}

// Close leaves the connection open for the next gateways.
func (c fused) Close() error { return nil }

func writes(stmts []store.Stmt) bool {
	return slices.ContainsFunc(stmts, func(s store.Stmt) bool { return !s.Reads })
}

// names returns the names of the writing statements of a batch.
func names(stmts []store.Stmt) (all string) {
	for _, s := range stmts {
		if !s.Reads {
			all += s.Name + " "
		}
	}
	return all
}

// A hospital has the fuses of all gateways of a world, by their generations.
type hospital struct {
	mu    sync.Mutex
	fuses map[string]*fuse
}

func newHospital() *hospital { return &hospital{fuses: map[string]*fuse{}} }

// admit gives the next gateway of the world a fuse.
func (h *hospital) admit(w *world, f *fuse) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fuses[strconv.Itoa(w.generation+1)] = f
	w.wrap = func(conn store.Conn) store.Conn { return fused{conn, f} }
}

func (h *hospital) of(generation string) *fuse {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fuses[generation]
}
