//go:build linux

package e2e

import (
	"os"
	"testing"
)

// TestSize: the released program stays below 30 MiB. 1.8 MB of it are the libraries of S3, and half a MiB
// the console and the texts that it shows.
func TestSize(t *testing.T) {
	const most = 30 << 20
	info, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	// A program with the race detector is larger, and is not released.
	if t.Logf("%d bytes", info.Size()); info.Size() >= most && !underRace() {
		t.Errorf("%d bytes, want less than %d", info.Size(), most)
	}
}
