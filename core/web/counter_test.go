package web_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/pull"
)

// counter is two queues: work, which is open, and locked, whose key is "k3y" and which
// is empty. It knows the messages whose ids begin with "known". A known message with "spent" in
// its id is dead after a nack. It records the calls that it gets.
type counter struct {
	store *store                      // both have the same state
	wait  func(context.Context) error // if set, called before messages are returned

	mu     sync.Mutex
	calls  []string
	buried []core.ID

	payload []byte // of each of many messages, instead of messages of all sorts
}

var noon = time.Date(2026, 11, 20, 12, 0, 0, 7e6, time.UTC)

func messageOf(n int, e core.Event) core.TakenJob {
	e.ID, e.Type = core.ID(fmt.Sprintf("01E%023d", n)), "order.created"
	job := core.Job{
		ID: core.ID(fmt.Sprintf("01J%023d", n)), EventID: e.ID, Attempt: n, MaxAttempts: core.Unlimited,
		Lease: core.Lease(fmt.Sprintf("lease-%d", n)), CreatedAt: noon,
	}
	return core.TakenJob{Job: job, Event: e}
}

// messages are of all sorts.
func messages() []core.TakenJob {
	return []core.TakenJob{
		messageOf(1, core.Event{Payload: []byte(`{"b": 1.0, "a":"<&>", "a":12345678901234567890}`), Headers: map[string]string{"ce-id": "<7>"}}),
		messageOf(2, core.Event{Payload: []byte("a=1&b=\"<\""), ContentType: "application/x-www-form-urlencoded"}),
		messageOf(3, core.Event{}),
		messageOf(4, core.Event{Payload: []byte(" [1,\n 2] ")}),
	}
}

func (c *counter) say(format string, args ...any) error {
	c.mu.Lock()
	c.calls = append(c.calls, fmt.Sprintf(format, args...))
	c.mu.Unlock()
	return c.store.moody(context.Background())
}

func (c *counter) Receive(ctx context.Context, r pull.Request) ([]core.TakenJob, error) {
	queue, n, wait := r.Queue, r.N, r.Wait
	if err := c.say("receive %s %d %v", queue, n, wait); err != nil {
		return nil, err
	}
	if c.wait != nil {
		if err := c.wait(ctx); err != nil {
			return nil, err
		}
	}
	if queue != "work" {
		return nil, nil
	}
	if c.payload != nil {
		return c.fill(ctx, r)
	}
	left := slices.DeleteFunc(messages(), func(m core.TakenJob) bool { return slices.Contains(c.buried, m.ID) })
	return left[:min(n, len(left))], nil
}

// OnHold holds the queue locked.
func (c *counter) OnHold(_ context.Context, queue string) bool { return queue == "locked" }

// fill returns as many messages as the room has bytes for.
func (c *counter) fill(ctx context.Context, r pull.Request) ([]core.TakenJob, error) {
	size := len(c.payload) + 1<<10
	timeout := time.After(r.Wait)
	for {
		granted, full := r.Room.Reserve(size, min(r.N*size, 8<<20))
		if full == nil {
			n := max(1, granted/size)
			r.Room.Hold(n * size)
			return c.largeOnes(n), nil
		}
		if r.Wait == 0 && full.Err != nil {
			return nil, full.Err
		}
		select {
		case <-full.Freed:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timeout:
			return nil, full.Err
		}
	}
}

func (c *counter) largeOnes(n int) (all []core.TakenJob) {
	for i := range n {
		all = append(all, messageOf(i+1, core.Event{Payload: c.payload}))
	}
	return all
}

func (c *counter) Return(_ context.Context, queue string, messages []core.TakenJob) {
	if len(messages) > 0 {
		_ = c.say("return %s %d", queue, len(messages))
	}
}

// Bury takes the messages away for good.
func (c *counter) Bury(_ context.Context, queue string, messages []core.TakenJob, why string) error {
	c.mu.Lock()
	for _, m := range messages {
		c.buried = append(c.buried, m.ID)
	}
	c.mu.Unlock()
	kind, _, _ := strings.Cut(why, ":")
	return c.say("bury %s %d %s", queue, len(messages), kind)
}

func (c *counter) Ack(ctx context.Context, queue string, ids []string) (int, error) {
	n, _ := known(ids)
	return n, c.say("ack %s %d %v", queue, len(ids), ctx.Err())
}

func (c *counter) Nack(ctx context.Context, queue string, ids []string, delay time.Duration) (retried, dead int, err error) {
	n, spent := known(ids)
	return n - spent, spent, c.say("nack %s %d %v %v", queue, len(ids), delay, ctx.Err())
}

func (c *counter) Extend(ctx context.Context, queue string, ids []string, visibility time.Duration) (int, error) {
	n, _ := known(ids)
	return n, c.say("extend %s %d %v %v", queue, len(ids), visibility, ctx.Err())
}

func known(ids []string) (n, spent int) {
	for _, id := range ids {
		if strings.HasPrefix(id, "known") {
			n++
			spent += strings.Count(id, "spent")
		}
	}
	return n, spent
}

func (c *counter) List(context.Context) ([]manage.Listed, error) {
	return []manage.Listed{
		{Queue: manage.Queue{Name: "locked", Source: "app", Visibility: 1500 * time.Millisecond}},
		{
			Queue: manage.Queue{Name: "work", Source: "shop", Events: []string{"order.*", "a"}, Visibility: time.Minute, MaxAttempts: 3},
			Tally: core.Tally{Pending: 3, Processing: 2}, Ended: core.Ended{Dead: 1},
		},
	}, c.say("list")
}

func (c *counter) find(queue string) error {
	if queue != "work" {
		return manage.ErrQueue
	}
	return nil
}

func (c *counter) Peek(_ context.Context, queue string, limit int) ([]core.TakenJob, error) {
	if err := c.find(queue); err != nil {
		return nil, err
	}
	if c.payload != nil {
		return c.largeOnes(4), c.say("peek %s %d", queue, limit) // as many as a store returns at most
	}
	return messages()[:1], c.say("peek %s %d", queue, limit)
}

func (c *counter) DeadLetters(_ context.Context, queue string, after core.ID, limit int) (core.Page[core.TakenJob], error) {
	if err := c.find(queue); err != nil {
		return core.Page[core.TakenJob]{}, err
	}
	if c.payload != nil {
		return core.Page[core.TakenJob]{Items: c.largeOnes(4), More: true}, nil
	}
	m := messages()[1]
	m.Status, m.MaxAttempts, m.LastError, m.FinishedAt = core.Dead, 2, "nacked", noon.Add(time.Hour)
	return core.Page[core.TakenJob]{Items: []core.TakenJob{m}, More: after == ""}, c.say("dlq %s %q %d", queue, after, limit)
}

func (c *counter) Retry(_ context.Context, queue string, id core.ID) (manage.Retried, error) {
	if queue == "long" {
		return manage.Retried{Jobs: 5, Going: "01J00000000000000000000008"}, nil
	}
	if err := c.find(queue); err != nil {
		return manage.Retried{}, err
	}
	if strings.HasSuffix(string(id), "9") {
		return manage.Retried{}, core.Refuse(core.NotFound, "job not found")
	}
	return manage.Retried{Jobs: 1}, c.say("retry %s %q", queue, id)
}

func (c *counter) Drain(_ context.Context, queue string) (int, error) {
	if err := c.find(queue); err != nil {
		return 0, err
	}
	return 7, c.say("drain %s", queue)
}
