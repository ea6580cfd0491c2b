package preview

import (
	"strconv"
	"testing"

	"github.com/eventgateway/gateway/core"
)

// TestKeysAreBounded: the result says that there are more keys than it remembers, and these take no memory.
func TestKeysAreBounded(t *testing.T) {
	n := 0
	s := Side{Decide: func(core.Event) Outcome {
		n++
		return Outcome{Jobs: []Job{{NewJob: core.NewJob{Lane: "handler/mail", Key: strconv.Itoa(n / 2)}}}}
	}, Consumers: []Consumer{{Lane: "handler/mail"}}}
	c := New(s, s, Options{})
	c.maxKeys = 10
	for range 50 {
		c.Add(core.Event{})
	}
	if r := c.Report(); !r.Forgotten || len(c.seen[Before]) != 10 || len(c.seen[After]) != 10 {
		t.Errorf("%d and %d keys, forgotten %v; want 10 each", len(c.seen[Before]), len(c.seen[After]), r.Forgotten)
	}
}
