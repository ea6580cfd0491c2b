package expr

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// keywords are the keywords that a schema may have; annotations are keywords without
// effect. All others are refused: a schema whose minimum is ignored would promise a check
// that is not made.
var (
	keywords    = []string{"type", "required", "properties"}
	annotations = []string{"$schema", "$id", "$comment", "title", "description", "default", "examples"}
)

// maxSchema bounds the text of a schema, in bytes.
const maxSchema = 1 << 20

// ParseSchema parses the JSON text of a schema of at most 1 MiB. The error joins all
// mistakes ([errors.Join]). Each is one line, with the JSONPath of the place in the schema,
// as in "$.properties.age.minimum: is not supported; ...".
func ParseSchema(text []byte) (*Schema, error) {
	if len(text) > maxSchema {
		return nil, fmt.Errorf("the schema has more than %d bytes", maxSchema)
	}
	// From here on the text is known to be JSON, so reading it cannot fail.
	if err := checkSyntax(text); err != nil {
		return nil, err
	}
	p := schemaParser{path: []byte("$")}
	s := p.schema(text)
	if len(p.problems) > 0 {
		return nil, errors.Join(p.problems...)
	}
	return s, nil
}

// checkSyntax returns an error at the place where text stops being one JSON value.
func checkSyntax(text []byte) error {
	if TooDeep(text) {
		return fmt.Errorf("the schema is nested deeper than %d levels", maxDepth)
	}
	var v json.RawMessage
	err := json.Unmarshal(text, &v)
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return err
	}
	// The library gives an offset in bytes. Authors need a line and a column.
	before := text[:max(0, min(int(syntax.Offset)-1, len(text)))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Errorf("the schema is not JSON: line %d, column %d: %v", line, column, syntax)
}

// A schemaParser parses one schema and collects its mistakes. path is the place of the value
// that is being parsed; within keeps it.
type schemaParser struct {
	path     []byte
	problems []error
}

// problem notes a mistake at the current path.
func (p *schemaParser) problem(format string, args ...any) {
	p.problems = append(p.problems, fmt.Errorf("%s: %s", p.path, fmt.Sprintf(format, args...)))
}

// within parses something one step further down.
func (p *schemaParser) within(name string, parse func()) {
	// The path is one buffer that grows and shrinks with the depth.
	length := len(p.path)
	p.path = appendStep(p.path, name)
	parse()
	p.path = p.path[:length]
}

// schema parses valid JSON. It continues after a mistake, so that the author sees all of them
// at once.
func (p *schemaParser) schema(text json.RawMessage) *Schema {
	s := &Schema{}
	p.fields(text, "must be an object with type, required or properties", func(keyword string, value json.RawMessage) {
		switch {
		case keyword == "type":
			s.types = p.typeList(value)
		case keyword == "required":
			s.required = p.names(value, "must be a list of the names of members")
		case keyword == "properties":
			s.properties = p.properties(value)
		// The message lists all keywords, since authors often take over a schema with many
		// more.
		case !slices.Contains(annotations, keyword):
			p.problem("is not supported; a schema has %s, and may have for its readers %s",
				strings.Join(keywords, ", "), strings.Join(annotations, ", "))
		}
	})
	return s
}

// properties parses the schemas of members, in the order of the text.
func (p *schemaParser) properties(text json.RawMessage) (all []property) {
	p.fields(text, "must be an object of schemas by the names of members", func(name string, value json.RawMessage) {
		all = append(all, property{name, p.schema(value)})
	})
	return all
}

// typeList parses the name of a type, or a list of such names.
func (p *schemaParser) typeList(text json.RawMessage) []string {
	must := "must be one of " + strings.Join(typeNames, ", ") + ", or a list of these"
	// A single name is read as a list of one.
	if text[0] == '"' {
		text = slices.Concat([]byte{'['}, text, []byte{']'})
	}
	names := p.names(text, must)
	for _, name := range names {
		if !slices.Contains(typeNames, name) {
			p.problem("%s, not %q", must, name)
		}
	}
	// A value without a permitted type could never fit.
	if names != nil && len(names) == 0 {
		p.problem("%s; it is empty", must)
	}
	return names
}

// names parses a list of distinct strings.
func (p *schemaParser) names(text json.RawMessage, must string) []string {
	var values []any
	if text[0] != '[' || json.Unmarshal(text, &values) != nil {
		p.problem("%s", must)
		return nil
	}
	names := make([]string, 0, len(values))
	seen := map[string]bool{}
	for _, v := range values {
		name, ok := v.(string)
		switch {
		case !ok:
			p.problem("%s", must)
			return nil
		case seen[name]:
			p.problem("names %q twice", name)
			return nil
		}
		seen[name] = true
		names = append(names, name)
	}
	return names
}

// fields calls each for the members of an object in the order of the text. A name
// may stand there once.
func (p *schemaParser) fields(text json.RawMessage, must string, each func(name string, value json.RawMessage)) {
	// json.Unmarshal into a map was rejected: it loses the order and the repeated names.
	if text = bytes.TrimLeft(text, " \t\r\n"); text[0] != '{' {
		p.problem("%s", must)
		return
	}
	// The decoder keeps the members in their order, and shows repeated ones.
	d := json.NewDecoder(bytes.NewReader(text))
	_, _ = d.Token() // {
	seen := map[string]bool{}
	for d.More() {
		key, _ := d.Token()
		name, _ := key.(string)
		var value json.RawMessage
		_ = d.Decode(&value) // the text was found to be JSON
		p.within(name, func() {
			if seen[name] {
				p.problem("is given twice")
				return
			}
			seen[name] = true
			each(name, value)
		})
	}
}
