package config

import (
	"regexp"
	"strings"
)

// variable is ${NAME} or ${NAME:-default} at the start of a text. A bare $NAME is not one, nor is $$ an escape:
// JSONPaths and templates are full of dollars.
var variable = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`)

// expand replaces the variables in every scalar below n. Keys are left alone. What a variable holds is not looked at
// again, and since the tree is parsed already it cannot add to it.
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
	text, complaints := e.text(n.text)
	for _, complaint := range complaints {
		n.broken = true
		r.add(n.at, path, "%s", complaint)
	}
	n.text, n.raw = text, n.text
}

// text expands one scalar and says what is wrong with its variables.
func (e *environment) text(s string) (expanded string, complaints []string) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "${")
		b.WriteString(before)
		if !found {
			return b.String(), complaints
		}
		rest = "${" + rest
		m := variable.FindStringSubmatch(rest)
		if m == nil {
			return "", append(complaints, `"${" starts a variable here, but none follows; write ${NAME} or ${NAME:-default}`)
		}
		value, complaint := e.one(m[1], m[2] != "", m[3])
		if complaint != "" {
			complaints = append(complaints, complaint)
		}
		b.WriteString(value)
		s = rest[len(m[0]):]
	}
}

// one returns what a variable stands for. A default applies to a variable that is unset or empty, as in a shell.
func (e *environment) one(name string, hasDefault bool, fallback string) (value, complaint string) {
	if e.exposed != nil && !e.exposed(name) {
		return "", "a remote configuration may not read the environment variable " + name +
			"; name it " + exposedPrefix + strings.TrimPrefix(name, "GATEWAY_") + ", or list it in GATEWAY_CONFIG_ENV where the gateway runs"
	}
	value, ok := e.value(name)
	switch {
	case strings.Contains(fallback, "${"):
		return "", "the default of ${" + name + "} holds another variable; defaults are plain text"
	case hasDefault && value == "":
		return fallback, ""
	case !ok:
		return "", "the environment variable " + name + " is not set; set it, or write a default as in ${" + name + ":-...}"
	}
	return value, ""
}
