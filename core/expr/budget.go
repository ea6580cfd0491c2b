package expr

import "errors"

// Bounds of one evaluation. A step is a visit of one node, or bytesPerStep bytes that are
// compared, hashed, counted or copied. It takes about 20 ns. So the evaluation of an
// expression ends within about 100 ms on a payload of up to 1 MiB. A path such as $..id takes
// less than one step for each byte of a payload.
const (
	stepsPerByte = 4       // of payload
	leastSteps   = 4 << 20 // also for a small payload
	bytesPerStep = 32
)

// ErrBudget is the error of an evaluation that ran out of steps, and so has no result.
var ErrBudget = errors.New("the expression takes too many steps on this payload (it may take four for each byte, and 4194304 at least); " +
	"name members in place of .. and [*], and have fewer and shorter patterns")

// A budget is how many steps one evaluation may still take.
type budget struct{ left int }

// spend takes steps from the budget and reports whether enough were left. After the first false
// it returns false always: the evaluation ends, and its result means nothing. It does not clamp
// at 0: the sum of all steps of one evaluation is far below the range of an int.
func (b *budget) spend(steps int) bool {
	b.left -= steps
	return b.left >= 0
}

// spent reports whether the budget ran out. Loops ask it once per round instead of checking
// each result of spend.
func (b *budget) spent() bool { return b.left < 0 }

// span is the steps that a number of bytes take.
func span(bytes int) int { return bytes / bytesPerStep }

// begin sets the budget of an evaluation about the payload. Reading the payload, onto the
// tape and into the tree, costs no steps: all expressions share that work, and its time is
// proportional to the payload.
func (d *Document) begin() {
	d.budget.left, d.asked = max(leastSteps, stepsPerByte*len(d.payload)), false
}

// settle returns ErrBudget if the evaluation ran out of steps, and the error of a payload that
// it asked for and that has no view.
func (d *Document) settle() error {
	// This error comes first: it says more than a spent budget.
	if d.asked && d.broken != nil {
		return d.broken
	}
	if d.budget.spent() {
		return ErrBudget
	}
	return nil
}
