package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// A leaf is a field of the configuration, or a mapping or list that holds fields.
type leaf struct {
	path      string // with * for the name of an entry, and [] for an item
	concrete  string // the same in the bare configuration
	owner     string // the struct type and its field, such as Server.Port
	typ       reflect.Type
	rules     rules
	tag       reflect.StructTag
	value     reflect.Value // in the bare configuration
	container bool          // it holds fields of its own
}

// kindOf is the cell Type of a field.
func kindOf(l leaf) string {
	choices := strings.Join(l.rules.choices, ", ")
	between := func(noun string) string {
		return fmt.Sprintf("%s, %s to %s", noun, l.rules.low, l.rules.high)
	}
	switch l.typ {
	case reflect.TypeFor[Secret]():
		return "secret"
	case reflect.TypeFor[Secrets]():
		return "secret, or a list of secrets"
	case reflect.TypeFor[map[string]Secret]():
		return "mapping of names to secrets"
	case reflect.TypeFor[map[string]Duration]():
		return between("mapping of names to durations") + " each"
	case reflect.TypeFor[Duration]():
		return between("duration")
	case reflect.TypeFor[[]Network]():
		return "list of networks"
	}
	switch kind := l.typ.Kind(); {
	case l.rules.schema:
		return "mapping, text or file name"
	case kind == reflect.Int:
		return between("whole number")
	case kind == reflect.Bool:
		return "true or false"
	case kind == reflect.String && len(l.rules.choices) > 1:
		return "one of " + choices
	case kind == reflect.String && len(l.rules.choices) == 1:
		return "only " + choices
	case kind == reflect.String || isParsed(l.typ):
		return "text"
	case kind == reflect.Map:
		return "mapping of names to mappings"
	case kind == reflect.Slice && l.typ.Elem().Kind() == reflect.Struct && l.rules.single:
		return "list of mappings, or one mapping"
	case kind == reflect.Slice && l.typ.Elem().Kind() == reflect.Struct:
		return "list of mappings"
	case kind == reflect.Slice && len(l.rules.choices) > 0:
		return "list of " + choices
	case kind == reflect.Slice:
		return "list of text"
	case l.rules.off:
		return "mapping, or off"
	}
	return "mapping"
}

// isParsed reports whether a type is a Parsed of any type.
func isParsed(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[parsable]())
}

// elements is the struct type that a field holds, itself or in entries or items; nil if none.
func elements(t reflect.Type) reflect.Type {
	switch t.Kind() {
	case reflect.Map, reflect.Slice, reflect.Pointer:
		return elements(t.Elem())
	case reflect.Struct:
		if t != reflect.TypeFor[Duration]() && t != reflect.TypeFor[Network]() && !isParsed(t) {
			return t
		}
	}
	return nil
}

// bare is a configuration that has every entry and item, but no value.
func bare(t reflect.Type, around ...reflect.Type) string {
	var fields []string
	for i := range t.NumField() {
		f := t.Field(i)
		inner := elements(f.Type)
		if key := f.Tag.Get("yaml"); f.IsExported() && key != "-" && inner != nil && !slices.Contains(append(around, t), inner) {
			text := bare(inner, append(around, t)...)
			switch f.Type.Kind() {
			case reflect.Map:
				text = "{x: " + text + "}"
			case reflect.Slice:
				text = "[" + text + "]"
			}
			fields = append(fields, key+": "+text)
		}
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

// A setting gives the field at a path of the bare configuration a value.
type setting struct{ path, text string }

// in puts the value into a tree.
func (s setting) in(tree *node, r *report) {
	value := parse("setting", []byte("{value: "+s.text+"}"), r).field("value")
	keys := strings.Split(s.path, ".")
	for _, key := range keys[:len(keys)-1] {
		key, isList := strings.CutSuffix(key, "[0]")
		if tree = tree.field(key); isList {
			tree = tree.items[0]
		}
	}
	last := keys[len(keys)-1]
	if old := tree.field(last); old != nil {
		*old = *value
	} else {
		tree.put(last, value)
	}
}

// decodedWith decodes the bare configuration with some settings.
func decodedWith(t *testing.T, settings ...setting) (*Config, *report) {
	t.Helper()
	r := &report{}
	tree := parse("bare", []byte(bare(reflect.TypeFor[Config]())), r)
	for _, s := range settings {
		s.in(tree, r)
	}
	if len(r.problems) > 0 {
		t.Fatal(r.problems)
	}
	return decode(tree, decoder{report: r, origin: &origin{marks: map[string]mark{}}}), r
}

// leaves are all fields of a decoded bare configuration.
func leaves(c *Config) (all []leaf) {
	var walk func(v reflect.Value, path, concrete string, around []reflect.Type)
	walk = func(v reflect.Value, path, concrete string, around []reflect.Type) {
		t := v.Type()
		around = append(slices.Clone(around), t)
		for i := range t.NumField() {
			f := t.Field(i)
			key := f.Tag.Get("yaml")
			if !f.IsExported() || key == "-" {
				continue
			}
			inner := elements(f.Type)
			l := leaf{path: join(path, key), concrete: join(concrete, key), owner: t.Name() + "." + f.Name, typ: f.Type,
				rules: rulesOf(f.Tag), tag: f.Tag, value: v.Field(i), container: inner != nil}
			all = append(all, l)
			if inner == nil || slices.Contains(around, inner) {
				continue
			}
			switch f.Type.Kind() {
			case reflect.Map:
				walk(l.value.MapIndex(reflect.ValueOf("x")), l.path+".*", l.concrete+".x", around)
			case reflect.Slice:
				walk(l.value.Index(0), l.path+"[]", l.concrete+"[0]", around)
			case reflect.Pointer:
				walk(l.value.Elem(), l.path, l.concrete, around)
			default:
				walk(l.value, l.path, l.concrete, around)
			}
		}
	}
	walk(reflect.ValueOf(c).Elem(), "", "", nil)
	return all
}

// shownValue writes a decoded value as the reference does; none if the field says nothing.
func shownValue(l leaf) string {
	v := l.value
	switch value := v.Interface().(type) {
	case Duration:
		return value.String()
	case Secret:
		if value != "" {
			return value.Reveal()
		}
		return "none"
	case Secrets:
		if len(value) > 0 {
			return value.First()
		}
		return "none"
	}
	if isParsed(v.Type()) {
		v = v.FieldByName("Text")
	}
	switch v.Kind() {
	case reflect.Int:
		if v.Int() == 0 && l.rules.low != "0" {
			return "none"
		}
		return fmt.Sprint(v.Int())
	case reflect.Bool:
		return fmt.Sprint(v.Bool())
	case reflect.String:
		if v.String() != "" {
			return v.String()
		}
		return "none"
	case reflect.Struct:
		return "" // its fields have defaults
	}
	return "none"
}

// otherValues are two values of a field that differ from each other and from its default, or the
// one of a field that has no more.
func otherValues(l leaf) []string {
	switch kind := l.typ.Kind(); {
	case l.typ == reflect.TypeFor[Duration]():
		return []string{"7s", "8s"}
	case l.typ == reflect.TypeFor[[]Network]():
		return []string{"[10.9.8.7]", "[10.9.8.6]"}
	case l.typ == reflect.TypeFor[Secrets]():
		return []string{"other", "another"}
	case l.typ == reflect.TypeFor[map[string]Secret]():
		return []string{"{X-Other: other}", "{X-Another: other}"}
	case kind == reflect.Int:
		return []string{l.rules.low, l.rules.high}
	case kind == reflect.Bool:
		return []string{fmt.Sprint(!l.value.Bool())}
	case l.rules.schema:
		return []string{"{type: object}", "{type: array}"}
	case kind == reflect.String && len(l.rules.choices) > 0:
		return slices.DeleteFunc(slices.Clone(l.rules.choices), func(choice string) bool { return choice == l.value.String() })
	case kind == reflect.Slice && len(l.rules.choices) > 0:
		return []string{"[" + l.rules.choices[0] + "]", "[" + l.rules.choices[1] + "]"}
	case kind == reflect.Slice:
		return []string{"[other]", "[another]"}
	}
	return []string{"other", "another"}
}

// defaultsOf are the cells Default, by path.
func defaultsOf(t *testing.T) map[string]string {
	c, r := decodedWith(t)
	c.validate(r)
	required := map[string]bool{}
	for _, p := range r.problems {
		if p.Message == "is required" || strings.HasPrefix(p.Message, "is required:") {
			required[p.Path] = true
		}
	}
	all, unset := map[string]string{}, map[string]string{}
	fields := leaves(c)
	for _, l := range fields {
		unset[l.path] = shownValue(l)
		all[l.path] = unset[l.path]
		if l.path == "workflows.*.steps[].seconds" {
			all[l.path] = "none" // 0 is a value: a step without the field needs timestamp_path
		}
		if required[l.concrete] {
			all[l.path] = "required"
		}
		if l.rules.required && len(l.rules.choices) == 0 && l.container { // the bare configuration has an item
			all[l.path] = "required"
		}
	}
	for _, from := range fields {
		if from.container || strings.ContainsAny(from.path, "*[") {
			continue // only a field of the whole file is the default of others
		}
		others := slices.DeleteFunc(otherValues(from), func(text string) bool { return text == unset[from.path] })
		changed, _ := decodedWith(t, setting{from.path, others[0]})
		for _, to := range leaves(changed) {
			if now := shownValue(to); to.path != from.path && now == others[0] && now != unset[to.path] {
				all[to.path] = from.path
			}
		}
	}
	return all
}

// reloadOf is the cell Reload. It depends on the changes of the field that Forbids refuses.
func reloadOf(t *testing.T, l leaf) string {
	if l.container {
		return ""
	}
	bases := [][]setting{nil}
	if strings.HasPrefix(l.path, "sources.") {
		bases = nil
		for _, kind := range []string{"webhook", "event", "sns", "cron"} {
			bases = append(bases, []setting{{"sources.x.type", kind}})
		}
	}
	refused, followed := false, false
	for _, base := range bases {
		first, _ := decodedWith(t, base...)
		states := []*Config{first}
		for _, text := range otherValues(l) {
			next, _ := decodedWith(t, append(slices.Clone(base), setting{l.concrete, text})...)
			states = append(states, next)
		}
		for _, was := range states {
			for _, is := range states {
				switch {
				case was == is || was.Same(is):
				case len(was.Forbids(is)) > 0:
					refused = true
				default:
					followed = true
				}
			}
		}
	}
	switch {
	case refused && followed:
		return "partly"
	case refused:
		return "restart"
	}
	return "yes"
}

// onlyFor is the cell For: the types or drivers that a field is for.
func onlyFor(path string) string {
	tables := []struct {
		prefix, every string
		fields        map[string][]string
	}{
		{"sources.*.", "every type", map[string][]string{}},
		{"workflows.*.steps[].", "every type", map[string][]string{}},
		{"database.", "every driver", map[string][]string{}},
	}
	for _, f := range sourceFields {
		tables[0].fields[f.field] = f.types
	}
	for _, f := range stepFields {
		tables[1].fields[f.field] = f.types
	}
	for _, f := range databaseFields {
		tables[2].fields[f.field] = f.drivers
	}
	for _, table := range tables {
		if rest, ok := strings.CutPrefix(path, table.prefix); ok {
			rest, _, _ = strings.Cut(rest, ".")
			if only := table.fields[strings.TrimSuffix(rest, "[]")]; only != nil {
				return strings.Join(only, ", ")
			}
			return table.every
		}
	}
	return ""
}
