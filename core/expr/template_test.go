package expr

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func mustTemplate(t testing.TB, text string) *Template {
	t.Helper()
	tmpl, err := ParseTemplate(text)
	if err != nil {
		t.Fatalf("ParseTemplate(%q): %v", text, err)
	}
	return tmpl
}

type templateCases struct {
	Document string
	Context  json.RawMessage
	Cases    []struct{ Name, Template, Output string }
	Errors   []refused
}

func readTemplateCases(t testing.TB) (table templateCases, d *Document, c *Context) {
	readCases(t, "transform.json", &table)
	members := tree(t, string(table.Context)).(map[string]any)
	return table, NewDocument([]byte(table.Document), ""), NewContext(func() map[string]any { return members })
}

func TestTemplateCases(t *testing.T) {
	table, d, context := readTemplateCases(t)
	if len(table.Cases) < 25 || len(table.Errors) < 8 {
		t.Fatalf("the table has %d cases and %d errors, want 25 and 8", len(table.Cases), len(table.Errors))
	}
	for _, c := range table.Cases {
		t.Run(c.Name, func(t *testing.T) {
			for _, d := range []*Document{NewDocument([]byte(table.Document), ""), d} {
				got, err := mustTemplate(t, c.Template).Render(d, context)
				if err != nil || string(got) != c.Output {
					t.Errorf("Render(%s) = %s, %v, want %s", c.Template, got, err, c.Output)
				}
			}
		})
	}
	for _, c := range table.Errors {
		if _, err := ParseTemplate(c.Template); err == nil || !strings.Contains(err.Error(), c.Error) {
			t.Errorf("%s: ParseTemplate(%q): %v, want %q in it", c.Name, c.Template, err, c.Error)
		}
	}
}

// TestTemplateSemantics holds cases that the table of the contract does not have.
func TestTemplateSemantics(t *testing.T) {
	const payload = `{"n": 1.50, "s": "a\"\\\n\u0001é", "t": true, "nil": null, "list": [1.0, "x", null, [2], {"k": "v\""}], "o": {"b": 1, "a": [true]},
		"empty": [], "zip": "007", "float": "\t-1.5e3\n", "hole": "{{ $.n }}"}`
	d := NewDocument([]byte(payload), "")
	for template, want := range map[string]string{
		`{{$}}`:                                         `{"empty":[],"float":"\t-1.5e3\n","hole":"{{ $.n }}","list":[1.0,"x",null,[2],{"k":"v\""}],"n":1.50,"nil":null,"o":{"a":[true],"b":1},"s":"a\"\\\n\u0001é","t":true,"zip":"007"}`,
		`"{{ $.s }}{{ $.n }}{{ $.t }}{{$.o}}"`:          `"a\"\\\n\u0001é1.50true{\"a\":[true],\"b\":1}"`,
		`[ {{ $.hole }}, "{{ $.hole }}" ]`:              `[ "{{ $.n }}", "{{ $.n }}" ]`,
		`{"a": {"b": {{ $.o.a[0] }}}}`:                  `{"a": {"b": true}}`,
		`{{ $$.x }}`:                                    `null`,
		`"static \" {} \\"`:                             `"static \" {} \\"`,
		"{\n\t\"a\":\n{{\n$.n\n}}}":                     "{\n\t\"a\":\n1.50}",
		`{{ [1.0, 'x', "y", [], null, true] }}`:         `[1.0,"x","y",[],null,true]`,
		`"{{ [1.0, 'x'] }}{{ null }}{{ -0.0 }}"`:        `"[1.0,\"x\"]-0.0"`,
		`{{ '"' }}`:                                     `"\""`,
		`"{{ '"}}' }}\\{{ '\n' }}"`:                     `"\"}}\\\\n"`,
		`"${{ $.n }} $${{ $.n }} $ {{ $.n }}"`:          `"$1.50 $$1.50 $ 1.50"`,
		`"{{ '$' }}{{ $.n }}"`:                          `"$1.50"`,
		`{{ $.x ?? null }}`:                             `null`,
		`{{ $.x ?? $.nil ?? [] }}`:                      `[]`,
		`{{ $.empty[*] ?? 1 }}`:                         `[]`,
		`{{ $.empty ?? 1 }}`:                            `[]`,
		`{{ false ?? 1 }}`:                              `false`,
		`{{ $.n | string | json | json }}`:              `"\"\\\"1.50\\\"\""`,
		`{{ $.nil | json ?? 'none' }}`:                  `"none"`,
		`{{ $.x | string }}`:                            `null`,
		`{{ $.t | string }}`:                            `"true"`,
		`{{ $.o | string }}`:                            `"{\"a\":[true],\"b\":1}"`,
		`{{ $.n | number }}`:                            `1.50`,
		`{{ $.float | number }}`:                        `-1.5e3`,
		`{{ $.zip | number ?? $.zip }}`:                 `"007"`,
		`{{ $.t | number ?? 'no' }}`:                    `"no"`,
		`{{ $.list | join("-") }}`:                      `"1.0-x--[2]-{\"k\":\"v\\\"\"}"`,
		`"{{ $.list[*] | join('') }}"`:                  `"1.0x[2]{\"k\":\"v\\\"\"}"`,
		`{{ $.n | join( ', ' ) }}`:                      `"1.50"`,
		`{{ $.empty | join(',') }}`:                     `""`,
		`{{ $.list[?@ == 'x'] | join('') | json }}`:     `"\"x\""`,
		`{{ $['zip']|number??$["o"].b }}`:               `1`,
		`"{{ $.list[?@.k == 'v"'] }}{{ $['x}}'] }}"`:    `"[{\"k\":\"v\\\"\"}]"`,
		`{"same": {{ $.n }}, "same": "{{ $.n }}: 1"}`:   `{"same": 1.50, "same": "1.50: 1"}`,
		`["{{ $.t }}", {"k:": "{{ $.t }}"}, {{ $.t }}]`: `["true", {"k:": "true"}, true]`,
	} {
		// One payload is read for this template alone, the other for all of them.
		for _, d := range []*Document{NewDocument([]byte(payload), ""), d} {
			got, err := mustTemplate(t, template).Render(d, nil)
			if err != nil || string(got) != want {
				t.Errorf("Render(%s) = %s, %v, want %s", template, got, err, want)
			}
		}
	}
}

// TestNumberOfNoNumber: a template that needs a number fails without one, unless it has a
// default. Null and missing values do not fail.
func TestNumberOfNoNumber(t *testing.T) {
	const payload = `{"text": "12 apples", "empty": "", "yes": true, "list": [1], "object": {}, "null": null, "n": " 7 ", "zip": "007"}`
	for template, want := range map[string]string{
		`{{ $.text | number }}`:                        "",
		`{"a": 1, "b": {{ $.empty | number }}}`:        "",
		`"{{ $.yes | number }}"`:                       "",
		`{{ $.list | number }}`:                        "",
		`{{ $.list[*] | number }}`:                     "",
		`{{ $.object | number | string }}`:             "",
		`{{ $.zip | number }}`:                         "",
		`{{ $.text | number ?? $.zip | number }}`:      "",
		`{{ $.missing ?? $.text | number }}`:           "",
		`{{ 'x' | number }}`:                           "",
		`{{ $.missing | number }}`:                     `null`,
		`{{ $.null | number }}`:                        `null`,
		`{{ $.n | number }}`:                           `7`,
		`{{ $.text | number ?? null }}`:                `null`,
		`{{ $.text | number ?? $.missing }}`:           `null`,
		`{{ $.text | number ?? $.zip | number ?? -1}}`: `-1`,
		`{{ $.n ?? $.text | number }}`:                 `" 7 "`,
	} {
		got, err := mustTemplate(t, template).Render(NewDocument([]byte(payload), ""), nil)
		if want == "" && !errors.Is(err, ErrNotNumber) || want != "" && (err != nil || string(got) != want) {
			t.Errorf("Render(%s) = %s, %v, want %s", template, got, err, cmp.Or(want, "ErrNotNumber"))
		}
	}
	_, err := mustTemplate(t, "{\n  \"n\": {{ $.text | number }}\n}").Render(NewDocument([]byte(payload), ""), nil)
	if want := "the hole at line 2, column 8: the value before | number is no number and no text of one; after ?? stands the value to use instead"; err == nil || err.Error() != want {
		t.Errorf("Render = %v, want %s", err, want)
	}
}

func TestTemplateOfWhatIsNotJSON(t *testing.T) {
	got, err := mustTemplate(t, `{"text": "{{ $ }}", "id": {{ $.id }}}`).Render(NewDocument([]byte("say \"hi\"\xff"), "text/plain"), nil)
	if want := `{"text": "say \"hi\"` + "\uFFFD" + `", "id": null}`; err != nil || string(got) != want {
		t.Errorf("Render = %s, %v, want %s", got, err, want)
	}
}

func TestTemplateBounds(t *testing.T) {
	for _, c := range []struct {
		template string
		payload  int // characters
		ok       bool
	}{
		{`{{ $ }}`, maxResult - 2, true}, {`{{ $ }}`, maxResult - 1, false},
		{`"{{ $ }}"`, maxResult - 2, true}, {`"{{ $ }}"`, maxResult - 1, false},
		{`["{{ $ }}", {{ $ }}]`, maxResult / 2, false},
		{`{{ $ | json }}`, maxResult - 6, true}, {`{{ $ | json }}`, maxResult - 5, false},
		{`{{ $ | json | number ?? 1 }}`, maxResult - 2, true}, {`{{ $ | json | number ?? 1 }}`, maxResult - 1, false},
		{`{{ $ | string }}`, maxResult - 2, true}, {`{{ $ | string | number }}`, maxResult + 1, false},
		{`{{ $ | join('') | number ?? 1 }}`, maxResult, true}, {`{{ $ | join('') | number ?? 1 }}`, maxResult + 1, false},
		{`{{ $ ` + strings.Repeat("| json ", 9000) + ` }}`, 1, false}, // each doubles the backslashes
	} {
		text := strings.Repeat("x", c.payload)
		for _, payload := range []string{text, `"` + text + `"`} {
			got, err := mustTemplate(t, c.template).Render(NewDocument([]byte(payload), ""), nil)
			if c.ok && (err != nil || len(got) > maxResult || !json.Valid(got)) || !c.ok && !errors.Is(err, ErrTooLarge) {
				t.Errorf("Render(%s) of %d characters = %d bytes, %v, want ErrTooLarge: %v", shown(c.template), c.payload, len(got), err, !c.ok)
			}
		}
	}
}

// TestJoinIsBounded: a long separator cannot make a large result from a small payload.
func TestJoinIsBounded(t *testing.T) {
	d := NewDocument([]byte("["+strings.Repeat("1,", 500_000)+"1]"), "")
	template := mustTemplate(t, `{{ $ | join('`+strings.Repeat("-", 60_000)+`') }}`)
	if got, err := template.Render(d, nil); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Render = %d bytes, %v, want ErrTooLarge", len(got), err)
	}
}

const benchmarkTemplate = `{"id": {{ $.id }}, "text": "{{ $.order.items[0]['line-id'] }} for {{ $.order.total }}", "items": {{ $.order.items }}, "type": {{ $$.event.type }}}`

func BenchmarkTemplate(b *testing.B) {
	template, d, c := mustTemplate(b, benchmarkTemplate), NewDocument([]byte(benchmarkPayload), ""), eventContext()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := template.Render(d, c); err != nil {
			b.Fatal(err)
		}
	}
}

// usualPayload has 2 KB.
func usualPayload() []byte {
	item := `{"line-id": "l-17", "name": "a thing of some kind", "price": 12.50, "tags": ["new", "blue"], "stock": {"here": 3, "there": null}}`
	return []byte(`{"id": "evt_1", "order": {"total": 24.5, "currency": "EUR", "items": [` + strings.Repeat(item+",", 14) + item + `]}}`)
}

// BenchmarkFilterAndTransform measures a handler's filter and template for a new event of 2 KB.
// One variant reads the payload once. The other reads it once for each, as in practice: the
// filter runs at intake, the template before the delivery.
func BenchmarkFilterAndTransform(b *testing.B) {
	filter := mustFilter(b, `$.order.total > 12 and $.order.currency in ["EUR", "USD"]`)
	template, c := mustTemplate(b, benchmarkTemplate), eventContext()
	payload := usualPayload()
	for _, twice := range []bool{false, true} {
		b.Run(map[bool]string{false: "read once", true: "read twice"}[twice], func(b *testing.B) {
			b.SetBytes(int64(len(payload)))
			b.ReportAllocs()
			for b.Loop() {
				d := NewDocument(payload, "")
				if !holds(b, filter, d, c) {
					b.Fatal("no match")
				}
				if twice {
					d = NewDocument(payload, "")
				}
				if _, err := template.Render(d, c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
