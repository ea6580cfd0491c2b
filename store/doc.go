// Package store keeps events, jobs, attempts, gates and workflow runs in SQL. It is the only
// package that knows SQL, and it knows no driver: statements run over a [Conn],
// which has one method. It imports core, core/once, core/order and nothing else of this
// module.
//
// The idea to know: one transition, one batch, no branches. Every method of [Store] sends a
// fixed list of statements that take effect together or not at all. There are no interactive
// transactions, because the least capable database that the gateway supports (SQL over HTTP)
// has none. There is no if between statements: a later statement has a WHERE that asks whether
// an earlier one wrote its row. Whether an event was a duplicate is read back at the end, or in a
// batch of its own where the database tells that it skipped a row.
//
// The rules that make it work:
//
//   - Two column types, text and 64-bit integer. Times are Unix milliseconds by the
//     database's clock, passed in from Go. A payload is stored byte for byte if it is text,
//     and as base64 if it is not.
//   - Every write can be sent twice. The caller makes the ids. A job changes only under the
//     lease with which it was taken.
//   - Taking is "one equality, then in index order": WHERE lane = ? AND due_at >= ? AND
//     due_at <= ? ORDER BY due_at, id on the index jobs_waiting (due_lane for lane on MySQL).
//     So a claim costs the same with a thousand due rows and with a million. It never scans
//     and never sorts. It begins at the lane's floor, a time before which nothing is due, and
//     so skips the entries that PostgreSQL keeps of old rows: see duefloor.go.
//   - Finished jobs have no due time and are not in that index.
//   - A look for due jobs asks about each lane, with one search in the index. With more than
//     manyLanes lanes it first reads the names of the lanes in which jobs wait, by a jump from
//     one to the next, and asks about those. So 10,000 handlers cost no more than those that
//     have work.
//   - Rows are arguments. A change to many rows is one [Stmt] with Rows. Each dialect spells
//     it as its database takes rows best: one at a time on SQLite, as arrays on PostgreSQL,
//     as a list of values on MySQL and D1.
//   - A duplicate is found by trying. The batch inserts the event, and deletes it again if
//     all of its jobs turn out to be duplicates. With a look first, two processes could look
//     at the same moment.
//
// # The index of a claim
//
// The index jobs_waiting serves each claim, each look for due jobs, and the counts of a lane's
// unfinished jobs. Dead jobs are counted in jobs_dead, canceled ones in jobs_canceled.
//
//   - SQLite, D1 and PostgreSQL: (lane, due_at, id, status), a partial index WHERE due_at IS
//     NOT NULL.
//   - MySQL and MariaDB: (due_lane, due_at, id, status). due_lane is a generated column that
//     is the lane of a job with a due time, and null for other jobs.
//
// MySQL and MariaDB have no partial indexes, so each index of jobs has an entry of each job. There
// jobs_lists replaces jobs_dead, jobs_canceled, jobs_done and jobs_lapsing, since a job is in at most
// one of these lists. It is on (list_name, lane, lapses_at, id). list_name is the name of the job's
// list, or null. lapses_at orders the list of jobs_lapsing, and is null in the others. In turns with
// four indexes, in memory, an event took 0.91 of the CPU.
//
// TestPlans in each driver proves the use of the indexes with a million rows: sqlite/plan_test.go,
// postgres/plan_test.go, mysql/plan_test.go and hosted/plans_test.go. Every statement must find
// its rows by an index, and none may sort a lane, except the listing of waiting jobs.
//
// # The files
//
// The connection:
//
//   - conn.go: Conn, Stmt and Result. bytelimit.go bounds the bytes of a result.
//   - store.go: Store, and how it sends batches. deadline.go bounds their time.
//   - mismatch.go: errors of tables that are not as expected.
//   - failure.go: the classes to which drivers map the errors of their engines. retry.go sends
//     a batch again where that is safe, and overload.go pauses after a rate limit.
//
// Statements:
//
//   - dialect.go: the differences between the databases. fragments.go replaces the fragments of
//     a text by them, compose.go composes statements. statement.go lists the statements of all
//     roles.
//   - columns.go and runcolumns.go: lists of columns, and their readers. scan.go: the values.
//
// The roles of core, each with its methods and its statements:
//
//   - Inbox: inbox.go for one arrival, inboxall.go for many. runs.go stores their runs.
//   - Express: express.go.
//   - Worklist: take.go claims jobs; duefloor.go says where a claim begins; worklist.go
//     settles and releases; gates.go has breakers and strays. Holds: holds.go, and parked.go for
//     those of sources.
//   - Lines: lines.go has the statements that move jobs of lines, lined.go those of accepting
//     and settling, linelist.go those of operators, and AckLined and Fill.
//   - Counter and Backlog: pull.go, and the counts in ledger.go.
//   - Runs: runs.go reads, transit.go changes, texts.go stores large texts of steps.
//   - Chronicle: chronicle.go for runs and histories, steplist.go for steps.
//   - Ledger and Archive: ledger.go, archive.go, eventlist.go, joblist.go and failures.go.
//     jobsof.go finds the jobs of an event. exchange.go has the form in which an attempt keeps its
//     request and reply, success.go that in which a job keeps the attempt that completed it.
//   - Audit: audit.go. The methods that change something for an operator add its statements.
//   - Calendar: calendar.go. Operations: upkeep.go (Retry), cancel.go, replay.go, and Drain in
//     pull.go.
//   - OperationLog: operations.go, with its statements in operationsql.go. Minutes: minutes.go.
//   - Upkeep: schema.go (Migrate) with stepnames.go, purge.go with purgesize.go, sweep.go, turns.go,
//     rehearse.go and upkeep.go. timed.go measures the database's clock.
//
// The questions of doctor:
//
//   - check.go: versions, clock and settings. probe.go proves that batches are atomic.
//   - compare.go: differences between a database and the schema steps. shape.go parses the
//     steps, catalog.go reads the database, repair.go writes the SQL of a repair, and
//     objects.go lists the objects for tests.
//
// testdata/sql has all statements as each database gets them (PostgreSQL gets a single row without
// arrays); go test ./store -run TestStatements -update writes them anew. A new driver is a Conn in a
// folder of its own; store/storetest tests whether it is right.
//
// # Times
//
// Stored times are by the database's clock. Each process keeps that clock by itself
// ([core.DatabaseClock]): it measures the offset when it connects and about once a minute,
// with a statement at the end of a batch that is sent anyway (timed.go). So processes whose
// machines' clocks differ agree about leases, due times, gates and slots, to within half of
// a round trip. Ids are made by the same clock, since spans of time are spans of ids. A
// SQLite file has the clock of its machine.
//
// The alternative was to use the database's own time functions in the statements. Then the
// due time of a retry would depend on the moment at which its batch is written, and the same
// batch sent again would store another due time. Besides, a process needs the time in any
// case, to know when to look again.
//
// # Jobs that are taken at once
//
// A job may be taken in the batch that stores it, so that it needs no claim. Its INSERT looks at the
// gates of its lane and of its source, and makes it either running, under a lease, or available. A
// read at the end of the batch says which, for all jobs of a merged batch: each caller picks its own.
//
//   - The INSERT finds the job's event, so the job of a duplicate is neither stored nor taken.
//   - The gates are asked as a claim without a Pass asks them, and it may commit as late after a hold
//     began. It asks for the hold of the source alone, and not whether any source is held: nothing is
//     parked here.
//   - Jobs with keys are left to claims, so that the statements which drop an event without jobs
//     stay as they are; and jobs of lines, which are inserted by other statements.
//   - A claim writes each job once more, with an entry in most indexes, and reads its event back. The
//     INSERT does neither. So jobs are taken this way as long as there is room for them (package
//     worker).
//   - If the answer is lost twice, the caller gets all jobs that may have been taken, under the lease
//     that they would have. It releases them until the lease ends, since the batch may commit later.
//   - The job of a run's next step is taken in the batch of the transition that makes it, under the mark
//     of the transition. held_by says whether. The runner knows what a claim would read, and makes the
//     taken job of it. A transition that is sent again has the same mark, so it finds the job.
//
// # Gates
//
// A lane's gate is a row in the same database as its jobs, so that it holds for every process
// of the database. The row is made when a delivery of the lane first fails or is first paced, or
// when a person first holds the lane.
// Nearly all of the time it costs one look by primary key in a claim, and no write.
//
//   - A Take without a Pass has the gate among the conditions of its claim.
//   - A Take with a Pass first writes its lease into the gate (taker), if the gate is as the
//     Pass demands. Takes at the same time wait in line there. The claim then succeeds
//     because the gate names its taker. Last, the next start becomes base_us + interval ×
//     claimed jobs. base_us was stored with the taker, so a second sending computes the same.
//   - A breaker is open while open_until is not zero. The numbers that come with a failure
//     ([core.Breaker]) decide when it opens, and for how long; after that only the row
//     counts. So processes with other numbers, and a process whose numbers changed, agree on
//     which breakers are open.
//   - An opening leaves its time and a count, which stay when the breaker closes. So an alert about
//     it needs no statement in a Settle: a later look finds it, also after the breaker closed.
//   - Opening a breaker removes the taker, and only a probe writes a taker into an open gate.
//     So the taker of an open gate is the newest probe's lease. The outcome of this probe
//     alone counts.
//   - A hold is a time in the gate as well (held_until). Each claim compares it, also one with a
//     Pass: if its batch is sent a second time, the gate names its lease already.
//   - A claim that has read the gate when a breaker opens or a hold begins takes its jobs, and may
//     commit last: on PostgreSQL a claim without a Pass, on MySQL one that found no gate. It
//     commits within the rest of its batch, some milliseconds. The others lock the gate, and what
//     changes the gate waits for them. SQLite and D1 run one batch at a time.
//   - A verdict counts only while its job is held. So verdicts are written before their jobs
//     are settled.
//   - Each Take and each Settle locks gates in the order of lanes. A Settle locks jobs, then
//     gates. A Take locks gates and skips locked jobs. So no two of them wait for each other.
//     A Cancel locks jobs alone, and skips locked ones: see cancel.go.
//   - A Settle whose attempts are kept in their jobs locks gates before jobs: those whose count of
//     failures it sets to 0. On PostgreSQL so does one that settles jobs in the statement that
//     inserts their attempts. It can only wait for a Settle of the same job. On MySQL the statement
//     that changes the gates reads the job under a shared lock, so such a Settle can deadlock with one
//     of a worker whose lease was taken over. One of them is undone, and sent again.
//
// # Held sources
//
// The hold of a source is a gate as well, of the lane "source/" and its name. The jobs of its
// events are in all lanes, and no index finds them. So a Take leaves the held jobs that it meets,
// and does it once for each job: it parks the job, which makes the due time negative. No claim
// looks there, since each begins at 0 or later.
//
//   - A held source has a number, a row of source_holds. A parked job has its former due time
//     less the number times parkedBand. So the jobs of a source are a range of jobs_waiting, and
//     each keeps its due time: only [rowReader.due] and the statements that look for jobs that are
//     due know of parked ones.
//   - No claim takes anything while there is a row in source_holds. A Take that got nothing reads
//     these rows, and then sends other claims (claim_sifted), which look at the source of each
//     job. Before each, jobs of held sources are parked among the first parkWindow due jobs, and
//     the claim looks no further. So claims cost the same however many jobs are held. While no
//     source is held, a claim looks into an empty table, and a Take that got nothing reads it.
//   - Once a hold has ended, Takes return its jobs to their former due times, some at a time. The
//     gates of their lanes get the end of the hold, from which the ramp counts.
//   - A number is forgotten once no job is parked under it, a minute after the hold at the
//     earliest. A claim that read the hold before it ended could still park jobs a moment later.
//   - A process reads the rows of source_holds with the looks from the bottom of a lane, once in
//     floorMaxAge. So it knows when to look again for the jobs of a hold with an end.
//
// The alternative was a condition on the source in each claim. Then each claim would step over all
// jobs of a held source, which may be a million.
//
// # Lines
//
// A job of a line is in one of three states. It has a slot, a row of line_slots, and a due time. Or
// it has a place, a row of line_places, its status is waiting, and it has no due time. Or it has
// neither: it is finished, or it gave its slot away to wait for its retry. So waiting jobs are in
// no index that a claim reads, and a line with a million of them costs a claim nothing.
//
//   - The slots of a line have the numbers 1 to its limit. A slot with a number above the limit,
//     which was lowered, goes to no other job.
//   - A job is inserted with a status of its own, entering, and then enters its line: a job gets
//     the free slot with the lowest number if no job waits, or else the next place. Only the
//     INSERT of the job knows whether it is a duplicate, so it comes first.
//   - The Settle that ends a job gives its slot to the next place, deletes that place, and makes its
//     job due. A row of line_slots is written once for it, and a line in which a job always waits
//     gets no other write.
//   - MySQL does this in two statements, each of which changes two tables, and the others in four:
//     MariaDB takes as long to read the rows of a statement as to change what they name. On SQLite
//     each of them changes one row, which a subquery finds by its key: for other conditions with a
//     subquery it makes a temporary table.
//   - Each of these statements asks whether the job still has the slot or the status, so a batch
//     that is sent twice passes a slot on once.
//   - A dead job that stops its line keeps its slot, with the time in stopped_at.
//   - Places grow in the order of commits, since a batch locks the lines of its jobs first. A line
//     has no row of its own: line_locks has up to 65,536 rows, which lines share by their hash. On
//     PostgreSQL the lock is a statement before the others, whose snapshots begin after it. SQLite
//     and D1 have one writer, and lock nothing.
//   - Locks are taken in this order: jobs that end, gates, lines, jobs that are admitted. A Cancel
//     locks lines first and skips locked jobs.
//   - A statement gives at most one slot of a line away. So a batch has one for each further slot,
//     and is not merged with others if a limit is above 1. With a limit of 1 batches are merged:
//     of two jobs that want the only slot, the second INSERT is skipped.
//   - The search for the next place begins behind the place that the slot's job had (reached), where
//     a limit of 1 keeps the order. PostgreSQL leaves index entries of deleted places at the front
//     of the line until a vacuum.
//
// # Queues
//
// Messages are jobs, and a client that receives messages takes jobs. An ack is an UPDATE under
// the guard of a taken job. It leaves no attempt, since it has no outcome worth a record. Each
// client gets the exact number of its own messages, also where the acks of several clients are
// one UPDATE: on PostgreSQL it returns the number of the client with each row, and on MySQL acks
// are not merged. Neither are those of queues with lines, on both. A nack is a Settle. A worker
// that takes from a lane also finds jobs whose last lease is over and settles them as dead. A
// queue may have no client that takes, so such jobs have an index of their own (jobs_lapsing),
// by which they are found without a Take.
//
// # Workflows
//
// A run changes by transitions, and the insert of the next entry of its history is the lock:
// the entry's number is the primary key. Each transition has an id, its mark, which its entries
// carry. All other statements of a Transit ask two things: whether that entry carries the
// transition's mark, and whether it still follows the run's newest entry. The last statement
// moves the run on. So the second of two transitions changes nothing. It causes no error, which
// would undo the transitions of other runs in the batch: transitions of many runs are one batch,
// and share commits. A transition that is sent again changes nothing either: it finds its mark,
// and the run moved.
//
//   - Transitions do not check leases. A worker that reads a run and finds the step as it was
//     when the attempt began may say how the attempt ended; the run's number is the fence.
//   - Runs are locked in the order of their ids. On MySQL they are locked before anything
//     else: an UPDATE there takes a shared lock on the rows that its conditions read. Without
//     the earlier lock the loser's shared lock deadlocked with the winner's, 46 times in 360
//     transitions of 4 runs by 6 processes; with it, never.
//   - A situation is one statement, with the steps above the step joined five times. So it is
//     read at one moment, also in the middle of a Take.
//   - INSERTs that only the holder of the run's lock reaches have no ON CONFLICT. A step
//     that is already there would be a defect, and an error is better than a step left out
//     silently.
//   - A large text of a step, its state or its output, is a row of step_texts, to which the
//     step refers. The name of the row is the hash of the text. So a state that passes
//     unchanged from step to step is stored once for the run. A text that is already stored
//     is left out: this INSERT alone has an ON CONFLICT. See texts.go.
//   - All steps of a run may need more memory than there is. They are read in pages, and the
//     sizes of the steps are read first. See steplist.go.
//
// # Operations
//
// A slice of an operation is one batch. Its first statement writes the slice's mark into the
// operation's row if the operation runs and has the slice's number, and locks the row. Its last
// ones raise the number. In between, the statements that pick matches ask for the number and the
// mark, and all others ask whether a match was picked. So the second of two slices with one number
// picks nothing, and neither does a slice that is sent again.
//
//   - A picked match is a row of operation_picks, which the batch deletes at its end. No commit leaves
//     one. The rows say how many matches were acted on, which no other statement can tell: a job
//     that was read as dead may have changed since. The alternative was to add up the changed rows
//     after the batch, in a commit of its own. A crash between the two commits loses a count.
//   - A slice of a redrive picks nothing. Its runs were redriven by Transits before, one commit a run,
//     and the batch adds its number of them (Slice.Acted). A crash in between loses this number.
//   - A pick of jobs locks them and skips jobs that another batch has locked, as a claim does. If
//     jobs are left out, the cursor stays, and the next slice finds the jobs that still match.
//   - A slice locks the lines of its jobs first, then the operation, then jobs or events, then gates.
//     It never waits for a job, so it cannot deadlock with a Take or a Settle.
//   - A retry gives the jobs of lines the status entering until the end of the batch, as Accept does
//     with new ones. The statements on lines ask for that status, so sending them again does nothing.
//   - The jobs of a retry are read through jobs_dead or jobs_canceled, lane by lane, in the order of
//     their ids.
//
// # The audit
//
// The batch of an operator's change has one more statement, which inserts the entry of the change
// ([core.EntryOf]). So a crash leaves both or neither, and a batch that is sent twice leaves one
// entry, since the id of the entry was made before. The INSERT has a condition that is true if the
// batch changes something: see audit.go. The batches of a Drain and of a Retry of many jobs have
// none. There a read has just found jobs. If another process has taken them all since, there is an
// entry without a change; there is never a change without an entry.
//
// # Purges
//
// A Purge looks first, at a bounded part of each table, and deletes by id under a guard.
//
//   - Finished jobs and runs are found by the time at which they finished. An event goes with
//     the last of its jobs and runs.
//   - Events without jobs and runs are found by a walk through the oldest events, a thousand
//     at a time. Each look of a process begins where its last look ended: behind the last
//     event that was deleted or has to stay. One look for the first 500 events without jobs
//     took 2.5 s beside a million events with jobs; a look of the walk takes 1 ms. These
//     events have a batch of their own: they do not wait for a backlog of jobs, nor the
//     backlog for them.
//   - A Purge deletes in small commits. After each it pauses for ten times as long as the
//     commit took, at most 5 ms. So an accept seldom meets such a commit, and waits for one at
//     most. At 200 events a second on SQLite, p99 of an accept is 0.5 ms without a purge, 12 ms
//     with 500 jobs a commit, and 1.5 ms with 6. Where a commit itself takes long, or other
//     writers wait for it as well, the commits grow and the pauses do not. Each commit is Lazy:
//     it need not be synced.
//   - If more expires than a Purge of small commits deletes, the oldest rows get late. From two
//     minutes on the commits get larger, up to eight times after ten minutes: then some 5,000
//     events a second go on SQLite, instead of 500. So a Purge keeps up with the events that
//     come in, some minutes late, and the database grows no further.
//   - The rows that belong to a job or run are deleted in the same batch, so that a purge
//     that breaks off leaves none of them behind. More of them than a batch may delete are
//     deleted afterwards, piece by piece. If that breaks off, a sweep finds the rest.
//   - Both a replay and a purge lock an event before they look at its jobs: on PostgreSQL, a
//     DELETE that waited for a row would go on with its old view of the jobs.
//   - Marks of cron sources stay, however old: the mark of a yearly source moves once a year,
//     and a store does not know which sources are still configured. There is one row for each
//     source that ever was.
//
// # Listings
//
// Events are listed by their ids, or through the index of their source, or of their type and
// source. Each of those two indexes costs some 4 % of an event's CPU on SQLite. Without them,
// a source that had been quiet for long took 0.4 s to be found among a million events. A
// listing of a type without a source is one listing for each source that has sent the type.
// Sources are few, since they are configured, and the index is searched from one to the next.
// The alternative was an index of the type alone. Then a listing of a common source with a
// common type that never occur together took some seconds, through all events of one of them.
// A third index would be 4 % more.
//
// A delivery id is looked up in the unique index that finds repeats, once for each source that
// has events. The sources are found in the index of sources, one index search each. On SQLite
// with a million events of two sources that takes 0.06 ms.
//
// No index has the contents of payloads. A search by a filter reads events in full, newest first,
// and evaluates the filter outside of SQL: no two databases have the same JSON operators.
//
// An id is made close to the time at which its event is received. If the clock is set back
// while a process lives, ids run ahead of the clock; such an event is stored as received at
// the time in its id. So a span of time is a span of ids, plus a minute at each end.
//
// A listing of the jobs of a lane or status looks among the newest jobs first. If those do not
// fill a page, it goes lane by lane through the index of waiting, of dead, of completed or of
// canceled jobs. The index of completed jobs is written once in a job's life, when the job is
// settled, for 1 µs. The alternative was an index of status, lane and id. Each claim would move a
// row in it, for some 4 of the 170 µs that an event takes end to end, and waiting jobs would be in
// the order of the listing. Now the waiting jobs of a lane are read and sorted, lane by lane:
// where a million wait, the few that have another status than the rest are found in some
// tenths of a second. The index of canceled jobs is written when a job is canceled.
//
// # Group commit
//
// A Conn may let batches share a commit. Batches that arrive while one commit is being
// written go into the next; there is no timer. So under load one sync serves many callers,
// and a lone caller pays nothing (store/group). Where a commit mostly waits, two are written
// at a time. The Conn does it, since it knows when its database is free. A coalescer in this
// package, in front of Accept and Settle, was tried on SQLite: each group had to be handed from
// its leader to the writer and back before the next could be composed, and the writer was idle
// meanwhile.
//
// # Alternatives considered
//
//   - Rows as one JSON parameter, unpacked in SQL. On SQLite 53 µs against 30 µs per event
//     and job for one prepared statement a row (1 KB payload, 30 rows a commit), since each
//     payload is escaped, parsed and copied twice. On D1 it is faster, but a payload that
//     fits a row may not fit a parameter once it is escaped.
//   - A statement in Take that buries running jobs whose last lease ran out. Instead, the
//     worker gets such a job ([core.Job.Spent]) and settles it as dead. So there is one way
//     to die, with one place for its consequences.
//   - jobs as a rowid table. With WITHOUT ROWID there is one b-tree less to write, and the
//     claim finds its rows without a second hop. events keeps its rowid: rows of a kilobyte
//     would spill in an index b-tree.
package store
