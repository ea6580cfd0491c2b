//go:build linux

package e2e

import (
	"os"
	"testing"
)

// TestSize: the released program is at most 36 MiB without the console, which may have half a MiB. A
// fourth of it is the libraries of object stores.
func TestSize(t *testing.T) {
	const most = 36<<20 + 512<<10
	info, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	// A program with the race detector is larger, and is not released.
	if t.Logf("%d bytes", info.Size()); info.Size() >= most && !underRace() {
		t.Errorf("%d bytes, want less than %d", info.Size(), most)
	}
}
