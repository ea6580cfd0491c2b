package expr

import "errors"

// Bounds of one evaluation. A step is a node that is looked at, or bytesPerStep
// bytes that are compared, hashed, counted or copied; it takes some 20 ns. So the
// evaluation of an expression ends within about 100 ms on a payload of up to 1 MiB.
// A path such as $..id takes less than one step for each byte of a payload.
const (
	stepsPerByte = 4       // of payload
	leastSteps   = 4 << 20 // also for a small payload
	bytesPerStep = 32
)

// ErrBudget is the error of an evaluation that ran out of steps. The result
// is not known.
var ErrBudget = errors.New("the expression takes too many steps on this payload (it may take four for each byte, and 4194304 at least); " +
	"name members in place of .. and [*], and have fewer and shorter patterns")

// A budget is how many steps one evaluation may still take.
type budget struct{ left int }

// spend takes steps from the budget and reports whether that was enough. Once it was
// not, it never is again: whatever is being evaluated ends, and its result means
// nothing.
func (b *budget) spend(steps int) bool {
	b.left -= steps
	return b.left >= 0
}

// spent reports whether the budget did not suffice.
func (b *budget) spent() bool { return b.left < 0 }

// span is the steps that a number of bytes take.
func span(bytes int) int { return bytes / bytesPerStep }

// begin gives an evaluation about the payload its budget. Reading the payload, onto
// the tape and into the tree, is not part of it: that is done once for all
// expressions, in time proportional to the payload.
func (d *Document) begin() { d.budget.left = max(leastSteps, stepsPerByte*len(d.payload)) }

// settle returns ErrBudget if the evaluation ran out of steps.
func (d *Document) settle() error {
	if d.budget.spent() {
		return ErrBudget
	}
	return nil
}
