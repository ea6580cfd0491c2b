package mysql

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/eventgateway/gateway/store"
)

// isSchema reports whether a batch changes the schema.
func isSchema(stmts []store.Stmt) bool { return slices.ContainsFunc(stmts, changesSchema) }

func changesSchema(s store.Stmt) bool {
	return strings.HasPrefix(s.SQL, "CREATE ") || strings.HasPrefix(s.SQL, "ALTER ") || strings.HasPrefix(s.SQL, "DROP ")
}

// runSchema runs a schema step and its record one after the other, since the server commits each
// change of the schema by itself. If the process ends between the two, the step runs once more:
// the server then reports that the table, column or index exists, and the step counts as done.
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
		if _, err := s.query(ctx, st.SQL, nil); err != nil && !alreadyDone[number(err)] {
			err = fmt.Errorf("%s: %w", st.Name, err)
			s.undo(err)
			return nil, err
		}
	}
	return results, nil
}
