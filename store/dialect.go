package store

import "strings"

// A Dialect is what one family of databases spells differently. It is text and
// nothing else: callers never ask a dialect what it supports.
type Dialect struct {
	Name string

	// Key and Text are the two kinds of text column: compared as bytes and
	// indexed, or only stored. Int is a 64-bit integer.
	Key, Text, Int string

	// Clustered ends a CREATE TABLE whose rows are to be kept in the order of
	// their primary key.
	Clustered string

	// Fresh ends an INSERT that is to do nothing when a key is taken.
	Fresh string

	// Limit is a parameter after LIMIT.
	Limit string

	// List is a row source with one row for each element of the JSON array in its
	// one parameter. Item is the element; Item0 and Item1 are the parts of an
	// element that is itself an array.
	List, Item, Item0, Item1 string
}

// SQLite is the dialect of SQLite 3.38 and later, also behind HTTP.
var SQLite = Dialect{
	Name:      "sqlite",
	Key:       "TEXT NOT NULL",
	Text:      "TEXT NOT NULL",
	Int:       "INTEGER",
	Clustered: "WITHOUT ROWID",
	Fresh:     "ON CONFLICT DO NOTHING",
	// Of a bare parameter SQLite looks up the value when it plans, and so it plans
	// again each time one is bound: 4 % of an event's CPU.
	Limit: "? + 0",
	List:  "json_each(?) AS list",
	Item:  "list.value",
	Item0: "list.value ->> 0",
	Item1: "list.value ->> 1",
}

// text fills a statement's fragments in.
func (d Dialect) text(sql string) string {
	return strings.NewReplacer(
		"{key}", d.Key, "{text}", d.Text, "{int}", d.Int,
		"{clustered}", d.Clustered, "{fresh}", d.Fresh,
		"{limit}", d.Limit, "{list}", d.List, "{item}", d.Item, "{item0}", d.Item0, "{item1}", d.Item1,
	).Replace(strings.TrimSpace(sql))
}
