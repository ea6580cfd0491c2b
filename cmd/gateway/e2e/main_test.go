//go:build linux

// Package e2e tests the program from the outside: the real binary, real sockets, a real file
// or database server, real signals. Of this module it imports only packages that start servers
// and play the outside world (infra/test), so it knows as much of the gateway as a user. The
// exceptions are two complete lists: of configuration fields (core/config) and of signature
// schemes (core/verify).
//
// The idea to know: the gateway is no witness about itself. Senders and a receiver outside of
// the gateway record which events were sent, accepted and delivered, and they survive its
// kills. The verdict depends on their records and on the final database, and not on the
// gateway's own statements.
//
// The tests need Linux: there a child process can die with its parent, be traced, and have its
// own disk.
//
// Where to change something: process_test.go starts and stops processes, gateway_test.go has
// the gateway as a fixture, store_test.go the databases other than a file, infra/test/receiver
// the handlers, verdict_test.go decides which events count as lost, and infra/test/ledger has
// the invariants of every database. For queues, queues_consumers_test.go has the calls of the
// API and queues_ruling_test.go the rules for consumers. For attacks,
// attacks_attackers_test.go has the attacks and attacks_victim_test.go the bounds for their
// victim. For secrets, canary_config_test.go has the places of a secret, and canary_test.go
// its rightful places. The other files are the tests, one story each.
package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"testing"
)

// binary is the program under test.
var binary string

func TestMain(m *testing.M) {
	if given := os.Getenv(tabsOf); given != "" {
		os.Exit(beTabs(given))
	}
	// Most tests wait for processes and for times that cannot be shortened.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	// A shell without job control starts background jobs with SIGINT ignored, and programs
	// inherit that: the second SIGINT of a gateway would do nothing. Programs do not inherit
	// that a signal is caught.
	if signal.Ignored(os.Interrupt) {
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	}
	os.Exit(testMain(m))
}

// testMain builds the program once, as it is released, and with the race detector if the tests
// have it.
// GATEWAY_TEST_BINARY names an existing program to test instead, such as a release candidate.
func testMain(m *testing.M) int {
	if binary = os.Getenv("GATEWAY_TEST_BINARY"); binary != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "gateway-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	// Some tests run the program as another user.
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	binary = filepath.Join(dir, "gateway")
	race, cgo := "-race=false", "CGO_ENABLED=0"
	if underRace() {
		race, cgo = "-race", "CGO_ENABLED=1"
	}
	build := exec.Command("go", "build", "-tags", "otel grpcnotrace nopgxregisterdefaulttypes", "-trimpath", "-ldflags", "-s -w", race, "-o", binary, "github.com/eventgateway/gateway/cmd/gateway")
	build.Env = append(os.Environ(), cgo)
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the gateway: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// whole returns the first number, which make torture wants (GATEWAY_TEST_WHOLE), or else the second.
// The second is enough for each kind of interference to happen many times.
func whole(all, some int) int {
	if os.Getenv("GATEWAY_TEST_WHOLE") != "" {
		return all
	}
	return some
}

// need ends a test if its environment lacks something: with a failure in continuous
// integration, otherwise with a skip that says why.
func need(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("needs %s: %v", what, err)
	}
	t.Skipf("needs %s: %v", what, err)
}
