package mysql

import (
	"context"
	"fmt"
	"strings"

	"github.com/eventgateway/gateway/store"
)

// isSchema tells whether a batch changes the schema.
func isSchema(stmts []store.Stmt) bool {
	for _, s := range stmts {
		if changesSchema(s) {
			return true
		}
	}
	return false
}

func changesSchema(s store.Stmt) bool {
	return strings.HasPrefix(s.SQL, "CREATE ") || strings.HasPrefix(s.SQL, "ALTER ") || strings.HasPrefix(s.SQL, "DROP ")
}

// runSchema runs a schema step and its record one after the other: a change of the
// schema is a transaction by itself in any case. Should the record not follow, the
// step is run once more, finds what it was to make, and counts as done.
func (s *session) runSchema(ctx context.Context, stmts []store.Stmt) ([]store.Result, error) {
	results := make([]store.Result, len(stmts))
	for i, st := range stmts {
		if !changesSchema(st) {
			r, err := s.run(ctx, stmts[i:i+1])
			if err != nil {
				return nil, err
			}
			results[i] = r[0]
			continue
		}
		if _, err := s.query(ctx, st.SQL, nil); err != nil && !isThere(err) {
			err = fmt.Errorf("%s: %w", st.Name, err)
			s.undo(err)
			return nil, err
		}
	}
	return results, nil
}
