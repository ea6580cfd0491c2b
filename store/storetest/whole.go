package storetest

import (
	"os"

	"github.com/eventgateway/gateway/core"
)

// Whole reports whether the suites run in full on each database, as make verify wants it. The
// environment variable GATEWAY_TEST_WHOLE says so. Otherwise SQLite alone has all random sequences
// and all faults: the other databases get a part of them, see [Options].
func Whole() bool { return os.Getenv("GATEWAY_TEST_WHOLE") != "" }

// PlannedRows returns the number of rows of each kind in the tests of plans, except for PostgreSQL,
// whose plans depend on it. Twice core.MaxDepth is
// the least number with which a count that stops at MaxDepth differs from one that reads a table.
// A million takes five times as long to write.
func PlannedRows() int {
	if Whole() {
		return 1_000_000
	}
	return 2 * core.MaxDepth
}
