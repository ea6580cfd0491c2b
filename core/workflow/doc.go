// Package workflow is the state machine of workflow runs: what the end of an attempt
// makes of a run, what a step calls, and how a failed run begins anew.
//
// The one idea to know: a run moves by transitions, and a transition is computed, not
// carried out. [Definition.Advance] is told what is stored of a run and how attempts of
// its steps ended, and answers with everything that is to be written, in one piece:
// steps that are over, steps that begin, their jobs, the lines of the history. It works
// on copies, asks nobody, and answers the same to the same question, but for the ids,
// which the [Pen] makes, and the jitter of retries. Whoever stores the answer does so
// only if the run is still where it was when it was read; else it reads again and asks
// again. So nothing here needs a lock, any number of workers may ask about one run at
// once, and every crash is one of two cases: the transition is stored, or it is not.
//
// If something has to be read that is seldom needed, such as what the other branches
// came to, the answer is what is [Move.Missing]: to be read, and asked again with it.
//
// What needs nobody from outside happens at once, in the same transition: choices,
// the beginning and end of branches, waits that are over. Only calls, callbacks and
// times to come have jobs, and the step that a run begins with, which has one because
// somebody must move it first. See kind in compile.go for what differs between the
// types of steps; each has its own file.
//
// Alternatives considered: to replay a run's history at every step, as engines do whose
// workflows are programs, makes a run of n steps cost n² reads and forbids to change
// what a replay would meet; here steps are data, so their rows say all there is. One
// job for each inline step too would make every step alike, at the price of two more
// batches for a choice. Counting the branches that are over in the database instead of
// in a row that is written under the run's lock fired joins twice when an answer got
// lost and was sent again.
//
// workflow is pure. It imports core, core/config, core/expr and the standard library
// without net/http, os and database/sql.
package workflow
