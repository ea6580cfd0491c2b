package workflow

import (
	"encoding/json"
	"fmt"

	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/expr"
	"github.com/eventgateway/gateway/core/once"
)

// maxViolations is the maximum of lines that Check returns.
const maxViolations = 10

// Check returns one line for each param that a payload lacks or has with a wrong type, in
// the order of the params, at most ten. It returns nil if the payload fits.
func (d *Definition) Check(payload *expr.Document) []string {
	if len(d.params) == 0 {
		return nil
	}
	// A payload that is no object has no members.
	object, ok := payload.Value().(map[string]any)
	// One line says it all: every param would be missing.
	if !ok && needsAny(d.params) {
		return []string{"$: must be an object, not " + withArticle(typeName(payload.Value()))}
	}
	var lines []string
	for _, p := range d.params {
		line := violation(p, object)
		// The answer to the sender stays short for a definition with many params.
		if line != "" && len(lines) < maxViolations {
			lines = append(lines, line)
		}
	}
	return lines
}

// needsAny reports whether a param is required. If none is, a payload that is no object fits.
func needsAny(params []config.Param) bool {
	for _, p := range params {
		if p.Required {
			return true
		}
	}
	return false
}

// violation says how one param is wrong; it is empty if the param fits.
func violation(p config.Param, object map[string]any) string {
	want := p.Type
	// A workflow that was made by hand may lack the type.
	if want == "" {
		want = "string"
	}
	v, ok := object[p.Name]
	switch {
	case !ok && p.Required:
		return fmt.Sprintf("%s: is missing; it must be %s", param(p.Name), withArticle(want))
	// It is absent, or null.
	case v == nil && !p.Required:
		return ""
	case typeName(v) != want:
		return fmt.Sprintf("%s: must be %s, not %s", param(p.Name), withArticle(want), withArticle(typeName(v)))
	}
	return ""
}

// plainName matches the names that may stand after a dot in a JSONPath without brackets.
var plainName = once.Regexp(`^[A-Za-z_][A-Za-z0-9_]*$`)

// param returns the JSONPath of a param.
func param(name string) string {
	if plainName().MatchString(name) {
		return "$." + name
	}
	return fmt.Sprintf("$[%q]", name)
}

// typeName returns the JSON type of a value.
func typeName(v any) string {
	switch v.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case json.Number:
		return "number"
	case bool:
		return "boolean"
	}
	return "null"
}

// withArticle returns the name of a type for a message. null has no article.
func withArticle(typ string) string {
	switch typ {
	case "object", "array":
		return "an " + typ
	case "null":
		return typ
	}
	return "a " + typ
}
