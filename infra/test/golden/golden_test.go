package golden_test

import (
	"strings"
	"testing"

	"github.com/eventgateway/gateway/infra/test/golden"
)

func TestDiff(t *testing.T) {
	if got := golden.Diff("a\nb\n", "a\nb\n"); got != "" {
		t.Errorf("Diff of equal texts = %q, want none", got)
	}
	got := golden.Diff("a\nhello\nc\n", "a\nheld_at\nc\n")
	for _, line := range []string{"\n-hello\n", "\n+held_at\n", "\n a\n"} {
		if !strings.Contains(got, line) {
			t.Errorf("Diff shows\n%s\nwithout the line %q", got, strings.TrimSpace(line))
		}
	}
}
