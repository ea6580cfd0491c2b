package event

import (
	"encoding/json"
	"testing"
)

func TestBodyKeepsItsSizeAndIsJSON(t *testing.T) {
	for _, size := range []int{0, MinSize, 1024} {
		body := Body(size)
		if want := max(size, MinSize); len(body) != want {
			t.Errorf("len(Body(%d)) = %d, want %d", size, len(body), want)
		}
		if !json.Valid(body) {
			t.Errorf("Body(%d) = %s, not JSON", size, body)
		}
	}
}

func TestStampedSeqReadsBack(t *testing.T) {
	body := Body(200)
	for _, seq := range []int{0, 1, 99_999, MaxSeq} {
		Stamp(body, seq, 1_700_000_000_123_456_789)
		if got, ok := Seq(body); got != seq || !ok {
			t.Errorf("Seq after Stamp(%d) = %d, %v", seq, got, ok)
		}
	}
	var v struct{ T int64 }
	if err := json.Unmarshal(body, &v); err != nil || v.T != 1_700_000_000_123_456_789 {
		t.Errorf("stamped t = %d, %v", v.T, err)
	}
}

func TestSeqRefusesOtherBodies(t *testing.T) {
	body := Body(200)
	body[seqAt] = 'x'
	for _, b := range []string{"", "{}", `{"seq":12}`, string(body)} {
		if seq, ok := Seq([]byte(b)); ok {
			t.Errorf("Seq(%.20q) = %d, want none", b, seq)
		}
	}
}
