package web

import (
	"net/http"

	"github.com/eventgateway/gateway/core/wire"
)

// Bounds of a page of messages, which come with their payloads.
const (
	defaultMessages = 10
	maxMessages     = 100
)

// list answers with all queues and their numbers.
func (q *queueRoutes) list(w http.ResponseWriter, r *http.Request) error {
	queues, err := q.Manager.List(r.Context())
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, wire.Queues{Queues: wire.List(queues, wire.QueueOf)})
	return nil
}

// peek answers with the first messages of a queue, without taking them.
func (q *queueRoutes) peek(w http.ResponseWriter, r *http.Request) error {
	query, err := queryOf(r, "limit")
	if err != nil {
		return err
	}
	limit, err := query.number("limit", defaultMessages, 1, maxMessages)
	if err != nil {
		return err
	}
	messages, err := q.Manager.Peek(r.Context(), segment(r, "name"), limit)
	if err != nil {
		return err
	}
	writeMessages(w, messages, shown, "")
	return nil
}

// deadLetters answers with a page of the dead messages of a queue.
func (q *queueRoutes) deadLetters(w http.ResponseWriter, r *http.Request) error {
	query, err := queryOf(r, "limit", "after")
	if err != nil {
		return err
	}
	limit, err := query.number("limit", defaultMessages, 1, maxMessages)
	if err != nil {
		return err
	}
	after, err := query.id("after")
	if err != nil {
		return err
	}
	page, err := q.Manager.DeadLetters(r.Context(), segment(r, "name"), after, limit)
	if err != nil {
		return err
	}
	more := `,"has_more":false`
	if page.More {
		more = `,"has_more":true`
	}
	writeMessages(w, page.Items, shown, more)
	return nil
}

// retry makes one dead message visible, or all if the body names none.
func (q *queueRoutes) retry(w http.ResponseWriter, r *http.Request) error {
	body, err := q.optional(w, r, "id")
	if err != nil {
		return err
	}
	id, err := body.id("id")
	if err != nil {
		return err
	}
	unhurried(w)
	retried, err := q.Manager.Retry(r.Context(), segment(r, "name"), id)
	if err != nil {
		return err
	}
	writeRetried(w, retried)
	return nil
}

// drain deletes the messages of a queue, however many there are.
func (q *queueRoutes) drain(w http.ResponseWriter, r *http.Request) error {
	if _, err := q.optional(w, r); err != nil {
		return err
	}
	unhurried(w)
	n, err := q.Manager.Drain(r.Context(), segment(r, "name"))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, wire.Drained{Drained: n})
	return nil
}
