package workflow

import (
	"encoding/json"
	"maps"
	"strconv"
	"time"

	"github.com/eventgateway/gateway/core"
)

// A carry is what goes along a list of steps beside the state, and down into branches.
type carry struct {
	// Visits counts how often the run has come to steps that it can come back to, in
	// this instance of their list. A step that it is at is counted, the first one of a
	// list only once it is left.
	Visits map[string]int `json:"visits,omitempty"`

	Error   *trouble `json:"error,omitempty"`   // what was caught last
	Index   *int     `json:"index,omitempty"`   // of the innermost item
	Expires int64    `json:"expires,omitempty"` // of the tokens of a callback step, if it has one; Unix milliseconds
	Turn    int64    `json:"turn,omitempty"`    // when a wait step began that had to wait for its turn; Unix milliseconds
	Back    int      `json:"back,omitempty"`    // how often the job of a step was put back that had not ended and is not at fault
	Visit   int      `json:"visit,omitempty"`   // epoch in which the run came to the step first, if the step was redriven since
	Held    int64    `json:"held,omitempty"`    // until when a call may be under way that was made before a redrive; Unix milliseconds
	Call    string   `json:"call,omitempty"`    // which call that is: see callOf
	Told    bool     `json:"told,omitempty"`    // the call is over that was under way when the step was ended
	Caught  string   `json:"caught,omitempty"`  // path of the step of this list whose catch the run followed last
	Aside   string   `json:"aside,omitempty"`   // path of the step because of which the run fails; of the steps from on_failure on
}

// A trouble is a failure that was caught.
type trouble struct {
	Class   core.ErrorClass `json:"class"`
	Message string          `json:"message"`
	Status  int             `json:"status"`
	Step    string          `json:"step"`
}

// readCarry reads what carry.text wrote.
func readCarry(text string) (c carry) {
	if text != "" {
		_ = json.Unmarshal([]byte(text), &c)
	}
	return c
}

// text is the carry as it is stored; empty if there is nothing in it.
func (c carry) text() string {
	if len(c.Visits) == 0 && c.Error == nil && c.Index == nil && c.Expires == 0 && c.Turn == 0 && c.Back == 0 &&
		c.Visit == 0 && c.Held == 0 && !c.Told && c.Caught == "" && c.Aside == "" {
		return ""
	}
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // there is nothing in it that cannot be written
	}
	return string(text)
}

// visit counts a visit of one step after another, and returns its number.
func (c *carry) visit(from, to *step) int {
	c.Expires, c.Turn, c.Back, c.Visit, c.Held, c.Call, c.Told = 0, 0, 0, 0, 0, "", false
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

// within is what goes along into a branch.
func (c carry) within() carry { return carry{Error: c.Error, Index: c.Index} }

// expiry is when the tokens of a callback step expire; zero if it has none.
func (c carry) expiry() time.Time {
	if c.Expires == 0 {
		return time.Time{}
	}
	return time.UnixMilli(c.Expires).UTC()
}

// began is when a step began to which the run came at a time.
func (c carry) began(came time.Time) time.Time {
	if c.Turn == 0 {
		return came
	}
	return time.UnixMilli(c.Turn).UTC()
}

func number(n int) json.Number { return json.Number(strconv.Itoa(n)) }
