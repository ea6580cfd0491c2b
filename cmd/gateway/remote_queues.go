package main

import (
	"context"
	"fmt"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
)

// remoteQueues are the queues of a server.
type remoteQueues struct{ *client }

func (q remoteQueues) List(ctx context.Context) ([]manage.Listed, error) {
	var reply wire.Queues
	if err := q.get(ctx, &reply, nil, "queues"); err != nil {
		return nil, err
	}
	queues := make([]manage.Listed, len(reply.Queues))
	for i, record := range reply.Queues {
		var err error
		if queues[i], err = record.Core(); err != nil {
			return nil, q.unread(err)
		}
	}
	return queues, nil
}

func (q remoteQueues) Queue(ctx context.Context, name string) (manage.Listed, error) {
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
func (q remoteQueues) missing(ctx context.Context, name string) error {
	left, err := remoteJobs(q).List(ctx, core.JobFilter{Lane: core.QueueLane(name), Limit: 1})
	if err != nil || len(left.Items) == 0 {
		return manage.ErrQueue
	}
	return core.Refuse(core.NotFound, "queue %s is not configured there any more; its messages lists: gateway jobs list --handler queue/%s; and deletes: gateway queues drain %s --force", name, name, name)
}

func (q remoteQueues) Peek(ctx context.Context, name string, limit int) ([]core.TakenJob, error) {
	var reply wire.Messages
	if err := q.get(ctx, &reply, parameters("limit", atMost(limit)), "queues", name, "peek"); err != nil {
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

// maxMessages is the largest number of messages, with their payloads, in one reply of a
// server.
const maxMessages = 100

// DeadLetters reads pages from the server until one page here is full.
func (q remoteQueues) DeadLetters(ctx context.Context, name string, after core.ID, limit int) (page core.Page[core.TakenJob], _ error) {
	if limit == 0 {
		limit = core.DefaultPage
	}
	for page.More = true; page.More && len(page.Items) < limit; {
		var reply wire.DeadLetters
		query := parameters("after", string(after), "limit", atMost(min(limit-len(page.Items), maxMessages)))
		if err := q.get(ctx, &reply, query, "queues", name, "dlq"); err != nil {
			return page, err
		}
		var err error
		if page.Items, err = messagesFrom(page.Items, reply.Messages); err != nil {
			return page, err
		}
		page.More = reply.More && len(reply.Messages) > 0
		if page.More {
			after = page.Items[len(page.Items)-1].ID
		}
	}
	return page, nil
}

func (q remoteQueues) Retry(ctx context.Context, name string, id core.ID) (int, error) {
	body := map[string]core.ID{}
	if id != "" {
		body["id"] = id
	}
	var reply wire.Retried
	err := q.post(ctx, &reply, body, "queues", name, "retry")
	return reply.Retried, err
}

func (q remoteQueues) Drain(ctx context.Context, name string) (int, error) {
	var reply wire.Drained
	err := q.post(ctx, &reply, nil, "queues", name, "drain")
	return reply.Drained, err
}
