package wire

import (
	"strings"
	"testing"
	"time"
)

func TestProof(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	good := ProofOf("t0ken", now)
	if strings.Contains(good, "t0ken") {
		t.Fatalf("the proof %q holds the token", good)
	}
	for _, tt := range []struct {
		text   string
		tokens []string
		late   time.Duration
		want   bool
	}{
		{good, []string{"t0ken"}, 0, true},
		{good, []string{"another", "t0ken"}, time.Minute, true},
		{good, []string{"t0ken"}, 61 * time.Second, false},
		{good, []string{"t0ken"}, -61 * time.Second, false},
		{good, []string{"another"}, 0, false},
		{good, nil, 0, false},
		{ProofOf("", now), nil, 0, true},
		{ProofOf("", now), []string{"t0ken"}, 0, false},
		{good[:len(good)-1], []string{"t0ken"}, 0, false},
		{good + "0", []string{"t0ken"}, 0, false},
		{strings.Replace(good, "1", "2", 1), []string{"t0ken"}, 0, false},
		{"", nil, 0, false},
		{"9223372036854775807 00", nil, 0, false},
		{"1795176000", nil, 0, false},
	} {
		if got := Proves(tt.text, tt.tokens, now.Add(tt.late)); got != tt.want {
			t.Errorf("Proves(%q, %q) %v later = %v, want %v", tt.text, tt.tokens, tt.late, got, tt.want)
		}
	}
}
