// Package core is the vocabulary of the event gateway: what an event, a job,
// an attempt and a lease are, how they may change, and which roles a store
// plays. It does no IO.
//
// # The model on one page
//
// An event comes in through one door and becomes rows in one SQL database in
// one commit: the event itself and one job for every consumer that matches it.
// A job waits in the lane of its consumer ("handler/billing", "queue/mail",
// "workflow/fulfil-order", "alert/3f9a..."). Whoever is awake takes due jobs out of lanes, tries them, and
// settles each attempt with an outcome.
//
//	request ──▶ Event ─┬─▶ Job (handler/a) ──▶ Attempt, Attempt, ...
//	                   └─▶ Job (handler/b) ──▶ Attempt
//
// The one idea to know: a row is work once its due time has passed.
//
//	            Accept              Take                Settle
//	(nothing) ─────────▶ available ───────▶ running ─┬────────▶ completed
//	                         ▲   due := end of lease │
//	                         │           ▲           ├────────▶ retryable, scheduled
//	                  Retry  │           └─────Take──┼────────────┘
//	                         │                       │     due := now + backoff, or the time
//	                         └─────────── dead ◀─────┘     that a workflow waits for
//
// Taking a job moves its due time to the end of the lease; settling it sets the
// due time to the retry time, or to none. So backoff, the recovery of jobs whose
// worker vanished, and a queue's visibility timeout are one index and one query:
// a running job whose lease is over is simply due again. So no status is a condition of a
// Take: retryable and scheduled tell people why a job waits, the due time for how long.
//
// Every write can be sent twice. Ids are made before the first write, every take
// writes a fresh [Lease], and each later write on the job carries it: a worker
// that lost its lease changes nothing. A job's attempt number is for people, never
// a fence. A slot of a schedule is fired by every process that sees it come; its time
// is the event's delivery id, so one event comes of it.
//
// A workflow is a consumer whose jobs are the steps of a [Run]:
//
//	            Accept            first Take            Transit
//	(nothing) ─────────▶ pending ───────────▶ running ─┬────────▶ completed
//	                        ▲                   ▲      │
//	                        │                   └──────┤ the next step, a retry
//	                        └────── redrive ─── failed ◀┘
//
// Each change of a run is one [Transition], and who inserts the next number of its
// history makes it. So steps that end side by side are counted exactly, whoever runs
// them, and a worker that dies leaves either a job to be taken again or the next one.
// No lease is asked for there: of those who ran the same attempt, the first to tell
// how it ended counts.
// Waiting for a time or for a callback is a job that is due later, like all waiting.
//
// Between a lane and its takers stands a [Gate]: the circuit breaker and the rate
// limit of its handler, a row like the others. Take asks it, Settle moves it, so
// both hold for every process of one database.
//
// # Who may import whom
//
// core imports the standard library and the ULID library, and nothing else of
// this module. Services (intake, worker, manage) import core and the pure
// packages; edges (web, egress, telemetry) import services; core/gateway
// assembles; store implements the roles declared here. Nothing below core ever
// imports store. The test in deps_test.go holds every line of this rule, with
// its reason.
package core
