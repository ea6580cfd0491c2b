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

// newAsking makes a world in which a run asks for a callback. It returns the run and its
// notices.
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

// A callback counts from the moment at which its token is sent, and counts once.
func TestCallback(t *testing.T) {
	for _, early := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var w *world
			var id core.ID
			back := func(token string) {
				for i, c := range []struct {
					body string
					want error
				}{{`{"ok": 1}`, nil}, {`{"ok": 2}`, ErrToken}, {`{"ok": 1}`, nil}, {``, ErrToken}} {
					if err := w.callback(token, c.body); err != c.want {
						t.Errorf("early %v: callback %d with %q = %v, want %v", early, i+1, c.body, err, c.want)
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
			var facts []string
			for _, f := range factsOf[core.CalledIn](w) {
				if known := f.Run.ID == id; known != (f.Result != core.CallbackUnknown) || (f.Path == "ask") != (f.Result == core.CallbackReceived) {
					t.Errorf("reported %+v", f)
				}
				facts = append(facts, string(f.Result))
			}
			if diff := cmp.Diff([]string{"received", "unknown", "repeated", "unknown"}, facts); diff != "" {
				t.Errorf("callbacks reported (-want +got):\n%s", diff)
			}
		})
	}
}

// A token that came too late, belongs to another step, or never existed is refused in the
// same way, after the same look-up.
func TestInvalidTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, id, notices := newAsking(t, nil)
		w.tick()
		good := notices()[0]["token"].(string)
		bad := []string{
			"", "x", newToken(), strings.ToLower(good), good[1:], good + "A", " " + good, strings.Repeat("A", 1<<20), "ä\x00\xff", "../" + good,
		}
		for _, token := range bad {
			before := maps.Clone(w.ops)
			if err := w.callback(token, `{"a": 1}`); err != ErrToken {
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
			t.Errorf("reported %d times, want twice: it is tried again", n)
		}
	})
}

// A refusal of a body is the same for every token, so that it does not reveal whether the
// token is valid.
func TestBodiesOfCallbacks(t *testing.T) {
	const mark = "\ufeff"
	tests := []struct {
		body, output string // no output: refused
		refused      core.Kind
	}{
		{"", `{}`, 0}, {" \n", `{}`, 0}, {`{"a": [1.50]}`, `{"a": [1.50]}`, 0}, {`"text"`, `"text"`, 0}, {`null`, `null`, 0},
		{mark, `{}`, 0}, {mark + ` {"a": 1}`, `{"a": 1}`, 0}, {nested(200), nested(200), 0},
		{"nonsense", "", core.Invalid}, {`{"a": 1} 2`, "", core.Invalid}, {"\"\xff\"", "", core.Invalid},
		{mark + mark + "{}", "", core.Invalid}, {nested(201), "", core.Invalid}, {nested(20_000), "", core.Invalid},
		{`"` + strings.Repeat("x", 1<<20) + `"`, "", core.TooLarge},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			w, id, notices := newAsking(t, nil)
			w.tick()
			token := notices()[0]["token"].(string)
			err := w.callback(token, tt.body)
			if tt.output == "" {
				if !core.IsKind(err, tt.refused) {
					t.Errorf("Callback with %.60q = %v, want it refused", tt.body, err)
				}
				before := w.ops["awaited"]
				if other := w.callback(newToken(), tt.body); other == nil || err == nil || other.Error() != err.Error() || w.ops["awaited"] != before {
					t.Errorf("Callback with %.60q and another token = %v, want %v before it is looked up", tt.body, other, err)
				}
				tt.output = `{}`
				err = w.callback(token, "") // it is as valid as before
			}
			if run := w.read(id); err != nil || string(run.Output) != tt.output {
				t.Errorf("after %.60q: %v, run is %s with %.60s, want %.60s", tt.body, err, run.Status, run.Output, tt.output)
			}
		})
	}
}

func nested(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }

// The token of a failed attempt is as valid as the token of the next attempt.
func TestTokenOfAnEarlierAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, id, notices := newAsking(t, nil)
		answer := w.answer
		w.answer = func(ctx context.Context, r workflow.Request, job core.TakenJob) Answer {
			answer(ctx, r, job)
			if job.Situation.Step.Attempt == 0 {
				return Answer{Error: "timeout: no answer"} // but the receiver has the token
			}
			return Answer{StatusCode: 200}
		}
		w.tick()
		time.Sleep(15 * time.Second)
		w.tick()
		all := notices()
		if len(all) != 2 || len(w.tokens) != 2 || all[0]["token"] == all[1]["token"] {
			t.Fatalf("reported %v, want two tokens", all)
		}
		if err := w.callback(all[0]["token"].(string), `1`); err != nil || w.read(id).Status != core.RunCompleted {
			t.Errorf("Callback with the first token = %v, want it taken", err)
		}
		if err := w.callback(all[1]["token"].(string), `2`); err != ErrToken {
			t.Errorf("Callback with the second token = %v, want %v", err, ErrToken)
		}
	})
}

// A callback that meets other transitions is tried again, but not for ever, and its token
// stays valid.
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

// Without a URL no notice is sent: the step waits after one transition.
func TestWaitWithoutANotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, strings.ReplaceAll(asking, "url: 'https://a.example/ask', ", ""))
		w.start("asking", `{}`)
		r := w.runner()
		end := w.reach(r, "asking")
		settled, err := r.Settle(context.Background(), end)
		due := time.Now().Add(time.Hour)
		if diff := cmp.Diff([]core.StepSettled{{Status: core.Scheduled, DueAt: due, Next: due}}, settled); err != nil || diff != "" {
			t.Errorf("Settle: %v (-want +got):\n%s", err, diff)
		}
		if end.Kind != core.Armed || len(w.requests) != 0 || w.ops["transit"] != 2 || len(w.tokens) != 1 {
			t.Errorf("%v: %d calls and %d transits, want none and two", end.Kind, len(w.requests), w.ops["transit"])
		}
	})
}

// A notice that cannot be made fails before a token is made.
func TestNoticeThatCannotBeMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, strings.ReplaceAll(asking, "type: callback", "type: callback, input: $.nowhere"))
		id := w.start("asking", `{}`)
		if run := w.finish(id); !strings.HasPrefix(run.Error, "step ask: data: ") || len(w.entriesOf(id, core.EntryArmed)) != 0 {
			t.Errorf("run is %s: %s, %v", run.Status, run.Error, w.entriesOf(id))
		}
	})
}

// If the run ends just before a token is stored, the token is not sent.
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

// The sender of a callback whose outcome is unknown repeats the callback, and succeeds: the
// callback was recorded. That also holds after the run was redriven.
func TestCallbackOfUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, id, notices := newAsking(t, nil)
		w.tick()
		token := notices()[0]["token"].(string)
		w.after = func(op string) error {
			if op == "transit" {
				return errAway
			}
			return nil
		}
		if err := w.callback(token, `{"ok": 1}`); !core.IsKind(err, core.Unavailable) || string(w.read(id).Output) != `{"ok": 1}` {
			t.Fatalf("Callback = %v with the output %s, want it unavailable and stored", err, w.read(id).Output)
		}
		w.after = nil
		for _, c := range []struct {
			token, body string
			want        error
		}{
			{token, `{"ok": 1}`, nil},
			{token, "\ufeff" + `{"ok": 1}`, nil}, // the same result
			{token, `{"ok":1}`, ErrToken},
			{newToken(), `{"ok": 1}`, ErrToken},
		} {
			if err := w.callback(c.token, c.body); err != c.want {
				t.Errorf("Callback again with %q = %v, want %v", c.body, err, c.want)
			}
		}
		if n := len(w.entriesOf(id, core.EntrySucceeded)); n != 1 || string(w.read(id).Output) != `{"ok": 1}` {
			t.Errorf("the step succeeded %d times, output %s; want once, as first sent", n, w.read(id).Output)
		}
	})
}

// A recorded callback that is repeated succeeds, also after its run failed and was
// redriven. A callback for a canceled step does not.
func TestRepeatedCallbackOfARunThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, `
  asking:
    source: shop
    events: [order]
    steps:
      - {name: ask, type: callback, url: 'https://a.example/ask', callback_timeout: 3600}
      - {name: again, type: callback, url: 'https://a.example/again', callback_timeout: 3600}
`)
		var tokens []string
		w.answer = func(_ context.Context, r workflow.Request, _ core.TakenJob) Answer {
			var notice struct{ Token string }
			if err := json.Unmarshal(r.Body, &notice); err != nil {
				t.Error(err)
			}
			tokens = append(tokens, notice.Token)
			return Answer{StatusCode: 202}
		}
		id := w.start("asking", `{}`)
		w.tick()
		if err := w.callback(tokens[0], `1`); err != nil {
			t.Fatal(err)
		}
		w.tick()
		if _, err := w.runner().Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		for redriven := range 2 {
			if err := w.callback(tokens[0], `1`); err != nil {
				t.Errorf("redriven %d times: Callback of the step that was answered = %v, want none", redriven, err)
			}
			if err := w.callback(tokens[1], `2`); err != ErrToken {
				t.Errorf("redriven %d times: Callback of the step that was canceled = %v, want %v", redriven, err, ErrToken)
			}
			if redriven == 0 {
				if _, err := w.runner().Redrive(t.Context(), id, true, core.Definition{}); err != nil {
					t.Fatal(err)
				}
				w.tick()
			}
		}
	})
}

// A repeated callback that comes while the first one is being stored succeeds.
func TestSameCallbackAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, op := range []string{"situations", "transit"} {
			w, _, notices := newAsking(t, nil)
			w.tick()
			token := notices()[0]["token"].(string)
			w.before = func(now string) error {
				if now == op {
					w.before = nil
					if err := w.callback(token, `"same"`); err != nil {
						t.Errorf("before %s: the first Callback = %v", op, err)
					}
				}
				return nil
			}
			if err := w.callback(token, `"same"`); err != nil {
				t.Errorf("another came before %s: the second Callback = %v, want none", op, err)
			}
		}
	})
}

// Of two callbacks that find their token valid, one counts.
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

const askingThenWaiting = `
  pausing:
    source: shop
    events: [order]
    steps:
      - {name: ask, type: callback, url: 'https://a.example/ask', callback_timeout: 3600}
      - {name: pause, type: wait, seconds: 1}
      - {name: notify, url: 'https://a.example/notify'}
`

// A callback that leads to a wait rings the bell with the end of the wait: the process that
// received the callback may be the only process awake.
func TestCallbackBeforeAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, askingThenWaiting)
		token := ""
		w.answer = func(_ context.Context, r workflow.Request, _ core.TakenJob) Answer {
			var notice struct{ Token string }
			if token == "" && json.Unmarshal(r.Body, &notice) == nil {
				token = notice.Token
			}
			return Answer{StatusCode: 202}
		}
		id := w.start("pausing", `{}`)
		w.tick()
		const lane = core.Lane("workflow/pausing")
		heard := w.bell.Listen(lane)
		if err := w.callback(token, `{}`); err != nil {
			t.Fatal(err)
		}
		if got, want := heard.Coming(), time.Now().Add(time.Second); len(got) != 1 || got[lane].Sub(want).Abs() > 2*time.Millisecond {
			t.Errorf("Coming() = %v, want the lane when its wait is over, %v", got, want)
		}
		if r := w.finish(id); r.Status != core.RunCompleted {
			t.Errorf("run is %s: %s", r.Status, r.Error)
		}
	})
}
