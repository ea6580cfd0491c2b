package workflow

import (
	"encoding/json"
	"strings"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/expr"
)

// A failStep makes the run fail on purpose. In a branch or an item it makes that fail. Nothing
// comes after it, and only catch of a step above can handle its failure.
type failStep struct {
	inline
	of      *step
	code    string         // may be empty
	message *expr.Template // nil: the message of the last failure that was caught
}

// Nothing comes after the step, also if the file has a step there.
func newFail(s *step, c config.Step) kind {
	s.next = nil
	return &failStep{of: s, code: c.Error, message: c.Message.Value}
}

func (k *failStep) typ() string { return "fail" }

func (k *failStep) inside(string) *list { return nil }
func (k *failStep) exits() []*step      { return nil }

// The failure is final: trying it again would fail again.
func (k *failStep) enter(m *move, r *row) {
	r.Attempt++
	text, err := k.text(m.scope(r, r.Attempt))
	if err != nil {
		m.attemptFailed(r, dataFailure(err))
		return
	}
	m.attemptFailed(r, &failure{class: core.ClassFail, text: text, final: true})
}

func (k *failStep) end(m *move, r *row, e core.StepEnd) bool { return m.enterByJob(r, e) }

// silent reports whether the step has neither a code nor a message of its own. Such a step only
// ends the run, and its error says nothing new.
func (k *failStep) silent() bool { return k.code == "" && k.message == nil }

// maxMessage is the maximum length of a message, in characters.
const maxMessage = 1000

// text returns the error of the step: its class, and its code and message if it has them.
func (k *failStep) text(s scope) (string, error) {
	message, err := k.messageText(s)
	if err != nil {
		return "", err
	}
	text := string(core.ClassFail)
	for _, part := range []string{k.code, message} {
		if part != "" {
			text += ": " + part
		}
	}
	return text, nil
}

// It is at most maxMessage characters long. A longer text is cut and ends with an ellipsis.
func (k *failStep) messageText(s scope) (message string, err error) {
	// Without a message of its own, the step repeats the failure that led to it.
	if k.message == nil {
		if e := readCarry(s.row.Carry).Error; e != nil {
			message = stepError(e.Step) + e.Message
		}
		return message, nil
	}
	seen, err := s.inputDocument(k.of.input)
	if err != nil {
		return "", err
	}
	text, err := k.message.Render(seen, s.context())
	if err != nil {
		return "", err
	}
	// The template renders a JSON string.
	if err := json.Unmarshal(text, &message); err != nil {
		return "", err
	}
	message = strings.ReplaceAll(message, "\x00", "\uFFFD") // PostgreSQL cannot store NUL characters
	if runes := []rune(message); len(runes) > maxMessage {
		message = string(runes[:maxMessage-1]) + "…"
	}
	return message, nil
}
