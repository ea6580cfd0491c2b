package servers_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/servers"
	"github.com/google/go-cmp/cmp"
)

// A sink keeps the bodies it was sent.
type sink struct {
	mu     sync.Mutex
	bodies []string
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies = append(s.bodies, r.URL.Path+" "+string(b))
	_, _ = io.WriteString(w, `{"success":true}`)
}

func (s *sink) got() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.bodies...)
}

func faulty(t *testing.T) (*sink, *servers.Faults) {
	s := &sink{}
	target := httptest.NewServer(s)
	t.Cleanup(target.Close)
	return s, servers.NewFaults(t, target.URL+"/base")
}

func TestFaultsOnce(t *testing.T) {
	s, f := faulty(t)
	f.Once(servers.Before(503, servers.Overloaded), servers.After())

	a, err := post(f.URL+"/raw", "", "before")
	if err != nil || a.Status != 503 || a.Errors[0].Code != 7500 {
		t.Errorf("before: %+v, %v", a, err)
	}
	if a, err := post(f.URL+"/raw", "", "after"); err == nil {
		t.Errorf("after: answered %+v", a)
	}
	if a, err := post(f.URL+"/raw", "", "right"); err != nil || a.Status != 200 {
		t.Errorf("right: %+v, %v", a, err)
	}
	if diff := cmp.Diff([]string{"/base/raw after", "/base/raw right"}, s.got()); diff != "" {
		t.Errorf("forwarded (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(servers.Counts{Calls: 3, Before: 1, After: 1}, f.Counts()); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

func TestFaultsStallTakesEffectAfterTheClientGaveUp(t *testing.T) {
	s, f := faulty(t)
	f.Once(servers.Stall(2 * time.Second))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // it arrives within that on a busy machine, too
	defer cancel()
	if a, err := postContext(ctx, f.URL, "", "late"); err == nil {
		t.Fatalf("answered %+v before the stall was over", a)
	}
	if got := s.got(); len(got) != 0 {
		t.Errorf("forwarded %q while stalled", got)
	}
	eventually(t, func() string {
		if got := s.got(); len(got) != 1 || !strings.HasSuffix(got[0], "late") {
			return fmt.Sprintf("forwarded %q, want the late call", got)
		}
		return ""
	})
	if got := f.Counts(); got.Stalled != 1 {
		t.Errorf("counts %+v", got)
	}
}

func TestFaultsEndWithTheTest(t *testing.T) {
	s := &sink{}
	target := httptest.NewServer(s)
	defer target.Close()
	t.Run("held", func(t *testing.T) {
		f := servers.NewFaults(t, target.URL)
		f.Once(servers.Stall(time.Hour))
		go post(f.URL, "", "held")
		eventually(t, func() string {
			if f.Counts().Stalled == 0 {
				return "the call did not arrive"
			}
			return ""
		})
	})
	if got := s.got(); len(got) != 0 {
		t.Errorf("forwarded %q", got)
	}
}

func TestFaultsBreakTheConnectionIfTheTargetIsGone(t *testing.T) {
	target := httptest.NewServer(http.NotFoundHandler())
	f := servers.NewFaults(t, target.URL)
	target.Close()
	if a, err := post(f.URL, "", ""); err == nil {
		t.Errorf("answered %+v", a)
	}
}

func TestFaultsByChance(t *testing.T) {
	const calls = 400
	run := func(seed uint64) (marks string, c servers.Counts) {
		_, f := faulty(t)
		f.Seed(seed)
		f.Chance(0.2, servers.Before(429, servers.Overloaded))
		f.Chance(0.1, servers.After())
		for range calls {
			switch a, err := post(f.URL, "", ""); {
			case err != nil:
				marks += "a"
			case a.Status == 429:
				marks += "b"
			default:
				marks += "."
			}
		}
		c = f.Counts()
		f.Clear()
		if a, err := post(f.URL, "", ""); err != nil || a.Status != 200 {
			t.Errorf("after Clear: %+v, %v", a, err)
		}
		return marks, c
	}
	first, c := run(7)
	want := servers.Counts{Calls: calls, Before: strings.Count(first, "b"), After: strings.Count(first, "a")}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if c.Before < 40 || c.Before > 120 || c.After < 15 || c.After > 70 {
		t.Errorf("%+v: far from the chances 0.2 and 0.1", c)
	}
	if again, _ := run(7); again != first {
		t.Errorf("the same seed decided\n%s\nand then\n%s", first, again)
	}
	if other, _ := run(8); other == first {
		t.Error("another seed decided the same")
	}
}
