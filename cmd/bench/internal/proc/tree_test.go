package proc

import (
	"os"
	"testing"
	"time"
)

func TestTreeCPUContainsTheChildren(t *testing.T) {
	text := []byte("42 (a) name) S 7 42 42 0 -1 4194304 1 2 3 4 100 20 3 1 20 0 1 0 5 6 7")
	id, parent, cpu, err := stat(text)
	if id != 42 || parent != 7 || cpu != 1240*time.Millisecond || err != nil {
		t.Errorf("stat() = %d, %d, %v, %v, want 42, 7, 1.24s", id, parent, cpu, err)
	}
	for _, bad := range []string{"", "x (y) S 1", "1 (y) S 1 2", "1 (y) S z 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16"} {
		if _, _, _, err := stat([]byte(bad)); err == nil {
			t.Errorf("stat(%q) = nil, want an error", bad)
		}
	}
	parents := map[int]int{1: 0, 5: 1, 6: 5, 7: 6, 8: 1}
	for id, want := range map[int]bool{5: true, 7: true, 8: false, 1: false} {
		if got := below(parents, id, 5); got != want {
			t.Errorf("below(%d, 5) = %v, want %v", id, got, want)
		}
	}
	if _, err := TreeCPU(os.Getpid()); err != nil {
		t.Errorf("TreeCPU(self) = %v", err)
	}
	if _, err := TreeCPU(1 << 30); err == nil {
		t.Error("TreeCPU of nobody = nil, want an error")
	}
}
