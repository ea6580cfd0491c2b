package workflow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/expr"
)

// A callbackStep is over when a callback comes with a token that was issued for it.
// An attempt issues a token, posts it, and waits; a token of an earlier attempt is as
// good, unless it has expired.
type callbackStep struct {
	leaf
	outside
	call    call // without a URL nobody is told
	timeout time.Duration
}

func newCallback(s *step, c config.Step) *callbackStep {
	timeout := time.Duration(c.CallbackTimeout) * time.Second
	if timeout == 0 {
		timeout = longest
	}
	return &callbackStep{call: newCall(s, c), timeout: timeout}
}

func (k *callbackStep) typ() string { return "callback" }

// task is to tell a token, unless one was told, or the time for it is over.
func (k *callbackStep) task(job core.TakenJob, now time.Time) Task {
	row := job.Situation.Step
	if row.Status == core.StepWaiting || over(readCarry(row.Carry).expiry(), now) {
		return Elapse
	}
	return Notify
}

// callbackOf is the callback step that a job is for.
func (d *Definition) callbackOf(job core.TakenJob) (*callbackStep, bool) {
	s := d.at(job.Situation.Step.Path)
	if s == nil {
		return nil, false
	}
	k, ok := s.kind.(*callbackStep)
	return k, ok
}

// Notice is the call by which a callback step tells its token: whoever is called is to
// post the callback to address. Its URL is empty if nobody is to be told: then the step
// waits from the Armed end on, and there is no call to settle. An error is of class data
// and final.
func (d *Definition) Notice(job core.TakenJob, token, address string) (Request, error) {
	k, ok := d.callbackOf(job)
	if !ok {
		return Request{}, errNoStep
	}
	payload, err := taken(job).input(k.call.of.input)
	if err != nil {
		return Request{}, err
	}
	s := job.Situation
	body, err := encode(notice{
		Token: token, CallbackURL: address, Workflow: d.name,
		RunID: s.Run.ID, Step: s.Step.Path, Payload: payload,
	})
	if err != nil {
		return Request{}, err
	}
	return k.call.request(job, body), nil
}

type notice struct {
	Token       string          `json:"token"`
	CallbackURL string          `json:"callback_url"`
	Workflow    string          `json:"workflow"`
	RunID       core.ID         `json:"run_id"`
	Step        string          `json:"step"`
	Payload     json.RawMessage `json:"payload"`
}

// Expiry is when a token that is issued now for the callback step of a job expires: all
// tokens that are told until one of them expires do so at the same time.
func (d *Definition) Expiry(job core.TakenJob, now time.Time) time.Time {
	if t := readCarry(job.Situation.Step.Carry).expiry(); !t.IsZero() {
		return t
	}
	k, ok := d.callbackOf(job)
	if !ok {
		return now
	}
	return now.Add(k.timeout).UTC().Truncate(time.Millisecond)
}

func (k *callbackStep) end(m *move, r *row, e core.StepEnd) bool {
	c := readCarry(r.Carry)
	switch e.Kind {
	case core.Armed:
		k.arm(m, r, e, c)
	case core.Replied:
		m.called(r, e)
		m.waits(r, c.expiry())
	case core.Refused:
		m.refused(r, e)
	case core.CalledBack:
		k.resume(m, r, e)
	case core.Elapsed:
		return k.elapse(m, r, e, c)
	default:
		return false
	}
	return true
}

// CallbackResult returns the result that the body of a callback brings: its JSON without a
// byte order mark before it, or {} if it is blank. A body is refused as [core.Invalid] if it
// is no JSON in UTF-8 or is nested deeper than 200 levels, and as [core.TooLarge] if it has
// more than 1 MiB.
func CallbackResult(body []byte) ([]byte, error) {
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		return []byte("{}"), nil
	case len(body) > maxState:
		return nil, core.Refuse(core.TooLarge, "the body has %d bytes; at most %d are kept", len(body), maxState)
	case !json.Valid(body) || !utf8.Valid(body):
		return nil, core.Refuse(core.Invalid, "the body must be JSON, or empty")
	case expr.TooDeep(body):
		return nil, core.Refuse(core.Invalid, "the body is nested deeper than %d levels", maxDepth)
	}
	return body, nil
}

// arm keeps a token that is about to be told.
func (k *callbackStep) arm(m *move, r *row, e core.StepEnd, c carry) {
	if c.Expires == 0 {
		c.Expires = e.Expires.UnixMilli()
	}
	r.Carry, r.Status, r.changed = c.text(), core.StepRunning, true
	m.tokens = append(m.tokens, core.Token{Hash: e.Token, StepID: r.ID, ExpiresAt: c.expiry()})
	m.record(core.EntryArmed, r.Path, details{Until: core.FormatTime(c.expiry())})
	if k.call.url == "" {
		m.waits(r, c.expiry())
	}
}

// resume goes on with what a callback brought. Its token is used up, also if nothing
// can be made of that.
func (k *callbackStep) resume(m *move, r *row, e core.StepEnd) {
	r.Attempt++
	r.changed = true
	m.disarm(r)
	result, err := resultOf(e.Body)
	switch {
	case err != nil:
		m.stumble(r, dataFailure(err))
	case result == nil:
		m.leave(r, []byte("{}"))
	default:
		m.leave(r, result)
	}
}

// elapse is told that the time of the job has come.
func (k *callbackStep) elapse(m *move, r *row, e core.StepEnd, c carry) bool {
	switch expiry := c.expiry(); {
	case over(expiry, m.now):
		r.Attempt++
		m.disarm(r)
		text := fmt.Sprintf("timeout: no callback came in %d s", k.timeout/time.Second)
		m.stumble(r, &failure{class: core.ClassTimeout, text: text})
	case m.expired:
	case r.Status == core.StepWaiting: // it was taken early
		r.putBack()
		m.waits(r, expiry)
	default:
		return m.wornOut(r, e)
	}
	return true
}
