package remote

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/egress"
)

// A site is an HTTP server that holds configurations.
type site struct {
	url string

	mu       sync.Mutex
	pages    map[string]string // by path
	versions func(page string) string
	answer   http.HandlerFunc // in place of everything, if not nil
	asked    []string         // "200 /gateway.yaml" for each request
}

// byBytes gives the same bytes the same version; see [site.versions].
func byBytes(page string) string { return fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(page))) }

func newSite(t *testing.T) *site {
	s := &site{pages: map[string]string{}, versions: byBytes}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answer != nil {
		s.answer(w, r)
		return
	}
	status := http.StatusOK
	page, found := s.pages[r.URL.Path]
	version := s.versions(page)
	switch {
	case !found:
		status = http.StatusNotFound
	case version != "" && r.Header.Get("If-None-Match") == version:
		status = http.StatusNotModified
	}
	s.asked = append(s.asked, fmt.Sprint(status, " ", r.URL.RequestURI()))
	if version != "" && found {
		w.Header().Set("ETag", version)
	}
	w.WriteHeader(status)
	if status == http.StatusOK {
		io.WriteString(w, page)
	}
}

func (s *site) put(path, page string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages[path] = page
}

func (s *site) remove(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pages, path)
}

// fail answers every request by the given handler; nil lets the site answer again.
func (s *site) fail(answer http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// log returns the requests since the last call of log.
func (s *site) log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.asked = nil }()
	return strings.Join(s.asked, ", ")
}

func newClient(t *testing.T) *egress.Client {
	c := egress.New(egress.Options{AllowPrivate: true, Version: "1.2.3"})
	t.Cleanup(c.Close)
	return c
}

func open(t *testing.T, address, env string, variables ...string) *Source {
	t.Helper()
	lookup := func(name string) (string, bool) {
		for _, v := range variables {
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				return value, true
			}
		}
		return "", false
	}
	s, err := Open(address, Options{Env: env, Lookup: lookup, Client: newClient(t)})
	if err != nil {
		t.Fatalf("Open(%s) = %v", address, err)
	}
	return s
}

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// events is a configuration with so many sources.
func events(n int) string {
	var b strings.Builder
	b.WriteString("sources:\n")
	for i := range n {
		fmt.Fprintf(&b, "  app%d: {type: event}\n", i)
	}
	return b.String()
}

// load checks that there are so many sources.
func load(t *testing.T, s *Source, want int) *config.Config {
	t.Helper()
	c, err := s.Load(soon(t))
	if err != nil || len(c.Sources) != want {
		t.Fatalf("Load() = %+v, %v, want %d sources", c, err, want)
	}
	return c
}

// changed checks whether something has.
func changed(t *testing.T, s *Source, want bool) {
	t.Helper()
	if got, err := s.Changed(soon(t)); got != want || err != nil {
		t.Fatalf("Changed() = %v, %v, want %v", got, err, want)
	}
}

// invalid checks that a configuration has just this problem.
func invalid(t *testing.T, s *Source, want string) {
	t.Helper()
	_, err := s.Load(soon(t))
	problems, ok := errors.AsType[config.Problems](err)
	if !ok || len(problems) != 1 || !strings.HasSuffix(err.Error(), want) {
		t.Fatalf("Load() = %v, want problem %q", err, want)
	}
}

// unreachable checks that a configuration cannot be read. The fault must not be in its text.
func unreachable(t *testing.T, s *Source, want string) {
	t.Helper()
	_, loading := s.Load(soon(t))
	_, asking := s.Changed(soon(t))
	for _, err := range []error{loading, asking} {
		if _, ok := errors.AsType[config.Problems](err); ok || err == nil || err.Error() != want {
			t.Errorf("Load(), Changed() = %v, want %q", err, want)
		}
	}
}
