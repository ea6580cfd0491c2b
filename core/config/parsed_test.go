package config

import (
	"reflect"
	"slices"
	"testing"
	"time"
)

// parsedConfig has every field with a grammar of its own.
const parsedConfig = `
sources:
  shop: {type: event, schema: {type: object}}
  clock: {type: cron, schedule: "0 9 * * *", timezone: Europe/Berlin}
handlers:
  bill: {source: shop, url: "https://a.example/", filter: "$.total > 1", transform: '{"id": {{ $.id | string }}}', idempotency_key: $.id, lines: {key: $.to}}
queues:
  mail: {source: shop, filter: "exists $.mail", idempotency_key: $.mail.id, lines: {key: $.mail.to}}
workflows:
  ship:
    source: shop
    steps:
      - {name: pick, type: choice, choices: [{when: $.heavy, goto: each}], default: nap}
      - {name: nap, type: wait, timestamp_path: $.at}
      - {name: call, url: "https://a.example/", input: '{"id": {{ $.id | number }}}', result_path: $.call, output: $.call}
      - name: both
        type: parallel
        branches: [{name: one, steps: [{name: lost, type: fail, message: "no {{ $.id }}"}]}]
      - {name: each, type: map, items_path: $.items, iterator: {url: "https://a.example/", input: $.x}}
`

// parsedIn visits the parsed fields with a text, below v.
func parsedIn(v reflect.Value, path string, visit func(path string, field reflect.Value)) {
	switch v.Kind() {
	case reflect.Struct:
		if isParsed(v.Type()) {
			if v.FieldByName("Text").String() != "" {
				visit(path, v)
			}
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				parsedIn(v.Field(i), join(path, v.Type().Field(i).Name), visit)
			}
		}
	case reflect.Map:
		for name, of := range v.Seq2() {
			parsedIn(of, join(path, name.String()), visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			parsedIn(v.Index(i), index(path, i), visit)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			parsedIn(v.Elem(), path, visit)
		}
	}
}

// A field that Load did not parse would have no effect: no service parses a text.
func TestLoadKeepsParsedForms(t *testing.T) {
	var parsed []string
	types := map[reflect.Type]bool{}
	c := loaded(t, parsedConfig)
	parsedIn(reflect.ValueOf(c), "", func(path string, field reflect.Value) {
		parsed = append(parsed, path)
		types[field.Type()] = true
		if field.FieldByName("Value").IsZero() {
			t.Errorf("%s has the text %q and no value", path, field.FieldByName("Text"))
		}
	})
	if len(parsed) != 17 || len(types) != 7 {
		slices.Sort(parsed)
		t.Errorf("%d parsed fields of %d types, want 17 of 7: %q", len(parsed), len(types), parsed)
	}
	slot := c.Sources["clock"].Schedule.Value.Next(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	if got := slot.Format("15:04 MST"); got != "09:00 CET" {
		t.Errorf("the first slot is at %s, want 09:00 CET", got)
	}
}

// A reload of an unchanged file changes nothing, though its fields are parsed anew. A change of
// any text takes effect.
func TestSameComparesTexts(t *testing.T) {
	now := loaded(t, parsedConfig)
	if !now.Same(loaded(t, parsedConfig)) {
		t.Error("Same = false for the same file")
	}
	next := loaded(t, parsedConfig)
	handler := next.Handlers["bill"]
	handler.Filter.Text += " "
	next.Handlers["bill"] = handler
	if now.Same(next) {
		t.Error("Same = true with another filter")
	}
	next = loaded(t, parsedConfig)
	queue := next.Queues["mail"]
	queue.Lines.Key.Text += " "
	next.Queues["mail"] = queue
	if now.Same(next) {
		t.Error("Same = true with another key of lines")
	}
	next = loaded(t, parsedConfig)
	next.Workflows["ship"].Steps[3].Branches[0].Steps[0].Message.Text += " "
	if now.Same(next) {
		t.Error("Same = true with another message in a branch")
	}
	next = loaded(t, parsedConfig)
	delete(next.Queues, "mail")
	if now.Same(next) || next.Same(now) {
		t.Error("Same = true without a queue")
	}
}
