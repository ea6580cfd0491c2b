package main

import (
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/gateway"
)

// TestManualLooks: the manual, the help and the description of the API say how long gateways rest
// between two looks at their database, as they do. A worker makes each rest up to a quarter longer.
func TestManualLooks(t *testing.T) {
	longest := func(driver string) string {
		return (gateway.RestOf(config.Database{Driver: driver}) * 5 / 4).String()
	}
	usual, hosted := strings.TrimSuffix(longest("postgres"), "s")+" s", strings.TrimSuffix(longest("hosted_sql"), "s")+" s"
	notices := "within " + usual + ", with hosted_sql within " + hosted + "."
	for path, words := range map[string]string{
		chapterFile("databases"):      "at most " + usual + ", with `hosted_sql` " + hosted + ".",
		chapterFile("deliveries"):     "within " + usual + " (D1: " + hosted + ")",
		chapterFile("pace-and-order"): "within " + usual + ", with `hosted_sql` within " + hosted,
		"breaker.go":                  notices,
		"hold.go":                     notices,
		"../../core/web/openapi.yaml": notices,
	} {
		if text := strings.Join(strings.Fields(read(t, path)), " "); !strings.Contains(text, words) {
			t.Errorf("%s lacks the words %q", path, words)
		}
	}
}
