package config

import (
	"strings"

	"github.com/eventgateway/gateway/core/once"
)

// expand replaces the variables in every scalar below n: ${NAME} and ${NAME:-default}. A bare
// $NAME is no variable, and $$ is no escape: JSONPaths and templates are full of dollars. In a
// template ${{ is a dollar before a hole. Keys stay unexpanded. The value of a variable is not
// expanded again. It cannot add to the tree, which is parsed already.
func (e *environment) expand(n *node, path string, r *report) {
	for _, f := range n.fields {
		e.expand(f.value, join(path, f.key), r)
	}
	for i, item := range n.items {
		e.expand(item, index(path, i), r)
	}
	if n.kind != scalar || n.broken || n.raw != "" || !strings.Contains(n.text, "${") {
		return
	}
	x := expansion{environment: e, reported: map[string]bool{}, holes: hasHoles(path)}
	x.text(n.text)
	for _, complaint := range x.complaints {
		n.broken = true
		r.add(n.at, path, "%s", complaint)
	}
	n.text, n.raw = x.expanded.String(), n.text
	n.own, n.variables = x.own.String(), x.variables
}

// An expansion turns one scalar of a file into its value. Its time is proportional to the text:
// a file may be 1 MiB of variables.
type expansion struct {
	*environment
	expanded   strings.Builder
	own        strings.Builder // the same, with variableMark for each value of a variable
	variables  int             // variables with a value; a default is the file's own text
	complaints []string
	reported   map[string]bool // the complaints so far; each is reported once
	holes      bool            // the scalar may be a template
}

// holeFields are the fields that may be templates, in which {{ begins a hole.
var holeFields = once.Regexp(`^(handlers\.[^.]+\.transform|workflows\..*\.(input|output))$`)

// hasHoles reports whether the field at a path may be a template. There ${{ is a dollar before
// a hole, as in "${{ $.price }}". Elsewhere it is a mistake: ${{ secrets.KEY }} would become a
// key.
func hasHoles(path string) bool { return holeFields().MatchString(path) }

// variableMark stands for the value of a variable where only a file's own text matters.
const variableMark = "\x00"

// text expands a text, and notes the mistakes in its variables.
func (x *expansion) text(s string) {
	for {
		// Everything before the next reference is text.
		before, rest, found := strings.Cut(s, "${")
		x.expanded.WriteString(before)
		x.own.WriteString(before)
		if !found {
			return
		}
		if x.holes && strings.HasPrefix(rest, "{") {
			x.expanded.WriteString("$")
			x.own.WriteString("$")
			s = s[len(before)+len("$"):]
			continue
		}
		v, ok := variableAt(rest)
		if !ok {
			x.complain(`"${" starts a variable here, but none follows; write ${NAME} or ${NAME:-default}`)
			return
		}
		x.substitute(v)
		s = rest[v.length:]
	}
}

// complain notes a mistake, once for each text.
func (x *expansion) complain(what string) {
	if !x.reported[what] {
		x.reported[what] = true
		x.complaints = append(x.complaints, what)
	}
}

// A variable is a reference to an environment variable in a text.
type variable struct {
	name       string
	hasDefault bool
	fallback   string
	length     int // of the reference, from behind "${" to behind "}"
}

// variableAt reads the reference at the start of a text, behind its "${".
func variableAt(s string) (variable, bool) {
	n := 0
	for n < len(s) && (s[n] == '_' || 'a' <= s[n]|0x20 && s[n]|0x20 <= 'z' || n > 0 && '0' <= s[n] && s[n] <= '9') {
		n++
	}
	v := variable{name: s[:n]}
	rest := s[n:]
	if after, found := strings.CutPrefix(rest, ":-"); found {
		v.hasDefault, rest = true, after
	}
	end := strings.IndexByte(rest, '}')
	if n == 0 || end < 0 || !v.hasDefault && end > 0 {
		return variable{}, false
	}
	v.fallback = rest[:end]
	v.length = len(s) - len(rest) + end + 1
	return v, true
}

// substitute appends the value of a variable. A default applies to a variable that is unset or
// empty, as in a shell.
func (x *expansion) substitute(v variable) {
	if x.exposed != nil && !x.exposed(v.name) {
		x.complain("a remote configuration may not read the environment variable " + v.name +
			"; name it " + exposedPrefix + strings.TrimPrefix(v.name, "GATEWAY_") + ", or list it in GATEWAY_CONFIG_ENV where the gateway runs")
		return
	}
	value, ok := x.value(v.name)
	switch {
	case strings.Contains(v.fallback, "${"):
		x.complain("the default of ${" + v.name + "} holds another variable; defaults are plain text")
	case v.hasDefault && value == "":
		x.expanded.WriteString(v.fallback)
		x.own.WriteString(v.fallback)
	// A variable that is set and empty is no mistake.
	case !ok:
		x.complain("the environment variable " + v.name + " is not set; set it, or write a default as in ${" + v.name + ":-...}")
	case value != "":
		x.expanded.WriteString(value)
		x.own.WriteString(variableMark)
		x.variables++
	}
}
