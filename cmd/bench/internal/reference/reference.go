// Package reference is the least code that does what the gateway does: POST,
// durable event and job, claim, signed POST, completion with an attempt row. It
// has no features and no configuration, but it keeps the same promises: 2xx only
// after the commit, synchronous=FULL, nothing lost over a crash.
//
// It exists to be divided by. The gateway's figure over this one, taken in the
// same minutes on the same machine, is the price of the gateway's features; an
// absolute figure would mostly tell the speed of the disk.
//
// So it uses what the gateway may use, the same driver through database/sql and
// net/http on both sides, and the two ideas that carry the speed: group commit
// (what waits while a batch is being written becomes the next batch, never a
// timer) and claims of as many jobs as there are free slots, in the commit that
// settles the last ones. Claiming within the intake's commit would be faster
// still and is left out, because a worker elsewhere cannot.
//
// It imports the standard library, the SQLite driver and ulid.
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
	"strconv"
	"sync"
	"time"
)

// batchMax bounds one intake commit, in events.
const batchMax = 512

// Config is all there is to set.
type Config struct {
	Listen string // host:port
	DB     string // path of the database file
	Sink   string // URL of every delivery
	Slots  int    // deliveries at a time, 0 for intake alone
	Key    []byte // of the signature
}

// Pipeline is a running reference.
type Pipeline struct {
	cfg      Config
	store    *store
	listener net.Listener
	server   *http.Server
	client   *http.Client

	posts   chan *post
	wake    chan struct{} // holds one value while jobs may be waiting
	work    chan job
	results chan outcome

	delivering context.Context // ends to abandon deliveries
	abandon    context.CancelFunc
	group      sync.WaitGroup
	errs       chan error // the first failure of a background loop
}

// post is a request that waits for its commit.
type post struct {
	source, kind, payload string
	done                  chan error
}

// Start opens the database and listens.
func Start(cfg Config) (*Pipeline, error) {
	s, err := open(cfg.DB)
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
		client: &http.Client{
			Transport: &http.Transport{MaxIdleConns: cfg.Slots, MaxIdleConnsPerHost: cfg.Slots, DisableCompression: true},
			Timeout:   30 * time.Second,
		},
		errs: make(chan error, 3),
	}
	p.wake <- struct{}{} // for what the last process left
	p.delivering, p.abandon = context.WithCancel(context.Background())
	p.run()
	return p, nil
}

func (p *Pipeline) run() {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /events/{source}/{type}", p.accept)
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	p.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}

	p.group.Go(p.commit)
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

// Close stops intake, abandons what is being delivered, which stays due for the
// next start, and closes the database.
func (p *Pipeline) Close(ctx context.Context) error {
	err := p.server.Shutdown(ctx)
	if err != nil {
		return err // requests still wait for the committer
	}
	close(p.posts)
	p.abandon()
	p.group.Wait()
	p.client.CloseIdleConnections()
	return p.store.close()
}

func (p *Pipeline) accept(w http.ResponseWriter, r *http.Request) {
	body := make([]byte, max(r.ContentLength, 0))
	if _, err := io.ReadFull(r.Body, body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	waiting := &post{source: r.PathValue("source"), kind: r.PathValue("type"), payload: string(body), done: make(chan error, 1)}
	p.posts <- waiting
	if err := <-waiting.done; err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// commit is the group commit: the lock is taken first, so that whatever arrives
// while another write holds it joins the batch.
func (p *Pipeline) commit() {
	batch := make([]*post, 0, batchMax)
	for first := range p.posts {
		p.store.Lock()
		batch = gather(append(batch[:0], first), p.posts, batchMax)
		err := p.store.accept(batch)
		p.store.Unlock()
		for _, waiting := range batch {
			waiting.done <- err
		}
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
}

// dispatch settles what has been delivered and fills the free slots, each time
// something happened; the ticker only finds retries.
func (p *Pipeline) dispatch() {
	defer close(p.work)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	free, done := p.cfg.Slots, make([]outcome, 0, p.cfg.Slots)
	for {
		done = done[:0]
		select {
		case o := <-p.results:
			done = append(done, o)
		case <-p.wake:
		case <-tick.C:
		case <-p.delivering.Done():
			return
		}
		p.store.Lock()
		done = gather(done, p.results, p.cfg.Slots)
		free += len(done)
		jobs, err := p.turn(done, free)
		p.store.Unlock()
		if err != nil {
			p.errs <- fmt.Errorf("settle and claim: %w", err)
			return
		}
		free -= len(jobs)
		for _, j := range jobs {
			p.work <- j // holds Slots, so it never blocks
		}
	}
}

func (p *Pipeline) turn(done []outcome, free int) ([]job, error) {
	if free == 0 {
		return nil, nil // woken while all slots are busy: the next result claims
	}
	return p.store.turn(done, free)
}

// gather appends what waits in the channel, up to limit in all.
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

// deliver is one slot.
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

// sign is the Standard Webhooks signature, https://www.standardwebhooks.com.
func sign(key []byte, id, timestamp string, payload []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(payload)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
