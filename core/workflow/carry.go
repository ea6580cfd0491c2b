package workflow

import (
	"encoding/json"
	"maps"
	"strconv"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A carry is data that passes from step to step beside the state, and down into branches. It is
// stored as JSON with its step, and processes of other versions read it. So a JSON name never
// changes, and a new field must be optional.
type carry struct {
	// Visits counts how many times the run has reached each looped step, in this instance
	// of its list. It includes the step at which the run is. It includes the first step of
	// a list only after the run has left that step.
	Visits map[string]int `json:"visits,omitempty"`

	Error    *caughtFailure `json:"error,omitempty"`   // the last failure that was caught
	Index    *int           `json:"index,omitempty"`   // of the innermost item
	Expires  int64          `json:"expires,omitempty"` // of the tokens of a callback step, if it has one; Unix milliseconds
	Turn     int64          `json:"turn,omitempty"`    // when a wait step of a map item began, if the item waited for its turn; Unix milliseconds
	Back     int            `json:"back,omitempty"`    // how many times the step's job was put back without an end that the step caused
	Visit    int            `json:"visit,omitempty"`   // epoch in which the run first reached the step, if the step was redriven since
	Held     int64          `json:"held,omitempty"`    // until when a call of an earlier epoch may be under way; Unix milliseconds
	Call     string         `json:"call,omitempty"`    // that call: see callOf
	CallOver bool           `json:"told,omitempty"`    // the call that was under way when the step was ended is over
	Caught   string         `json:"caught,omitempty"`  // path of the step of this list whose catch the run followed last
	Aside    string         `json:"aside,omitempty"`   // path of the step because of which the run fails; set for the steps from on_failure on
}

// A caughtFailure is a failure that was caught. Later steps see it as $$.error.
type caughtFailure struct {
	Class   core.ErrorClass `json:"class"`
	Message string          `json:"message"`
	Status  int             `json:"status"`
	Step    string          `json:"step"`
}

// readCarry reads a text of carry.text. A text that is no carry gives the zero carry: only this
// package writes carries.
func readCarry(text string) (c carry) {
	if text != "" {
		_ = json.Unmarshal([]byte(text), &c)
	}
	return c
}

// text returns the carry in its stored form. It is empty if the carry is zero. Most steps have
// an empty carry, which takes no space in the store. Call needs no test: it is only set with
// Held.
func (c carry) text() string {
	if len(c.Visits) == 0 && c.Error == nil && c.Index == nil && c.Expires == 0 && c.Turn == 0 && c.Back == 0 &&
		c.Visit == 0 && c.Held == 0 && !c.CallOver && c.Caught == "" && c.Aside == "" {
		return ""
	}
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // every field has a JSON form
	}
	return string(text)
}

// visit counts the visit of the step to after the step from, and returns its number.
func (c *carry) visit(from, to *step) int {
	// These belong to the step that has ended.
	c.Expires, c.Turn, c.Back, c.Visit, c.Held, c.Call, c.CallOver = 0, 0, 0, 0, 0, "", false
	if !to.looped {
		return 1
	}
	c.Visits = maps.Clone(c.Visits)
	if c.Visits == nil {
		c.Visits = map[string]int{}
	}
	if from.looped && c.Visits[from.name] == 0 {
		c.Visits[from.name] = 1
	}
	c.Visits[to.name]++
	return c.Visits[to.name]
}

// within returns the carry that passes into a branch. Branches count their visits from the
// beginning, since their lists are their own.
func (c carry) within() carry { return carry{Error: c.Error, Index: c.Index} }

// expiry returns when the tokens of a callback step expire; zero if it has none.
func (c carry) expiry() time.Time {
	if c.Expires == 0 {
		return time.Time{}
	}
	return time.UnixMilli(c.Expires).UTC()
}

// began returns when a step began that the run reached at the time came. The two differ for a
// wait step of a map item that waited for its turn.
func (c carry) began(came time.Time) time.Time {
	if c.Turn == 0 {
		return came
	}
	return time.UnixMilli(c.Turn).UTC()
}

// number returns n as a number of a JSON tree.
func number(n int) json.Number { return json.Number(strconv.Itoa(n)) }
