package intake

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/eventgateway/gateway/core"
)

func TestMatch(t *testing.T) {
	m := newMatcher([]Consumer{
		{Lane: "all", Source: "s"},
		{Lane: "star", Source: "s", Events: []string{"x", "*"}},
		{Lane: "created", Source: "s", Events: []string{"order.created", "order.created"}},
		{Lane: "order", Source: "s", Events: []string{"order.*", "order.created"}},
		{Lane: "two", Source: "s", Events: []string{"*.created", "order.*", "exact"}},
		{Lane: "middle", Source: "s", Events: []string{"a*b*c"}},
		{Lane: "elsewhere", Source: "t"},
	})
	tests := []struct{ source, eventType, want string }{
		{"s", "order.created", "all star created order two"},
		{"s", "order.", "all star order two"},
		{"s", "order", "all star"},
		{"s", "Order.created", "all star two"},
		{"s", "exact", "all star two"},
		{"s", "abc", "all star middle"},
		{"s", "a.b.b.c.c", "all star middle"},
		{"s", "acb", "all star"},
		{"t", "order.created", "elsewhere"},
		{"u", "order.created", ""},
	}
	for _, tt := range tests {
		var got []string
		for _, f := range m.match(tt.source, tt.eventType) {
			got = append(got, string(f.lane))
		}
		if want := strings.Fields(tt.want); !slices.Equal(got, want) {
			t.Errorf("match(%q, %q) = %v, want %v", tt.source, tt.eventType, got, want)
		}
	}
}

// Matching appends to a list that all events of a source share.
func TestMatchLeavesTheListAlone(t *testing.T) {
	m := newMatcher([]Consumer{
		{Lane: "all1", Source: "s"}, {Lane: "all2", Source: "s"}, {Lane: "all3", Source: "s"},
		{Lane: "a", Source: "s", Events: []string{"a"}}, {Lane: "b", Source: "s", Events: []string{"b"}},
	})
	a, b := m.match("s", "a"), m.match("s", "b")
	if a[3].lane != "a" || b[3].lane != "b" {
		t.Errorf("match overwrote an earlier result: %v, %v", a, b)
	}
}

// path.Match knows the same star, as long as no slash is about.
func FuzzPattern(f *testing.F) {
	f.Add("a*b*c", "aXbYc")
	f.Add("*.created", ".created")
	f.Add("**a", "aa")
	f.Fuzz(func(t *testing.T, p, s string) {
		if !strings.Contains(p, "*") || strings.ContainsAny(p, `/?[\`) || strings.Contains(s, "/") {
			t.Skip()
		}
		want, err := path.Match(p, s)
		if err != nil {
			t.Skip()
		}
		if got := newPattern(p).matches(s); got != want {
			t.Errorf("%q matches %q = %v, want %v", p, s, got, want)
		}
	})
}

// One of n handlers wants the event: the others must cost nothing.
func BenchmarkMatch(b *testing.B) {
	for _, n := range []int{1, 100} {
		var consumers []Consumer
		for i := range n {
			consumers = append(consumers, Consumer{Lane: core.HandlerLane(fmt.Sprint(i)), Source: "s", Events: []string{fmt.Sprintf("type.%d", i)}})
		}
		m := newMatcher(consumers)
		b.Run(fmt.Sprintf("handlers=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m.match("s", "type.0")
			}
		})
	}
}
