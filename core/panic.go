package core

import (
	"fmt"
	"runtime/debug"
)

// A Panic is the error of what panicked instead of returning one.
type Panic struct {
	Value any    // what it panicked with
	Stack string // of the goroutine, at that moment
}

func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Contain returns the error of what it does, or a [Panic]: what goes wrong with one job is
// no reason to end a process that works on many.
func Contain(do func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &Panic{v, string(debug.Stack())}
		}
	}()
	return do()
}
