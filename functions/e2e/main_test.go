//go:build linux

// Package e2e tests the functions from the outside: the real bootstrap programs in a simulated
// Lambda (infra/test/lambda), with real databases, real requests through HTTP endpoints and
// real signals. Of this module it imports only the simulated outside world (infra/test). So it
// knows as much of the gateway as a user.
//
// The idea to know: a minute is short here. A function's timeout decides how long one
// invocation lasts. A worker with a timeout of eight seconds and a schedule of two seconds
// shows in a moment the behaviour that takes minutes on AWS.
//
// Where to change something: this file builds the programs, deployment_test.go deploys them,
// database_test.go has the databases, infra/test/wire the connections to them, infra/test/receiver
// the handlers, and witness_test.go decides which events count as lost or repeated. The other
// files are the tests, one story each.
package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/sources"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// programs is the folder of the programs under test: the functions intake, pull, worker and
// cron, and the command gateway, with which users migrate their databases.
var programs string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	flag.Parse()
	// The tests mostly wait, so more of them run in parallel than there are CPUs.
	if err := flag.Set("test.parallel", "12"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	dir, err := os.MkdirTemp("", "gateway-functions-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	programs = dir
	const module = "github.com/eventgateway/gateway/"
	// A deployment builds with the same tags: only the worker calls gRPC receivers.
	err = build("lambda.norpc grpcnotrace nopgxregisterdefaulttypes nogrpc", module+"functions/intake", module+"functions/pull", module+"functions/cron")
	if err == nil {
		err = build("lambda.norpc grpcnotrace nopgxregisterdefaulttypes", module+"functions/worker")
	}
	if err == nil {
		err = build("otel grpcnotrace nopgxregisterdefaulttypes", module+"cmd/gateway")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// program returns the path of a program under test. The results of tests that ask for it depend on
// its sources.
func program(name string) string {
	if err := sources.Open(); err != nil {
		panic(err)
	}
	return filepath.Join(programs, name)
}

func build(tags string, packages ...string) error {
	args := []string{"build", "-tags", tags, "-trimpath", "-ldflags", "-s -w", "-o", programs + string(filepath.Separator)}
	cmd := exec.Command("go", append(args, packages...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %v: %w\n%s", packages, err, out)
	}
	return nil
}

// goesBy waits for d. It is for tests of behaviour while no request comes in, which have no
// condition to wait for.
func goesBy(t testing.TB, d time.Duration) {
	t.Helper()
	end := time.Now().Add(d)
	wait.For(t, d+time.Minute, "time goes by", func() bool { return time.Now().After(end) })
}
