package flows_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A receiver plays all services that steps call. It records requests and answers by a script.
type receiver struct {
	*httptest.Server
	world *world

	// fuses returns the fuse of a gateway that may die, by its generation, or nil. The
	// requests of a dead gateway are not recorded.
	fuses func(generation string) *fuse

	// hold is called for each recorded request. If it returns a channel, the reply waits for
	// the channel. It may be nil.
	hold func(*request) <-chan struct{}

	mu      sync.Mutex
	log     []logged
	script  map[string][]reply
	served  map[string]int
	tokens  map[string][]string // by the path of the step, in the order of arrival
	another func(*request) *reply
}

// A logged is a request, or time that passed.
type logged struct {
	*request
	passed time.Duration
}

// A request is a recorded request.
type request struct {
	method, path string
	step, key    string
	header       http.Header
	body         string
}

// A reply is the receiver's answer to a request.
type reply struct {
	do     string // "", hang, reset, or early
	status int
	header map[string]string
	body   string // for early: body of the callback
}

func newReceiver(t testing.TB) *receiver {
	r := &receiver{script: map[string][]reply{}, served: map[string]int{}, tokens: map[string][]string{}}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(func() {
		r.CloseClientConnections()
		r.Close()
	})
	return r
}

func (r *receiver) serve(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		reset(w)
		return
	}
	seen := &request{method: q.Method, path: q.URL.RequestURI(), header: q.Header, body: string(body),
		step: q.Header.Get("x-gateway-step"), key: q.Header.Get("idempotency-key")}
	var said reply
	if f := r.fuse(q); f == nil {
		said = r.see(seen)
	} else if !f.effect("call "+seen.step, func() { said = r.see(seen) }) {
		reset(w)
		return
	}
	if r.hold != nil {
		if wait := r.hold(seen); wait != nil {
			<-wait
		}
	}
	r.answer(w, q, seen, said)
}

func (r *receiver) fuse(q *http.Request) *fuse {
	if r.fuses == nil {
		return nil
	}
	_, generation, _ := strings.Cut(q.UserAgent(), "/")
	return r.fuses(generation)
}

func (r *receiver) see(seen *request) reply {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, logged{request: seen})
	var notice struct{ Token string }
	if json.Unmarshal([]byte(seen.body), &notice) == nil && notice.Token != "" {
		r.tokens[seen.step] = append(r.tokens[seen.step], notice.Token)
	}
	if r.another != nil {
		if said := r.another(seen); said != nil {
			return *said
		}
	}
	return r.next(seen)
}

// next returns the next reply of the script for a request: for the step's path, or for the
// path of the URL. The last reply is repeated.
func (r *receiver) next(seen *request) reply {
	for _, match := range []string{seen.step, seen.path} {
		if replies := r.script[match]; len(replies) > 0 {
			n := r.served[match]
			r.served[match]++
			return replies[min(n, len(replies)-1)]
		}
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(seen.path, "/"), "?")
	return reply{status: http.StatusOK, body: fmt.Sprintf(`{"did":%q}`, name)}
}

func (r *receiver) answer(w http.ResponseWriter, q *http.Request, seen *request, said reply) {
	switch said.do {
	case "hang":
		<-q.Context().Done()
		reset(w)
		return
	case "reset":
		reset(w)
		return
	case "early":
		a := askOf(r.world.gateway, "POST", "/callback/"+r.token(seen.step), said.body)
		if a.status != http.StatusOK {
			r.world.t.Errorf("the early callback of %s: %s", seen.step, a)
		}
	}
	for name, value := range said.header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(said.status)
	if said.do == "" {
		_, _ = io.WriteString(w, said.body)
	}
}

// reset ends a connection without an answer.
func reset(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// token returns the newest token of a step, or "".
func (r *receiver) token(step string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.tokens[step]
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// tokensOf returns the tokens of a step, the newest first.
func (r *receiver) tokensOf(step string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Clone(r.tokens[step])
	slices.Reverse(all)
	return all
}

// told returns the steps for which a token was sent.
func (r *receiver) told() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.tokens))
}

// note records that time passed.
func (r *receiver) note(passed time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, logged{passed: passed})
}

// take returns the log since its last call.
func (r *receiver) take() []logged {
	r.mu.Lock()
	defer r.mu.Unlock()
	log := r.log
	r.log = nil
	return log
}

// forget clears the log, and starts the script again.
func (r *receiver) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log, r.served, r.tokens = nil, map[string]int{}, map[string][]string{}
}

// tell sets the script, with one reply a line. A line has the path of a step or URL, then the
// status or hang, reset or early, then headers as name=value, then the body. Several lines for
// a path are its replies in order. A body @1000 is a JSON string of that many bytes.
func (r *receiver) tell(script string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.script, r.served = map[string][]reply{}, map[string]int{}
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		match, rest, _ := strings.Cut(line, " ")
		said, err := parseReply(strings.TrimSpace(rest))
		if err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
		r.script[match] = append(r.script[match], said)
	}
	return nil
}

var header = regexp.MustCompile(`^([a-z][a-z-]*)=(\S+)\s*`)

func parseReply(text string) (reply, error) {
	what, rest, _ := strings.Cut(text, " ")
	said := reply{status: http.StatusOK, header: map[string]string{}}
	switch what {
	case "hang", "reset", "early":
		said.do = what
	default:
		var err error
		if said.status, err = strconv.Atoi(what); err != nil {
			return said, err
		}
	}
	rest = strings.TrimSpace(rest)
	for {
		h := header.FindStringSubmatch(rest)
		if h == nil {
			break
		}
		said.header[h[1]], rest = h[2], rest[len(h[0]):]
	}
	said.body = rest
	if size, ok := strings.CutPrefix(rest, "@"); ok {
		n, err := strconv.Atoi(size)
		if err != nil {
			return said, err
		}
		said.body = `"` + strings.Repeat("x", n-2) + `"`
	}
	return said, nil
}
