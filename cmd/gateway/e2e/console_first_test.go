//go:build linux

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/infra/test/receiver"
)

// TestConsoleFirstMinutes opens the console of a new gateway, as make run starts it. The person has added a
// handler, which fails at first.
func TestConsoleFirstMinutes(t *testing.T) {
	t.Parallel()
	chromium, modules := browserOf(t)
	r := receiver.New(t)
	failsUntilMended(r, "own", "/own", http.StatusServiceUnavailable, "not yet")
	n := newStranger(t)
	n.types("./gateway init")
	f, err := os.OpenFile(filepath.Join(n.dir, "gateway.local.yaml"), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = fmt.Fprintf(f, "  own:\n    source: app\n    events: [order.paid]\n    url: %s/own\n", r.URL())
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	n.serves("./gateway start --env local")
	base := fmt.Sprintf("http://127.0.0.1:%d", n.port)
	tellStories(t, modules, map[string]any{
		"browser": chromium, "console": base + "/console", "api": base, "receiver": r.URL(), "pictures": os.Getenv("GATEWAY_TEST_PICTURES"),
		"link": strings.TrimSpace(n.types("./gateway console --env local --print")), "stories": []string{"the first minutes"},
	}, 1)
	n.stop()
}
