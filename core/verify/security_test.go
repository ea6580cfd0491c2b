package verify_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core/verify"
)

// TestSecurityTable: the manual states the window and the repeats of each scheme as its
// Cover does.
func TestSecurityTable(t *testing.T) {
	text, err := os.ReadFile("../../cmd/gateway/manual/security.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range verify.Names() {
		if canonical(name) != name {
			continue
		}
		cover := verify.CoverOf(name)
		good, again := "for ever", "a new event"
		if cover.Window > 0 {
			good = fmt.Sprintf("for %.0f s", cover.Window.Seconds())
		}
		switch {
		case cover.DeliveryID:
			again = "a duplicate"
		case cover.BodyAlone:
			again += "; a duplicate with `dedup: body`"
		}
		if row := fmt.Sprintf("\n| `%s` | %s | %s |\n", name, good, again); !strings.Contains(string(text), row) {
			t.Errorf("cmd/gateway/manual/security.md lacks the row %s", row)
		}
	}
}
