package web

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/pull"
)

// A Puller serves the consumers of queues; see [pull.Puller].
type Puller interface {
	Receive(ctx context.Context, r pull.Request) ([]core.TakenJob, error)
	OnHold(ctx context.Context, queue string) bool
	Return(ctx context.Context, queue string, messages []core.TakenJob)
	Bury(ctx context.Context, queue string, messages []core.TakenJob, why string) error
	Ack(ctx context.Context, queue string, ids []string) (int, error)
	Nack(ctx context.Context, queue string, ids []string, delay time.Duration) (retried, dead int, err error)
	Extend(ctx context.Context, queue string, ids []string, visibility time.Duration) (int, error)
}

// A QueueManager serves the operators of queues; see [manage.Queues].
type QueueManager interface {
	List(ctx context.Context) ([]manage.Listed, error)
	Peek(ctx context.Context, queue string, limit int) ([]core.TakenJob, error)
	DeadLetters(ctx context.Context, queue string, after core.ID, limit int) (core.Page[core.TakenJob], error)
	Retry(ctx context.Context, queue string, id core.ID) (manage.Retried, error)
	Drain(ctx context.Context, queue string) (int, error)
}

// QueuesOptions are the dependencies of the routes of queues.
type QueuesOptions struct {
	Puller  Puller
	Manager QueueManager

	// Tokens are the tokens of the API; none leaves the routes of operators open.
	Tokens []Token

	// Keys are the bearer keys of the consumers, by queue; each of them opens its queue, and
	// none leaves it open. Every queue is in it.
	Keys map[string][]string

	// MaxReply bounds a reply with messages for a consumer. It counts the bytes of the
	// reply as a JSON string, which is how a function sends it. Messages beyond the bound
	// are released, so they lose no attempt. A single message above the bound becomes dead,
	// because it would block all messages after it. Zero is no bound.
	MaxReply int
}

// Queues returns the routes of queues, for consumers and for operators.
func Queues(o QueuesOptions) Piece {
	return func(r chi.Router, d *Door) {
		q := &queueRoutes{d, o, newKeyring(o.Tokens), map[string]*bearer{}}
		for name, keys := range o.Keys {
			q.keys[name] = newBearer(keys)
		}
		r.Get("/api/queues/{name}/messages", d.polling(q.receive))
		r.Post("/api/queues/{name}/ack", d.receiving(&d.budgets.intake, q.ack))
		r.Post("/api/queues/{name}/nack", d.receiving(&d.budgets.intake, q.nack))
		r.Post("/api/queues/{name}/extend", d.receiving(&d.budgets.intake, q.extend))

		r.Get("/api/queues", d.viewing(q.token, q.charged(listBytes, bare(q.list))))
		r.Get("/api/queues/{name}/peek", d.viewing(q.token, q.charged(d.pageBytes(), q.peek)))
		r.Get("/api/queues/{name}/dlq", d.viewing(q.token, q.charged(d.pageBytes(), q.deadLetters)))
		r.Post("/api/queues/{name}/retry", d.changing(q.token, q.retry))
		r.Post("/api/queues/{name}/drain", d.changing(q.token, q.drain))
	}
}

// queueRoutes serve the consumers and the operators of queues. The maps never change.
type queueRoutes struct {
	*Door
	QueuesOptions
	token *keyring
	keys  map[string]*bearer
}

// consumer returns the queue of a request that has the queue's key, or a token with the role of
// the route. An unknown queue has no key to check.
func (q *queueRoutes) consumer(w http.ResponseWriter, r *http.Request) (string, error) {
	name := segment(r, "name")
	key, known := q.keys[name]
	if !known {
		return "", pull.ErrQueue
	}
	if key != nil && key.find(r) >= 0 {
		return name, nil
	}
	// The role counts also if the queue is open: a token never does more than its role says. A
	// token with all rights has no name, and opens only queues without a key.
	if token, ok := q.token.named(r); ok {
		return name, token.allows(w, roles[Route{r.Method, r.Pattern}])
	}
	return name, key.check(w, r)
}

// The ranges of a consumer's parameters, with the words that describe them.
var (
	waits        = span{0, pull.MaxWait, "a duration from 0s to 30s, such as 20s"}
	delays       = span{0, pull.MaxVisibility, "a duration from 0s to 7d, such as 10s"}
	visibilities = span{pull.MinVisibility, pull.MaxVisibility, "a duration from 1ms to 7d, such as 60s"}
)

// receive answers with messages, at once or when some arrive within the wait.
func (q *queueRoutes) receive(w http.ResponseWriter, r *http.Request) error {
	queue, err := q.consumer(w, r)
	if err != nil {
		return err
	}
	query, err := queryOf(r, "wait", "batch")
	if err != nil {
		return err
	}
	wait, err := query.duration("wait", waits)
	if err != nil {
		return err
	}
	n, err := query.number("batch", 1, 1, pull.MaxBatch)
	if err != nil {
		return err
	}
	// Everything that may be refused for its content was checked before the poll counts.
	rec := recordOf(w)
	if full := q.Counts.polls.enter(queue, rec.network, len(q.keys) == 1); full != nil {
		return full
	}
	defer q.Counts.polls.leave(queue, rec.network)
	p := q.reply(w, r, rec)
	defer p.room.close()
	return q.hand(p, r, pull.Request{Queue: queue, N: n, Wait: inTime(r.Context(), wait), Room: p.room})
}

// handTime is how long before its deadline a request stops waiting for messages, so that it
// can send or release them.
const handTime = 3 * time.Second

// inTime returns the part of a wait for which there is time.
func inTime(ctx context.Context, wait time.Duration) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return wait
	}
	return max(0, min(wait, time.Until(deadline)-handTime))
}

// hand receives messages and sends them to the consumer. If the consumer has disconnected
// before, hand releases them; otherwise they would be invisible for nothing. Once the reply
// is on its way, its arrival is unknown: the visibility timeout decides, and the attempt
// counts. So a message that crashes its consumers becomes dead in the end.
func (q *queueRoutes) hand(w *reply, r *http.Request, ask pull.Request) error {
	end := time.Now().Add(ask.Wait)
	// More than one pass is needed only if all messages of a pass were too large for any reply.
	for {
		messages, err := q.Puller.Receive(r.Context(), ask)
		if err != nil {
			return err
		}
		// The consumer disconnected while the messages were being taken.
		if err := r.Context().Err(); err != nil {
			q.Puller.Return(r.Context(), ask.Queue, messages)
			return err
		}
		sendable, err := q.trim(r.Context(), ask.Queue, messages)
		if err != nil {
			return err
		}
		if len(sendable) > 0 || len(messages) == 0 {
			more := ""
			if len(sendable) == 0 && q.Puller.OnHold(r.Context(), ask.Queue) {
				more = `,"held":true`
			}
			writeMessages(w, sendable, handed, more)
			return nil
		}
		w.room.Hold(0)
		ask.Wait = max(0, time.Until(end)) // all were too large; smaller ones may follow
	}
}

// trim releases the messages that do not fit into this reply. It makes messages dead that
// fit into no reply.
func (q *queueRoutes) trim(ctx context.Context, queue string, messages []core.TakenJob) ([]core.TakenJob, error) {
	if q.MaxReply == 0 || len(messages) == 0 {
		return messages, nil
	}
	sendable, large := sift(messages, q.MaxReply)
	// First the messages that fit into no reply are set apart, and then the reply is filled with as
	// many of the others as fit, in their order.
	n := fitting(sendable, handed, q.MaxReply)
	q.Puller.Return(ctx, queue, sendable[n:])
	if len(large) == 0 {
		return sendable[:n], nil
	}
	why := fmt.Sprintf("too large: as a text in JSON it has more than the %d bytes that a reply from here may have", q.MaxReply)
	err := q.Puller.Bury(ctx, queue, large, why)
	if n > 0 {
		err = nil // they become due again, and there are messages to send
	}
	return sendable[:n], err
}

// ack completes messages. A message that is no longer the consumer's is not counted.
func (q *queueRoutes) ack(w http.ResponseWriter, r *http.Request) error {
	m, err := q.mention(w, r)
	if err != nil {
		return err
	}
	n, err := q.Puller.Ack(m.ctx, m.queue, m.ids)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, ackedBody{n})
	return nil
}

// nack gives messages back, to be visible again after a delay. A message without attempts left
// becomes dead.
func (q *queueRoutes) nack(w http.ResponseWriter, r *http.Request) error {
	m, err := q.mention(w, r, "delay")
	if err != nil {
		return err
	}
	delay, err := m.duration("delay", delays)
	if err != nil {
		return err
	}
	retried, dead, err := q.Puller.Nack(m.ctx, m.queue, m.ids, delay)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, nackedBody{retried, dead})
	return nil
}

// extend keeps messages invisible for longer, from now on.
func (q *queueRoutes) extend(w http.ResponseWriter, r *http.Request) error {
	m, err := q.mention(w, r, "visibility_timeout")
	if err != nil {
		return err
	}
	visibility, err := m.duration("visibility_timeout", visibilities)
	if err != nil {
		return err
	}
	n, err := q.Puller.Extend(m.ctx, m.queue, m.ids, visibility)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, extendedBody{n})
	return nil
}

// A mention is a consumer's request about messages that it received. It is executed also if
// the consumer has disconnected, since the consumer cannot know how far the request got.
type mention struct {
	fields
	ctx   context.Context
	queue string
	ids   []string
}

// mention reads a request that may have the known fields beside the ids.
func (q *queueRoutes) mention(w http.ResponseWriter, r *http.Request, known ...string) (m mention, err error) {
	m.ctx = context.WithoutCancel(r.Context())
	if m.queue, err = q.consumer(w, r); err != nil {
		return m, err
	}
	known = append([]string{"ids"}, known...)
	if err := unasked(r, known); err != nil {
		return m, err
	}
	body, err := q.body(w, r)
	if err != nil {
		return m, err
	}
	if m.fields, err = fieldsOf(body, known...); err != nil {
		return m, err
	}
	m.ids, err = m.texts("ids", pull.MaxRefs)
	return m, err
}

// The replies to consumers count the messages that changed. An id that is stale or unknown is
// left out of the count and is no error: see [core.Counter].
type ackedBody struct {
	Acked int `json:"acked"`
}

type nackedBody struct {
	Retried int `json:"retried"`
	Dead    int `json:"dead"`
}

type extendedBody struct {
	Extended int `json:"extended"`
}
