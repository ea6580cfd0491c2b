package servers

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Check does nothing if err is nil. If a component is missing ([ErrMissing]) it skips the
// test, or fails it when CI=true; any other error fails it. Servers that
// GATEWAY_TEST_SERVERS=none leaves out are skipped with CI=true too. Tests that start a server
// themselves pass the error of the start.
func Check(t testing.TB, err error) {
	t.Helper()
	switch {
	case err == nil:
	case errors.Is(err, errLeftOut), errors.Is(err, ErrMissing) && os.Getenv("CI") != "true":
		t.Skip(err)
	default:
		t.Fatal(err)
	}
}

// allowed returns an error if GATEWAY_TEST_SERVERS=none is set, which make quick and make race do:
// then only tests without servers run.
func allowed() error {
	if os.Getenv("GATEWAY_TEST_SERVERS") == "none" {
		return errLeftOut
	}
	return nil
}

var errLeftOut = fmt.Errorf("GATEWAY_TEST_SERVERS=none leaves it out (%w)", ErrMissing)

func missing(what, remedy string) error {
	return fmt.Errorf("no %s here: %s (%w)", what, remedy, ErrMissing)
}

// databaseName is new each time, also among processes that share a server.
func databaseName() string { return "gateway_test_" + strings.ToLower(rand.Text()[:12]) }

// nodeFolder is the folder infra/test/<name> of the module that holds the working
// folder: where go test runs tests, and where benchmarks are run from. It is
// known by a script it has.
func nodeFolder(name, script string) string {
	dir, _ := os.Getwd()
	for ; ; dir = filepath.Dir(dir) {
		folder := filepath.Join(dir, "infra/test", name)
		if _, err := os.Stat(filepath.Join(folder, script)); err == nil || dir == filepath.Dir(dir) {
			return folder
		}
	}
}
