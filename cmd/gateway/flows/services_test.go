package flows_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
)

// The services are all services that steps call, played by one server. It records requests and
// answers by a script.
type services struct {
	URL   string
	world *world

	// fuses returns the fuse of a gateway that may die, by its generation, or nil. The
	// requests of a dead gateway are not recorded.
	fuses func(generation string) *fuse

	// hold is called for each recorded request. If it returns a channel, the reply waits for
	// the channel. It may be nil.
	hold func(*request) <-chan struct{}

	mu      sync.Mutex // guards the fields below
	log     []logged
	script  map[string][]reply    // by the path of the step or of the URL
	served  map[string]int        // how many replies of each script were used
	tokens  map[string][]string   // by the path of the step, in the order of arrival
	another func(*request) *reply // goes before the script, unless it returns nil
}

// A logged is a request, or time that passed.
type logged struct {
	*request
	passed time.Duration
}

// A request is a recorded request.
type request struct {
	receiver.Delivery
	path      string // with its query
	step, key string
}

// A reply is an answer to a request.
type reply struct {
	do     string // "", hang, reset, or early
	status int
	header map[string]string
	body   string // of the reply; if do is early, the body of the callback
}

func newServices(t testing.TB) *services {
	r := &services{script: map[string][]reply{}, served: map[string]int{}, tokens: map[string][]string{}}
	r.URL = receiver.Serve(t, r.serve)
	return r
}

func (r *services) serve(d receiver.Delivery, w http.ResponseWriter, q *http.Request) {
	seen := &request{Delivery: d, path: q.URL.RequestURI(),
		step: q.Header.Get("x-gateway-step"), key: q.Header.Get("idempotency-key")}
	var said reply
	if f := r.fuse(q); f == nil {
		said = r.see(seen)
	} else if !f.effect("call "+seen.step, func() { said = r.see(seen) }) {
		receiver.Reset(w)
		return
	}
	if r.hold != nil {
		if wait := r.hold(seen); wait != nil {
			<-wait
		}
	}
	r.answer(w, q, seen, said)
}

func (r *services) fuse(q *http.Request) *fuse {
	if r.fuses == nil {
		return nil
	}
	_, generation, _ := strings.Cut(q.UserAgent(), "/")
	return r.fuses(generation)
}

func (r *services) see(seen *request) reply {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, logged{request: seen})
	var notice struct{ Token string }
	if json.Unmarshal([]byte(seen.Body), &notice) == nil && notice.Token != "" {
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
func (r *services) next(seen *request) reply {
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

func (r *services) answer(w http.ResponseWriter, q *http.Request, seen *request, said reply) {
	switch said.do {
	case "hang":
		<-q.Context().Done()
		receiver.Reset(w)
		return
	case "reset":
		receiver.Reset(w)
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

// token returns the newest token of a step, or "".
func (r *services) token(step string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.tokens[step]
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// tokensOf returns the tokens of a step, the newest first.
func (r *services) tokensOf(step string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Clone(r.tokens[step])
	slices.Reverse(all)
	return all
}

// told returns the steps for which a token was sent.
func (r *services) told() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.tokens))
}

// note records that time passed.
func (r *services) note(passed time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, logged{passed: passed})
}

// take returns the log since its last call.
func (r *services) take() []logged {
	r.mu.Lock()
	defer r.mu.Unlock()
	log := r.log
	r.log = nil
	return log
}

// forget clears the log, and starts the script again.
func (r *services) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log, r.served, r.tokens = nil, map[string]int{}, map[string][]string{}
}

// tell sets the script, with one reply a line. A line has the path of a step or URL, then the
// status or hang, reset or early, then headers as name=value, then the body. Several lines for
// a path are its replies in order. A body @1000 is a JSON string of that many bytes.
func (r *services) tell(script string) error {
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
