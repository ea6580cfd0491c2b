package stats

import (
	"math"
	"testing"
)

func TestPercentile(t *testing.T) {
	hundred := make([]int64, 100)
	for i := range hundred {
		hundred[i] = int64(100 - i)
	}
	cases := []struct {
		values []int64
		p      float64
		want   int64
	}{
		{nil, 0.5, 0}, {[]int64{7}, 0.99, 7}, {hundred, 0.5, 50}, {hundred, 0.99, 99}, {hundred, 1, 100}, {hundred, 0, 1},
	}
	for _, c := range cases {
		if got := Percentile(c.values, c.p); got != c.want {
			t.Errorf("Percentile(%d values, %v) = %d, want %d", len(c.values), c.p, got, c.want)
		}
	}
}

func TestMedian(t *testing.T) {
	if got := Median([]float64{3, 1, 2}); got != 2 {
		t.Errorf("Median(3, 1, 2) = %v, want 2", got)
	}
	if got := Median([]float64{4, 1, 2, 3}); got != 2.5 {
		t.Errorf("Median(4, 1, 2, 3) = %v, want 2.5", got)
	}
	if got := Median(nil); !math.IsNaN(got) {
		t.Errorf("Median() = %v, want NaN", got)
	}
}
