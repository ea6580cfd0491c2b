//go:build linux

// Package e2e tests the functions from the outside: the real bootstrap programs under a
// Lambda of the tests' own (infra/test/lambda), real databases, real requests through
// front doors, real signals. Of this module it imports only what plays the outside world
// (infra/test), so that what it knows of the gateway is what a user can know.
//
// The idea to know: a minute is short here. A function's timeout says how long one
// invocation of it lasts, so a worker with eight seconds and a schedule of two lives
// through in a moment what takes minutes on AWS.
//
// Where to change something: which programs there are here, how they are deployed in
// deployment_test.go, databases and what is between them and the functions in
// database_test.go, handlers in receiver_test.go, what counts as lost or repeated in
// witness_test.go. The other files are the tests, one story each.
package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// programs is the folder of the programs under test: intake, pull, worker and cron, and
// gateway, with which users bring their databases up to date.
var programs string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	flag.Parse()
	// What they do is wait.
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
	err = build("lambda.norpc grpcnotrace", module+"functions/intake", module+"functions/pull", module+"functions/worker", module+"functions/cron")
	if err == nil {
		err = build("otel grpcnotrace", module+"cmd/gateway")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
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

// eventually waits until cond holds, and fails the test if it does not in time.
func eventually(t testing.TB, limit time.Duration, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

// goesBy returns when the machine's clock has gone on by d. There is nothing else to wait
// for: it is about the time that goes by while nobody looks.
func goesBy(t testing.TB, d time.Duration) {
	t.Helper()
	end := time.Now().Add(d)
	eventually(t, d+time.Minute, "time goes by", func() bool { return time.Now().After(end) })
}
