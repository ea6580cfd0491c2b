package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/eventgateway/gateway/core/expr"
	"github.com/eventgateway/gateway/core/once"
)

// schemaMust lists the permitted forms of the field.
const schemaMust = "must be a schema (a mapping with type, required or properties) or the name of a file that holds one"

// schema decodes a JSON Schema. It may stand in place as a mapping, as a text of JSON or YAML,
// or in a file. The result is its JSON text and the parsed schema.
func (d *decoder) schema(n *node, path string) (text string, schema *expr.Schema) {
	var err error
	switch {
	// A fault in a part was reported; the schema would only repeat it.
	case n.anyBroken():
		n.broken = true
		return "", nil
	case n.kind == list:
		d.misshapen(n, path, schemaMust)
		return "", nil
	case n.kind == mapping:
		text, schema, err = parseSchema(n.appendJSON(nil))
	// An empty value is no schema, and any payload is accepted.
	case strings.TrimSpace(n.text) == "":
		return "", nil
	default:
		text, schema, err = d.schemaText(n)
	}
	switch {
	case err == nil:
	// The text of a variable may be a secret, so the message does not describe it.
	case n.raw != "":
		d.wrong(n, path, schemaMust)
	case n.anyExpanded():
		d.report.add(n.at, path, "is not a schema with its variables filled in; write it without variables to see the fault")
	default:
		for _, line := range schemaProblems(err) {
			d.report.add(n.at, path, "%s", line)
		}
	}
	return text, schema
}

// schemaProblems returns the lines of a joined error of ParseSchema, or the one line of another
// error.
func schemaProblems(err error) (lines []string) {
	all, several := err.(interface{ Unwrap() []error })
	if !several {
		return []string{err.Error()}
	}
	for _, e := range all.Unwrap() {
		lines = append(lines, e.Error())
	}
	return lines
}

// parseSchema returns a schema with its text; neither if there is an error.
func parseSchema(text []byte) (string, *expr.Schema, error) {
	schema, err := expr.ParseSchema(text)
	if err != nil {
		return "", nil, err
	}
	return string(text), schema, nil
}

// schemaText returns the schema in a scalar, or in the file that the scalar names. A text that
// is not a mapping is a name.
func (d *decoder) schemaText(n *node) (string, *expr.Schema, error) {
	text := strings.TrimSpace(n.text)
	// The text is tried as a schema first. A name of a file is valid YAML too, but no mapping.
	inline, err := schemaJSON([]byte(n.text))
	switch {
	case err == nil && inline != nil:
		return parseSchema(inline)
	// Such a text is meant to be a schema, so its fault is reported and no file is looked for.
	case err != nil && (text[0] == '{' || strings.Contains(text, "\n")):
		return "", nil, err
	}
	return d.schemaFile(path.Dir(n.at.file), text)
}

// schemaFile returns the schema of a file in a folder. The path cannot leave the folder: a
// configuration from elsewhere must not make the gateway read arbitrary files.
func (d *decoder) schemaFile(folder, name string) (string, *expr.Schema, error) {
	if d.file == nil {
		return "", nil, errors.New("a remote configuration comes without other files; write the schema itself here, as in {type: object}")
	}
	clean := path.Clean(name)
	if !fs.ValidPath(clean) || clean == "." || strings.Contains(name, `\`) {
		return "", nil, errors.New("name the file of a schema by its path relative to the configuration, as in schemas/order.json, without .. or a leading slash")
	}
	// The file is beside the file that names it, which may be the overlay.
	data, err := d.file(path.Join(folder, clean))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil, fmt.Errorf("there is no file %s beside the configuration; a schema itself is a mapping, as in {type: object}", quote(name))
	case err != nil:
		return "", nil, fmt.Errorf("the file %s cannot be read: %w", quote(name), cause(err))
	case len(data) > MaxFile:
		return "", nil, fmt.Errorf("the file %s is larger than 1 MiB", quote(name))
	}
	text, schema, err := schemaOf(data)
	if err == nil {
		return text, schema, nil
	}
	// The problems concern another file, so each names it.
	var named []error
	for _, line := range schemaProblems(err) {
		named = append(named, fmt.Errorf("%s: %s", quote(name), line))
	}
	return "", nil, errors.Join(named...)
}

// schemaOf parses the schema of a file, which is JSON or YAML.
func schemaOf(data []byte) (string, *expr.Schema, error) {
	text, err := schemaJSON(data)
	switch {
	case err != nil:
		return "", nil, err
	case text == nil:
		return "", nil, errors.New("contains no mapping; a schema is a mapping, as in {type: object}")
	}
	return parseSchema(text)
}

// cause returns an error about a file without the file's name.
func cause(err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}

// startOfJSON distinguishes a text that was meant to be JSON from YAML between braces.
var startOfJSON = once.Regexp(`^\s*\{\s*"`)

// schemaJSON returns the JSON text of a mapping that is written as JSON or YAML. It returns nil
// if data is valid YAML but not a mapping.
func schemaJSON(data []byte) ([]byte, error) {
	if json.Valid(data) {
		// YAML would do for most JSON, but not for tabs and some escapes.
		if data = bytes.TrimSpace(data); data[0] != '{' {
			return nil, nil
		}
		return data, nil
	}
	var r report
	root := parseAny("", data, &r)
	// One problem is enough: the schema has only one message.
	if len(r.problems) > 0 {
		if startOfJSON().Match(data) {
			_, err := expr.ParseSchema(data)
			return nil, err
		}
		p := r.sorted()[0]
		if p.Line > 0 {
			return nil, fmt.Errorf("line %d: %s%s", p.Line, strings.TrimPrefix(p.Path+": ", ": "), p.Message)
		}
		return nil, errors.New(p.Message)
	}
	if root.kind != mapping {
		return nil, nil
	}
	return root.appendJSON(nil), nil
}

// anyBroken reports whether a problem was reported about n or something in it.
func (n *node) anyBroken() bool { return n.any(func(n *node) bool { return n.broken }) }

// anyExpanded reports whether n or a node in it contains the value of a variable.
func (n *node) anyExpanded() bool { return n.any(func(n *node) bool { return n.raw != "" }) }

// any reports whether a node or a node in it has a property.
func (n *node) any(is func(*node) bool) bool {
	in := func(child *node) bool { return child.any(is) }
	return is(n) || slices.ContainsFunc(n.items, in) || slices.ContainsFunc(n.fields, func(e entry) bool { return in(e.value) })
}

// jsonNumber is a number in JSON's spelling. Other numbers of YAML are text here.
var jsonNumber = once.Regexp(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// appendJSON appends n as JSON, its keys in the order of the file.
func (n *node) appendJSON(b []byte) []byte {
	switch n.kind {
	case mapping:
		b = append(b, '{')
		for i, f := range n.fields {
			b = appendComma(b, i)
			b = append(appendText(b, f.key), ':')
			b = f.value.appendJSON(b)
		}
		return append(b, '}')
	case list:
		b = append(b, '[')
		for i, item := range n.items {
			b = item.appendJSON(appendComma(b, i))
		}
		return append(b, ']')
	}
	// Only a spelling without quotes can be null, a truth value or a number.
	switch lower := strings.ToLower(n.text); {
	case n.null() || n.plain && (lower == "null" || lower == "~"):
		return append(b, "null"...)
	case n.plain && (lower == "true" || lower == "false"):
		return append(b, lower...)
	case n.plain && jsonNumber().MatchString(n.text):
		return append(b, n.text...)
	}
	// All other scalars are texts, also numbers in a spelling that JSON lacks.
	return appendText(b, n.text)
}

// appendComma appends a comma before every item but the first.
func appendComma(b []byte, i int) []byte {
	if i > 0 {
		return append(b, ',')
	}
	return b
}

// appendText appends a JSON string.
func appendText(b []byte, s string) []byte { return append(b, expr.Canonical(s)...) }
