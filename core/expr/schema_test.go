package expr

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const orderSchema = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "order", "$comment": "c", "title": "Order", "description": "d",
	"default": {"minimum": 1}, "examples": [{"id": "1"}],
	"type": "object",
	"required": ["id", "total"],
	"properties": {
		"total": {"type": ["number", "null"]},
		"id": {"type" : "string"},
		"count": {"type": "integer"},
		"address": {"type": "object", "required": ["zip code"], "properties": {"zip code": {"type": "string"}, "ü": {"type": "boolean"}}},
		"any": {}
	}
}`

func TestSchemaCheck(t *testing.T) {
	s, err := ParseSchema([]byte(orderSchema))
	if err != nil {
		t.Fatalf("ParseSchema: %v", err)
	}
	for _, c := range []struct {
		payload string
		want    []string
	}{
		{`{"id": "1", "total": 5, "more": {}}`, nil},
		{`{"id": "1", "total": null, "count": 2.0, "any": [1]}`, nil},
		{`{"id": "1", "total": 5, "count": 2e3}`, nil},
		{`{"id": "1", "total": 5, "count": 2.5}`, []string{"$.count: must be integer, not number"}},
		{`{"id": "1", "total": 5, "count": 1e-999999999999}`, []string{"$.count: must be integer, not number"}},
		{`[]`, []string{"$: must be object, not array"}},
		{`no JSON`, []string{"$: must be object, not string"}},
		{``, []string{"$: must be object, not string"}},
		{`{}`, []string{"$.id: is required", "$.total: is required"}},
		{`{"id": null, "total": "5"}`, []string{"$.total: must be number or null, not string", "$.id: must be string, not null"}},
		{`{"id": 1, "total": 5, "address": {"ü": 0}}`, []string{"$.id: must be string, not number", `$.address["zip code"]: is required`, `$.address["ü"]: must be boolean, not number`}},
		{`{"id": "", "total": 1, "address": true}`, []string{"$.address: must be object, not boolean"}},
	} {
		got := s.Check(NewDocument([]byte(c.payload), "").Value())
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("Check(%s) differs (-want +got):\n%s", c.payload, diff)
		}
	}
}

func TestSchemaSaysNothingAboutOtherTypes(t *testing.T) {
	s, err := ParseSchema([]byte(`{"required": ["id"], "properties": {"id": {"type": "string"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, payload := range []string{`[]`, `1`, `"x"`, `null`} {
		if got := s.Check(tree(t, payload)); got != nil {
			t.Errorf("Check(%s) = %v, want nil", payload, got)
		}
	}
}

func TestSchemaCheckStopsAtTen(t *testing.T) {
	var names []string
	for i := range 12 {
		names = append(names, fmt.Sprintf("%q", fmt.Sprint("m", i)))
	}
	for _, text := range []string{
		`{"required": [` + strings.Join(names, ",") + `]}`,
		`{"properties": {` + strings.Join(names, `:{"type":"null"},`) + `:{"type":"null"}}}`,
	} {
		s, err := ParseSchema([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		payload := map[string]any{}
		if strings.Contains(text, "properties") {
			for i := range 12 {
				payload[fmt.Sprint("m", i)] = true
			}
		}
		if got := s.Check(payload); len(got) != 10 || !strings.HasPrefix(got[9], "$.m9: ") {
			t.Errorf("Check = %d lines, the last %q; want 10, the last about $.m9", len(got), got[len(got)-1])
		}
	}
}

func TestParseSchemaErrors(t *testing.T) {
	const types = "must be one of object, array, string, number, integer, boolean, null, or a list of these"
	const allowed = "is not supported; a schema has type, required, properties, and may have for its readers $schema, $id, $comment, title, description, default, examples"
	for _, c := range []struct {
		schema string
		want   []string
	}{
		{``, []string{"the schema is not JSON: line 1, column 1: unexpected end of JSON input"}},
		{`{"type": "object"`, []string{"the schema is not JSON: line 1, column 17: unexpected end of JSON input"}},
		{"{\n \"type\": objekt}", []string{"the schema is not JSON: line 2, column 10: invalid character 'o' looking for beginning of value"}},
		{`{} {}`, []string{"the schema is not JSON: line 1, column 4: invalid character '{' after top-level value"}},
		{`true`, []string{"$: must be an object with type, required or properties"}},
		{` []`, []string{"$: must be an object with type, required or properties"}},
		{`{"minimum": 1, "$ref": "#"}`, []string{"$.minimum: " + allowed, `$["$ref"]: ` + allowed}},
		{`{"properties": {"a b": {"items": {}}}}`, []string{`$.properties["a b"].items: ` + allowed}},
		{`{"type": "text"}`, []string{`$.type: ` + types + `, not "text"`}},
		{`{"type": ["string", 1]}`, []string{"$.type: " + types}},
		{`{"type": []}`, []string{"$.type: " + types + "; it is empty"}},
		{`{"type": null}`, []string{"$.type: " + types}},
		{`{"type": ["string", "string"]}`, []string{`$.type: names "string" twice`}},
		{`{"required": "id"}`, []string{"$.required: must be a list of the names of members"}},
		{`{"required": ["id", "id"]}`, []string{`$.required: names "id" twice`}},
		{`{"properties": []}`, []string{"$.properties: must be an object of schemas by the names of members"}},
		{`{"properties": {"a": "string"}}`, []string{"$.properties.a: must be an object with type, required or properties"}},
		{`{"type": "object", "type": "object"}`, []string{"$.type: is given twice"}},
		{`{"properties": {"a": {}, "a": {}}}`, []string{"$.properties.a: is given twice"}},
		{nest(201), []string{"the schema is nested deeper than 200 levels"}},
	} {
		_, err := ParseSchema([]byte(c.schema))
		if err == nil || err.Error() != strings.Join(c.want, "\n") {
			t.Errorf("ParseSchema(%s): %v, want %s", c.schema, err, strings.Join(c.want, "\n"))
		}
	}
}

// FuzzSchema compares with a checker that reads the schema anew at every step.
func FuzzSchema(f *testing.F) {
	for _, payload := range []string{`{}`, `[]`, `{"id":1,"total":"x","count":1.5,"address":{"ü":0}}`, `1e2`, `null`} {
		f.Add([]byte(orderSchema), []byte(payload))
		f.Add([]byte(`{"type":["integer","object"],"properties":{"id":{"required":["a"]}},"required":["id"]}`), []byte(payload))
	}
	f.Add([]byte(`{"minimum":1}`), []byte(`1`))
	f.Fuzz(func(t *testing.T, schema, payload []byte) {
		s, err := ParseSchema(schema)
		var naive any
		if json.Unmarshal(schema, &naive) != nil && err == nil {
			t.Fatalf("ParseSchema(%q) takes what is no JSON", schema)
		}
		if err != nil {
			return
		}
		v := NewDocument(payload, "").Value()
		got := s.Check(v)
		if again := s.Check(NewDocument(payload, "").Value()); !slices.Equal(got, again) {
			t.Fatalf("Check(%q) = %q and %q", payload, got, again)
		}
		var want []string
		naiveCheck(naive.(map[string]any), v, "$", &want)
		slices.Sort(want)
		if len(got) > maxViolations || len(got) < min(len(want), maxViolations) {
			t.Fatalf("Check(%q) by %q = %q, want %d of %q", payload, schema, got, min(len(want), maxViolations), want)
		}
		for _, line := range got {
			if _, found := slices.BinarySearch(want, line); !found {
				t.Fatalf("Check(%q) by %q says %q, want one of %q", payload, schema, line, want)
			}
		}
	})
}

func naiveCheck(schema map[string]any, v any, path string, lines *[]string) {
	types, isList := schema["type"].([]any)
	if one, ok := schema["type"].(string); ok {
		types, isList = []any{one}, true
	}
	var names []string
	fits := !isList
	for _, n := range types {
		names = append(names, n.(string))
		number, isNumber := v.(json.Number)
		fits = fits || n == typeName(v) || n == "integer" && isNumber && whole(Canonical(number))
	}
	if !fits {
		*lines = append(*lines, path+": must be "+strings.Join(names, " or ")+", not "+typeName(v))
		return
	}
	object, ok := v.(map[string]any)
	if !ok {
		return
	}
	required, _ := schema["required"].([]any)
	for _, n := range required {
		if _, ok := object[n.(string)]; !ok {
			*lines = append(*lines, string(appendStep([]byte(path), n.(string)))+": is required")
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	for n, sub := range properties {
		if child, ok := object[n]; ok {
			naiveCheck(sub.(map[string]any), child, string(appendStep([]byte(path), n)), lines)
		}
	}
}

// whole reports whether a canonical text is an integer's.
func whole(text string) bool {
	mantissa, exponent, scientific := strings.Cut(text, "e")
	_, fraction, _ := strings.Cut(mantissa, ".")
	if !scientific || strings.HasPrefix(exponent, "-") {
		return !scientific && fraction == ""
	}
	shift, err := strconv.Atoi(exponent)
	return err != nil || shift >= len(fraction)
}
