package web_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/eventgateway/gateway/core/wire"
)

// TestEachFieldIsDescribed: the description of the API has each field of the records that
// it names. Transcripts alone do not show that, since many fields are absent
// unless they apply.
func TestEachFieldIsDescribed(t *testing.T) {
	doc := described(t)
	for name, record := range map[string]any{
		"Job": wire.Job{}, "Attempt": wire.Attempt{}, "Event": wire.Event{}, "Run": wire.Run{},
		"RunStory": wire.RunStory{}, "Step": wire.Step{}, "Entry": wire.Entry{}, "Queue": wire.Queue{}, "Message": wire.Message{}, "Wait": wire.Wait{}, "Hold": wire.Hold{},
		"Line": wire.Line{}, "ErrorGroup": wire.ErrorGroup{}, "LineStory": wire.LineStory{}, "Series": wire.Series{}, "AuditEntry": wire.AuditEntry{}, "RunGraph": wire.RunGraph{}, "GraphStep": wire.GraphStep{}, "GraphWay": wire.GraphWay{}, "Execution": wire.Execution{},
	} {
		schema := doc.Components.Schemas[name]
		if schema == nil {
			t.Errorf("openapi.yaml has no schema %s", name)
			continue
		}
		for _, field := range reflect.VisibleFields(reflect.TypeOf(record)) {
			tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if tag != "" && tag != "-" && !describes(schema.Value, tag) {
				t.Errorf("openapi.yaml: the schema %s has no property %s, which core/wire has as %s.%s", name, tag, name, field.Name)
			}
		}
	}
}

// describes reports whether a schema, or a schema that it is composed of, has a property.
func describes(s *openapi3.Schema, property string) bool {
	if _, ok := s.Properties[property]; ok {
		return true
	}
	for _, part := range s.AllOf {
		if describes(part.Value, property) {
			return true
		}
	}
	return false
}
