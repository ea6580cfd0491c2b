package remote

import (
	"context"
	"fmt"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
)

// Queues are the queues of a server.
type Queues struct{ c *Client }

// Queues returns the queues of a server.
func (c *Client) Queues() Queues { return Queues{c} }

// List reads the configured queues with their counts of messages: GET /api/queues.
func (q Queues) List(ctx context.Context) ([]manage.Listed, error) {
	var reply wire.Queues
	if err := q.c.get(ctx, &reply, nil, "queues"); err != nil {
		return nil, err
	}
	queues := make([]manage.Listed, len(reply.Queues))
	for i, record := range reply.Queues {
		var err error
		if queues[i], err = record.Core(); err != nil {
			return nil, q.c.unread(err)
		}
	}
	return queues, nil
}

// Queue reads one queue. The API has no request for that, so Queue looks through the list. It
// returns [manage.ErrQueue] for an unknown queue, and a [LeftQueueError] for one that left the
// configuration and has messages.
func (q Queues) Queue(ctx context.Context, name string) (manage.Listed, error) {
	queues, err := q.List(ctx)
	if err != nil {
		return manage.Listed{}, err
	}
	for _, l := range queues {
		if l.Name == name {
			return l, nil
		}
	}
	return manage.Listed{}, q.missing(ctx, name)
}

// missing returns why a queue is not listed. A server does not return the number of messages
// of a queue that is no longer configured.
func (q Queues) missing(ctx context.Context, name string) error {
	// One job is enough to know that messages are left.
	left, err := Jobs(q).List(ctx, core.JobFilter{Lane: core.QueueLane(name), Limit: 1})
	if err != nil || len(left.Items) == 0 {
		return manage.ErrQueue
	}
	return &LeftQueueError{name}
}

// A LeftQueueError is the error for a queue that the server's configuration has no more, while
// its messages are still stored. They can be listed as jobs, and be drained.
type LeftQueueError struct{ Queue string }

func (e *LeftQueueError) Error() string {
	return "queue " + e.Queue + " is not configured there any more"
}

// Peek reads the next visible messages, and leaves them there. A server returns at most
// [MaxMessages]: GET /api/queues/{name}/peek.
func (q Queues) Peek(ctx context.Context, name string, limit int) ([]core.TakenJob, error) {
	var reply wire.Messages
	if err := q.c.get(ctx, &reply, parameters("limit", atMost(limit)), "queues", name, "peek"); err != nil {
		return nil, err
	}
	return messagesFrom(nil, reply.Messages)
}

// messagesFrom appends the messages of a reply to all.
func messagesFrom(all []core.TakenJob, records []wire.Message) ([]core.TakenJob, error) {
	for _, record := range records {
		m, err := record.Core()
		if err != nil {
			return all, fmt.Errorf("message %s: %w", record.ID, err)
		}
		all = append(all, m)
	}
	return all, nil
}

// MaxMessages is the largest number of messages, with their payloads, in one reply of a
// server.
const MaxMessages = 100

// DeadLetters reads pages from the server until one page here is full.
func (q Queues) DeadLetters(ctx context.Context, name string, after core.ID, limit int) (page core.Page[core.TakenJob], _ error) {
	if limit == 0 {
		limit = core.DefaultPage
	}
	// The server's pages are smaller than a page here, since each message has its payload. The
	// loop hides that.
	for page.More = true; page.More && len(page.Items) < limit; {
		var reply wire.DeadLetters
		query := parameters("after", string(after), "limit", atMost(min(limit-len(page.Items), MaxMessages)))
		if err := q.c.get(ctx, &reply, query, "queues", name, "dlq"); err != nil {
			return page, err
		}
		var err error
		if page.Items, err = messagesFrom(page.Items, reply.Messages); err != nil {
			return page, err
		}
		// A page without messages that promises more would never end the loop.
		page.More = reply.More && len(reply.Messages) > 0
		if page.More {
			after = page.Items[len(page.Items)-1].ID
		}
	}
	return page, nil
}

// Retry makes the dead messages of a queue visible again, or one message if id is not "". It
// returns their number: POST /api/queues/{name}/retry.
func (q Queues) Retry(ctx context.Context, name string, id core.ID) (manage.Retried, error) {
	body := map[string]core.ID{}
	if id != "" {
		body["id"] = id
	}
	var reply wire.Retried
	err := q.c.post(ctx, &reply, body, "queues", name, "retry")
	return manage.Retried{Jobs: reply.Retried, Going: core.ID(reply.Operation)}, err
}

// Drain deletes all messages of a queue and returns their number: POST
// /api/queues/{name}/drain.
func (q Queues) Drain(ctx context.Context, name string) (int, error) {
	var reply wire.Drained
	err := q.c.post(ctx, &reply, nil, "queues", name, "drain")
	return reply.Drained, err
}
