package config

import (
	"reflect"

	"github.com/eventgateway/gateway/core/expr"
)

// Parsed is a field whose text has a grammar of its own, such as a filter or a schedule. Load
// parses the text once, to check it, and keeps the value: every service of the gateway takes
// Value, and none parses Text again. Text is for people and for [Config.Same].
type Parsed[T any] struct {
	// Text is the text of the file, with its variables expanded; empty if the field is not
	// given.
	Text string
	// Value is the parsed Text; the zero value if Text is empty.
	Value T
}

// Equal reports whether two fields have the same text. Parsed values cannot be compared: they
// hold functions.
func (p Parsed[T]) Equal(other Parsed[T]) bool { return p.Text == other.Text }

// source returns the place of the text. The decoder writes it; validate sets the value later,
// when it can report all faults.
func (p *Parsed[T]) source() *string { return &p.Text }

// parsable is implemented by pointers to Parsed of every type.
type parsable interface{ source() *string }

// A Mapping makes JSON from a document. Exactly one of its fields is set.
type Mapping struct {
	// Path selects a part of the document. A path that is not singular makes an array.
	Path *expr.Reference
	// Template is a text with holes.
	Template *expr.Template
}

// keep parses the text of a field with parse and sets its value. It returns the error of
// parse. An empty text has no value and no error.
func keep[T any](p *Parsed[T], parse func(string) (T, error)) error {
	if p.Text == "" {
		return nil
	}
	v, err := parse(p.Text)
	if err == nil {
		p.Value = v
	}
	return err
}

// same is [reflect.DeepEqual] for parts of a Config, except that it compares a Parsed by its
// text: DeepEqual finds two parsed templates different, since they hold functions.
func same(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Struct:
		if text := a.FieldByName("Text"); reflect.PointerTo(a.Type()).Implements(reflect.TypeFor[parsable]()) {
			return text.String() == b.FieldByName("Text").String()
		}
		if a.Type().PkgPath() != reflect.TypeFor[Config]().PkgPath() {
			return reflect.DeepEqual(a.Interface(), b.Interface()) // a duration or a prefix
		}
		for i := range a.NumField() {
			if a.Type().Field(i).IsExported() && !same(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		if a.IsNil() != b.IsNil() || a.Len() != b.Len() {
			return false
		}
		for name, of := range a.Seq2() {
			if other := b.MapIndex(name); !other.IsValid() || !same(of, other) {
				return false
			}
		}
		return true
	case reflect.Slice:
		if a.IsNil() != b.IsNil() || a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !same(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Pointer:
		return a.IsNil() == b.IsNil() && (a.IsNil() || same(a.Elem(), b.Elem()))
	}
	return a.Equal(b)
}
