package store

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/eventgateway/gateway/core"
)

// A knowingConn has some events, by their ids, and others by their delivery ids. It answers INSERTs and reads of
// events as a database does, and notes the names of the statements of each batch.
type knowingConn struct {
	Conn
	has     map[string]bool   // ids
	others  map[string]string // ids of events of other arrivals, by delivery id
	batches []string
}

func (c *knowingConn) Batch(_ context.Context, stmts ...Stmt) ([]Result, error) {
	var names []string
	results := make([]Result, len(stmts))
	for i, st := range stmts {
		names = append(names, st.Name)
		for _, row := range st.Rows {
			switch id := textOf(row[0]); st.Name {
			case "insert_event":
				if c.others[textOf(row[eventRowDeliveryID])] == "" && !c.has[id] {
					c.has[id] = true
					results[i].Changed++
				}
			case "delivered":
				event := c.others[textOf(row[2])]
				if c.has[id] {
					event = id
				}
				results[i].Rows = append(results[i].Rows, []any{id, event, int64(0)})
			}
		}
	}
	c.batches = append(c.batches, strings.Join(names, " "))
	return results, nil
}

// TestDuplicatesAloneAreRead: where the database tells which events were inserted, only a duplicate costs a
// read, and an event whose batch was sent again after a lost answer.
func TestDuplicatesAloneAreRead(t *testing.T) {
	arrival := func(id, delivery string) core.Arrival {
		e := core.Event{ID: core.ID(id), Source: "app", Type: "t", DeliveryID: delivery, CreatedAt: core.SystemClock()}
		return core.Arrival{Event: e, Jobs: []core.NewJob{{ID: core.ID(id + "-j"), Lane: "handler/h", MaxAttempts: 1}}}
	}
	const inserts = "insert_event insert_keyless_jobs_if"
	for _, d := range []Dialect{SQLite, Postgres, D1, MySQL} {
		for name, tt := range map[string]struct {
			known, other string
			want         core.Receipt
			batches      []string
		}{
			"new":        {"", "", core.Receipt{EventID: "e1", Jobs: 1}, []string{inserts}},
			"duplicate":  {"", "e0", core.Receipt{EventID: "e0", Duplicate: true}, []string{inserts, "delivered"}},
			"sent again": {"e1", "", core.Receipt{EventID: "e1", Jobs: 1}, []string{inserts, "delivered"}},
		} {
			if d.Name == MySQL.Name {
				tt.batches = []string{inserts + " delivered"}
			}
			c := &knowingConn{has: map[string]bool{tt.known: true}, others: map[string]string{"d1": tt.other}}
			got, err := New(c, d, core.SystemClock).Accept(t.Context(), arrival("e1", "d1"))
			if diff := cmp.Diff(fmt.Sprint(tt.want, tt.batches), fmt.Sprint(got, c.batches)); diff != "" || err != nil {
				t.Errorf("%s, %s: %v (-want +got):\n%s", d.Name, name, err, diff)
			}
			// Beside an event without a delivery id, and one that is new.
			c = &knowingConn{has: map[string]bool{tt.known: true}, others: map[string]string{"d1": tt.other}}
			all, err := New(c, d, core.SystemClock).AcceptAll(t.Context(), []core.Arrival{arrival("e1", "d1"), arrival("e2", "d2"), arrival("e3", "")})
			batches := strings.ReplaceAll(strings.Join(tt.batches, ", "), inserts, "insert_event insert_jobs insert_keyless_jobs_if")
			want := fmt.Sprint([]core.Receipt{tt.want, {EventID: "e2", Jobs: 1}, {EventID: "e3", Jobs: 1}}, batches)
			if diff := cmp.Diff(want, fmt.Sprint(all, strings.Join(c.batches, ", "))); diff != "" || err != nil {
				t.Errorf("%s, %s, of three: %v (-want +got):\n%s", d.Name, name, err, diff)
			}
		}
	}
}
