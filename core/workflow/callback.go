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

// A callbackStep ends when a callback with a token of it arrives. Each attempt issues a token,
// posts it, and waits. The token of an earlier attempt stays valid until it expires. The tokens
// themselves are made by the caller; this package sees only their hashes when they are stored.
type callbackStep struct {
	leaf
	outside
	call    call // without a URL the step posts no notice
	timeout time.Duration
}

// A step without callback_timeout waits for a year, the longest time that a run may wait.
func newCallback(s *step, c config.Step) *callbackStep {
	timeout := time.Duration(c.CallbackTimeout) * time.Second
	if timeout == 0 {
		timeout = maxWait
	}
	return &callbackStep{call: newCall(s, c), timeout: timeout}
}

func (k *callbackStep) typ() string { return "callback" }

// task is Notify, unless a notice was posted already or the tokens have expired.
func (k *callbackStep) task(job core.TakenJob, now time.Time) Task {
	row := job.Situation.Step
	if row.Status == core.StepWaiting || passed(readCarry(row.Carry).expiry(), now) {
		return Elapse
	}
	return Notify
}

// callbackOf returns the callback step of a job. It is false if the definition has no such
// step: the job may be of an earlier definition's step.
func (d *Definition) callbackOf(job core.TakenJob) (*callbackStep, bool) {
	s := d.at(job.Situation.Step.Path)
	if s == nil {
		return nil, false
	}
	k, ok := s.kind.(*callbackStep)
	return k, ok
}

// Notice returns the call by which a callback step sends its token. Its receiver is to post
// the callback to address. If the URL of the call is empty, the step has no receiver: it
// waits from the Armed end on, and there is no call to settle. An error is of class data
// and final.
func (d *Definition) Notice(job core.TakenJob, token, address string) (Request, error) {
	k, ok := d.callbackOf(job)
	if !ok {
		return Request{}, errNoStep
	}
	// The step's input is a member of the notice, so a receiver has the data for its decision.
	payload, err := scopeOf(job).input(k.call.of.input)
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

// A notice is the body of the call that sends a token. Receivers depend on its member names.
type notice struct {
	Token       string          `json:"token"`
	CallbackURL string          `json:"callback_url"`
	Workflow    string          `json:"workflow"`
	RunID       core.ID         `json:"run_id"`
	Step        string          `json:"step"`
	Payload     json.RawMessage `json:"payload"`
}

// Expiry returns when a token expires that is issued now for the callback step of a job.
// All tokens that the step issues before one of them expires have the same expiry.
func (d *Definition) Expiry(job core.TakenJob, now time.Time) time.Time {
	// An earlier attempt has fixed the expiry.
	if t := readCarry(job.Situation.Step.Carry).expiry(); !t.IsZero() {
		return t
	}
	k, ok := d.callbackOf(job)
	if !ok {
		return now
	}
	return now.Add(k.timeout).UTC().Truncate(time.Millisecond)
}

// Armed comes before the notice is sent, so that a callback that arrives at once finds its
// token.
func (k *callbackStep) end(m *move, r *row, e core.StepEnd) bool {
	c := readCarry(r.Carry)
	switch e.Kind {
	case core.Armed:
		k.arm(m, r, e, c)
	// The reply to the notice is only recorded. The callback ends the step.
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

// CallbackResult returns the result in the body of a callback: its JSON without a byte
// order mark, or {} if the body is blank. It refuses a body that is not JSON in UTF-8 or is
// nested deeper than 200 levels as [core.Invalid]. It refuses a body of more than 1 MiB as
// [core.TooLarge].
func CallbackResult(body []byte) ([]byte, error) {
	// Some clients send a byte order mark, which JSON does not permit.
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

// arm stores a token that is about to be sent. Only the hash of the token is stored.
func (k *callbackStep) arm(m *move, r *row, e core.StepEnd, c carry) {
	// A later attempt keeps the expiry of the first token.
	if c.Expires == 0 {
		c.Expires = e.Expires.UnixMilli()
	}
	r.Carry, r.Status, r.changed = c.text(), core.StepRunning, true
	m.tokens = append(m.tokens, core.Token{Hash: e.Token, StepID: r.ID, ExpiresAt: c.expiry()})
	m.record(core.EntryArmed, r.Path, details{Until: core.FormatTime(c.expiry())})
	// Without a receiver there is no call to wait for.
	if k.call.url == "" {
		m.waits(r, c.expiry())
	}
}

// resume continues with the body of a callback. The callback's token is used up, also if
// the body cannot be the step's result.
func (k *callbackStep) resume(m *move, r *row, e core.StepEnd) {
	r.Attempt++
	r.changed = true
	m.disarm(r)
	result, err := resultOf(e.Body)
	switch {
	case err != nil:
		m.attemptFailed(r, dataFailure(err))
	// A callback without a body still has a result.
	case result == nil:
		m.passResult(r, []byte("{}"))
	default:
		m.passResult(r, result)
	}
}

// elapse handles the due time of the step's job. It returns false if the job is put back. The
// due time may be the expiry, the deadline of the run, or a lease that ended in a crash.
func (k *callbackStep) elapse(m *move, r *row, e core.StepEnd, c carry) bool {
	switch expiry := c.expiry(); {
	case passed(expiry, m.now):
		r.Attempt++
		m.disarm(r)
		text := fmt.Sprintf("timeout: no callback came in %d s", k.timeout/time.Second)
		m.attemptFailed(r, &failure{class: core.ClassTimeout, text: text})
	case m.expired:
	case r.Status == core.StepWaiting: // the job was taken early
		r.putBack()
		m.waits(r, expiry)
	default:
		return m.failTakenTooOften(r, e)
	}
	return true
}
