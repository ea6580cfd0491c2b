// Package store keeps events, jobs and attempts in SQL. It is the only package
// that knows SQL, and it knows no driver: statements run over a [Conn], which
// has one method. It imports core and nothing else of this module.
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
//     passed in from Go, payloads are text byte for byte.
//   - Every write can be sent twice. Ids are made by the caller; a job changes
//     only under the lease it was taken with.
//   - Taking is "one equality, then in index order": WHERE lane = ? AND due_at <= ?
//     ORDER BY due_at, id on the index (lane, due_at, id), so it costs the same
//     with a thousand due rows and with a million. It never scans and never sorts.
//   - Finished jobs have no due time and are not in that index.
//
// Where to change something: a statement in statements.go, a table in schema.go,
// what a role does in inbox.go, worklist.go, ledger.go or upkeep.go, what the
// databases spell differently in dialect.go. A new driver is a Conn in a folder
// of its own; store/storetest says whether it is right.
//
// # Group commit
//
// A Conn may let batches share a commit: what waits while one commit is being
// written goes into the next, never a timer, so that under load one sync serves
// many callers and a lone one pays nothing. It is the Conn's to do, since it
// knows when its database is free. A coalescer up here, in front of Accept and
// Settle, was tried on SQLite: each group had to be handed from its leader to
// the writer and back before the next could be put together, and the writer
// stood idle meanwhile.
//
// # Alternatives considered
//
//   - Rows as one JSON parameter, unpacked in SQL. On SQLite 53 µs against 30 µs
//     per event and job for one prepared statement a row (1 KB payload, 30 rows a
//     commit), since each payload is escaped, parsed and copied twice; so rows
//     travel one statement each, and only lists of keys travel as JSON.
//   - A statement in Take that buries running jobs whose last lease ran out. The
//     taker is handed such a job instead ([core.Job.Spent]) and settles it as
//     dead, so that there is one way to die, with one place for what follows.
//   - jobs as a rowid table: with WITHOUT ROWID there is one b-tree less to write
//     and the claim finds its rows without a second hop. events keeps its rowid:
//     rows of a kilobyte would spill in an index b-tree.
package store
