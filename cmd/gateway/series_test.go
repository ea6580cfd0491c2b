package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core/wire"
)

func TestSparkline(t *testing.T) {
	for _, test := range []struct {
		numbers []int
		want    string
	}{
		{nil, ""},
		{[]int{0, 0, 0}, "   "},
		{[]int{0, 1, 0}, " █ "},
		{[]int{1, 2, 3, 4, 5, 6, 7, 8}, "▁▂▃▄▅▆▇█"},
		{[]int{1, 1_000_000, 500_000}, "▁█▄"}, // one is not none
	} {
		if got := sparkline(test.numbers); got != test.want {
			t.Errorf("sparkline(%v) = %q, want %q", test.numbers, got, test.want)
		}
	}
}

func TestGathered(t *testing.T) {
	for _, test := range []struct{ numbers, want []int }{
		{nil, nil},
		{[]int{1, 2}, []int{1, 2}},
		{[]int{1, 2, 3}, []int{1, 2, 3}},
		{[]int{1, 2, 3, 4}, []int{3, 7}},
		{[]int{1, 2, 3, 4, 5, 6, 7}, []int{6, 15, 7}},
	} {
		if got := gathered(test.numbers, 3); !cmp.Equal(got, test.want) {
			t.Errorf("gathered(%v, 3) = %v, want %v", test.numbers, got, test.want)
		}
	}
}

// TestSeriesGrid: the curve of a day has a column for two steps.
func TestSeriesGrid(t *testing.T) {
	from := time.Date(2026, 3, 1, 11, 1, 0, 0, time.UTC)
	day := make([]int, 120)
	day[0], day[1], day[119] = 1, 2, 6
	s := wire.Series{From: wire.Time{Time: from}, Until: wire.Time{Time: from.Add(time.Hour)},
		Sources:   []wire.SourceSeries{{Name: "shop", Accepted: day}},
		Consumers: []wire.ConsumerSeries{{Name: "billing", Completed: make([]int, 120), Failed: day, Dead: make([]int, 120)}},
	}
	line := "▄" + strings.Repeat(" ", 58) + "█"
	want := [][]string{
		{"source/shop", "accepted", "9", "6", line},
		{"billing", "completed", "0", "0", strings.Repeat(" ", 60)},
		{"billing", "failed", "9", "6", line},
	}
	got := seriesGrid(s)
	if diff := cmp.Diff(want, got.Rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if want := "11:01 TO 12:01 UTC"; got.Heading[4] != want {
		t.Errorf("heading %q, want %q", got.Heading[4], want)
	}
}
