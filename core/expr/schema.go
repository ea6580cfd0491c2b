package expr

import (
	"encoding/json"
	"slices"
	"strings"
)

// A Schema is the required structure of payloads: a JSON Schema with the keywords type,
// required and properties. It never changes and is safe for concurrent use.
type Schema struct {
	types      []string // none: any
	required   []string
	properties []property // in the order they are written in
}

// A property is the schema of one member.
type property struct {
	name   string
	schema *Schema
}

// maxViolations is the maximum of lines that Check returns.
const maxViolations = 10

// Check returns the faults of a payload, one line each and at most ten, as in
// "$.order.amount: must be number, not string"; nil if it fits. The lines are in the order
// of the schema, each object before its members. They are the same for equal payloads. As
// in JSON Schema, required and properties do not apply to a value that is not an object,
// and 1.0 is an integer. The value is a tree such as [Document.Value] returns.
func (s *Schema) Check(v any) []string {
	c := checker{path: []byte("$")}
	c.check(s, v)
	return c.violations
}

// A checker is one call of Check.
type checker struct {
	path       []byte // where the value is that is being checked
	violations []string
}

// check reports the first fault of a value, and then the faults of its members. A value with a
// wrong type is not looked into: its members would be reported for no use.
func (c *checker) check(s *Schema, v any) {
	if !s.allows(v) {
		c.violation("must be " + strings.Join(s.types, " or ") + ", not " + typeName(v))
		return
	}
	// The other keywords concern objects only.
	object, ok := v.(map[string]any)
	if !ok {
		return
	}
	for _, name := range s.required {
		if _, ok := object[name]; !ok {
			c.within(name, func() { c.violation("is required") })
		}
	}
	for _, p := range s.properties {
		// A large object with a wrong type in each member ends here, and not after its last
		// member.
		if len(c.violations) == maxViolations {
			return
		}
		if v, ok := object[p.name]; ok {
			c.within(p.name, func() { c.check(p.schema, v) })
		}
	}
}

// within does something one step further down.
func (c *checker) within(name string, do func()) {
	length := len(c.path)
	c.path = appendStep(c.path, name)
	do()
	c.path = c.path[:length]
}

// violation reports a fault at the current path, unless there are enough.
func (c *checker) violation(text string) {
	if len(c.violations) < maxViolations {
		c.violations = append(c.violations, string(c.path)+": "+text)
	}
}

// appendStep appends a name to a JSONPath.
func appendStep(path []byte, name string) []byte {
	if plainName(name) {
		return append(append(path, '.'), name...)
	}
	return append(appendString(append(path, '['), name, unlimited), ']')
}

// plainName reports whether a name may stand after a dot. Letters beyond ASCII would be
// permitted, but brackets are also correct for them.
func plainName(name string) bool {
	for i := 0; i < len(name); i++ {
		c := name[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// allows reports whether a value has one of the types. integer is a number without a fractional
// part.
func (s *Schema) allows(v any) bool {
	if len(s.types) == 0 || slices.Contains(s.types, typeName(v)) {
		return true
	}
	n, isNumber := v.(json.Number)
	return isNumber && slices.Contains(s.types, "integer") && parseDecimal(n).integer()
}

// typeNames are the types a schema may ask for.
var typeNames = []string{"object", "array", "string", "number", "integer", "boolean", "null"}

// typeName returns the JSON type of a value.
func typeName(v any) string {
	switch v.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case bool:
		return "boolean"
	case nil:
		return "null"
	}
	return "number"
}
