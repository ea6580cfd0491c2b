//go:build linux

// Package e2e tests the program from the outside: the real binary, real sockets,
// a real file or database server, real signals. Of this module it imports only
// what starts servers and plays the outside world (infra/test), so that what it
// knows of the gateway is what a user can know, and lists that have to be complete:
// of configuration fields (core/config) and of signature schemes (core/verify).
//
// The idea to know: the witness is never the accused. What was sent, accepted
// and delivered is written down on this side of the wire, by senders and a
// receiver that survive the gateway's deaths, and the verdict is read from their
// notes and the final database, not from what the gateway says about itself.
//
// They need Linux, where a child can be made to die with its parent, traced and
// given a disk of its own.
//
// Where to change something: starting and stopping processes in
// process_test.go, the gateway as a fixture in gateway_test.go, databases other
// than a file in store_test.go, handlers in receiver_test.go, what counts as lost
// in verdict_test.go, what must hold in every database in infra/test/ledger; for queues,
// what users of the API do in queues_consumers_test.go, and what no consumer may see
// in queues_ruling_test.go; for attacks, the attacks in attacks_attackers_test.go and the
// bounds for their victim in attacks_victim_test.go; for secrets, the places of a secret in
// canary_config_test.go, and its rightful places in canary_test.go. The other files are the
// tests, one story each.
package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// binary is the program under test.
var binary string

func TestMain(m *testing.M) {
	// Most of them wait for processes, and for times that cannot be hurried.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	os.Exit(testMain(m))
}

// testMain builds the program once, with the race detector if the tests are. GATEWAY_TEST_BINARY names one to be used
// instead, such as the one that is about to be released.
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
	// Some tests run it as another user.
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	binary = filepath.Join(dir, "gateway")
	race, cgo := "-race=false", "CGO_ENABLED=0"
	if underRace() {
		race, cgo = "-race", "CGO_ENABLED=1"
	}
	build := exec.Command("go", "build", "-tags", "otel grpcnotrace", race, "-o", binary, "github.com/eventgateway/gateway/cmd/gateway")
	build.Env = append(os.Environ(), cgo)
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the gateway: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// need ends a test whose surroundings lack something: in continuous integration
// that is a failure, elsewhere a skip that says why.
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
