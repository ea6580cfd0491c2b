//go:build skewed

package main

import (
	"fmt"
	"os"
	"time"

	"github.com/eventgateway/gateway/core"
)

// machineClock returns a clock that is wrong by the duration in GATEWAY_TEST_SKEW, such as 45s
// or -45s. Only the end-to-end tests build the program with the tag skewed: no release has
// this file.
func machineClock() core.Clock {
	skew, err := time.ParseDuration(os.Getenv("GATEWAY_TEST_SKEW"))
	if err != nil {
		panic(fmt.Sprintf("GATEWAY_TEST_SKEW: %v", err))
	}
	return func() time.Time { return time.Now().Add(skew) }
}
