// Package once has values that are made once, when they are first used.
//
// The idea to know: package-level variables are made at each start of the program, before main,
// also for `gateway version`. To compile an expression takes 20 µs, and 3 ms for long counted
// repetitions. A start needs a fifth of the expressions here.
//
// once imports only the standard library. Every package may import it.
package once

import (
	"regexp"
	"sync"
)

// Regexp returns a function that returns the compiled expression. The first call compiles it,
// and panics if the expression is wrong: TestHouse in core compiles each of them. The function
// is safe for concurrent use.
//
// Regexp is not inlined, since its closures would be compiled anew for each expression: 80 KB.
//
//go:noinline
func Regexp(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
