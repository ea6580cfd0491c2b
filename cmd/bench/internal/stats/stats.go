// Package stats has the two summaries that the benchmark prints.
package stats

import (
	"math"
	"slices"
)

// Percentile is the nearest-rank percentile p, 0 to 1, of values, which it sorts. It is 0
// without values. Nearest rank returns a value that was measured. Interpolation would make one
// up between two of them.
func Percentile(values []int64, p float64) int64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	rank := int(math.Ceil(p*float64(len(values)))) - 1
	return values[min(max(rank, 0), len(values)-1)]
}

// Median is the middle value, the mean of the middle two of an even number, and not a number
// without values. Not a number, and not 0, so that a system without runs prints an empty cell
// and no ratio.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	mid := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[mid]
	}
	return (sorted[mid-1] + sorted[mid]) / 2
}
