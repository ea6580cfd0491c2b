// Package expr reads payloads. A [Path] selects values, [Canonical] names them, a [Schema]
// checks their types, a [Filter] decides about a payload, and a [Template] makes JSON of
// it.
//
// The one idea to know: payloads are data of strangers, so no content of a payload is an
// error. Mistakes are in a path, a schema, a filter or a template. The parser finds them and
// explains them to the author. After that each payload has an answer, within a number of
// steps that is proportional to its size: an evaluation that needs more ends with
// [ErrBudget], whether the author or the sender caused it. Eight choices serve this:
//
//   - Every payload is a tree ([Document]). A payload that is not JSON is the JSON string of
//     its text. Only JSON that is nested deeper than 200 levels, or has 512 MiB, has no tree:
//     see [Document.Err].
//   - The tree is built only if an expression needs it. A payload is read onto a tape, a node
//     of eight bytes for each value and name, in a tenth of the time. Names and indexes are
//     followed there, and templates copy from it.
//   - A body with several events, or with one and its attributes, is cut into parts without a
//     copy: [Elements] and [Members].
//   - Numbers stay text ([encoding/json.Number]) and are compared digit by digit,
//     so that 1 is 1.0, 2^53+1 is not 2^53, and 1e999999999 costs eleven bytes.
//   - A path has at most one "..", and nothing else that multiplies.
//   - Patterns are literals, compiled when they are parsed. Within a condition, [?...],
//     all parts that do not depend on @ are evaluated once for all items.
//   - A filter that compares two paths makes a set of the right one's values, or
//     keeps the greatest, and looks the left one's up: it goes through no pairs.
//   - A template is checked once with its holes filled; rendering only appends
//     escaped values, so that the result is JSON and nothing can be injected.
//
// Paths are RFC 9535, except that the pattern of match and search must be a literal. The
// parser is theory/jsonpath's, and decides whether a text is a path. The library does not
// export the contents of a condition, so pathread.go reads the text again into a tree of our
// own. The evaluator is our own, too. The library's evaluator counts no steps and allocates
// for each step. It follows Go's random order of members, copies the results of ".." once per
// level, and evaluates $ again for each item. It compares numbers as float64, and takes >=
// and <= between false and true for true.
//
// Steps are counted in budget.go. A step takes about 20 ns, so the worst expression ends
// within about 100 ms on a payload of 1 MiB (BenchmarkAttack). $..id takes less than one step
// for each byte.
//
// expr is pure: it imports core/once, the standard library without net/http, os and
// database/sql, and the parser.
package expr
