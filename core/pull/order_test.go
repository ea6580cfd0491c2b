package pull_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/pull"
	"github.com/eventgateway/gateway/infra/test/lines"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/sqlite"
)

const (
	ordered    = core.Lane("queue/ordered")
	visibility = 5 * time.Second
	rest       = time.Second // between two looks
)

// A yard is a SQLite database with messages in lines, and Pullers over it, each as in a process of
// its own. The log has each receive and each answer of the consumers.
type yard struct {
	t     *testing.T
	conn  store.Conn
	store *store.Store
	rules core.LineRules
	log   lines.Log
	ids   *core.IDs

	beside    bool // a consumer waits for its next messages while it works on others
	ctx       context.Context
	cancel    context.CancelFunc
	consumers sync.WaitGroup
	pullers   []*pull.Puller
}

// inYard calls play in a bubble of virtual time.
func inYard(t *testing.T, rules core.LineRules, play func(*yard)) {
	path := filepath.Join(t.TempDir(), "gateway.db")
	synctest.Test(t, func(t *testing.T) {
		conn, err := sqlite.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		y := &yard{t: t, conn: conn, rules: rules, ids: core.NewIDs(core.SystemClock)}
		y.store = store.New(conn, store.SQLite, core.SystemClock)
		defer y.store.Close()
		if err := y.store.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		y.ctx, y.cancel = context.WithCancel(t.Context())
		play(y)
		y.cancel()
		y.consumers.Wait()
		for _, p := range y.pullers {
			p.Close()
		}
	})
}

// accept stores n messages of some keys, the keys in turn.
func (y *yard) accept(n, keys, attempts int) (ids []core.ID) {
	y.t.Helper()
	arrivals := make([]core.Arrival, n)
	for i := range arrivals {
		key := fmt.Sprint("key ", i%keys)
		job := core.NewJob{ID: y.ids.Next(), Lane: ordered, MaxAttempts: attempts, Line: core.Line{Key: key, Limit: y.rules.Limit}}
		arrivals[i] = core.Arrival{
			Event: core.Event{ID: y.ids.Next(), Source: "shop", Payload: []byte("{}"), CreatedAt: time.Now()},
			Jobs:  []core.NewJob{job},
		}
		ids = append(ids, job.ID)
		y.log.Add(lines.Entry{Kind: lines.Stored, Key: key, Job: string(job.ID)})
	}
	if _, err := y.store.AcceptAll(y.t.Context(), arrivals); err != nil {
		y.t.Fatal(err)
	}
	return ids
}

// puller makes a Puller. It has no bell, so it learns of the work of others by looks only.
func (y *yard) puller(rules core.LineRules) *pull.Puller {
	p := pull.New(pull.Deps{
		Worklist: store.New(y.conn, store.SQLite, core.SystemClock),
		Clock:    core.SystemClock,
		Observe: func(f core.Fact) {
			if f, ok := f.(core.Troubled); ok {
				y.t.Errorf("%s: %v", f.Doing, f.Err)
			}
		},
		Rest: rest,
	}, []pull.Queue{{Name: ordered.Queue(), Visibility: visibility, Lines: rules}})
	y.pullers = append(y.pullers, p)
	return p
}

// An answer is the act of a consumer on a message.
type answer int

const (
	acks  answer = iota
	nacks        // with a delay of up to a second
	drops        // it does not answer, so the lease ends
)

// consume runs a consumer until the yard ends.
func (y *yard) consume(p *pull.Puller, batch int, each time.Duration, choose func(core.TakenJob) answer) {
	y.consumers.Go(func() {
		for y.ctx.Err() == nil {
			messages, err := p.Receive(y.ctx, pull.Request{Queue: ordered.Queue(), N: batch, Wait: pull.MaxWait})
			if err != nil && y.ctx.Err() == nil {
				y.t.Errorf("Receive: %v", err)
			}
			for _, m := range messages {
				y.log.Add(lines.Entry{Kind: lines.Begun, Key: m.Line, Job: string(m.ID), Attempt: m.Attempt})
			}
			work := func() {
				for _, m := range messages {
					time.Sleep(each)
					y.answer(p, m, choose(m))
				}
			}
			if y.beside {
				y.consumers.Go(work)
			} else {
				work()
			}
		}
	})
}

// answer answers a message. The end is recorded before the answer, since the next message may be
// received before the call returns.
func (y *yard) answer(p *pull.Puller, m core.TakenJob, a answer) {
	e := lines.Entry{Kind: lines.Ended, Key: m.Line, Job: string(m.ID), Attempt: m.Attempt, Outcome: lines.Failed}
	if m.Attempt >= m.MaxAttempts {
		e.Outcome = lines.Dead
	}
	if a == acks {
		e.Outcome = lines.Completed
	}
	y.log.Add(e)
	var n int
	var err error
	switch refs := []string{pull.Receipt(m)}; a {
	case acks:
		n, err = p.Ack(context.Background(), ordered.Queue(), refs)
	case nacks:
		var dead int
		n, dead, err = p.Nack(context.Background(), ordered.Queue(), refs, rand.N(time.Second))
		n += dead
	case drops:
		return
	}
	if err != nil || n != 1 {
		y.t.Errorf("answer to message %s = %d, %v, want 1", m.ID, n, err)
	}
}

// settle waits until no message is due or held.
func (y *yard) settle() {
	y.t.Helper()
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		synctest.Wait()
		due, err := y.store.Due(y.t.Context(), []core.Lane{ordered})
		if err != nil {
			y.t.Fatal(err)
		}
		if due[ordered].DueAt.IsZero() {
			return
		}
		if time.Since(began) > time.Hour {
			y.t.Fatalf("messages are due after an hour: %+v", due)
		}
	}
}

// check reports the problems of the history.
func (y *yard) check() {
	y.t.Helper()
	problems := lines.Check(lines.Rules{Limit: y.rules.Limit, StopOnDead: y.rules.StopOnDead}, y.log.Entries())
	for i, p := range problems {
		if i == 10 {
			y.t.Errorf("and %d more", len(problems)-i)
			break
		}
		y.t.Error(p)
	}
}

// fickle nacks one message in eight, and lets the lease of one in twenty end.
func fickle(core.TakenJob) answer {
	switch n := rand.IntN(40); {
	case n < 5:
		return nacks
	case n < 7:
		return drops
	}
	return acks
}

func faithful(core.TakenJob) answer { return acks }

// TestOrder: the consumers of two processes keep the order of each key, or its limit, while
// messages are nacked and leases end.
func TestOrder(t *testing.T) {
	for _, limit := range []int{1, 3} {
		t.Run(fmt.Sprint("limit ", limit), func(t *testing.T) {
			inYard(t, core.LineRules{Limit: limit}, func(y *yard) {
				y.accept(200, 10, 6)
				for range 2 {
					p := y.puller(y.rules)
					for k := range 3 {
						y.consume(p, 1+4*k, time.Millisecond, fickle)
					}
				}
				time.Sleep(20 * time.Millisecond)
				y.accept(100, 10, 6)
				y.settle()
				y.check()
			})
		})
	}
}

// TestLineWithoutPauses: an ack or the death of a message wakes a consumer for the next message of
// the line. Looks alone would deliver one message a second.
func TestLineWithoutPauses(t *testing.T) {
	dies := func(m core.TakenJob) answer {
		if m.ID[len(m.ID)-1]%2 == 0 {
			return nacks
		}
		return acks
	}
	for _, c := range []struct {
		name   string
		limit  int
		choose func(core.TakenJob) answer
	}{{"acks", 1, faithful}, {"every other message dies", 1, dies}, {"a higher limit", 2, dies}} {
		t.Run(c.name, func(t *testing.T) {
			inYard(t, core.LineRules{Limit: c.limit}, func(y *yard) {
				const messages, each = 50, 10 * time.Millisecond
				y.accept(messages, 1, 1)
				began := time.Now()
				y.beside = true
				y.consume(y.puller(y.rules), 1, each, c.choose)
				y.settle()
				if took := time.Since(began); took > (messages+1)*each+100*time.Millisecond {
					y.t.Errorf("%d messages took %v, want %v", messages, took, messages*each)
				}
				y.check()
			})
		})
	}
}

// TestDeadMessageStopsItsLine: the messages of other lines go on.
func TestDeadMessageStopsItsLine(t *testing.T) {
	for _, how := range []answer{nacks, drops} {
		t.Run(fmt.Sprint(how), func(t *testing.T) {
			inYard(t, core.LineRules{Limit: 1, StopOnDead: true}, func(y *yard) {
				bad := y.accept(15, 3, 2)[7] // the third of five
				y.consume(y.puller(y.rules), 2, time.Millisecond, func(m core.TakenJob) answer {
					if m.ID == bad {
						return how
					}
					return acks
				})
				y.settle()
				y.check()
				page, err := y.store.Lines(y.t.Context(), ordered, "", 0)
				if err != nil || len(page.Items) != 1 || page.Items[0].StoppedBy != bad || page.Items[0].Waiting != 2 {
					y.t.Errorf("lines %+v, %v, want one that message %s stops with two behind it", page.Items, err, bad)
				}
				y.log.Add(lines.Entry{Kind: lines.Skipped, Key: "key 1", Job: string(bad)})
				if found, err := y.store.Skip(y.t.Context(), time.Now(), bad); err != nil || !found {
					y.t.Errorf("Skip = %v, %v, want true", found, err)
				}
				y.settle()
				y.check()
			})
		})
	}
}

// TestLinesAreTakenAway: the messages that wait in the lines of a queue without lines come, since
// an ack admits the next one all the same.
func TestLinesAreTakenAway(t *testing.T) {
	inYard(t, core.LineRules{Limit: 1}, func(y *yard) {
		y.accept(30, 1, 6)
		y.consume(y.puller(core.LineRules{}), 10, time.Millisecond, faithful)
		y.settle()
		page, err := y.store.Lines(y.t.Context(), ordered, "", 0)
		if err != nil || len(page.Items) > 0 {
			y.t.Errorf("lines %+v, %v, want none", page.Items, err)
		}
		y.check()
	})
}
