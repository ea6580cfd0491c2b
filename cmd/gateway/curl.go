package main

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"

	"github.com/eventgateway/gateway/core"
)

// A curlCommand is a command for a POSIX shell that sends a recorded request again.
type curlCommand struct {
	before    string // what makes the body, with its pipe
	words     []string
	variables []string // of the shell, in place of masked values
}

// curlOf returns the command for a request, without its body.
func curlOf(x *core.Exchange) *curlCommand {
	c := &curlCommand{words: []string{"curl -i -X " + shellQuote(x.Method)}}
	// curl reads brackets and dots in an address in its own way, and adds headers of its own.
	c.add("--globoff", "--path-as-is")
	sent := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(x.Headers)) {
		sent[strings.ToLower(name)] = true
		if x.Headers[name] == "" {
			c.add("-H", always(name+";")) // how curl writes a header without a value
			continue
		}
		c.add("-H", c.masked(name+": "+x.Headers[name], variableOf(name)))
	}
	for _, name := range []string{"Accept", "Content-Type", "User-Agent", "Expect"} {
		if !sent[strings.ToLower(name)] {
			c.add("-H", always(name+":"))
		}
	}
	c.add(c.address(x.URL))
	return c
}

// address quotes a URL. Each masked value of its query gets a variable with the value's name.
func (c *curlCommand) address(url string) string {
	before, query, found := strings.Cut(url, "?")
	quoted, mark := c.masked(before, "URL_SECRET"), "?"
	if !found {
		return quoted
	}
	for pair := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(pair, "=")
		variable := "URL_" + variableOf(name)
		if name == core.Masked {
			variable = "URL_SECRET"
		}
		quoted += c.masked(mark+pair, variable)
		mark = "&"
	}
	return quoted
}

// add adds an option with its values.
func (c *curlCommand) add(words ...string) { c.words = append(c.words, strings.Join(words, " ")) }

// send adds the payload of an event as the body.
func (c *curlCommand) send(e core.Event) {
	if e.Binary {
		c.before = "printf %s " + base64.StdEncoding.EncodeToString(e.Payload) + " | base64 -d | "
	} else { // printf is built into the shell, so the text may be long
		c.before = "printf %s " + always(string(e.Payload)) + " | "
	}
	c.add("--data-binary", "@-")
}

// text returns the command, an option a line.
func (c *curlCommand) text() string { return c.before + strings.Join(c.words, " \\\n  ") }

// masked quotes a text, with a variable of the shell for each part that is masked.
func (c *curlCommand) masked(text, variable string) string {
	parts := strings.Split(text, core.Masked)
	quoted := quoteUnlessEmpty(parts[0])
	for _, part := range parts[1:] {
		quoted += `"$` + variable + `"` + quoteUnlessEmpty(part)
	}
	if len(parts) > 1 && !slices.Contains(c.variables, variable) {
		c.variables = append(c.variables, variable)
	}
	return quoted
}

func quoteUnlessEmpty(s string) string {
	if s == "" {
		return ""
	}
	return always(s)
}

// always quotes a text for the shell, whatever it contains.
func always(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// variableOf returns the name of the variable for the value of a header.
func variableOf(header string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(header))
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		return "_" + name
	}
	return name
}
