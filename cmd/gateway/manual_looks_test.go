package main

import (
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/gateway"
)

// TestManualLooks: the manual says how long gateways rest between two looks at their database, as
// they do. A worker makes each rest up to a quarter longer.
func TestManualLooks(t *testing.T) {
	longest := func(driver string) string {
		return (gateway.RestOf(config.Database{Driver: driver}) * 5 / 4).String()
	}
	usual, hosted := strings.TrimSuffix(longest("postgres"), "s")+" s", strings.TrimSuffix(longest("hosted_sql"), "s")+" s"
	for topic, words := range map[string]string{
		"databases":      "at most " + usual + ", with `hosted_sql` " + hosted + ".",
		"deliveries":     "within " + usual + " (D1: " + hosted + ")",
		"pace-and-order": "within " + usual + ", with `hosted_sql` within " + hosted,
	} {
		if text := strings.Join(strings.Fields(read(t, chapterFile(topic))), " "); !strings.Contains(text, words) {
			t.Errorf("%s lacks the words %q", chapterFile(topic), words)
		}
	}
}
