package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/group"
)

// A mode is what the way to the server allows.
type mode struct {
	// local: settings are part of each transaction, since the next one may find
	// itself on another connection of a pooler.
	local bool

	// literal: the driver does not know the types of parameters.
	literal bool
}

// planFor is how long a session keeps its plans. They are made once for all
// arguments, which saves a third of the time of taking and settling. One made
// while a table was empty and known to be, after a VACUUM, reads the whole index
// of what the table becomes.
const planFor = 5 * time.Second

// stale tells whether a session's plans have to be made anew, and takes it for
// done.
func (m mode) stale(pc *pgx.Conn) bool {
	if m.local {
		return false // the server plans each statement
	}
	at, _ := pc.PgConn().CustomData()["planned"].(time.Time)
	if time.Since(at) < planFor {
		return false
	}
	pc.PgConn().CustomData()["planned"] = time.Now()
	return true
}

// Settings of every session, or, behind a pooler, of every transaction.
//
// The planner is left no choice, because it chooses by statistics, and those of a
// new table are wrong until the first ANALYZE: every statement here is meant to
// go by an index. jit goes with it: what is switched off counts as expensive, and
// expensive statements would be compiled.
const settings = `SELECT set_config('enable_seqscan', 'off', $local), set_config('enable_bitmapscan', 'off', $local),
	set_config('enable_hashjoin', 'off', $local), set_config('enable_mergejoin', 'off', $local), set_config('jit', 'off', $local),
	set_config('max_parallel_workers_per_gather', '0', $local),
	set_config('plan_cache_mode', 'force_generic_plan', $local),
	set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, $local)`

var (
	sessionSettings = strings.ReplaceAll(settings, "$local", "false")
	localSettings   = strings.ReplaceAll(settings, "$local", "true")
)

// minVersion is what the statements need; 13 is out of support.
const minVersion = 14_00_00

// Open connects to the PostgreSQL server of a URL, in any form that pgx takes:
// https://pkg.go.dev/github.com/jackc/pgx/v5/pgxpool#ParseConfig. It uses at most
// maxConnections connections, or as many as pool_max_conns in the URL says. It
// does not change the schema.
//
// The error is a refusal that says what to change: of kind Unavailable if the
// server cannot be reached, of kind Invalid if it can but will not do.
func Open(ctx context.Context, url string, maxConnections int) (store.Conn, error) {
	config, err := parse(url, maxConnections)
	if err != nil {
		return nil, err
	}
	c := &conn{}
	pooled, err := look(ctx, config.ConnConfig, minVersion)
	if err != nil {
		return nil, err
	}
	c.mode = modeOf(config.ConnConfig, pooled)
	config.AfterConnect = func(ctx context.Context, pc *pgx.Conn) error {
		unused(pc) // from now on
		if c.mode.local {
			return nil
		}
		return pc.PgConn().Exec(ctx, sessionSettings).Close()
	}
	config.PrepareConn = c.alive
	if c.pool, err = pgxpool.NewWithConfig(context.WithoutCancel(ctx), config); err != nil {
		return nil, sentence(&config.ConnConfig.Config, err)
	}
	c.line = group.NewLine(committers(int(config.MaxConns)), c.commit)
	return c, nil
}

// committers is how many commits may be written at the same time: they leave half
// of the pool to takers and readers.
func committers(connections int) int { return max(1, min(2, connections/2)) }

// Defaults where the URL is silent.
const (
	connectTimeout = 5 * time.Second
	lifetime       = 30 * time.Minute
	jitter         = 6 * time.Minute
)

func parse(url string, maxConnections int) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, malformed(err)
	}
	given, err := pgx.ParseConfig(url) // what the pool's own parser takes away
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
	c.BuildContextWatcherHandler = func(pc *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: pc, DeadlineDelay: time.Second}
	}
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false } // see alive
	return config, nil
}

// malformed says what is wrong with the URL and never repeats it: it may hold a
// password, in a place where nobody expects one.
func malformed(err error) error {
	_, reason, _ := cutLast(err.Error(), "`: ")
	reason, _, _ = strings.Cut(reason, " (")
	if why := tlsTrouble(err); why != "" {
		reason = why
	}
	return core.Refuse(core.Invalid, "database.url is not understood (%s): write it like "+
		"postgres://user:password@host:5432/database?sslmode=verify-full, with special characters percent-encoded", reason)
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// modeOf decides how statements are sent. What the URL asks for is done; behind a
// pooler prepared statements, which are what a URL without a wish gets, are given
// up too.
func modeOf(c *pgx.ConnConfig, pooled bool) mode {
	if pooled && c.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		c.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	literal := c.DefaultQueryExecMode == pgx.QueryExecModeExec || c.DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol
	return mode{local: pooled || literal, literal: literal}
}

// look connects once and looks at the server. pooled is whether somebody in
// between answers for it: then the number of the process that serves us is not
// the one we were told.
func look(ctx context.Context, config *pgx.ConnConfig, oldest int) (pooled bool, err error) {
	pc, err := pgconn.ConnectConfig(ctx, &config.Config)
	if err != nil {
		return false, sentence(&config.Config, err)
	}
	defer pc.Close(context.WithoutCancel(ctx))
	const facts = "SELECT current_setting('server_version_num')::int, current_setting('server_version'), current_setting('server_encoding'), pg_backend_pid()"
	res, err := pc.Exec(ctx, facts).ReadAll()
	if err != nil {
		return false, sentence(&config.Config, err)
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
