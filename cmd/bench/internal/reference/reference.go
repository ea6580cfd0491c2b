// Package reference is the least code that does the work of the gateway: POST, durable
// event and job, claim, signed POST, completion with an attempt row. It has no features and
// no configuration, but it keeps the same promises: 2xx only after the commit is on stable
// storage, and no loss in a crash.
//
// The gateway's figure is divided by this one's. Taken in the same minutes on the same
// server, the ratio is the price of the gateway's features. An absolute figure would mostly
// be the speed of the disk.
//
// So it does the work in the best way for each database, with the same driver as the
// gateway and net/http on both sides. Two ideas give the speed everywhere. One is group
// commit: events that wait while a batch is being written become the next batch, without a
// timer. The other is that a claim takes as many jobs as there are free slots, in the
// commit that settles the last ones. Claiming within the intake's commit would be faster
// still. It is left out, because a worker in another process cannot do it. Each database
// has a file with the rest:
//
//   - SQLite: one connection, prepared statements, synchronous=FULL.
//   - PostgreSQL: rows as arrays, one statement a commit, the claim's plan pinned
//     by row address, and a floor below which claims do not look (about a quarter
//     more deliveries under load).
//   - MySQL: INSERTs of many rows, the statements of a transaction sent together,
//     one claimer.
//   - SQL over HTTP: one request a commit, rows as JSON.
//
// A [Queue] is the same for consumers that pull: a plain table, in a queue file for each
// database.
//
// Without committers each request is a transaction of its own, on a pool of
// connections: the plain design that group commit is compared with.
//
// It imports consume, event, the standard library, the drivers and ulid.
package reference

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"time"
)

// batchMax bounds one intake commit, in events.
const batchMax = 512

// Config is all there is to set.
type Config struct {
	Listen string // host:port
	Driver string // sqlite, postgres, mysql or hosted_sql
	URL    string // of the database; of sqlite its path, of hosted_sql its endpoint
	Token  string // of hosted_sql
	Sink   string // URL of every delivery
	Slots  int    // deliveries at a time, 0 for intake alone
	Key    []byte // of the signature

	// Committers is how many groups are written at the same time, 0 for a transaction a
	// request. On SQLite they take turns.
	Committers int
	Pool       int // connections without committers
}

// connections leaves one to the claims.
func (c Config) connections() int {
	if c.Committers > 0 {
		return c.Committers + 1
	}
	return max(1, c.Pool)
}

// Pipeline is a running reference. Requests, the committers, the dispatcher and the slots are
// goroutines. They share the channels below and the lock of the store, and nothing else.
type Pipeline struct {
	cfg      Config
	store    store
	listener net.Listener
	server   *http.Server
	client   *http.Client

	// The way of an event: posts to a committer, wake to the dispatcher, work to a slot,
	// results back to the dispatcher. work and results have room for all slots, so no slot
	// waits for the dispatcher.
	posts   chan *post
	wake    chan struct{} // holds one value while jobs may be waiting
	work    chan job
	results chan outcome

	delivering context.Context // ends to abandon deliveries
	abandon    context.CancelFunc
	group      sync.WaitGroup
	errs       chan error // the first failure of a background loop
}

// post is a request that waits for its commit. done gets the result of the commit, and has room
// for it: a committer never waits for a request whose client is gone.
type post struct {
	source, kind, payload string
	done                  chan error
}

// Start opens the database and listens. Work begins at once, also on jobs of an earlier
// process. Close ends it.
func Start(cfg Config) (*Pipeline, error) {
	s, err := openStore(cfg)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	p := &Pipeline{
		cfg: cfg, store: s, listener: l,
		posts: make(chan *post, batchMax), wake: make(chan struct{}, 1),
		work: make(chan job, cfg.Slots), results: make(chan outcome, cfg.Slots),
		// One connection for each slot stays open. Compression is off, as in the gateway: it
		// would cost both ends CPU for nothing.
		client: &http.Client{
			Transport: &http.Transport{MaxIdleConns: cfg.Slots, MaxIdleConnsPerHost: cfg.Slots, DisableCompression: true},
			Timeout:   30 * time.Second,
		},
		// Room for the errors of the server and of the dispatcher: neither blocks at its end.
		errs: make(chan error, 2),
	}
	// Without this value the jobs of an earlier process would wait for the tick, a second at
	// most.
	p.wake <- struct{}{} // for jobs that the last process left
	p.delivering, p.abandon = context.WithCancel(context.Background())
	p.run()
	return p, nil
}

// run starts all goroutines. The order does not matter: requests wait for a committer, and jobs
// for a slot.
func (p *Pipeline) run() {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /events/{source}/{type}", p.accept)
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	p.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}

	// Close waits for these goroutines. The one of the HTTP server ends by itself in Shutdown.
	for range p.cfg.Committers {
		p.group.Go(p.commit)
	}
	if p.cfg.Slots > 0 {
		p.group.Go(p.dispatch)
		for range p.cfg.Slots {
			p.group.Go(p.deliver)
		}
	}
	go func() {
		if err := p.server.Serve(p.listener); !errors.Is(err, http.ErrServerClosed) {
			p.errs <- err
		}
	}()
}

// Addr is where it listens.
func (p *Pipeline) Addr() string { return p.listener.Addr().String() }

// Wait returns the failure that stopped the pipeline's work, nil once ctx ends.
func (p *Pipeline) Wait(ctx context.Context) error {
	select {
	case err := <-p.errs:
		return err
	case <-ctx.Done():
		return nil
	}
}

// Close stops intake, abandons the deliveries under way, which stay due for the next start,
// and closes the database.
func (p *Pipeline) Close(ctx context.Context) error {
	err := p.server.Shutdown(ctx)
	if err != nil {
		return err // requests still wait for the committer
	}
	close(p.posts)
	// The order matters: the committers end once no request can come, and the slots once their
	// deliveries are cut off. Then no goroutine uses the store.
	p.abandon()
	p.group.Wait()
	p.client.CloseIdleConnections()
	return p.store.close()
}

// accept answers 202 once the event is committed. It reads exactly Content-Length bytes into
// one buffer; the generator always sends that header.
func (p *Pipeline) accept(w http.ResponseWriter, r *http.Request) {
	body := make([]byte, max(r.ContentLength, 0))
	if _, err := io.ReadFull(r.Body, body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	waiting := &post{source: r.PathValue("source"), kind: r.PathValue("type"), payload: string(body), done: make(chan error, 1)}
	if err := p.durable(waiting); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// durable returns once an event is committed.
func (p *Pipeline) durable(waiting *post) error {
	if p.cfg.Committers > 0 {
		p.posts <- waiting
		return <-waiting.done
	}
	p.store.Lock()
	// Without committers the pool of connections alone bounds how many transactions run at a
	// time.
	err := p.store.accept([]*post{waiting})
	p.store.Unlock()
	p.ring()
	return err
}

// ring says that jobs may be waiting. A value that is already there is enough: one turn of the
// dispatcher finds all jobs. So ring never blocks.
func (p *Pipeline) ring() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// commit is the group commit. It takes the lock first, so that events that arrive while
// another write holds the lock join the batch. Before that it yields to other goroutines,
// whose events may join too. Without the yield, here and in dispatch, an event took a
// quarter to a third more CPU, because there were more commits.
func (p *Pipeline) commit() {
	// The slice is used again for each batch, and the requests get their result before that.
	batch := make([]*post, 0, batchMax)
	for first := range p.posts {
		runtime.Gosched()
		p.store.Lock()
		batch = gather(append(batch[:0], first), p.posts, batchMax)
		err := p.store.accept(batch)
		p.store.Unlock()
		for _, waiting := range batch {
			waiting.done <- err
		}
		p.ring()
	}
}

// dispatch settles the finished deliveries and fills the free slots, each time a delivery
// or an event wakes it. The ticker only finds retries.
func (p *Pipeline) dispatch() {
	defer close(p.work)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	// Only this goroutine counts the free slots.
	free, done := p.cfg.Slots, make([]outcome, 0, p.cfg.Slots)
	for {
		done = done[:0]
		select {
		case o := <-p.results:
			done = append(done, o)
		case <-p.wake:
		case <-tick.C:
		// Outcomes that are not settled by now stay claimed, and their jobs are due again at
		// the next start.
		case <-p.delivering.Done():
			return
		}
		runtime.Gosched()
		p.store.Lock()
		// The lock comes first here too: results that arrive while an intake commit holds it
		// are settled in this turn.
		done = gather(done, p.results, p.cfg.Slots)
		free += len(done)
		jobs, err := p.turn(done, free)
		p.store.Unlock()
		if err != nil {
			p.errs <- fmt.Errorf("settle and claim: %w", err)
			return
		}
		free -= len(jobs)
		// free counts the slots without a job, and a job is handed out for each, so the channel
		// is never full.
		for _, j := range jobs {
			p.work <- j // holds Slots, so it never blocks
		}
	}
}

// turn settles and claims in one commit.
func (p *Pipeline) turn(done []outcome, free int) ([]job, error) {
	if free == 0 {
		return nil, nil // woken while all slots are busy: the next result claims
	}
	return p.store.turn(done, free)
}

// gather appends the values that wait in the channel, up to limit in all.
func gather[T any](batch []T, from <-chan T, limit int) []T {
	for len(batch) < limit {
		select {
		case v, ok := <-from:
			if !ok {
				return batch
			}
			batch = append(batch, v)
		default:
			return batch
		}
	}
	return batch
}

// deliver is one slot. It sends one job at a time, and drops the outcome of a delivery that
// Close cut off.
func (p *Pipeline) deliver() {
	for j := range p.work {
		start := time.Now()
		status, err := p.send(j)
		if p.delivering.Err() != nil {
			continue
		}
		p.results <- outcome{job: j, status: status, err: err, duration: time.Since(start)}
	}
}

// send posts a job once and returns the status of the answer. It reads the answer to its end,
// or the connection could not be used again.
func (p *Pipeline) send(j job) (status int, err error) {
	req, err := http.NewRequestWithContext(p.delivering, http.MethodPost, p.cfg.Sink, bytes.NewReader(j.payload))
	if err != nil {
		return 0, err
	}
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Webhook-Id", j.id)
	req.Header.Set("Webhook-Timestamp", timestamp)
	req.Header.Set("Webhook-Signature", sign(p.cfg.Key, j.id, timestamp, j.payload))
	res, err := p.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10))
	return res.StatusCode, err
}

// sign is the Standard Webhooks signature, https://www.standardwebhooks.com. The hash takes the
// payload in place: joining the parts first would copy each body.
func sign(key []byte, id, timestamp string, payload []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(payload)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
