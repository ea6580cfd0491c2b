// Package curl writes the command for a POSIX shell that sends a recorded request again.
//
// The idea to know: the command sends the same bytes, or there is none. Secrets are masked in a recorded
// request, so the command has a variable of the shell for each masked value.
//
// curl imports core.
package curl

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/eventgateway/gateway/core"
)

// A Command is a command for a POSIX shell that sends a recorded request again.
type Command struct {
	// Variables are the variables of the shell in place of masked values.
	Variables []Variable

	before string // the command that makes the body, with its pipe
	words  []string
}

// A Variable is a variable of the shell in place of a masked value. Its name begins with
// GATEWAY_, so it is none that the shell or a program has, such as HOME or PATH.
type Variable struct{ Name, Of string }

// Of returns the command for a request of HTTP, without its body.
func Of(x *core.Exchange) *Command {
	c := &Command{words: []string{"curl -i -X " + Quote(x.Method)}}
	// curl reads brackets and dots in an address in its own way, and adds headers of its own.
	c.Add("--globoff", "--path-as-is")
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
		c.Add("-H", w.quoted())
	}
	for _, name := range []string{"Accept", "Content-Type", "User-Agent", "Expect"} {
		if !sent[strings.ToLower(name)] {
			c.Add("-H", always(name+":"))
		}
	}
	c.Add(c.address(x.URL, slices.Contains(x.Unmasked, core.UnmaskedURL)))
	return c
}

// address quotes a URL. The values of its query are masked. Its path and the names in its query may
// have masked parts, unless they are plain.
func (c *Command) address(url string, plain bool) string {
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

// Add adds an option with its values, which are quoted already.
func (c *Command) Add(words ...string) { c.words = append(c.words, strings.Join(words, " ")) }

// Send adds the payload of an event as the body.
func (c *Command) Send(e core.Event) {
	if e.Binary {
		c.before = "printf %s " + base64.StdEncoding.EncodeToString(e.Payload) + " | base64 -d | "
	} else { // printf is built into the shell, so the text may be long
		c.before = "printf %s " + always(string(e.Payload)) + " | "
	}
	c.Add("--data-binary", "@-")
}

// Text returns the command, an option a line, behind comments that name its variables.
func (c *Command) Text() string { return c.comments() + c.before + strings.Join(c.words, " \\\n  ") }

// comments returns comments of the shell that name the variables, "" if there are none.
func (c *Command) comments() string {
	if len(c.Variables) == 0 {
		return ""
	}
	text, width := "# Set these first. Their values are masked in the record:\n", 0
	for _, v := range c.Variables {
		width = max(width, len(v.Name))
	}
	for _, v := range c.Variables {
		text += fmt.Sprintf("#   %-*s  %s\n", width, v.Name, visible(v.Of))
	}
	return text
}

// mask adds a text to a word, with a variable for each part that is masked. The shell refuses the
// command if a variable is not set.
func (c *Command) mask(w *shellWord, text, name, of string) {
	parts := strings.Split(text, core.Masked)
	w.add(parts[0])
	for _, part := range parts[1:] {
		w.addVariable(c.variable(name, of))
		w.add(part)
	}
}

// variable makes a variable and returns its name. A name that another variable has gets a number.
func (c *Command) variable(name, of string) string {
	name = "GATEWAY_" + name
	free := name
	for n := 2; slices.ContainsFunc(c.Variables, func(v Variable) bool { return v.Name == free }); n++ {
		free = name + "_" + strconv.Itoa(n)
	}
	c.Variables = append(c.Variables, Variable{free, of})
	return free
}

// always quotes a text for the shell, also if it needs no quotes.
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

// visible escapes characters that could steer a terminal.
func visible(s string) string { return strings.Trim(strconv.QuoteToGraphic(s), `"`) }

// Quote quotes a text for the shell, if it needs quotes.
func Quote(s string) string {
	harmless := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._/:=@%+-", r)
	}
	if s != "" && strings.TrimLeftFunc(s, harmless) == "" {
		return s
	}
	return always(s)
}
