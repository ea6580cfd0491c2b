//go:build linux

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// TestQueueCrashes kills the gateway at every step of a message, after the commit and before
// the answer is read.
func TestQueueCrashes(t *testing.T) {
	t.Parallel()
	for _, tt := range everyPlace() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := receiver.New(t)
			g := newGatewayOn(t, tt.on(t), queueConfig, r)
			g.start()
			hangUp(t, g)
			crashAtReceive(t, g)
			crashWhileHeld(t, g)
			crashAtAck(t, g)
			died := crashAtNack(t, g)
			crashAtTheLastAttempt(t, g, r)
			crashAtDrain(t, g)
			alerted(t, r, died)
			g.awaitIdle(outageLease + 10*time.Second)
			g.stop()
			g.ledger().sound()
		})
	}
}

// crash kills the gateway and starts it again.
func (g *gateway) crash() {
	g.t.Helper()
	g.kill()
	g.start()
}

// mutter makes a request, and never reads the answer.
func (q queue) mutter(method, path, body string) net.Conn {
	q.g.t.Helper()
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", q.g.port))
	if err != nil {
		q.g.t.Fatal(err)
	}
	q.g.t.Cleanup(func() { c.Close() })
	_, err = fmt.Fprintf(c, "%s /api/queues/%s%s HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s",
		method, q.name, path, q.key, len(body), body)
	if err != nil {
		q.g.t.Fatal(err)
	}
	return c
}

// stored waits until the list of queues shows a state of this queue.
func (q queue) stored(what string, is func(listedQueue) bool) {
	q.g.t.Helper()
	wait.For(q.g.t, 10*time.Second, what, func() bool { return is(q.listed()) })
}

// hangUp: a message goes to a connected consumer, and not to consumers that closed their
// connection while they waited.
func hangUp(t *testing.T, g *gateway) {
	q := of(g, "plain")
	for range 5 {
		c := q.mutter(http.MethodGet, "/messages?wait=30s", "")
		linger(0.1, 0.2)
		c.Close()
	}
	linger(0.3, 0.3)
	put := q.put(`1`)
	m := q.await(1)[0]
	if m.EventID != put || m.Attempt != 1 {
		t.Errorf("received %+v, want the first attempt of event %s", m, put)
	}
	q.ack(m.Receipt)
}

// crashAtReceive: a message whose answer was lost is in flight, also after a restart of the
// gateway. It is visible again after its visibility timeout.
func crashAtReceive(t *testing.T, g *gateway) {
	q := of(g, "steady")
	q.put(`1`)
	asked := time.Now()
	q.mutter(http.MethodGet, "/messages", "")
	q.stored("message in flight", func(l listedQueue) bool { return l.Processing == 1 })
	g.crash()
	m := q.await(1)[0]
	if early := steadyHold - time.Since(asked); m.Attempt != 2 || early > coarse+g.clockError() {
		t.Errorf("received %+v, %v before the end of the first delivery, want the second attempt after it", m, early)
	}
	if n := q.ack(m.Receipt); n != 1 {
		t.Errorf("acked = %d, want 1", n)
	}
}

// crashWhileHeld: two consumers received a message, before and after a restart of the gateway.
// The second consumer holds it.
func crashWhileHeld(t *testing.T, g *gateway) {
	q := of(g, "plain")
	q.put(`1`)
	first := q.await(1)[0]
	g.crash()
	q.none("its consumer lives on")
	if n := q.extend("1ms", first.Receipt); n != 1 {
		t.Errorf("extended = %d in the next life, want 1", n)
	}
	second := q.await(1)[0]
	if second.ID != first.ID || second.Attempt != 2 {
		t.Errorf("received %+v, want the second attempt of message %s", second, first.ID)
	}
	if n := q.ack(first.Receipt); n != 0 {
		t.Errorf("acked by the first receipt = %d, want 0", n)
	}
	q.none("the ack of the first has not ended the second")
	g.crash()
	if n := q.ack(second.Receipt); n != 1 {
		t.Errorf("acked by the second receipt = %d, want 1", n)
	}
}

// crashAtAck: a consumer that got no answer to an ack may repeat it.
func crashAtAck(t *testing.T, g *gateway) {
	q := of(g, "plain")
	q.put(`1`)
	m := q.await(1)[0]
	q.mutter(http.MethodPost, "/ack", fmt.Sprintf(`{"ids":[%q]}`, m.Receipt))
	q.stored("message acked", func(l listedQueue) bool { return l.Depth == 0 })
	g.crash()
	if n := q.ack(m.Receipt); n != 0 {
		t.Errorf("acked again = %d, want 0", n)
	}
	q.none("it was acked")
}

// crashAtNack: a nacked message is visible at once, behind the others, and dead after its last
// attempt. It returns the dead message. There must be an alert about it, although the gateway
// was killed just then.
func crashAtNack(t *testing.T, g *gateway) (died string) {
	q := of(g, "weak")
	q.put(`1`)
	q.put(`2`)
	<-time.After(coarse) // messages that become visible in the same millisecond have no order
	m := q.await(1)[0]
	nack := fmt.Sprintf(`{"ids":[%q]}`, m.Receipt)
	q.mutter(http.MethodPost, "/nack", nack)
	q.stored("message nacked", func(l listedQueue) bool { return l.Pending == 2 })
	g.crash()
	ms := append(q.await(1), q.await(1)...)
	if payloads(ms) != "2 1" || ms[1].Attempt != 2 {
		t.Fatalf("received %+v, want 2, and 1 behind it at its second attempt", ms)
	}
	q.mutter(http.MethodPost, "/nack", fmt.Sprintf(`{"ids":[%q]}`, ms[1].Receipt))
	q.stored("message dead", func(l listedQueue) bool { return l.Dead == 1 })
	g.crash()
	if retried, dead := q.nack("", ms[1].Receipt); retried+dead != 0 {
		t.Errorf("nacked again = %d retried, %d dead, want nothing", retried, dead)
	}
	if dead := q.dead(); len(dead) != 1 || dead[0].ID != m.ID {
		t.Errorf("dead-letter queue = %+v, want message %s", dead, m.ID)
	}
	q.ack(ms[0].Receipt)
	return m.ID
}

// crashAtTheLastAttempt: both the last consumer of a message and the gateway died. After a
// restart the message is dead, with an alert, although no consumer polls.
func crashAtTheLastAttempt(t *testing.T, g *gateway, r *receiver.Receiver) {
	q := of(g, "once")
	q.put(`1`)
	m := q.await(1)[0]
	g.crash()
	if told := alerted(t, r, m.ID); told.Queue != "once" || told.Error != "lease expired" {
		t.Errorf("alert = %+v, want one about queue once", told)
	}
	if dead := q.dead(); len(dead) != 1 || dead[0].ID != m.ID || dead[0].Attempt != 1 {
		t.Errorf("dead-letter queue = %+v, want message %s", dead, m.ID)
	}
}

// crashAtDrain: a drained message is gone, even if a consumer held it.
func crashAtDrain(t *testing.T, g *gateway) {
	q := of(g, "plain")
	q.put(`1`)
	q.put(`2`)
	held := q.await(1)[0]
	operator := q
	operator.key = q.token
	operator.mutter(http.MethodPost, "/drain", "")
	q.stored("queue empty", func(l listedQueue) bool { return l.Depth == 0 })
	g.crash()
	retried, dead := q.nack("", held.Receipt)
	if acked, extended := q.ack(held.Receipt), q.extend("10s", held.Receipt); acked+extended+retried+dead != 0 {
		t.Errorf("of a drained message: acked %d, extended %d, retried %d, dead %d, want nothing", acked, extended, retried, dead)
	}
	q.none("it was drained")
}
