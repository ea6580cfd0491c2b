package core_test

import (
	"testing"

	"github.com/eventgateway/gateway/core"
)

func TestParseHops(t *testing.T) {
	for text, want := range map[string]int{"0": 0, "7": 7, "016": 16, "99999999999999999999": core.MaxHops + 1} {
		if got, ok := core.ParseHops(text); got != want || !ok {
			t.Errorf("ParseHops(%q) = %d, %v, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "-1", "+1", "1.0", " 1", "1, 2", "one", "0x1", "１"} {
		if got, ok := core.ParseHops(text); ok {
			t.Errorf("ParseHops(%q) = %d, want no count", text, got)
		}
	}
}

func TestNextHop(t *testing.T) {
	for text, want := range map[string]string{"": "1", "junk": "1", "0": "1", "3": "4", "16": "17", "99999999999999999999": "17"} {
		e := core.Event{Headers: map[string]string{core.Hops: text}}
		if got := e.NextHop(); got != want {
			t.Errorf("NextHop() after %q = %s, want %s", text, got, want)
		}
	}
}
