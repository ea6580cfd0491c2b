//go:build linux

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/receiver"
	"github.com/eventgateway/gateway/infra/test/wait"
)

// A seeding fills a database with copies of a delivered event, of its job and of its attempt. The gateway
// stored the originals, so the copies have all that it stores today.
type seeding struct {
	db         *ledger
	event, job string // the ids of the originals
	at         int    // when the event was received, in Unix milliseconds
	rows       int    // of each table
}

const (
	seedDigits = 6                     // of a number below seedPiece, in base 4
	seedPiece  = 1 << (2 * seedDigits) // rows that a statement inserts; on a busy machine, D1 needs seconds for them
	seedSpan   = 6 * time.Hour         // the time before the original in which the copies were received
)

// A copied table has the columns that a copy takes from its original, and those that it has for itself.
type copied struct {
	table, same string
	own         [][2]string // the name and the expression of each, see seeding.expression
}

// seeded are the tables that seedDelivered fills, with all their columns. The attempt is in its job.
var seeded = []copied{
	{"events", "source, type, content_type, headers, delivery_id, encoding", [][2]string{
		{"id", "{id E}"}, {"payload", `CONCAT('{"n":', n.i, ',"customer":{"id":"c-', n.i % 1000, '"}}')`}, {"created_at", "{time}"},
	}},
	{"jobs", "lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, earlier, line, success", [][2]string{
		{"id", "{id J}"}, {"event_id", "{id E}"}, {"created_at", "{time}"}, {"finished_at", "{time}"}, {"scheduled_at", "{time}"},
	}},
}

// seedDelivered has a new gateway deliver one event of the source shop, stops it, and copies the event as if
// more events had come in over the last hours.
func seedDelivered(g *gateway, jobs int) {
	g.t.Helper()
	g.start()
	event := g.send("/events/shop/order.created", `{"n":0,"customer":{"id":"c-0"}}`, "Authorization", "Bearer admin-admin-admin-admin-admin", "Content-Type", "application/json")
	delivered := `SELECT id FROM jobs WHERE status = 'completed' AND event_id = '` + event + `'`
	looking := g.ledger()
	wait.For(g.t, 20*time.Second, "the event to copy is delivered", func() bool { return len(looking.column(delivered)) == 1 })
	looking.close()
	g.stop()
	db := g.ledger()
	defer db.close()
	s := seeding{db: db, event: event, job: db.column(delivered)[0], rows: jobs, at: db.count(`SELECT created_at FROM events WHERE id = '` + event + `'`)}
	var fills sync.WaitGroup
	for _, c := range seeded {
		fills.Go(func() {
			if err := s.fill(c); err != nil {
				g.t.Error(err)
			}
		})
		if g.store == nil || g.store.requests != nil { // they have one writer
			fills.Wait()
		}
	}
	fills.Wait()
	if g.t.Failed() {
		g.t.FailNow()
	}
	s.copyMinutes()
	db.vacuum()
}

// fill inserts all copies of a table.
func (s *seeding) fill(c copied) error {
	for from := 0; from < s.rows; from += seedPiece {
		if err := s.db.try(s.piece(c, from)); err != nil {
			return err
		}
	}
	return nil
}

// piece returns the statement that inserts the copies with the numbers from a first one on, in SQL that every
// database accepts.
func (s *seeding) piece(c copied, from int) string {
	columns, values := strings.Split(c.same, ", "), []string{}
	for _, column := range columns {
		values = append(values, "t."+column)
	}
	for _, own := range c.own {
		columns, values = append(columns, own[0]), append(values, s.expression(own[0], own[1], from))
	}
	original := s.job
	if c.table == "events" {
		original = s.event
	}
	return fmt.Sprintf(`INSERT INTO %s (%s) SELECT %s FROM %[1]s t CROSS JOIN (%[4]s) n WHERE t.id = '%s' AND n.i < %d ORDER BY n.i`,
		c.table, strings.Join(columns, ", "), strings.Join(values, ", "), numbersFrom(from), original, s.rows)
}

// expression returns the SQL for the value of a column in a piece. {id X} is an id of the time of the copy, and
// {time} the time in the column of the original, earlier by as much as the copy is older. A null stays null.
func (s *seeding) expression(column, value string, from int) string {
	// Copies are equally far apart. A shift divides, since / is no division of integers on MySQL.
	const shift = 20
	step := seedSpan.Milliseconds() << shift / int64(s.rows)
	later := fmt.Sprintf("(n.i * %d >> %d)", step, shift)
	if kind, isID := strings.CutPrefix(value, "{id "); isID {
		first := int64(s.at) - seedSpan.Milliseconds()
		begin, end := first+int64(from)*step>>shift, first+int64(from+seedPiece)*step>>shift
		return seedID(fmt.Sprintf("(%d + %s)", first, later), kind[:1], s.db.integer, begin, end)
	}
	return strings.ReplaceAll(value, "{time}", fmt.Sprintf("t.%s - %d + %s", column, seedSpan.Milliseconds(), later))
}

// numbersFrom returns a query for seedPiece numbers i from a first one on, which are 64 bits wide. It joins four
// rows with themselves, since D1 takes no more than five SELECTs in a UNION.
func numbersFrom(first int) string {
	const wide = 10_000_000_000
	four := "SELECT 0 AS d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3"
	sum, joined := fmt.Sprintf("%d - %d", wide, wide-first), []string{}
	for i := range seedDigits {
		sum += fmt.Sprintf(" + %d * d%d.d", 1<<(2*i), i)
		joined = append(joined, fmt.Sprintf("(%s) d%d", four, i))
	}
	return "SELECT " + sum + " AS i FROM " + strings.Join(joined, " CROSS JOIN ")
}

// seedID returns an expression for the id of a row of a kind: ten letters of a time in milliseconds, as in a
// ULID, the letter of the kind, and the number of the copy. The time is between two others, from which most of
// the letters follow without work for the server.
func seedID(at, kind, integer string, begin, end int64) string {
	const letters = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	parts := []string{}
	for shift := 45; shift >= 0; shift -= 5 {
		part := fmt.Sprintf("SUBSTR('%s', CAST(1 + ((%s >> %d) & 31) AS %s), 1)", letters, at, shift, integer)
		if begin>>shift == end>>shift {
			part = "'" + letters[begin>>shift&31:][:1] + "'"
		}
		parts = append(parts, part)
	}
	return "CONCAT(" + strings.Join(parts, ", ") + ", '" + kind + "', SUBSTR(CONCAT('', 1000000000000000 + n.i), 2))"
}

// copyMinutes copies the counts of the original's minute to each minute in which copies were received.
func (s *seeding) copyMinutes() {
	minute := time.Minute.Milliseconds()
	each := int64(s.rows) * minute / seedSpan.Milliseconds()
	for ago := int64(seedSpan / time.Minute); ago > 0; ago-- {
		s.db.exec(fmt.Sprintf(`INSERT INTO minutes (at, lane, process, accepted, completed, failed, dead) SELECT at - %d, lane, process,
			accepted * %d, completed * %[2]d, failed, dead FROM minutes WHERE at > %d`, ago*minute, each, int64(s.at)-minute))
	}
}

// TestSeeded: a copy has every column of its table.
func TestSeeded(t *testing.T) {
	t.Parallel()
	g := newGateway(t, plainConfig, receiver.New(t))
	g.run("migrate", "up")
	db := g.ledger()
	for _, c := range seeded {
		columns := strings.Split(c.same, ", ")
		for _, own := range c.own {
			columns = append(columns, own[0])
		}
		slices.Sort(columns)
		if all := db.column(`SELECT name FROM pragma_table_info('` + c.table + `') ORDER BY name`); !slices.Equal(columns, all) {
			t.Errorf("copies of %s have the columns %q, want all: %q", c.table, columns, all)
		}
	}
	db.close()
}
