package units

import (
	"testing"
	"time"
)

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"500ms": 500 * time.Millisecond, "30s": 30 * time.Second, "5m": 5 * time.Minute, "2h": 2 * time.Hour, "1d": 24 * time.Hour, "45": 45 * time.Second, "0": 0,
	} {
		got, err := ParseDuration(text)
		if err != nil || got.Duration != want {
			t.Errorf("ParseDuration(%q) = %v, %v, want %v", text, got, err, want)
		}
		if again, err := ParseDuration(got.String()); err != nil || again != got {
			t.Errorf("ParseDuration(%q) = %v, %v, want %v", got.String(), again, err, got)
		}
	}
	for _, text := range []string{"", "s", "-1s", "1.5s", "1h30m", "1w", "1 s", "5M", "9999999999999999999", "106752d"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("ParseDuration(%q) = %v, want an error", text, got)
		}
	}
}
