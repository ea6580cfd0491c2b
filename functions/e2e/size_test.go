//go:build linux

package e2e

import (
	"os"
	"testing"
)

// TestSizes: each cold start loads all linked code. The functions of these tests are for this
// machine; on amd64 they are some 5 % larger than on arm64, for which they are deployed. The
// bound of arm64 is in infra, where the functions are built as for a deployment.
func TestSizes(t *testing.T) {
	const most = 16<<20 + 356<<10
	for _, name := range []string{"intake", "pull", "worker", "cron"} {
		info, err := os.Stat(program(name))
		if err != nil {
			t.Fatal(err)
		}
		if t.Logf("%s: %.2f MiB", name, float64(info.Size())/(1<<20)); info.Size() > most {
			t.Errorf("%s has %d bytes, want at most %d", name, info.Size(), most)
		}
	}
}
