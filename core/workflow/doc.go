// Package workflow is the state machine of workflow runs. It computes how the end of an
// attempt changes a run, which call a step makes, and how a failed run is redriven.
//
// The one idea to know: a run moves by transitions, and a transition is computed here but
// carried out elsewhere. [Definition.Advance] receives the stored data of a run and the
// ends of attempts. It returns everything that is to be written, in one piece: steps that
// ended, steps that begin, their jobs, the entries of the history. It works on copies, and
// does no IO. The same input gives the same result, except for the ids, which the [Pen]
// makes, and the jitter of retries.
//
// The caller stores the result only if the run has not moved since it was read. If it has,
// the caller reads the run again and calls Advance again. So this package needs no lock,
// and any number of workers may compute a transition of the same run at once. Every crash
// is one of two cases: the transition is stored, or it is not.
//
// Some data is seldom needed, such as the results of the other branches. If Advance needs
// it, the result has only [Move.Missing]: the caller reads that data and calls Advance
// again.
//
// Inline steps are executed at once, in the same transition: choices, the beginning and end
// of branches, waits that are over. Only calls, callbacks and times in the future have
// jobs. The first step of a run also has a job, since a worker must begin the run. See kind
// in compile.go for the differences between the types of steps. Each type has its own file.
//
// Alternatives considered:
//
//   - To replay a run's history at every step, as engines do whose workflows are
//     programs. A run of n steps then costs n² reads, and a workflow cannot change where
//     a replay would read it. Here steps are data, so their rows hold the whole state.
//   - One job for each inline step as well. All steps would be alike, at the price of two
//     more batches for each choice.
//   - To count ended branches by a database counter, instead of in a row that is written
//     under the run's lock. That counter fired joins twice when an answer was lost and
//     the batch was sent again.
//
// workflow is pure. It imports core, core/config, core/expr, core/once, core/order and the
// standard library without net/http, os and database/sql.
package workflow
