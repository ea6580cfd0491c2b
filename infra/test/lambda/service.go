//go:build linux

package lambda

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The region and account of the functions, and the credentials in the environment of each
// copy.
const (
	Region  = "eu-west-1"
	Account = "123456789012"

	AccessKey = "ASIAEXAMPLEOFAKEY123"
	SecretKey = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
	Session   = "FwoGZXIvYXdzEXAMPLE//////////token"
)

// Limits of Lambda on a payload, in bytes.
const (
	maxSync  = 6 << 20
	maxAsync = 1 << 20
)

// A Service is one region of one account: its functions, and the Invoke API.
type Service struct {
	URL string // of the Invoke API; each copy has it in AWS_ENDPOINT_URL_LAMBDA

	t       testing.TB
	server  *httptest.Server
	closing chan struct{} // closed when the test is over
	async   sync.WaitGroup

	mu        sync.Mutex
	functions map[string]*Function
	copies    int // number of copies started so far
	calls     []Call
}

// A Call is a call of the Invoke API.
type Call struct {
	Function string // in the form of the caller: name or ARN
	Payload  string
	Refused  string // reason of a refusal; "" if it was accepted
	At       time.Time
}

// New starts a service without functions. All its processes end with the test.
func New(t testing.TB) *Service {
	s := &Service{t: t, closing: make(chan struct{}), functions: map[string]*Function{}}
	s.server = httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = s.server.URL
	t.Cleanup(s.close)
	return s
}

func (s *Service) close() {
	close(s.closing)
	s.mu.Lock()
	all := s.functions
	s.functions = map[string]*Function{}
	s.mu.Unlock()
	for _, f := range all {
		f.Kill()
	}
	s.server.CloseClientConnections()
	s.server.Close()
	s.async.Wait()
	for _, f := range all {
		if said := f.Log(); s.t.Failed() && said != "" {
			s.t.Logf("function %s said:\n%s", f.Name, said)
		}
	}
}

// Add deploys a function. It starts no copy before the first invocation.
func (s *Service) Add(o Options) *Function {
	f := &Function{Options: o.withDefaults(), service: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.functions[o.Name] = f
	return f
}

// Calls returns the calls of the Invoke API so far.
func (s *Service) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// number returns the number of the next copy, from 1.
func (s *Service) number() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.copies++
	return s.copies
}

// Schedule invokes a function now and at each interval, asynchronously, like EventBridge every
// minute. It ends with the test, or when stop is called.
func (s *Service) Schedule(f *Function, every time.Duration) (stop func()) {
	over := make(chan struct{})
	s.async.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			f.InvokeAsync(scheduled(f.Name, time.Now()))
			select {
			case <-ticker.C:
			case <-over:
				return
			case <-s.closing:
				return
			}
		}
	})
	return sync.OnceFunc(func() { close(over) })
}

// scheduled returns the event of a rule.
func scheduled(rule string, at time.Time) []byte {
	event, _ := json.Marshal(map[string]any{ // cannot fail
		"version": "0", "id": fmt.Sprintf("89d1a02d-5ec7-412e-82f5-%012x", at.UnixNano()&0xffffffffffff),
		"detail-type": "Scheduled Event", "source": "aws.events", "account": Account, "region": Region,
		"time":      at.UTC().Format(time.RFC3339),
		"resources": []string{"arn:aws:events:" + Region + ":" + Account + ":rule/" + rule}, "detail": map[string]any{},
	})
	return event
}

// ARN returns the ARN of the function.
func (f *Function) ARN() string {
	return "arn:aws:lambda:" + Region + ":" + Account + ":function:" + f.Name
}

// serve is the Invoke API: POST /2015-03-31/functions/{name or ARN}/invocations.
func (s *Service) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxSync+1))
	if err != nil {
		return // the caller has gone
	}
	name, ok := invoked(r)
	if !ok {
		refuse(w, http.StatusNotFound, "UnknownOperationException", "no such call")
		return
	}
	call := Call{Function: name, Payload: string(body), At: time.Now()}
	f := s.find(name)
	async := r.Header.Get("X-Amz-Invocation-Type") == "Event"
	status, kind := http.StatusOK, ""
	switch err := verify(r, body); {
	case err != nil:
		status, kind, call.Refused = http.StatusForbidden, "InvalidSignatureException", err.Error()
	case f == nil:
		status, kind, call.Refused = http.StatusNotFound, "ResourceNotFoundException", "Function not found: "+name
	case len(body) > maxSync, async && len(body) > maxAsync:
		status, kind, call.Refused = http.StatusRequestEntityTooLarge, "RequestTooLargeException", "the payload is too large"
	case !json.Valid(body):
		status, kind, call.Refused = http.StatusBadRequest, "InvalidRequestContentException", "the payload is no JSON"
	}
	s.note(call)
	switch {
	case kind != "":
		refuse(w, status, kind, call.Refused)
	case async:
		f.InvokeAsync(body)
		w.WriteHeader(http.StatusAccepted)
	default:
		answer(w, f.Invoke(body))
	}
}

func invoked(r *http.Request) (name string, ok bool) {
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), "/2015-03-31/functions/")
	name, end := strings.CutSuffix(rest, "/invocations")
	name, err := url.PathUnescape(name)
	return name, ok && end && err == nil && r.Method == http.MethodPost
}

func (s *Service) find(name string) *Function {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.functions {
		if name == f.Name || name == f.ARN() {
			return f
		}
	}
	return nil
}

func (s *Service) note(c Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, c)
}

func refuse(w http.ResponseWriter, status int, kind, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amzn-ErrorType", kind)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"Type": "User", "Message": why})
}

// answer writes the response to a synchronous call.
func answer(w http.ResponseWriter, r Result) {
	if r.Error == Throttled {
		refuse(w, http.StatusTooManyRequests, "TooManyRequestsException", "Rate Exceeded.")
		return
	}
	if r.Error != "" {
		w.Header().Set("X-Amz-Function-Error", "Unhandled")
	}
	_, _ = w.Write(r.Payload)
}
