package order

import (
	"cmp"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type element struct{ Key, Place int }

func byKey(a, b element) int { return cmp.Compare(a.Key, b.Key) }

// Both functions give a sorted permutation of the list; Stable gives the one of
// slices.SortStableFunc.
func TestSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.IntRange(0, 9), 0, 100).Draw(t, "keys")
		list := make([]element, len(keys))
		for i, key := range keys {
			list[i] = element{key, i}
		}
		want := slices.Clone(list)
		slices.SortStableFunc(want, byKey)

		stable := slices.Clone(list)
		if Stable(stable, byKey); !reflect.DeepEqual(stable, want) {
			t.Errorf("Stable(%v) = %v, want %v", list, stable, want)
		}

		got := slices.Clone(list)
		Sort(got, byKey)
		if !slices.IsSortedFunc(got, byKey) {
			t.Errorf("Sort(%v) = %v, which is not sorted", list, got)
		}
		slices.SortFunc(got, func(a, b element) int { return cmp.Or(byKey(a, b), cmp.Compare(a.Place, b.Place)) })
		if !reflect.DeepEqual(got, want) {
			t.Errorf("Sort(%v) has other elements: %v", list, got)
		}
	})
}

// A list of one element, the most frequent one, costs no memory.
func TestShort(t *testing.T) {
	one := []element{{1, 0}}
	if n := testing.AllocsPerRun(10, func() { Sort(one, byKey); Stable(one, byKey); Sort(one[:0], byKey) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
