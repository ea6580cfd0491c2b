package main

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/eventgateway/gateway/cmd/gateway/internal/terminal"
	"github.com/eventgateway/gateway/core"
)

// A curlCommand is a command for a POSIX shell that sends a recorded request again.
type curlCommand struct {
	before    string // what makes the body, with its pipe
	words     []string
	variables []curlVariable
}

// A curlVariable is a variable of the shell in place of a masked value. Its name begins with
// GATEWAY_, so it is none that the shell or a program has, such as HOME or PATH.
type curlVariable struct{ name, of string }

// curlOf returns the command for a request, without its body.
func curlOf(x *core.Exchange) *curlCommand {
	c := &curlCommand{words: []string{"curl -i -X " + shellQuote(x.Method)}}
	// curl reads brackets and dots in an address in its own way, and adds headers of its own.
	c.add("--globoff", "--path-as-is")
	sent := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(x.Headers)) {
		sent[strings.ToLower(name)] = true
		value := x.Headers[name]
		var w shellWord
		switch {
		case value == "":
			w.add(name + ";") // how curl writes a header without a value
		case slices.Contains(x.Unmasked, name):
			w.add(name + ": " + value)
		case value == core.Masked:
			w.add(name + ": ")
			w.addVariable(c.variable("HEADER_"+variablePart(name), "the value of header "+name))
		default:
			c.mask(&w, name+": "+value, "HEADER_"+variablePart(name), "a part of header "+name)
		}
		c.add("-H", w.quoted())
	}
	for _, name := range []string{"Accept", "Content-Type", "User-Agent", "Expect"} {
		if !sent[strings.ToLower(name)] {
			c.add("-H", always(name+":"))
		}
	}
	c.add(c.address(x.URL, slices.Contains(x.Unmasked, core.UnmaskedURL)))
	return c
}

// address quotes a URL. The values of its query are masked. Its path and the names in its query may
// have masked parts, unless they are plain.
func (c *curlCommand) address(url string, plain bool) string {
	var w shellWord
	add := func(text, variable, of string) {
		if plain {
			w.add(text)
		} else {
			c.mask(&w, text, variable, of)
		}
	}
	path, query, found := strings.Cut(url, "?")
	add(path, "PATH", "a part of the path")
	if !found {
		return w.quoted()
	}
	mark := "?"
	for pair := range strings.SplitSeq(query, "&") {
		if name, value, named := strings.Cut(pair, "="); named {
			add(mark+name, "QUERY", "a name in the query")
			c.mask(&w, "="+value, "QUERY_"+variablePart(name), "the value of "+name+" in the query")
		} else {
			c.mask(&w, mark+pair, "QUERY", "a value in the query")
		}
		mark = "&"
	}
	return w.quoted()
}

// A shellWord is a word of the shell that is made of texts and variables.
type shellWord struct{ done, text string }

func (w *shellWord) add(text string) { w.text += text }

func (w *shellWord) addVariable(name string) {
	w.done, w.text = w.quoted()+`"${`+name+`?}"`, ""
}

// quoted returns the word as the shell reads it.
func (w *shellWord) quoted() string {
	if w.text == "" {
		return w.done
	}
	return w.done + always(w.text)
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

// comments returns comments of the shell that name the variables, "" if there are none.
func (c *curlCommand) comments() string {
	if len(c.variables) == 0 {
		return ""
	}
	text, width := "# Set these first. Their values are masked in the record:\n", 0
	for _, v := range c.variables {
		width = max(width, len(v.name))
	}
	for _, v := range c.variables {
		text += fmt.Sprintf("#   %-*s  %s\n", width, v.name, terminal.Visible(v.of))
	}
	return text
}

// mask adds a text to a word, with a variable for each part that is masked. The shell refuses the
// command if a variable is not set.
func (c *curlCommand) mask(w *shellWord, text, name, of string) {
	parts := strings.Split(text, core.Masked)
	w.add(parts[0])
	for _, part := range parts[1:] {
		w.addVariable(c.variable(name, of))
		w.add(part)
	}
}

// variable makes a variable and returns its name. A name that another variable has gets a number.
func (c *curlCommand) variable(name, of string) string {
	name = "GATEWAY_" + name
	free := name
	for n := 2; slices.ContainsFunc(c.variables, func(v curlVariable) bool { return v.name == free }); n++ {
		free = name + "_" + strconv.Itoa(n)
	}
	c.variables = append(c.variables, curlVariable{free, of})
	return free
}

// always quotes a text for the shell, whatever it contains.
func always(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// variablePart returns a text in the characters of a variable's name.
func variablePart(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(text))
}
