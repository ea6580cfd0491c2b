package core

import (
	"fmt"
	"runtime/debug"
)

// A Panic is the error of a function that panicked.
type Panic struct {
	Value any    // the argument of the call of panic
	Stack string // of the goroutine, at that moment
}

func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Contain calls do, and returns its error or a [Panic]. A defect in one job is no reason to
// end a process that works on many.
func Contain(do func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &Panic{v, string(debug.Stack())}
		}
	}()
	return do()
}
