package web

import (
	"net/http"

	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/manage"
)

// Bounds of a page of messages, which come with their payloads.
const (
	defaultMessages = 10
	maxMessages     = 100
)

func (q *queueRoutes) list(w http.ResponseWriter, r *http.Request) error {
	queues, err := q.Manager.List(r.Context())
	if err != nil {
		return err
	}
	body := queuesBody{make([]queueBody, len(queues))}
	for i, queue := range queues {
		body.Queues[i] = queueOf(queue)
	}
	writeJSON(w, http.StatusOK, body)
	return nil
}

func (q *queueRoutes) peek(w http.ResponseWriter, r *http.Request) error {
	query, err := queryOf(r)
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

func (q *queueRoutes) deadLetters(w http.ResponseWriter, r *http.Request) error {
	query, err := queryOf(r)
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

func (q *queueRoutes) retry(w http.ResponseWriter, r *http.Request) error {
	body, err := q.optional(w, r, "id")
	if err != nil {
		return err
	}
	id, err := body.id("id")
	if err != nil {
		return err
	}
	n, err := q.Manager.Retry(r.Context(), segment(r, "name"), id)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, retriedBody{n})
	return nil
}

func (q *queueRoutes) drain(w http.ResponseWriter, r *http.Request) error {
	if _, err := q.optional(w, r); err != nil {
		return err
	}
	n, err := q.Manager.Drain(r.Context(), segment(r, "name"))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, drainedBody{n})
	return nil
}

type queuesBody struct {
	Queues []queueBody `json:"queues"`
}

type queueBody struct {
	Name       string   `json:"name"`
	Source     string   `json:"source"`
	Events     []string `json:"events"`
	Visibility string   `json:"visibility_timeout"`
	Depth      int      `json:"depth"`
	Pending    int      `json:"pending"`
	Processing int      `json:"processing"`
	Dead       int      `json:"dead"`
}

func queueOf(q manage.Listed) queueBody {
	return queueBody{
		Name:       q.Name,
		Source:     q.Source,
		Events:     append([]string{}, q.Events...), // a list also if it is empty
		Visibility: config.Duration{Duration: q.Visibility}.String(),
		Depth:      q.Depth(),
		Pending:    q.Pending,
		Processing: q.Processing,
		Dead:       q.Dead,
	}
}

type retriedBody struct {
	Retried int `json:"retried"`
}

type drainedBody struct {
	Drained int `json:"drained"`
}
