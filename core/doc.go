// Package core is the vocabulary of the event gateway. It defines events, jobs, attempts and
// leases, the ways in which they may change, and the roles of a store. It does no IO.
//
// # The model on one page
//
// An event comes in through one door. One commit stores the event in a SQL database, together
// with one job for every consumer that matches it. A job waits in the lane of its consumer
// ("handler/billing", "queue/mail", "workflow/fulfil-order", "alert/3f9a..."). Workers take
// due jobs out of lanes, try them, and settle each attempt with an outcome.
//
//	request ──▶ Event ─┬─▶ Job (handler/a) ──▶ Attempt, Attempt, ...
//	                   └─▶ Job (handler/b) ──▶ Attempt
//
// The one idea to know: a row is work once its due time has passed.
//
//	                                Take, once the lease is over
//	                                         ┌────┐
//	            Accept              Take     ▼    │    Settle
//	(nothing) ─────────▶ available ───────▶ running ─┬────────▶ completed
//	                         ▲                 ▲     │
//	                         │                 │     ├────────▶ retryable, scheduled
//	                         │                 │     │                   │
//	                         │                 └─────┼────── Take ───────┘
//	                  Retry  │                       │
//	                         └─────────── dead ◀─────┘
//
//	Cancel: any job that waits, or whose lease is over ──▶ canceled ── Retry ──▶ available
//
//	Take    due := end of the lease
//	Settle  due := now + backoff, or the time that a workflow waits for
//
// AcceptAndTake is both in one commit: a worker with free slots takes new jobs as they are stored.
//
// Taking a job moves its due time to the end of the lease. Settling it sets the due time to
// the retry time, or to none. So one index and one query serve backoff, the recovery of jobs
// whose worker vanished, and a queue's visibility timeout: a running job whose lease is over
// is simply due again. No Take asks for a status. The statuses retryable and scheduled tell
// people why a job waits; the due time says for how long.
//
// Every write can be sent twice. Ids are made before the first write. Every take writes a
// fresh [Lease], and each later write on the job carries that lease: a worker that lost its
// lease changes nothing. A job's attempt number is for people and never a fence. When a
// slot's time comes, every process fires it. The slot's time is the event's delivery id, so a
// slot causes one event only.
//
// A workflow is a consumer whose jobs are the steps of a [Run]:
//
//	            Accept            first Take            Transit
//	(nothing) ─────────▶ pending ───────────▶ running ─┬────────▶ completed
//	                        ▲                   ▲      │
//	                        │                   └──────┤ the next step, a retry
//	                        └────── redrive ─── failed ◀┘
//
// Each change of a run is one [Transition]. Of several workers, the first to insert the next
// number of the run's history makes the change. So when parallel branches end at the same
// time, exactly one worker finds that it was the last. If a worker dies before its transition
// is stored, its job is taken again when the lease ends; if after, the next step's job exists
// already. A transition asks for no lease: if several workers ran the same attempt, the first
// end that is stored counts. Waiting for a time or for a callback is a job that is due later,
// like all waiting.
//
// The jobs of a lane may stand in lines, by a key of their events. Only jobs with a slot of their
// line have a due time. The others have none, so no claim meets them, and they cost a claim
// nothing. The Settle that ends a job makes the next job of its line due. See [Line].
//
// A [Gate] stands between a lane and its workers. It holds the circuit breaker and the rate
// limit of the lane's handler, in a row of the table gates. Take reads the gate and Settle
// moves it, so both hold for every process of one database. The gate also says whether an operator
// holds the lane. See [Hold].
//
// # Glossary
//
// Each word has this one meaning in the whole repository. Only mark and role
// have several.
//
// Coming in:
//
//   - source: a configured entrance for events: a webhook, the API, an SNS topic or a schedule.
//   - event: one message as the gateway received it, stored unchanged. See [Event].
//   - arrival: an event with its jobs and runs, before it is stored. See [Arrival].
//   - delivery id: the sender's own id of an event. It identifies repeats within a source.
//   - key: a text that makes a job unique in its lane. It identifies repeats within a lane.
//   - slot: one time of a cron source's schedule. Each slot causes one event.
//   - mark: the time up to which the slots of a source, or the alerts about a lane or source,
//     are dealt with. See [Mark]. The mark of a transition is its id: see [Transition]. The
//     mark of a SQLite file is a number by which package sqlite notices that the file lost
//     commits.
//
// Work:
//
//   - consumer: a configured receiver of events: a handler, a queue, a workflow or an alert.
//   - handler: a consumer that the gateway calls, over HTTP or gRPC.
//   - queue: a consumer whose clients fetch messages and acknowledge them.
//   - job: the work that one event means for one consumer. A queue's job is a message.
//   - lane: the jobs of one consumer, with a name such as "handler/billing". See [Lane]. The lane
//     "source/github" has no jobs: it names a source whose jobs are held.
//   - line: the jobs of a lane with the same key, of which few are admitted at a time. See
//     [Line]. A job that is admitted has a slot of its line; the others have places, and wait.
//   - due: a job is due once its due time is now or has passed. See [Job].
//   - claim, take: to lease due jobs. [Worklist.Take] does it, also for queues. A new job may be taken
//     in the commit that stores it, without a claim: see [Express].
//   - lease: the right to work on a job until a time. Its value is random. See [Lease].
//   - attempt: one try at a job, counted when the job is taken. See [Attempt].
//   - exchange: the request of an attempt and the headers of its reply. See [Exchange].
//   - outcome: the end of an attempt, with the job's next status. See [Outcome].
//   - settle: to store an outcome. It ends the lease.
//   - release: to give a taken job back untried. The attempt does not count.
//   - dead: the status of a job that used up its attempts. Only an operator revives it.
//   - canceled: the status of a job that an operator ended while it waited. Only an operator
//     revives it, by its id.
//   - stray: a lane with jobs whose consumer is in no running configuration.
//   - delivery: a call of a handler, with the event as its body.
//   - tick: one round of a service that looks for work and does it. In the long-lived
//     program it lasts as long as the process. See [Budget].
//
// Gates:
//
//   - gate: the circuit breaker and rate limit of a lane. See [Gate].
//   - breaker: it stops the deliveries to a handler that fails, and probes it. See [Breaker].
//   - probe: the one delivery that tests a handler while its breaker is open.
//   - ramp: the slower rate of deliveries in the first [RampTime] after a breaker closed.
//   - hold: an operator's stop of a lane, or of all jobs of a source's events. See [Hold].
//   - pass: the conditions under which a worker may claim from a gated lane. See [Pass].
//
// Workflows:
//
//   - run: one execution of a workflow, for one event. See [Run].
//   - definition: the configuration that a run follows to its end. See [Definition].
//   - step: one execution of a step of the definition, in one run. See [Step].
//   - situation: a step with its run and the steps around it, read at one moment.
//   - transition: one atomic change of a run. See [Transition].
//   - history: the numbered entries of a run, one or more for each transition.
//   - redrive: to continue a failed or canceled run, in its next epoch.
//   - callback: a request from outside that completes a waiting step, by a token.
//
// Operation:
//
//   - fact: something that happened and is stored. Logs, metrics and traces show facts.
//   - replay: to make new jobs for a stored event.
//   - operation: a retry, replay, cancel or redrive of all that a filter selects, which is stored and
//     done slice by slice. See [Operation].
//   - retry: to make dead jobs available again, with all their attempts.
//   - cancel: to end the jobs of an event that wait, or a run that is not finished.
//   - turn: the right of one process to do a periodic duty once. See [Upkeep].
//   - purge: to delete finished records that are old enough.
//   - counts of a minute: how many events of a source came in, and how many deliveries of a consumer ended
//     how, in one minute of one process. See [Minutes].
//   - drain: to delete the jobs of one lane.
//   - audit: the list of changes with their actors, times and addresses. An operator asks for a
//     change, and its entry is stored in the commit that makes it. See [Audit].
//   - actor: the person or program that asks for a change. See [Actor].
//   - role: the part of the API that a token opens. See [Role]. A role of the store is one of its
//     interfaces, such as [Inbox].
//
// # Which package may import which
//
// Packages stand in rings. A package imports packages further in, and needs a reason for an
// import within its ring. core imports only the standard library and the ULID library. Further
// in are only core/once and core/order, tools for every package. Around core are the pure packages
// (expr, config, workflow, ...), then the services (intake, worker, manage, ...) and store, which
// implements the roles declared here, then the edges (web, egress, drivers of databases), then
// core/gateway, which assembles them, and last the mains. The tests in deps_test.go have the list,
// with its reasons.
package core
