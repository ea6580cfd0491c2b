// Package doctor makes the checks of "gateway doctor": whether a gateway is ready to serve, and
// the remedy if it is not.
//
// The idea to know: a [Check] is a finding with its remedy, and no check ends the others. The
// checks are made in a fixed order, since a later check needs the result of an earlier one: no
// table is looked at before the database was opened. A check that cannot be made is a result
// too, [Skipped] and blocked by the check that has the reason.
//
// There are two views. [Local] checks a configuration on its own machine, with its database and
// the receivers that it names. [Outside] checks a running gateway through its address, and
// needs neither configuration nor database. Checks of database and receivers are not in it: the
// machine of the user reaches other networks than the gateway's machine.
//
// The checks change nothing. Tables that they make to prove that writing works are removed
// again, and receivers get no event and no configured header.
//
// The package prints nothing and reads no flags. The program passes in the rest as
// [Deps]: the configuration, the database, the names of both.
package doctor

import (
	"cmp"
	"context"
	"net/url"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/store"
)

// A Status is the result of a check.
type Status string

// The statuses, as --json shows them. Only Failed makes "gateway doctor" fail.
const (
	OK      Status = "ok"
	Warning Status = "warning" // works, but the user should know
	Failed  Status = "failed"
	Skipped Status = "skipped" // there is nothing to check
)

// A Check is one finding. The remedy is "" if the user has nothing to do, or if the detail says
// it.
type Check struct {
	Name           string
	Status         Status
	Detail, Remedy string
	Blocked        bool // it could not be made, and another check has the reason
}

// Deps are the values and functions of the program that [Local] needs.
type Deps struct {
	// Load reads the configuration. It returns all problems that keep the configuration from
	// being served; the configuration is nil if it could not be read.
	Load func(context.Context) (*config.Config, []config.Problem, error)

	Summary func(*config.Config) string // names a configuration and counts its parts

	// Connect opens the configured database without changing it. A SQLite file that does not
	// exist would be made, so Local calls Absent before.
	Connect  func(context.Context, *config.Config) (store.Conn, store.Dialect, error)
	Absent   func(config.Database) bool   // whether the database is a file that does not exist yet
	Describe func(config.Database) string // names a database without its credentials

	Address func(*config.Config) (*url.URL, error) // where the gateway of the configuration listens
	Command func(words string) string              // a command line of the program, for remedies
	Clock   core.Clock                             // this machine's clock
	Version string                                 // of the program, for the header User-Agent
}

// groups are the groups of checks, in the order of the output. Each returns one or several
// checks. The function needs returns the reason why the group cannot be checked, or "".
var groups = []struct {
	name  string
	needs func(*local) (without string)
	check func(*local, context.Context) []Check
}{
	{"configuration", nothing, (*local).configuration},
	{"security", settings, (*local).security},
	{"database", settings, (*local).database},
	{"schema", database, (*local).schema},
	{"writable", tables, (*local).writable},
	{"atomic", writes, (*local).atomic},
	{"durability", database, (*local).durability},
	{"growth", database, (*local).growth},
	{"clock", database, (*local).clock},
	{"server", settings, (*local).server},
	{"handlers", settings, (*local).handlers},
	{"workflows", settings, (*local).workflows},
	{"breakers", tables, (*local).breakers},
	{"holds", tables, (*local).holds},
	{"lines", tables, (*local).lines},
	{"leftovers", tables, (*local).leftovers},
	{"alerts", settings, (*local).alerts},
}

// A local is a configuration under check on its own machine, with results that later checks
// need.
type local struct {
	Deps
	cfg      *config.Config // nil if it cannot be read
	warnings []config.Problem

	conn      store.Conn // nil if there is none
	dialect   store.Dialect
	checkup   store.Checkup
	writeErr  error // the reason why writing fails
	atomicErr error // the reason why batches are not atomic
	noServer  bool  // no server runs
}

// The functions below are the needs of groups of checks. Each returns the reason why a group
// cannot be checked, or "".

// nothing is the need of groups that can always be checked.
func nothing(*local) string { return "" }

// settings is the need of groups that read the configuration.
func settings(l *local) string {
	if l.cfg == nil {
		return "the configuration cannot be read"
	}
	return ""
}

// database is the need of groups that use an open connection.
func database(l *local) string {
	if without := settings(l); without != "" {
		return without
	}
	if l.conn == nil {
		return "there is no database to ask"
	}
	return ""
}

// tables is for groups that read tables, which must be of this version or older.
func tables(l *local) string {
	without := database(l)
	if without == "" && l.fromNewer() {
		return "the tables are a newer version's"
	}
	return without
}

// writes is for groups that write.
func writes(l *local) string {
	without := tables(l)
	if without == "" && l.writeErr != nil {
		return "nothing can be written"
	}
	return without
}

// Local checks a configuration on its own machine, with its database and its receivers. It
// returns an error only if ctx ends. Any other failure is the result of a check.
func Local(ctx context.Context, d Deps) (checks []Check, err error) {
	l := &local{Deps: d}
	defer l.close()
	for _, g := range groups {
		var found []Check
		if without := g.needs(l); without != "" {
			found = []Check{{Status: Skipped, Detail: without, Blocked: true}}
		} else {
			found = g.check(l, ctx)
		}
		// After an interruption each further check would fail for that reason alone.
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		for _, c := range found {
			c.Name = cmp.Or(c.Name, g.name) // handlers and alerts have names of their own
			checks = append(checks, c)
		}
	}
	return checks, nil
}

// close closes the connection, if there is one.
func (l *local) close() {
	if l.conn != nil {
		l.conn.Close()
	}
}
