package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/eventgateway/gateway/core/expr"
	"github.com/eventgateway/gateway/core/once"
	"github.com/eventgateway/gateway/core/units"
)

// A decoder fills typed values from a tree, strictly, and marks each field that it reads. Its
// methods report problems and leave the value unset, so that no later check sees a wrong value.
type decoder struct {
	report *report
	origin *origin
	file   func(name string) ([]byte, error) // reads a file that the tree names, see readAll; nil if the tree may name none
}

// rules are the struct tag of a field; see the package comment. They are read from the tags at
// each decoding, which is rare.
type rules struct {
	required, single, keepNull bool
	schema, filled, off        bool
	low, high                  string
	choices                    []string
	also                       map[string]string
}

// rulesOf reads the struct tag of a field. A tag without a value, such as required:"", switches
// a rule on.
func rulesOf(tag reflect.StructTag) (r rules) {
	_, r.required = tag.Lookup("required")
	_, r.single = tag.Lookup("single")
	_, r.keepNull = tag.Lookup("null")
	_, r.schema = tag.Lookup("schema")
	_, r.filled = tag.Lookup("filled")
	_, r.off = tag.Lookup("off")
	r.low, r.high, _ = strings.Cut(tag.Get("range"), " ")
	r.choices = strings.Fields(tag.Get("oneof"))
	r.also = map[string]string{}
	for _, pair := range strings.Fields(tag.Get("also")) {
		spelling, choice, _ := strings.Cut(pair, "=")
		r.also[spelling] = choice
	}
	return r
}

// root decodes a whole file.
func (d *decoder) root(n *node, c *Config) { d.object(n, reflect.ValueOf(c).Elem(), "") }

// value decodes n into v by v's type.
func (d *decoder) value(n *node, v reflect.Value, path string, r rules) {
	// The mark is stored last, when the value is known.
	m := mark{position: n.at, expanded: n.raw != ""}
	defer func() {
		m.zero = isUnset(v)
		if v.Kind() == reflect.String && len(r.choices) > 0 {
			m.choice = v.String()
		}
		d.origin.marks[path] = m
	}()
	// A problem of the node was reported already.
	if n.broken {
		if len(r.choices) > 0 {
			v.SetZero() // an unknown choice does not become the default
		}
		return
	}
	// Types with a syntax of their own come before the kinds of Go.
	switch v.Interface().(type) {
	case Duration:
		d.duration(n, v, path, r)
		return
	case Network:
		d.network(n, v, path)
		return
	case Secret:
		d.secret(n, v, path)
		return
	// One secret may stand for a list of one.
	case Secrets:
		r.single = true
	}
	if field, ok := v.Addr().Interface().(*Parsed[*expr.Schema]); ok {
		field.Text, field.Value = d.schema(n, path)
		return
	}
	if field, ok := v.Addr().Interface().(parsable); ok {
		d.text(n, reflect.ValueOf(field.source()).Elem(), path, r)
		return
	}
	if r.off && n.kind != mapping {
		d.off(n, v, path)
		return
	}
	switch v.Kind() {
	// The only pointer is the iterator of a map step.
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, v.Elem(), path, r)
	case reflect.Struct:
		d.object(n, v, path)
	case reflect.Map:
		d.names(n, v, path, r)
	case reflect.Slice:
		d.list(n, v, path, r)
	case reflect.Int:
		d.number(n, v, path, r)
	case reflect.Bool:
		d.truth(n, v, path)
	default:
		d.text(n, v, path, r)
	}
}

// off decodes the word off, which stands for a mapping and switches its feature off.
func (d *decoder) off(n *node, v reflect.Value, path string) {
	if n.kind != scalar || n.text != "off" {
		d.misshapen(n, path, "must be off, or a mapping such as {failures: 5, cooldown: 60s}")
		return
	}
	v.FieldByName("Off").SetBool(true)
}

// isUnset reports whether a value means the same as no value. A number always has a meaning.
func isUnset(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	case reflect.Int:
		return false
	}
	return v.IsZero()
}

// wrong reports a scalar with an invalid value.
func (d *decoder) wrong(n *node, path, must string) {
	d.report.add(n.at, path, "%s, not %s", must, n.shown())
	n.broken = true
}

// misshapen reports that n should be a mapping or a list. It does not quote n, which may be a
// list of secrets gone wrong.
func (d *decoder) misshapen(n *node, path, must string) {
	d.report.add(n.at, path, "%s, not %s", must, n.shape())
	n.broken = true
}

// object decodes a mapping with known keys.
func (d *decoder) object(n *node, v reflect.Value, path string) {
	// Entries have defaults that the zero value cannot express.
	if start, ok := entries[v.Type()]; ok {
		v.Set(reflect.ValueOf(start))
	}
	if n.kind != mapping && !n.null() {
		d.misshapen(n, path, "must be a mapping with fields of its own")
		return
	}
	known := map[string]bool{}
	var keys []string
	for i := range v.NumField() {
		field := v.Type().Field(i)
		key := field.Tag.Get("yaml")
		if !field.IsExported() || key == "-" {
			continue
		}
		keys = append(keys, key)
		known[key], known[field.Tag.Get("alias")] = true, true
		d.field(n, v.Field(i), path, field)
	}
	d.unknown(n, path, known, keys)
}

// field decodes one field of a mapping, if it is there.
func (d *decoder) field(parent *node, v reflect.Value, path string, field reflect.StructField) {
	key, r := field.Tag.Get("yaml"), rulesOf(field.Tag)
	here := join(path, key)
	n := parent.field(key)
	if alias := field.Tag.Get("alias"); alias != "" {
		other := parent.field(alias)
		if n != nil && other != nil {
			d.report.add(other.at, join(path, alias), "is another name of %s, which is given too; keep one", key)
		}
		if n == nil {
			n = other
		}
	}
	// An empty secret is an error, while another empty field counts as absent.
	_, isSecret := v.Interface().(Secret)
	_, areSecrets := v.Interface().(Secrets)
	switch {
	case n == nil:
	// An overlay takes a value of the base file back so.
	case r.filled && n.saysNull():
		d.origin.marks[here] = mark{position: n.at, zero: true}
	// The empty value was reported.
	case r.filled && d.empty(n, here):
	case n.saysNull() && r.keepNull:
		*v.Addr().Interface().(parsable).source() = "null"
		d.origin.marks[here] = mark{position: n.at}
	case !n.null() || isSecret || areSecrets:
		d.value(n, v, here, r)
	}
	// A broken field is not reported as missing as well.
	if r.required && (n == nil || !n.broken) && !d.origin.given(here) {
		d.report.add(d.place(n, parent), here, "is required%s", choicesOf(r))
	}
}

// place returns the best position for a message that a field is missing.
func (d *decoder) place(n, parent *node) position {
	if n != nil {
		return n.at
	}
	return parent.at
}

// choicesOf lists the permitted values for the message that a field is required.
func choicesOf(r rules) string {
	if len(r.choices) == 0 {
		return ""
	}
	return ": " + strings.Join(r.choices, ", ")
}

// unknown reports the keys of a mapping that no field has.
func (d *decoder) unknown(n *node, path string, known map[string]bool, keys []string) {
	for _, f := range n.fields {
		if !known[f.key] || f.key == "" {
			d.report.add(f.value.at, join(path, f.key), "unknown field%s", d.report.suggest(f.key, "known here", keys))
		}
	}
}

// isName reports whether a text can be the name of a source, handler, queue, workflow or step.
// The length is checked separately: counted repetitions in a regular expression take long to
// compile, at each start of the program.
func isName(s string) bool { return len(s) <= 63 && nameForm().MatchString(s) }

// nameForm has the characters of names. They need no escape in a URL, a lane or a metric's
// label.
var nameForm = once.Regexp(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)

// nameRule describes the form for messages.
const nameRule = "a name has 1 to 63 letters, digits, _ and -, and starts with a letter or digit"

// names decodes a mapping whose keys the user chooses: named entries, headers, or durations for
// named entries.
func (d *decoder) names(n *node, v reflect.Value, path string, r rules) {
	if n.kind != mapping {
		d.misshapen(n, path, `must be a mapping, each name followed by ":" and its value`)
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, f := range n.fields {
		here := join(path, f.key)
		entry := reflect.New(v.Type().Elem()).Elem()
		// A map of texts has headers, and a map of durations has no entries of its own; all other
		// maps have entries with names.
		_, isSpan := entry.Interface().(Duration)
		switch {
		case entry.Kind() == reflect.String:
			d.header(f.value, entry, here)
			if f.value.null() {
				continue
			}
		case isSpan && f.value.saysNull(): // an overlay takes a value back so
			continue
		case isSpan:
			d.value(f.value, entry, here, rules{low: r.low, high: r.high})
		default:
			d.value(f.value, entry, here, rules{})
			entry.FieldByName("Name").SetString(f.key)
			if !isName(f.key) {
				d.report.add(f.value.at, here, nameRule)
			}
		}
		v.SetMapIndex(reflect.ValueOf(f.key), entry)
	}
}

// header decodes a header's value. Such a Secret protects nothing of the gateway, so it may be
// empty. Null means that the header is not sent: an overlay removes a header so.
func (d *decoder) header(n *node, v reflect.Value, path string) {
	d.origin.marks[path] = mark{position: n.at, expanded: n.raw != ""}
	switch {
	case n.broken:
	case n.kind != scalar:
		d.misshapen(n, path, "must be text")
	default:
		v.SetString(n.text)
		d.origin.allowed.note(n, path, true)
	}
}

// list decodes a list, or a single item where one item may stand for a list.
func (d *decoder) list(n *node, v reflect.Value, path string, r rules) {
	items, where := n.items, func(i int) string { return index(path, i) }
	if n.kind != list {
		if !r.single {
			d.misshapen(n, path, `must be a list, as in [a, b] or with one "- " line for each item`)
			return
		}
		// A single item has the path of the field itself.
		items, where = []*node{n}, func(int) string { return path }
	}
	// An empty list of tokens would leave the resource open.
	if _, secrets := v.Interface().(Secrets); (secrets || r.filled) && len(items) == 0 {
		n.broken = true
		d.report.add(n.at, path, "is empty; give it a value or remove the key")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(items), len(items)))
	for i, item := range items {
		d.value(item, v.Index(i), where(i), rules{choices: r.choices, also: r.also})
	}
}

// scalarText returns a scalar's text, or reports the kind of value that must stand there.
func (d *decoder) scalarText(n *node, path, must string) (string, bool) {
	if n.kind != scalar || n.null() {
		d.wrong(n, path, must)
		return "", false
	}
	return n.text, true
}

// text decodes a text, or one of the field's choices. It adds a suggestion for a misspelt
// choice, but not if the text comes from a variable.
func (d *decoder) text(n *node, v reflect.Value, path string, r rules) {
	must := "must be text"
	switch {
	case len(r.choices) == 1:
		must = "must be " + r.choices[0]
	case len(r.choices) > 1:
		must = "must be one of " + strings.Join(r.choices, ", ")
	}
	s, ok := d.scalarText(n, path, must)
	if !ok {
		return
	}
	// Other spellings become the documented one here, so that no other code knows them.
	if choice, ok := r.also[s]; ok {
		s = choice
	}
	switch {
	case len(r.choices) == 0 || slices.Contains(r.choices, s):
		v.SetString(s)
	case s != "": // an empty choice counts as missing: the default stays
		hint := ""
		if near := nearest(s, r.choices); near != "" && n.raw == "" {
			hint = fmt.Sprintf("; did you mean %q?", near)
		}
		d.report.add(n.at, path, "%s, not %s%s", must, n.shown(), hint)
		n.broken = true
		v.SetZero()
	}
}

// number decodes a whole number within its bounds. A quoted number is refused with its own
// message.
func (d *decoder) number(n *node, v reflect.Value, path string, r rules) {
	must := fmt.Sprintf("must be a whole number from %s to %s", r.low, r.high)
	s, ok := d.scalarText(n, path, must)
	if !ok {
		return
	}
	// Quotes make a text in YAML, and the user probably did not mean that.
	if _, err := strconv.Atoi(s); err == nil && n.quoted() {
		d.report.add(n.at, path, "%s; remove the quotes", must)
		return
	}
	i, err := strconv.Atoi(s)
	low, _ := strconv.Atoi(r.low)
	high, _ := strconv.Atoi(r.high)
	// One message covers both, since it names the bounds.
	if err != nil || i < low || i > high {
		d.wrong(n, path, must)
		return
	}
	v.SetInt(int64(i))
}

// truth decodes true or false. YAML's yes, no, on and off are refused: YAML 1.2 takes them for
// text.
func (d *decoder) truth(n *node, v reflect.Value, path string) {
	const must = "must be true or false"
	s, ok := d.scalarText(n, path, must)
	switch s = strings.ToLower(s); {
	case !ok:
	case s != "true" && s != "false":
		d.wrong(n, path, must)
	case n.quoted():
		d.report.add(n.at, path, must+"; remove the quotes")
	default:
		v.SetBool(s == "true")
	}
}

// duration decodes a duration within its bounds.
func (d *decoder) duration(n *node, v reflect.Value, path string, r rules) {
	s, ok := d.scalarText(n, path, "must be a duration such as 30s or 5m")
	if !ok {
		return
	}
	span, err := units.ParseDuration(s)
	if err != nil {
		d.wrong(n, path, err.Error())
		return
	}
	low, _ := units.ParseDuration(r.low)
	high, _ := units.ParseDuration(r.high)
	if span.Duration < low.Duration || span.Duration > high.Duration {
		d.wrong(n, path, fmt.Sprintf("must be a duration from %s to %s", r.low, r.high))
		return
	}
	v.Set(reflect.ValueOf(span))
}

// network decodes an address or a CIDR block.
func (d *decoder) network(n *node, v reflect.Value, path string) {
	s, ok := d.scalarText(n, path, "must be an IP address or a CIDR block")
	if !ok {
		return
	}
	network, err := ParseNetwork(s)
	if err != nil {
		d.wrong(n, path, err.Error())
		return
	}
	v.Set(reflect.ValueOf(network))
}

// secret decodes a field that must not be empty once it is given: an empty token would open the
// resource that it protects.
func (d *decoder) secret(n *node, v reflect.Value, path string) {
	if n.kind != scalar {
		n.broken = true
		d.report.add(n.at, path, "must be text")
		return
	}
	if !d.empty(n, path) {
		v.SetString(n.text)
		d.origin.allowed.note(n, path, false)
	}
}

// empty reports a value that is given but blank.
func (d *decoder) empty(n *node, path string) bool {
	if n.broken || n.kind != scalar || !n.null() && strings.TrimSpace(n.text) != "" {
		return false
	}
	n.broken = true
	d.report.add(n.at, path, "is empty%s; give it a value or remove the key", emptyFrom(n))
	return true
}

// emptyFrom says that a value is empty because of its variable, which is often not set where
// the program runs.
func emptyFrom(n *node) string {
	if n.raw == "" {
		return ""
	}
	return ": " + quote(n.raw) + " expands to nothing"
}
