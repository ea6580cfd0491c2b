package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/group"
)

// A mode is the way in which statements are sent, depending on whether a pooler is in between.
type mode struct {
	// local: settings are part of each transaction, since a pooler may run the next
	// transaction on another connection to the server.
	local bool

	// literal: pgx does not know the types of parameters, so arrays are sent as text.
	literal bool
}

// planLifetime is how long a session keeps its plans. Plans are made once for all arguments,
// which saves a third of the time to take and settle jobs. But a plan that was made after a
// VACUUM of an empty table assumes that the table is empty: once the table has grown, the plan
// reads a whole index.
const planLifetime = 5 * time.Second

// plansExpired reports whether a session's plans have to be made anew. If so, it notes that the
// caller does that now.
func (m mode) plansExpired(pc *pgx.Conn) bool {
	if m.local {
		return false // the server plans each statement
	}
	at, _ := pc.PgConn().CustomData()["planned"].(time.Time)
	if time.Since(at) < planLifetime {
		return false
	}
	pc.PgConn().CustomData()["planned"] = time.Now()
	return true
}

// Settings of every session, or, behind a pooler, of every transaction.
//
// Every statement of the store is written for an index. The planner chooses by statistics, which
// are wrong for a new table until the first ANALYZE, so the alternatives to an index are
// switched off. jit is off for the same reason: an alternative that is switched off counts as
// very expensive where no other plan exists, and the server compiles expensive statements.
//
// $local is true if the setting ends with its transaction.
const settings = `SELECT set_config('enable_seqscan', 'off', $local), set_config('enable_bitmapscan', 'off', $local),
	set_config('enable_hashjoin', 'off', $local), set_config('enable_mergejoin', 'off', $local), set_config('jit', 'off', $local),
	set_config('max_parallel_workers_per_gather', '0', $local),
	set_config('plan_cache_mode', 'force_generic_plan', $local),
	set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, $local)`

var (
	sessionSettings = strings.ReplaceAll(settings, "$local", "false")
	localSettings   = strings.ReplaceAll(settings, "$local", "true")
)

// minVersion is the oldest supported version, as server_version_num has it. PostgreSQL 13 is
// out of support.
const minVersion = 14_00_00

// Open connects to the PostgreSQL server of a URL, in any form that pgx accepts:
// https://pkg.go.dev/github.com/jackc/pgx/v5/pgxpool#ParseConfig. It uses at most
// maxConnections connections, or as many as pool_max_conns in the URL says. It
// does not change the schema.
//
// The error is a refusal that says which setting to change. It is of kind Unavailable if the
// server cannot be reached, and of kind Invalid if the server cannot be used.
func Open(ctx context.Context, url string, maxConnections int) (store.Conn, error) {
	config, err := parse(url, maxConnections)
	if err != nil {
		return nil, err
	}
	c := &conn{}
	// One connection outside of the pool shows whether there is a pooler, which decides the
	// settings of the pool.
	pooled, err := inspect(ctx, config.ConnConfig, minVersion)
	if err != nil {
		return nil, err
	}
	c.mode = modeOf(config.ConnConfig, pooled)
	config.AfterConnect = func(ctx context.Context, pc *pgx.Conn) error {
		idleTime(pc) // notes when the connection was made
		registerTypes(pc.TypeMap())
		if c.mode.local {
			return nil
		}
		return pc.PgConn().Exec(ctx, sessionSettings).Close()
	}
	config.PrepareConn = c.usable
	if c.pool, err = pgxpool.NewWithConfig(context.WithoutCancel(ctx), config); err != nil {
		return nil, connectError(&config.ConnConfig.Config, err)
	}
	c.retry = store.Retry{Classify: c.classify, Tries: maxTries, FirstPause: firstPause, MaxPause: maxPause, Resends: 1, Reconnect: c.pool.Reset}
	c.line = c.newLine()
	return c, nil
}

// newLine returns the line in which batches wait for a commit.
func (c *conn) newLine() *group.Line {
	return group.NewLine(committers(int(c.pool.Config().MaxConns)), group.MergedCommit(commitTimeout, c.run))
}

// Bounds of sending a batch again. After a conflict, ten tries are enough: a deadlock takes
// the server one second to notice, and no caller waits for ten. After a lost connection, one:
// a server that restarts ends all connections, so the idle ones are dropped first.
const (
	maxTries   = 10
	firstPause = 5 * time.Millisecond
	maxPause   = 500 * time.Millisecond
)

// committers is how many commits may be written at the same time. At least half of the
// connections are left for claims and reads, except if there is only one.
func committers(connections int) int { return max(1, min(2, connections/2)) }

// Defaults for parameters that the URL does not set.
const (
	connectTimeout = 5 * time.Second

	// Connections end after this time, so that they spread again over the servers behind one
	// name. The jitter keeps them from ending together.
	lifetime = 30 * time.Minute
	jitter   = 6 * time.Minute
)

// parse reads the URL and fills in the defaults.
func parse(url string, maxConnections int) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, malformed(err)
	}
	// pgxpool.ParseConfig removes the parameters of the pool from RuntimeParams, so a second
	// parse tells which of them the URL sets.
	given, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, malformed(err)
	}
	set := func(name string) bool { _, ok := given.RuntimeParams[name]; return ok }
	if !set("pool_max_conns") {
		config.MaxConns = int32(max(1, maxConnections))
	}
	if !set("pool_max_conn_lifetime") {
		config.MaxConnLifetime = lifetime
	}
	if !set("pool_max_conn_lifetime_jitter") {
		config.MaxConnLifetimeJitter = jitter
	}
	c := config.ConnConfig
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = connectTimeout
	}
	if !set("application_name") {
		c.RuntimeParams["application_name"] = "gateway"
	}
	// When a caller gives up, the server is asked to cancel the statement. The connection stays
	// usable if the server answers within a second.
	c.BuildContextWatcherHandler = func(pc *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: pc, DeadlineDelay: time.Second}
	}
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false } // see usable
	return config, nil
}

// malformed is the refusal of a URL that cannot be parsed. It gives the parser's reason without
// the URL: a malformed URL may hold a password where no rule would find it to hide it.
func malformed(err error) error {
	_, reason, _ := cutLast(err.Error(), "`: ")
	reason, _, _ = strings.Cut(reason, " (")
	if why := tlsReason(err); why != "" {
		reason = why
	}
	return core.Refuse(core.Invalid, "database.url is not understood (%s): write it like "+
		"postgres://user:password@host:5432/database?sslmode=verify-full, with special characters percent-encoded", reason)
}

// cutLast is strings.Cut at the last separator.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// modeOf decides how statements are sent. An execution mode that the URL names is kept. The
// default of pgx, prepared statements, is replaced behind a pooler, where the next transaction
// may run on a connection that has not prepared the statement.
func modeOf(c *pgx.ConnConfig, pooled bool) mode {
	if pooled && c.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		c.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	literal := c.DefaultQueryExecMode == pgx.QueryExecModeExec || c.DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol
	return mode{local: pooled || literal, literal: literal}
}

// registerTypes tells pgx how it sends the values of a statement if it does not know the types of
// the parameters, which is so in the execution modes exec and simple_protocol. Texts need no type,
// and other values there are none. The programs are built without the types that pgx registers
// itself: see TAGS in the Makefile.
func registerTypes(m *pgtype.Map) { m.RegisterDefaultPgType(int64(0), "int8") }

// inspect connects once and checks the version and encoding of the server. pooled reports
// whether a pooler is in between: the number of the process that runs the statement is then not
// the number that the greeting of the connection gave.
func inspect(ctx context.Context, config *pgx.ConnConfig, oldest int) (pooled bool, err error) {
	pc, err := pgconn.ConnectConfig(ctx, &config.Config)
	if err != nil {
		return false, connectError(&config.Config, err)
	}
	defer pc.Close(context.WithoutCancel(ctx))
	const facts = "SELECT current_setting('server_version_num')::int, current_setting('server_version'), current_setting('server_encoding'), pg_backend_pid()"
	res, err := pc.Exec(ctx, facts).ReadAll()
	if err != nil {
		return false, connectError(&config.Config, err)
	}
	row, err := values(res[0].FieldDescriptions, res[0].Rows[0])
	if err != nil {
		return false, err
	}
	if row[0].(int64) < int64(oldest) {
		return false, core.Refuse(core.Invalid, "the server of database.url is PostgreSQL %s: the gateway needs 14 or later", row[1])
	}
	if row[2] != "UTF8" {
		return false, core.Refuse(core.Invalid, "database %q has the encoding %s: create one with ENCODING 'UTF8'", config.Database, row[2])
	}
	return row[3].(int64) != int64(pc.PID()), nil
}
