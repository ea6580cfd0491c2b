//go:build linux

package lambda

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// serve plays the Runtime API, and the part of the Extensions API for an internal extension.
func (c *Copy) serve(w http.ResponseWriter, r *http.Request) {
	call, runtime := strings.CutPrefix(r.URL.Path, "/2018-06-01/runtime/")
	id, answer := "", ""
	if rest, ok := strings.CutPrefix(call, "invocation/"); ok {
		id, answer, _ = strings.Cut(rest, "/")
	}
	switch {
	case runtime && r.Method == http.MethodGet && call == "invocation/next":
		c.serveNext(w, r)
	case runtime && r.Method == http.MethodPost && (answer == "response" || answer == "error"):
		c.serveAnswer(w, r, id, answer == "error")
	case runtime && r.Method == http.MethodPost && call == "init/error":
		_, _ = io.Copy(c.function, r.Body)
		w.WriteHeader(http.StatusAccepted)
	case r.Method == http.MethodPost && r.URL.Path == "/2020-01-01/extension/register":
		c.register()
		w.Header().Set("Lambda-Extension-Identifier", fmt.Sprintf("00000000-0000-4000-8000-%012d", c.Number))
		_, _ = io.WriteString(w, `{"functionName":"`+c.function.Name+`","functionVersion":"$LATEST","handler":"bootstrap"}`)
	case r.Method == http.MethodGet && r.URL.Path == "/2020-01-01/extension/event/next":
		<-r.Context().Done() // an internal extension gets no events
	default:
		http.NotFound(w, r)
	}
}

func (c *Copy) register() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.registered = true
}

// serveNext hands out the next event, when there is one. The request for it ends the previous
// event: only then is the copy free, and frozen until there is another event.
func (c *Copy) serveNext(w http.ResponseWriter, r *http.Request) {
	c.ask()
	select {
	case inv := <-c.next:
		c.begin(inv)
		h := w.Header()
		h.Set("Lambda-Runtime-Aws-Request-Id", inv.id)
		h.Set("Lambda-Runtime-Deadline-Ms", fmt.Sprint(inv.until.UnixMilli()))
		h.Set("Lambda-Runtime-Invoked-Function-Arn", c.function.ARN())
		h.Set("Lambda-Runtime-Trace-Id", "Root=1-5e1b4151-5ac6c58f3b1d4a5e0a1b2c3d;Sampled=0")
		h.Set("Content-Type", "application/json")
		_, _ = w.Write(inv.payload)
	case <-r.Context().Done():
	}
}

// ask records that the copy has asked for work.
func (c *Copy) ask() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.initTook == 0 {
		c.initTook = time.Since(c.began)
	}
	for id, inv := range c.pending {
		if inv.answer != nil && c.function.Concurrency == 1 {
			c.release(id)
		}
	}
	// A copy that was just started has its first event waiting.
	if c.busy == 0 && c.function.Concurrency == 1 && !c.function.Awake {
		c.frozen = true
		c.signal(syscall.SIGSTOP)
	}
}

// release ends an invocation.
func (c *Copy) release(id string) {
	close(c.pending[id].over)
	delete(c.pending, id)
	c.busy--
}

// begin records that the copy has an event, and wakes it.
func (c *Copy) begin(inv *invocation) {
	limit := c.function.timeout()
	c.mu.Lock()
	defer c.mu.Unlock()
	inv.handed = time.Now()
	inv.until = inv.handed.Add(limit)
	c.pending[inv.id] = inv
	if c.frozen {
		c.frozen = false
		c.signal(syscall.SIGCONT)
	}
	close(inv.started)
}

// serveAnswer accepts the result of an invocation.
func (c *Copy) serveAnswer(w http.ResponseWriter, r *http.Request, id string, failed bool) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxSync+1))
	if err != nil {
		return // the copy died while it answered
	}
	result := Result{Payload: bytes.TrimSpace(body)}
	status := http.StatusAccepted
	switch {
	case failed:
		result.Error = errorType(body)
	case len(body) > maxSync:
		status, result = http.StatusRequestEntityTooLarge, Result{Error: TooLarge, Payload: []byte(`{"errorType":"` + TooLarge + `"}`)}
	}
	if !c.finish(id, result) {
		status = http.StatusBadRequest
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"status":"OK"}`)
}

func errorType(body []byte) string {
	var e struct {
		Type string `json:"errorType"`
	}
	if err := json.Unmarshal(body, &e); err != nil || e.Type == "" {
		return "Unhandled"
	}
	return e.Type
}

// finish passes a result on. It returns false if the invocation is not under way, or already
// has a result.
func (c *Copy) finish(id string, r Result) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	inv := c.pending[id]
	if inv == nil || inv.answer != nil {
		return false
	}
	r.Copy, r.ID, r.Began, r.Took = c.Number, id, inv.handed, time.Since(inv.handed)
	inv.answer = &r
	// With several invocations at once, only the answer shows which one has ended.
	if c.function.Concurrency > 1 {
		c.release(id)
	}
	return true
}
