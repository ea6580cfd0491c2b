package config

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/eventgateway/gateway/core/endpoint"
	"github.com/eventgateway/gateway/core/once"
)

// A Forbidden is the error of Load for a remote configuration whose only faults are settings
// that are left to the machine's own configuration: see Options.Remote. It unwraps to its
// Problems.
type Forbidden struct{ Problems Problems }

// Error returns one line for each problem.
func (f Forbidden) Error() string { return f.Problems.Error() }

// Unwrap returns the problems, for a caller that treats both errors alike.
func (f Forbidden) Unwrap() error { return f.Problems }

// allowVariable lists fields that a remote configuration may set although such fields are
// guarded.
const allowVariable = "GATEWAY_CONFIG_ALLOW"

// An allowance is a remote configuration's: the guarded fields that the machine lets it set,
// and the secrets that it sets. A nil allowance is for a file of the machine's own, which may
// set every field.
type allowance struct {
	listed  []string
	secrets []spelling
}

// A spelling is how a file writes a secret. Only the file's own text is kept, since the file does not contain the values of variables.
type spelling struct {
	at        position
	path      string
	own       string // the text, with variableMark for each value of a variable
	variables int
	header    bool
}

// wholly reports whether all of a secret comes from variables.
func (s spelling) wholly() bool {
	return s.variables > 0 && len(s.own) == s.variables*len(variableMark)
}

// partly reports whether a part of a secret comes from variables.
func (s spelling) partly() bool { return s.variables > 0 }

// guarded are the fields, beside secrets, that a remote configuration may set only with the
// machine's permission.
var guarded = []string{"server.allow_private_urls", "server.trust_proxy", "server.echo", "server.trusted_proxies", "sources.*.allowed_ips"}

// newAllowance reads GATEWAY_CONFIG_ALLOW: the paths of fields, separated by commas or blanks,
// with * or a name for an entry.
func newAllowance(lookup func(string) (string, bool), r *report) *allowance {
	a := &allowance{}
	if lookup == nil {
		return a
	}
	list, _ := lookup(allowVariable)
	a.listed = strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
	if len(a.listed) == 0 {
		return a
	}
	// A misspelt field would leave the refusal in force without an explanation, so it is an
	// error.
	known := append(slices.Clone(guarded), secretFields()...)
	for _, field := range a.listed {
		if !slices.Contains(known, everyEntry(field)) {
			r.stop("the environment variable "+allowVariable, 0, "%s is not a field that it can allow%s", quote(field), suggest(field, "it can allow", known))
		}
	}
	return a
}

// secretFields are the paths of all fields for secrets, with * for the names of entries.
func secretFields() (paths []string) {
	var walk func(t reflect.Type, path string, depth int)
	walk = func(t reflect.Type, path string, depth int) {
		switch {
		case t == reflect.TypeFor[Secret](), t == reflect.TypeFor[Secrets](), t == reflect.TypeFor[map[string]Secret]():
			if path = everyEntry(path); !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		case t.Kind() == reflect.Map, t.Kind() == reflect.Slice, t.Kind() == reflect.Pointer:
			if t.Kind() == reflect.Map {
				path = join(path, "*")
			}
			walk(t.Elem(), path, depth)
		case t.Kind() == reflect.Struct && depth < 6: // a step has steps
			for i := range t.NumField() {
				if key := t.Field(i).Tag.Get("yaml"); t.Field(i).IsExported() && key != "-" {
					walk(t.Field(i).Type, join(path, key), depth+1)
				}
			}
		}
	}
	walk(reflect.TypeFor[Config](), "", 0)
	return paths
}

// namedSections are the sections whose entries have names.
var namedSections = []string{"sources", "handlers", "queues", "workflows"}

var (
	// indexForm matches the index of a list item in a path.
	indexForm = once.Regexp(`\[[0-9]+\]`)
	// notInVariable matches the characters that the name of a variable cannot have.
	notInVariable = once.Regexp(`[^A-Z0-9]+`)
)

// fieldOf returns the field of a path under the name that GATEWAY_CONFIG_ALLOW uses. A field of
// a workflow's steps has its last key only. All headers are one field. Alerts are one entry, and so are the
// tokens of the API.
func fieldOf(path string) string {
	// All items of a list are one field.
	path = indexForm().ReplaceAllString(path, "")
	section, rest, _ := strings.Cut(path, ".")
	switch {
	case section == "alerts":
		return "alerts.*" + path[strings.LastIndexByte(path, '.'):]
	case strings.HasPrefix(path, "api.tokens."):
		return "api.tokens.*" + path[strings.LastIndexByte(path, '.'):]
	case !slices.Contains(namedSections, section):
		return path
	}
	name, field, _ := strings.Cut(rest, ".")
	if before, _, found := strings.Cut(field, "headers."); found {
		field = before + "headers"
	}
	return section + "." + name + "." + field[strings.LastIndexByte(field, '.')+1:]
}

// everyEntry returns a field with * in place of its entry's name.
func everyEntry(field string) string {
	field = fieldOf(field)
	section, rest, _ := strings.Cut(field, ".")
	if _, key, found := strings.Cut(rest, "."); found && slices.Contains(namedSections, section) {
		return section + ".*." + key
	}
	return field
}

// allows reports whether the machine permits a remote configuration to set the field at a path
// to any value.
func (a *allowance) allows(path string) bool {
	return a == nil || slices.Contains(a.listed, fieldOf(path)) || slices.Contains(a.listed, everyEntry(path))
}

// note remembers how a secret is written.
func (a *allowance) note(n *node, path string, header bool) {
	if a == nil {
		return
	}
	s := spelling{at: n.at, path: path, own: n.own, variables: n.variables, header: header}
	if n.raw == "" {
		s.own = n.text
	}
	a.secrets = append(a.secrets, s)
}

// judge reports the guarded settings and the secrets that a remote configuration may not
// contain.
func (a *allowance) judge(c *Config, r *report) {
	k := checker{Config: c, report: r}
	for _, f := range []struct {
		path string
		on   bool
		why  string
	}{
		{"server.allow_private_urls", c.Server.AllowPrivateURLs, "it would let the authors of this file reach services on the gateway's network"},
		{"server.trust_proxy", c.Server.TrustProxy, "clients could claim any address"},
		{"server.echo", c.Server.Echo, "it serves a receiver to everyone"},
	} {
		if f.on && !a.allows(f.path) {
			k.problem(f.path, "cannot be switched on by a remote configuration: %s; %s", f.why, a.remedy(f.path))
		}
	}
	// The secrets come in the order of the decoder, and the report sorts them.
	for _, s := range a.secrets {
		if !a.allows(s.path) && a.inPlain(c, s) {
			r.add(s.at, s.path, "contains a secret in plain text, and a remote configuration is not secret; write a variable such as ${%s} without a default; %s",
				variableFor(s.path), a.remedy(s.path))
		}
	}
}

// remedy tells an author how the machine can permit the setting.
func (a *allowance) remedy(path string) string {
	return "to allow it all the same, list " + fieldOf(path) + " in " + allowVariable + " where the gateway runs"
}

// variableFor suggests a name for the variable of a secret.
func variableFor(path string) string {
	upper := strings.ToUpper(indexForm().ReplaceAllString(path, ""))
	return exposedPrefix + notInVariable().ReplaceAllString(upper, "_")
}

// inPlain reports whether a reader of the file can see a secret. Tokens and keys must be single
// variables: with a default or a text around the variable, an empty variable would make the
// file's own text the key. Text may stand around a variable in a header (Bearer ...), in the
// address of an alert and in the URL of a database.
func (a *allowance) inPlain(c *Config, s spelling) bool {
	field := everyEntry(s.path)
	switch {
	case s.header:
		return endpoint.IsCredential(s.path[strings.LastIndexByte(s.path, '.')+1:]) && !s.partly()
	case field == "alerts.*.url":
		return !s.partly() && a.secretURL(c, s.path)
	case field == "database.url":
		return c.Database.Driver != "sqlite" && hasPassword(s.own)
	}
	return !s.wholly()
}

// secretURL reports whether the address of an alert is secret: it is the address of a chat,
// which is its credential, or it contains a credential.
func (a *allowance) secretURL(c *Config, path string) bool {
	// The number finds the type of the alert, which decides whether its address is secret.
	i := 0 // an alert that is given without a list has no number
	if number, found := strings.CutPrefix(path, "alerts["); found {
		i, _ = strconv.Atoi(strings.TrimSuffix(number, "].url"))
	}
	return i < len(c.Alerts) && (c.Alerts[i].Type != "generic" || strings.ContainsAny(c.Alerts[i].URL.Reveal(), "?@"))
}

// passwordForms find the password in the URL of a database: in its user part, in its query, and
// in the formats of the drivers' libraries.
var passwordForms = []func() *regexp.Regexp{
	once.Regexp(`^[a-z]+://[^/@:]*:([^/]*)@`),
	once.Regexp(`^[^/@:=\s]*:([^/].*)@`),
	once.Regexp(`(?i)(?:^|[?&\s])(?:password|sslpassword)\s*=\s*('[^']*'|[^&\s]*)`),
}

// hasPassword reports whether the URL of a database has a password without a variable in it.
func hasPassword(url string) bool {
	for _, form := range passwordForms {
		// A password that is a variable, in whole or in part, is not spelled out in the file.
		for _, m := range form().FindAllStringSubmatch(url, -1) {
			if m[1] != "" && !strings.Contains(m[1], variableMark) {
				return true
			}
		}
	}
	return false
}
