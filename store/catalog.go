package store

import (
	"context"
	"strings"
)

// The queries for the tables, columns and indexes that a database has, for Compare. Each
// dialect has one or two; $names are the tables.
const (
	// SQLite and D1 keep the statement that made each table and index. An index of a unique
	// constraint has no statement.
	sqliteCatalog = `SELECT name, sql FROM sqlite_master WHERE tbl_name IN ($names) AND sql IS NOT NULL AND type IN ('table', 'index') ORDER BY type DESC, name`

	// The type of a column with its collation, unless that is the default one.
	postgresColumns = `SELECT c.relname::text AS tab, a.attname::text AS col,
		format_type(a.atttypid, a.atttypmod) || CASE WHEN o.collname IS NULL OR o.collname = 'default' THEN '' ELSE ' collate ' || lower(o.collname) END AS kind,
		CASE WHEN a.attnotnull THEN 1 ELSE 0 END AS required, CASE WHEN a.atthasdef THEN 1 ELSE 0 END AS filled
		FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid LEFT JOIN pg_collation AS o ON o.oid = a.attcollation
		WHERE c.relname IN ($names) AND c.relkind IN ('r', 'p') AND pg_table_is_visible(c.oid) AND a.attnum > 0 AND NOT a.attisdropped
		ORDER BY 1, a.attnum`
	// uniq is 2 for a primary key. valid is 0 for an index that a failed CREATE INDEX
	// CONCURRENTLY left behind.
	postgresIndexes = `SELECT c.relname::text AS tab, i.relname::text AS ind,
		CASE WHEN x.indisprimary THEN 2 WHEN x.indisunique THEN 1 ELSE 0 END AS uniq, CASE WHEN x.indisvalid AND x.indisready THEN 1 ELSE 0 END AS valid,
		(SELECT string_agg(pg_get_indexdef(x.indexrelid, k, true) || CASE WHEN x.indoption[k - 1] & 1 = 1 THEN ' desc' ELSE '' END, ',' ORDER BY k)
			FROM generate_series(1, x.indnkeyatts::int) AS k) AS cols,
		coalesce(pg_get_expr(x.indpred, x.indrelid), '') AS cond
		FROM pg_index AS x JOIN pg_class AS c ON c.oid = x.indrelid JOIN pg_class AS i ON i.oid = x.indexrelid
		WHERE c.relname IN ($names) AND c.relkind IN ('r', 'p') AND pg_table_is_visible(c.oid) ORDER BY 1, 2`

	// information_schema also has the expressions of generated columns.
	mysqlColumns = `SELECT table_name AS tab, column_name AS col, column_type AS kind, is_nullable AS nullable,
		CASE WHEN column_default IS NULL THEN 0 ELSE 1 END AS filled, COALESCE(generation_expression, '') AS computed
		FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name IN ($names) ORDER BY table_name, ordinal_position`
	// One row for each column of an index. part is set for an index on a prefix of the column.
	mysqlIndexes = `SELECT table_name AS tab, index_name AS ind, CAST(non_unique AS SIGNED) AS many, column_name AS col,
		COALESCE(collation, 'A') AS direction, COALESCE(sub_part, 0) AS part
		FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name IN ($names) ORDER BY table_name, index_name, seq_in_index`
)

// readShape reads the tables of a database with their columns and indexes, in one batch.
func readShape(ctx context.Context, c Conn, d Dialect, tables []string) (*shape, error) {
	texts, build := []string{sqliteCatalog}, sqliteShape
	switch d.Name {
	case Postgres.Name:
		texts, build = []string{postgresColumns, postgresIndexes}, postgresShape
	case MySQL.Name:
		texts, build = []string{mysqlColumns, mysqlIndexes}, mysqlShape
	}
	names := "'" + strings.Join(tables, "', '") + "'"
	var questions []Stmt
	for i, text := range texts {
		questions = append(questions, question([]string{"columns", "indexes"}[i], strings.ReplaceAll(text, "$names", names)))
	}
	results, err := c.Batch(ctx, questions...)
	if err != nil {
		return nil, err
	}
	return build(results), nil
}

// sqliteSQL is the position of the statement in a row of sqliteCatalog.
const sqliteSQL = 1

// sqliteShape parses the statements that SQLite keeps, in the order tables, then indexes.
func sqliteShape(results []Result) *shape {
	s := newShape()
	for _, row := range results[0].Rows {
		s.apply(textOf(row[sqliteSQL]))
	}
	return s
}

// table returns a table of the shape and adds it if it is missing.
func (s *shape) table(name string) *tableShape {
	if s.tables[name] == nil {
		s.tables[name] = &tableShape{}
	}
	return s.tables[name]
}

// postgresShape reads rows of postgresColumns and postgresIndexes.
func postgresShape(results []Result) *shape {
	s := newShape()
	for _, row := range results[0].Rows {
		r := rowReader{row}
		t := s.table(r.text())
		t.columns = append(t.columns, columnShape{name: r.text(), kind: r.text(), notNull: r.number() == 1, filled: r.number() == 1})
	}
	for _, row := range results[1].Rows {
		r := rowReader{row}
		table, index, uniqueness, valid := r.text(), r.text(), r.number(), r.number()
		columns := strings.Split(r.text(), ",")
		if uniqueness == 2 {
			s.table(table).key = columns
			continue
		}
		s.indexes[index] = &indexShape{table: table, unique: uniqueness == 1, invalid: valid == 0, columns: columns, where: normalized(r.text())}
	}
	return s
}

// mysqlShape reads rows of mysqlColumns and mysqlIndexes.
func mysqlShape(results []Result) *shape {
	s := newShape()
	for _, row := range results[0].Rows {
		r := rowReader{row}
		t, name, kind := s.table(r.text()), r.text(), strings.ToLower(r.text())
		if base, _, sized := strings.Cut(kind, "("); sized && strings.HasSuffix(base, "int") {
			kind = base // MariaDB adds a display width to integer types: bigint(20)
		}
		t.columns = append(t.columns, columnShape{name: name, kind: kind, notNull: r.text() == "NO",
			filled: r.number() == 1, computed: normalized(r.text())})
	}
	for _, row := range results[1].Rows {
		r := rowReader{row}
		table, name, many, column, direction, part := r.text(), r.text(), r.number(), r.text(), r.text(), r.number()
		if part != 0 {
			column += " in part"
		}
		if direction == "D" {
			column += " desc"
		}
		if name == "PRIMARY" {
			t := s.table(table)
			t.key = append(t.key, column)
			continue
		}
		if s.indexes[name] == nil {
			s.indexes[name] = &indexShape{table: table, unique: many == 0}
		}
		s.indexes[name].columns = append(s.indexes[name].columns, column)
	}
	return s
}
