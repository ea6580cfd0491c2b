package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/operate"
)

// TestManualBounds: the manual, the help and the description of the API name the bounds that the code has.
func TestManualBounds(t *testing.T) {
	thousands := func(n int) string { return fmt.Sprintf("%d,%03d", n/1000, n%1000) }
	for _, tt := range []struct{ path, words string }{
		{chapterFile("http-api"), "It looks at the " + thousands(core.MaxFailures) + " newest jobs that are dead"},
		{"jobs_errors.go", fmt.Sprintf("Looks at the %d newest failed jobs", core.MaxFailures)},
		{"../../core/web/openapi.yaml", fmt.Sprintf("no more than the %d newest such jobs, and, of the unfinished jobs of a consumer, at the %d that are due last", core.MaxFailures, core.FailureReach)},
		{chapterFile("production"), fmt.Sprintf("A killed gateway keeps it for up to %d s", operate.Lease/time.Second)},
	} {
		if text := strings.Join(strings.Fields(read(t, tt.path)), " "); !strings.Contains(text, tt.words) {
			t.Errorf("%s lacks the words %q", tt.path, tt.words)
		}
	}
}
