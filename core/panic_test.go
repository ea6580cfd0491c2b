package core

import (
	"errors"
	"strings"
	"testing"
)

func TestContain(t *testing.T) {
	why := errors.New("why")
	if err := Contain(func() error { return why }); err != why {
		t.Errorf("Contain = %v, want %v", err, why)
	}
	if err := Contain(func() error { return nil }); err != nil {
		t.Errorf("Contain = %v, want none", err)
	}
	var p *Panic
	err := Contain(breaksDown)
	if !errors.As(err, &p) || p.Error() != "panic: what nobody thought of" || !strings.Contains(p.Stack, "breaksDown") {
		t.Errorf("Contain = %v, want the panic with the stack of who made it", err)
	}
}

func breaksDown() error { panic("what nobody thought of") }
