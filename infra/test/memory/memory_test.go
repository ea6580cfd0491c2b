package memory

import (
	"os"
	"testing"
)

// TestUse: temporary files are in memory if there is enough of it, and else stay where they were.
func TestUse(t *testing.T) {
	before := t.TempDir()
	t.Setenv("TMPDIR", before)
	Use()
	want := before
	if left, err := kilobytesLeft("/dev/shm"); err == nil && enough(left, available()) {
		want = "/dev/shm"
	}
	if got := os.TempDir(); got != want {
		t.Errorf("temporary files are in %s, want %s", got, want)
	}
	for _, c := range []struct {
		left, memory int
		want         bool
	}{
		{64 << 10, 16 << 20, false}, // a container's usual /dev/shm
		{4 << 20, 7 << 20, false},
		{4 << 20, 8 << 20, true},
	} {
		if enough(c.left, c.memory) != c.want {
			t.Errorf("%d KB left and %d KB of memory are enough: %v, want %v", c.left, c.memory, !c.want, c.want)
		}
	}
}

func TestAvailable(t *testing.T) {
	if _, err := os.Stat("/proc/meminfo"); err == nil && available() < 1<<10 {
		t.Errorf("%d KB of memory are available", available())
	}
}
