// Package store keeps events, jobs, attempts, gates and workflow runs in SQL. It is the only
// package that knows SQL, and it knows no driver: statements run over a [Conn],
// which has one method. It imports core and nothing else of this module.
//
// The idea to know: one transition, one batch, no branches. Every method of
// [Store] sends a fixed list of statements that take effect together or not at
// all. There are no interactive transactions, because the least capable
// database this is meant for (SQL over HTTP) has none; so conditions live in
// WHERE clauses, and later statements of a batch are guarded by what earlier
// ones wrote. "Was it a duplicate?" is answered by a row that is read back, not
// by control flow.
//
// The rules that make it work:
//
//   - Two column types, text and 64-bit integer. Times are Unix milliseconds
//     passed in from Go, by the database's clock; payloads are text byte for byte, or base64
//     if they are no text.
//   - Every write can be sent twice. Ids are made by the caller; a job changes
//     only under the lease it was taken with.
//   - Taking is "one equality, then in index order": WHERE lane = ? AND due_at <= ?
//     ORDER BY due_at, id on the index (lane, due_at, id), so it costs the same
//     with a thousand due rows and with a million. It never scans and never sorts,
//     and it steps over no rows that are gone: see floor.go.
//   - Finished jobs have no due time and are not in that index.
//   - Rows are arguments. What is done to many rows is one [Stmt] with Rows, which
//     each dialect spells as its database takes rows best: one at a time on SQLite,
//     as arrays on PostgreSQL, as a list of values on MySQL and D1.
//   - A duplicate is found by trying: an event whose jobs all turn out to have been
//     seen is taken out again in the same batch. Looking first would let two
//     processes look at the same moment.
//
// Where to change something: a table in schema.go, columns and what reads them in columns.go
// and runcolumns.go, the work of a role and its statements in inbox.go, take.go, worklist.go,
// pull.go, gates.go, timed.go, runs.go, transit.go, texts.go, story.go, ledger.go, eventlist.go,
// joblist.go, archive.go, chronicle.go, upkeep.go, replay.go, purge.go, sweep.go or turns.go, what
// the databases spell differently in dialect.go, how statements are put together of that in
// compose.go, what doctor asks in check.go. testdata/sql has all statements as each database gets
// them; go test ./store -run TestStatements -update writes them anew. A new driver is a Conn in a folder of its own; store/storetest says whether it is
// right.
//
// # Times
//
// Stored times are the database's. Each process tells that time by itself ([core.DatabaseClock]):
// it measures the offset with a statement at the end of a batch that is sent anyway, when it
// connects and about once a minute (timed.go). So processes whose machines' clocks differ agree
// about leases, due times, gates and slots, to within half of a round trip. Ids are made by
// the same clock, since spans of time are spans of ids. A SQLite file has the clock of its
// machine.
//
// The database's own functions in the statements were the alternative. A retry would be due
// by the time at which its batch is written, and sent again it would be another retry; and a
// process must tell the time in any case to know when to look again.
//
// # Gates
//
// A lane's gate is a row beside its jobs, made when something first fails or is
// first paced, so that it holds for every process of the database. Nearly all of the
// time it costs one look by primary key in a claim, and no write.
//
//   - A Take without a Pass has the gate among the conditions of its claim.
//   - A Take with one first writes its lease into the gate (taker), if that stands as
//     it has to: there those who ask at the same time wait in line. Then it claims,
//     which the taker's name in the gate lets it, and then the gate moves on by what
//     was claimed. What it writes there is counted from a base that was kept with the
//     name, so that the batch may be sent twice.
//   - A breaker is open while open_until is not zero. When it opens, and for how long, is
//     decided by the numbers that come with the failure ([core.Breaker]); after that the row
//     alone says so. So processes with other numbers, and a process whose numbers changed,
//     agree on which breakers are open.
//   - Opening a breaker takes the taker's name out. So the name in an open gate is
//     that of its newest probe, whose outcome alone counts.
//   - Verdicts count while the job they are about is held, hence before it is settled.
//   - Takes and settles lock gates in the order of lanes. A Settle has locked its jobs
//     before, and no Take waits for a job. So they wait in line and not in a circle.
//
// # Queues
//
// Messages are jobs, and who receives them takes jobs. An ack is an UPDATE under the
// guard of a taken job and leaves no attempt: there is no outcome to tell of. A nack
// is a Settle. What the one who takes would find, a job whose last lease is over, is
// in an index of its own (jobs_lapsing), since a queue may have no one who takes.
//
// # Workflows
//
// A run changes by transitions, and the insert of the next entry of its history is the
// lock: its number is the primary key. All other statements of a Transit ask whether
// that entry carries the transition's mark and is still the one behind the run's newest,
// and the last one moves the run on. So who comes second changes nothing, without an
// error that would take others' work with it: transitions of many runs are one batch,
// and share commits. So is one that is sent again: it finds its mark, and the run moved.
//
//   - Nothing is asked of leases. Who reads a run and finds the step as it was when the
//     attempt began may say how it ended; the run's number is the fence.
//   - Runs are locked in the order of their ids. On MySQL they are locked before
//     anything else: an UPDATE there shares a lock on what its conditions read, and the
//     loser's deadlocked with the winner's, 46 times in 360 transitions of 4 runs by 6
//     processes; since then never.
//   - A situation is one statement, with the steps above it joined five times, and so
//     read at one moment, also in the middle of a Take.
//   - INSERTs that only who holds the run gets to make have no ON CONFLICT: a step that
//     was there already would be a defect, and is better told than left out.
//   - A large text of a step, its state or its output, is a row of step_texts, to which the
//     step refers. The name of the row is the hash of the text. So the run stores a state that
//     goes from step to step once. A text that is already stored is left out: this INSERT
//     alone has an ON CONFLICT. See texts.go.
//   - All steps of a run may need more memory than there is. They are read in pages, and the
//     sizes of the steps are read first. See story.go.
//
// # What is over
//
// A Purge looks first, at a bounded part of each table, and deletes by id under a guard.
//
//   - Jobs and runs that are over are found by when they finished. Events go with the last
//     of what they gave rise to; those that gave rise to nothing are found by going through
//     the oldest, a thousand a time, from where the last look of this process ended: behind
//     the last that was taken, or is to stay. One look for the first 500 of them that have
//     no jobs took 2.5 s beside a million that have, and takes a millisecond so. They have a
//     batch of their own, so that they wait for no backlog of jobs, nor it for them.
//   - It deletes in bites, and rests after each for ten times as long: those who store
//     events seldom meet one, and wait for one at most. With 500 jobs in a commit 99 of 100
//     events at 200 a second were accepted within 12 ms on SQLite, where without a purge it
//     was half a one; with 6 it is within one and a half. Where a commit itself takes long,
//     or others wait for it as well, a bite grows and the rest does not. A bite is Lazy: it
//     need not be synced.
//   - What belongs to a job or run goes in the same batch, so that nothing is left over by
//     one that breaks off. Only where that is more than a batch may delete it goes after
//     it, piece by piece, and should that break off, a sweep finds it.
//   - An event that is replayed is locked by that and by who would delete it, each before
//     it looks at the event's jobs: on PostgreSQL a DELETE that waited for a row would go
//     on with what it saw before.
//   - Marks of cron sources stay, however old: that of a yearly one moves once a year, and
//     a store is not told which sources there still are. They are as few as sources ever
//     were.
//
// # Listings
//
// Events are listed by their ids, or through the index of their source, or of their type
// and source. Those two indexes are some 4 % of an event's CPU each, on SQLite; without them
// a source that has been quiet for long took 0.4 s to be found among a million events. A
// type without a source is listed once for each source that has sent it, which are few,
// since they are configured, and are found by stepping from one to the next. An index of the
// type alone was the alternative: then a source and a type that are both common and never
// meet took some seconds, through all of one of them. A third index would be 4 % more.
//
// Ids are made close to when events are received. Where they are ahead, because the clock was
// set back while a process lived, an event is stored as received at the time in its id; so
// a span of time is a span of ids, and a minute at each end.
//
// Jobs of a lane or status are looked for among the newest; if they do not make up a page,
// by lane in the indexes that have them apart: of what waits, of what is dead and of what is
// completed. The last is written once in a job's life, when it is settled, for 1 µs. An
// index of status, lane and id would be moved by each claim as well, for some 4 of the 170 µs
// that an event takes end to end, and have all that waits in order. As it is, that is gone
// through and sorted, lane by lane: where a million wait, the few of another status than the
// rest are found in some tenths of a second.
//
// Completed jobs are counted as the finished ones that are not dead. Having the status in
// that index would cost MySQL, which has no partial ones, a write to it for each claim.
//
// # Group commit
//
// A Conn may let batches share a commit: what waits while one commit is being
// written goes into the next, never a timer, so that under load one sync serves
// many callers and a lone one pays nothing (store/group). It is the Conn's to do,
// since it knows when its database is free. A coalescer up here, in front of Accept
// and Settle, was tried on SQLite: each group had to be handed from its leader to
// the writer and back before the next could be put together, and the writer stood
// idle meanwhile.
//
// # Alternatives considered
//
//   - Rows as one JSON parameter, unpacked in SQL. On SQLite 53 µs against 30 µs
//     per event and job for one prepared statement a row (1 KB payload, 30 rows a
//     commit), since each payload is escaped, parsed and copied twice; on D1 faster,
//     but what fits a row may not fit a parameter once it is escaped.
//   - A statement in Take that buries running jobs whose last lease ran out. The
//     taker is handed such a job instead ([core.Job.Spent]) and settles it as
//     dead, so that there is one way to die, with one place for what follows.
//   - jobs as a rowid table: with WITHOUT ROWID there is one b-tree less to write
//     and the claim finds its rows without a second hop. events keeps its rowid:
//     rows of a kilobyte would spill in an index b-tree.
package store
