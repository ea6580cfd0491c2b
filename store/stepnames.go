package store

import (
	"slices"
	"strings"
)

// A SchemaStep is one change of the schema.
type SchemaStep struct {
	Number int
	Name   string // such as "create table events"
}

// SchemaSteps returns all steps that this version knows, in their order.
func SchemaSteps() []SchemaStep {
	all := make([]SchemaStep, 0, len(schemaSteps)-1)
	for i, sql := range schemaSteps[1:] {
		all = append(all, SchemaStep{i + 1, stepName(sql)})
	}
	return all
}

// stepName derives the name of a step from its statement.
func stepName(sql string) string {
	if fragment, ok := strings.CutPrefix(sql, "{"); ok {
		kind, name, _ := strings.Cut(strings.TrimSuffix(fragment, "}"), " ")
		switch kind {
		case "drop_index":
			_, name = splitIndexName(name)
			return "drop index " + name
		case "drop_listed_index":
			return "drop index " + name + onlyMySQL
		case "drop_listed_column":
			return "drop column jobs." + name + onlyMySQL
		case "create_lists":
			return "create index " + name + onlyMySQL
		case "create_later":
			return "create index " + name + notMySQL
		case "drop_replaced_index":
			return "drop index " + name + notMySQL
		}
		return "create index " + name
	}
	words := strings.Fields(sql)
	if words[0] == "ALTER" { // ALTER TABLE name ADD COLUMN {column_if_not_exists} name
		return "add column " + words[2] + "." + words[6]
	}
	if i := slices.Index(words, "INDEX"); i >= 0 {
		return "create index " + words[i+2] // INDEX {index_if_not_exists} name
	}
	return "create table " + words[5] // CREATE TABLE IF NOT EXISTS name
}

// These end the name of a step that changes nothing on other databases, or nothing on MySQL.
const (
	onlyMySQL = " (mysql)"
	notMySQL  = " (except mysql)"
)

// stepBase is the name of a step without such an end.
func stepBase(sql string) string {
	return strings.TrimSuffix(strings.TrimSuffix(stepName(sql), onlyMySQL), notMySQL)
}
