package runner

import (
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/workflow"
)

const asking = `
  asking:
    source: shop
    events: [order]
    steps:
      - {name: ask, type: callback, url: 'https://a.example/ask', callback_timeout: 3600, retry: {max: 2, interval: 10s, backoff: fixed}}
`

// newAsking makes a world in which a run asks, and returns the notices that are told.
func newAsking(t *testing.T, during func(token string)) (w *world, id core.ID, notices func() []map[string]any) {
	w = newWorld(t, asking)
	w.answer = func(_ context.Context, r workflow.Request, _ core.TakenJob) Answer {
		var notice struct{ Token string }
		if err := json.Unmarshal(r.Body, &notice); err != nil {
			t.Error(err)
		}
		if during != nil {
			during(notice.Token)
		}
		return Answer{StatusCode: 202}
	}
	return w, w.start("asking", `{"n": 1}`), func() (all []map[string]any) {
		for _, r := range w.requests {
			var notice map[string]any
			if err := json.Unmarshal(r.Body, &notice); err != nil {
				t.Error(err)
			}
			all = append(all, notice)
		}
		return all
	}
}

func (w *world) callback(token, body string) error {
	return w.runner().Callback(context.Background(), token, []byte(body))
}

func TestNotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, id, notices := newAsking(t, nil)
		w.tick()
		notice := notices()[0]
		token, _ := notice["token"].(string)
		if !regexp.MustCompile(`^[A-Z2-7]{52}$`).MatchString(token) {
			t.Errorf("token %q, want 52 characters of base32", token)
		}
		want := map[string]any{
			"token": token, "callback_url": "https://gateway.example/callback/" + token,
			"workflow": "asking", "run_id": string(id), "step": "ask", "payload": map[string]any{"n": 1.0},
		}
		if diff := cmp.Diff(want, notice); diff != "" {
			t.Errorf("notice (-want +got):\n%s", diff)
		}
		for hash := range w.tokens {
			if len(w.tokens) != 1 || hash != digest(token) || len(hash) != 64 {
				t.Errorf("stored %v, want the hash of the token alone", w.tokens)
			}
		}
		if w.ops["situations"] != 0 || w.ops["transit"] != 3 {
			t.Errorf("asked the store %v, want nothing read again for a begin, a token and an end", w.ops)
		}
		if again := newToken(); again == token || again == newToken() {
			t.Error("two tokens are the same")
		}
	})
}

// A callback counts from the moment on in which its token is told, and once.
func TestCallback(t *testing.T) {
	for _, early := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var w *world
			var id core.ID
			back := func(token string) {
				for i, want := range []error{nil, ErrToken} {
					if err := w.callback(token, `{"ok": 1}`); err != want {
						t.Errorf("early %v: callback %d = %v, want %v", early, i+1, err, want)
					}
				}
			}
			during := back
			if !early {
				during = nil
			}
			w, id, notices := newAsking(t, during)
			r := w.tick()
			if !early {
				if s := w.read(id).Status; s != core.RunRunning {
					t.Errorf("run is %s before the callback", s)
				}
				back(notices()[0]["token"].(string))
			} else if r.Lost != 1 {
				t.Errorf("Tick = %+v, want the end of the notice lost", r)
			}
			if run := w.read(id); run.Status != core.RunCompleted || string(run.Output) != `{"ok": 1}` {
				t.Errorf("early %v: run is %s with %s", early, run.Status, run.Output)
			}
			if left := w.left(id); len(left) > 0 {
				t.Errorf("early %v: left %v", early, left)
			}
			var known []bool
			for _, f := range factsOf[core.CalledIn](w) {
				known = append(known, f.Known)
				if f.Known && (f.Run.ID != id || f.Path != "ask") || !f.Known && f.Run.ID != "" {
					t.Errorf("told %+v", f)
				}
			}
			if diff := cmp.Diff([]bool{true, false}, known); diff != "" {
				t.Errorf("callbacks told as known (-want +got):\n%s", diff)
			}
		})
	}
}

// A token that came too late, was another's, or never was, is refused in the same way
// after the same look-up.
func TestTokensThatAreNoGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, id, notices := newAsking(t, nil)
		w.tick()
		good := notices()[0]["token"].(string)
		bad := []string{
			"", "x", newToken(), strings.ToLower(good), good[1:], good + "A", " " + good, strings.Repeat("A", 1<<20), "ä\x00\xff", "../" + good,
		}
		for _, token := range bad {
			before := maps.Clone(w.ops)
			if err := w.callback(token, "no JSON"); err != ErrToken {
				t.Errorf("Callback(%.60q) = %v, want %v", token, err, ErrToken)
			}
			before["awaited"]++
			if diff := cmp.Diff(before, w.ops); diff != "" {
				t.Errorf("Callback(%.60q) asked the store (-want +got):\n%s", token, diff)
			}
		}
		time.Sleep(time.Hour)
		if err := w.callback(good, `{}`); err != ErrToken {
			t.Errorf("after its time Callback = %v, want %v", err, ErrToken)
		}
		if run := w.finish(id); run.Status != core.RunFailed || !strings.HasPrefix(run.Error, "step ask: timeout: ") {
			t.Errorf("run is %s: %s, want it failed with timeout", run.Status, run.Error)
		}
		if n := len(w.requests); n != 2 {
			t.Errorf("told %d times, want twice: it is tried again", n)
		}
	})
}

func TestBodiesOfCallbacks(t *testing.T) {
	tests := []struct {
		body, output string // no output: refused
	}{
		{"", `{}`}, {" \n", `{}`}, {`{"a": [1.50]}`, `{"a": [1.50]}`}, {`"text"`, `"text"`}, {`null`, `null`},
		{"nonsense", ""}, {`{"a": 1} 2`, ""}, {"\"\xff\"", ""},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			w, id, notices := newAsking(t, nil)
			w.tick()
			token := notices()[0]["token"].(string)
			err := w.callback(token, tt.body)
			if tt.output == "" {
				if !core.IsKind(err, core.Invalid) {
					t.Errorf("Callback with %q = %v, want it refused", tt.body, err)
				}
				tt.output = `{}`
				err = w.callback(token, "") // it is as good as before
			}
			if run := w.read(id); err != nil || string(run.Output) != tt.output {
				t.Errorf("after %q: %v, run is %s with %s, want %s", tt.body, err, run.Status, run.Output, tt.output)
			}
		})
	}
}

// The token of an attempt that failed is as good as that of the next one.
func TestTokenOfAnEarlierAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, id, notices := newAsking(t, nil)
		told := w.answer
		w.answer = func(ctx context.Context, r workflow.Request, job core.TakenJob) Answer {
			told(ctx, r, job)
			if job.Situation.Step.Attempt == 0 {
				return Answer{Error: "timeout: no answer"} // but it was told
			}
			return Answer{StatusCode: 200}
		}
		w.tick()
		time.Sleep(15 * time.Second)
		w.tick()
		all := notices()
		if len(all) != 2 || len(w.tokens) != 2 || all[0]["token"] == all[1]["token"] {
			t.Fatalf("told of %v, want two tokens", all)
		}
		if err := w.callback(all[0]["token"].(string), `1`); err != nil || w.read(id).Status != core.RunCompleted {
			t.Errorf("Callback with the first token = %v, want it taken", err)
		}
		if err := w.callback(all[1]["token"].(string), `2`); err != ErrToken {
			t.Errorf("Callback with the second token = %v, want %v", err, ErrToken)
		}
	})
}

// A callback among others is tried again, but not for ever, and its token stays good.
func TestCallbackAmongOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, id, notices := newAsking(t, nil)
		w.tick()
		token := notices()[0]["token"].(string)
		w.first(id, 1000)
		if err := w.callback(token, ""); !core.IsKind(err, core.Unavailable) {
			t.Errorf("Callback = %v, want that it cannot be done now", err)
		}
		w.before = func(op string) error {
			if op == "transit" {
				return errAway
			}
			return nil
		}
		if err := w.callback(token, ""); !core.IsKind(err, core.Unavailable) {
			t.Errorf("Callback = %v, want that it cannot be done now", err)
		}
		w.first(id, 40)
		if err := w.callback(token, ""); err != nil || w.read(id).Status != core.RunCompleted {
			t.Errorf("Callback = %v, want it taken", err)
		}
	})
}

// Without a URL nobody is called: the step waits after one transition.
func TestNobodyToTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, strings.ReplaceAll(asking, "url: 'https://a.example/ask', ", ""))
		w.start("asking", `{}`)
		r := w.runner()
		end := w.reach(r, "asking")
		settled, err := r.Settle(context.Background(), end)
		due := time.Now().Add(time.Hour)
		if diff := cmp.Diff([]core.StepSettled{{Status: core.Retryable, DueAt: due, Next: due}}, settled); err != nil || diff != "" {
			t.Errorf("Settle: %v (-want +got):\n%s", err, diff)
		}
		if end.Kind != core.Armed || len(w.requests) != 0 || w.ops["transit"] != 2 || len(w.tokens) != 1 {
			t.Errorf("%v: %d calls and %d transits, want none and two", end.Kind, len(w.requests), w.ops["transit"])
		}
	})
}

// What cannot be told fails before a token is made.
func TestNoticeThatCannotBeMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, strings.ReplaceAll(asking, "type: callback", "type: callback, input: $.nowhere"))
		id := w.start("asking", `{}`)
		if run := w.finish(id); !strings.HasPrefix(run.Error, "step ask: data: ") || len(w.told(id, core.EntryArmed)) != 0 {
			t.Errorf("run is %s: %s, %v", run.Status, run.Error, w.told(id))
		}
	})
}

// Nobody is told a token of a run that ended just before it was stored.
func TestTokenOfARunThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, id, _ := newAsking(t, nil)
		r, job, transits := w.runner(), w.take("asking")[0], 0
		w.before = func(op string) error {
			if op == "transit" {
				if transits++; transits == 2 { // the first begins the run
					if _, err := w.runner().Cancel(context.Background(), id); err != nil {
						t.Error(err)
					}
				}
			}
			return nil
		}
		if _, ok, err := r.Attempt(context.Background(), job); ok || err != nil || len(w.requests) != 0 || len(w.tokens) != 0 {
			t.Errorf("Attempt = %v, %v with %d calls and %d tokens, want a stale job and neither", ok, err, len(w.requests), len(w.tokens))
		}
	})
}

// Of two callbacks that find their token good one counts.
func TestCallbacksAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, id, notices := newAsking(t, nil)
		w.tick()
		token := notices()[0]["token"].(string)
		w.before = func(op string) error {
			if op == "transit" {
				w.before = nil
				if err := w.callback(token, `"first"`); err != nil {
					t.Errorf("the first Callback = %v", err)
				}
			}
			return nil
		}
		if err := w.callback(token, `"second"`); err != ErrToken || string(w.read(id).Output) != `"first"` {
			t.Errorf("the second Callback = %v, and the run has %s; want %v and what came first", err, w.read(id).Output, ErrToken)
		}
	})
}
