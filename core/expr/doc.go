// Package expr reads payloads: where a [Path] leads in one, what its values are
// called ([Canonical]), whether it has the shape a [Schema] asks for, whether a
// [Filter] wants it, and what a [Template] makes of it.
//
// The one idea to know: payloads are strangers' data, so nothing here fails on
// them. What can be wrong is wrong in a path, a schema, a filter or a template, is
// found when that is parsed, and is explained to its author; after that every
// payload has an answer, in time nearly proportional to its size. Six choices
// serve this:
//
//   - A payload is a tree ([Document]) whatever its bytes are: one that is not
//     JSON, or is nested deeper than 200 levels, is the JSON string of its text.
//   - The tree is built for who needs it. A payload is read onto a tape, a node of
//     eight bytes for each value and name, in a tenth of the time: names and indexes
//     are followed there, and templates copy from it.
//   - Numbers stay text ([encoding/json.Number]) and are compared digit by digit,
//     so that 1 is 1.0, 2^53+1 is not 2^53, and 1e999999999 costs eleven bytes.
//   - A path has at most one "..", and nothing else that multiplies.
//   - A filter that compares two paths makes a set of the right one's values, or
//     keeps the greatest, and looks the left one's up: it goes through no pairs.
//   - A template is checked once with its holes filled; rendering only appends
//     escaped values, so that the result is JSON and nothing can be injected.
//
// Paths are RFC 9535. The parser is theory/jsonpath's; the evaluator is ours,
// because the library's allocates for every step, follows Go's random order of
// members, and copies what ".." finds once per level. The conditions of filter
// selectors ([?...]) alone are evaluated by the library: they compare numbers as
// float64, take >= and <= between false and true for true, and cost more if they
// look at large values through $.
//
// expr is pure: it imports the standard library, without net/http, os and
// database/sql, and the parser.
package expr
