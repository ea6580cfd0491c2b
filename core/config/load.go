package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/joho/godotenv"

	"github.com/eventgateway/gateway/core/once"
)

// Options say from where a configuration is read.
type Options struct {
	// FS holds Path, its overlay and its .env file.
	FS fs.FS
	// Path names the base file in FS, such as gateway.yaml.
	Path string
	// Env names the overlay, such as local for gateway.local.yaml and .env.local; empty means
	// none. The overlay of another base file, such as custom.yaml, is custom.local.yaml, or
	// gateway.local.yaml if that is not there.
	Env string
	// Lookup reads the environment; nil means an empty one.
	Lookup func(string) (string, bool)
	// Remote says that the files come from elsewhere. Their author may change the
	// configuration, but is not trusted with the rest of this machine. The files can read only
	// variables whose names begin with GATEWAY_VAR_ or that GATEWAY_CONFIG_ENV lists, separated
	// by commas. There is no .env file, and a schema cannot be in a file of its own. The files
	// may not switch on server.allow_private_urls, server.trust_proxy or server.echo, nor
	// contain a secret that is not a variable, unless GATEWAY_CONFIG_ALLOW lists that field.
	// The error is Forbidden if there is no other fault. Forbids lists the settings that such a
	// configuration may not change.
	Remote bool
}

// MaxFile bounds each file, in bytes. Load refuses a larger file, and reads at most one byte
// beyond the bound.
const MaxFile = 1 << 20

// envForm has the characters of an environment's name, which becomes a part of file names.
var envForm = once.Regexp(`^[a-z0-9_-]+$`)

// Load reads, merges, expands, decodes and validates a configuration. The error is Problems,
// with everything that is wrong in any of the files, sorted by file and line, or Forbidden.
// Load reads the files each time and keeps nothing between calls.
func Load(o Options) (*Config, error) {
	l := loader{Options: o, env: environment{lookup: o.Lookup, used: map[string]bool{}}}
	// A remote configuration gets its limits before any file is read.
	var allowed *allowance
	if o.Remote {
		l.env.exposed = exposed(o.Lookup)
		if allowed = newAllowance(o.Lookup, &l.report); l.fatal {
			return nil, l.sorted()
		}
	}
	if !envForm().MatchString(o.Env) && o.Env != "" {
		l.stop(o.Path, 0, "%s is not a name of an environment; it holds only a-z, 0-9, _ and -", quote(o.Env))
		return nil, l.sorted()
	}
	tree := l.read()
	if l.fatal {
		return nil, l.sorted()
	}
	// Expansion, decoding and validation all run, so that users see all problems at once.
	l.env.expand(tree, "", &l.report)
	c := decode(tree, decoder{
		report: &l.report,
		origin: &origin{root: position{file: o.Path}, marks: map[string]mark{}, notes: l.notes, tree: tree, lookup: o.Lookup, allowed: allowed},
		file:   l.fileReader(),
	})
	c.validate(&l.report)
	if len(l.problems) == 0 {
		c.origin.definitions = definitions(tree, &l.report)
	}
	// Faults come before forbidden settings: a file with a fault is invalid, also if it asks
	// for too much.
	valid := len(l.problems) == 0
	if o.Remote {
		allowed.judge(c, &l.report)
	}
	switch {
	case len(l.problems) > 0 && valid:
		return nil, Forbidden{l.sorted()}
	case !valid:
		return nil, l.sorted()
	}
	c.DotEnv = l.env.added
	c.origin.notes = append(c.origin.notes, l.unused()...)
	return c, nil
}

// decode makes a configuration from a tree whose variables are expanded. It does not validate.
func decode(tree *node, d decoder) *Config {
	c := Default()
	c.origin = d.origin
	d.root(tree, c)
	c.resolve()
	return c
}

// Lookup returns a variable and whether it is set. It looks in the present environment, and in
// the .env file as Load read it.
func (c *Config) Lookup(name string) (string, bool) {
	if c.origin != nil && c.origin.lookup != nil {
		if v, ok := c.origin.lookup(name); ok {
			return v, true
		}
	}
	v, ok := c.DotEnv[name]
	return v.Reveal(), ok
}

// fileReader returns the function that reads files named by a configuration; nil if it may not
// name any.
func (l *loader) fileReader() func(name string) ([]byte, error) {
	if l.Remote {
		return nil
	}
	return func(name string) ([]byte, error) { return readAll(l.FS, name) }
}

// A loader carries one Load through its files.
type loader struct {
	Options
	report
	env    environment
	dotenv string    // name of the .env file that was read, or empty
	notes  []Problem // warnings
}

// read returns the merged tree of base file and overlay, and fills the environment from the
// .env file.
func (l *loader) read() *node {
	base, dotenv := l.Path, ""
	// The .env file is read first, since the variables of both files may come from it.
	if l.Env != "" && !l.Remote {
		dotenv = path.Join(path.Dir(base), ".env."+l.Env)
		l.readDotenv(dotenv)
	}
	data, ok := l.file(base)
	if !ok {
		l.stop(base, 0, `no such file; "gateway init" writes one`)
		return nil
	}
	tree := parse(base, data, &l.report)
	if len(tree.fields) == 0 && !l.fatal {
		l.stop(base, 0, `is empty; it has sections such as sources and handlers, and "gateway init" writes one to begin with`)
	}
	if l.Env == "" {
		return tree
	}
	name, overlay := l.overlay()
	if name != "" {
		merge(tree, parse(name, overlay, &l.report), "", &l.report)
	} else if l.dotenv == "" && !l.fatal {
		l.notes = append(l.notes, Problem{File: base, Message: l.fileless(dotenv)})
	}
	return tree
}

// overlays returns the possible names of the overlay: the name of the base file with the
// environment's in it, or the name of an overlay that several base files share.
func (l *loader) overlays() []string {
	ext := path.Ext(l.Path)
	own := strings.TrimSuffix(l.Path, ext) + "." + l.Env + ext
	shared := l.Path[:strings.LastIndexByte(l.Path, '/')+1] + "gateway." + l.Env + ".yaml"
	if own == shared {
		return []string{own}
	}
	return []string{own, shared}
}

// overlay reads the overlay and returns its name, which is empty if there is none. Two overlays
// are a mistake: users could not know which of them counts.
func (l *loader) overlay() (name string, data []byte) {
	for _, candidate := range l.overlays() {
		content, ok := l.file(candidate)
		switch {
		case ok && name != "":
			l.stop(candidate, 0, "is an overlay for environment %q, and so is %s; keep one", l.Env, name)
		case ok:
			name, data = candidate, content
		}
	}
	return name, data
}

// fileless returns the warning that an environment has no effect, because its files do not
// exist.
func (l *loader) fileless(dotenv string) string {
	names := l.overlays()
	if dotenv != "" {
		names = append(names, dotenv)
	}
	if len(names) == 1 {
		return fmt.Sprintf("environment %q has no file: %s does not exist", l.Env, names[0])
	}
	neither := "neither " + names[0]
	if len(names) > 2 {
		neither = "none of " + strings.Join(names[:len(names)-1], ", ")
		return fmt.Sprintf("environment %q has no files: %s and %s exists", l.Env, neither, names[len(names)-1])
	}
	return fmt.Sprintf("environment %q has no files: %s nor %s exists", l.Env, neither, names[1])
}

// readDotenv adds the variables of the .env file that the environment lacks. The parser's error
// quotes the file, which is full of secrets, so it is not passed on.
func (l *loader) readDotenv(name string) {
	data, ok := l.file(name)
	if !ok {
		return
	}
	l.dotenv = name
	vars, err := godotenv.UnmarshalBytes(data)
	if err != nil {
		l.stop(name, 0, "is not a .env file; each line is NAME=value, a comment or empty")
		return
	}
	l.env.add(vars)
}

// file returns a file's content and whether it exists. It reports every other error.
func (l *loader) file(name string) ([]byte, bool) {
	data, err := readAll(l.FS, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false
	case err != nil:
		l.stop(name, 0, "cannot be read: %v", cause(err))
	case len(data) > MaxFile:
		l.stop(name, 0, "is larger than 1 MiB")
		data = nil
	}
	return data, true
}

// readAll reads at most one byte more than a file may have.
func readAll(fsys fs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(path.Clean(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxFile+1))
}

// programVariable matches the variables that other parts of the program read from the
// environment.
var programVariable = once.Regexp(`^(RUST_LOG|NO_COLOR|GATEWAY_(LOG|LOG_FORMAT|TOKEN|CONFIG_ENV|CONFIG_ALLOW|HOSTED_SQL_API)|(OTEL|AWS|GOOGLE|AZURE)_.*)$`)

// unused warns of variables in the .env file that no part reads: most are misspelt.
func (l *loader) unused() (notes []Problem) {
	// Variables of the program itself are read elsewhere.
	used := names(l.env.used)
	for _, name := range names(l.env.file) {
		if !l.env.used[name] && !programVariable().MatchString(name) {
			notes = append(notes, Problem{File: l.dotenv, Path: name, Message: "nothing reads this variable" + suggest(name, "the configuration reads", used)})
		}
	}
	return notes
}

// An environment looks variables up: first in the process, then in the .env file. It notes each
// look-up, so that unused can report variables that nothing reads.
type environment struct {
	lookup func(string) (string, bool)
	file   map[string]string // all of the .env file
	added  map[string]Secret // its variables that the process lacks
	used   map[string]bool   // variables the configuration refers to

	exposed func(name string) bool // reports whether it may refer to a variable; nil permits all
}

// exposedPrefix begins the names of the variables that every configuration may read.
const exposedPrefix = "GATEWAY_VAR_"

// exposed returns a function that reports whether a remote configuration may read a variable.
func exposed(lookup func(string) (string, bool)) func(name string) bool {
	var listed []string
	if lookup != nil {
		list, _ := lookup("GATEWAY_CONFIG_ENV")
		listed = strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
	}
	return func(name string) bool { return strings.HasPrefix(name, exposedPrefix) || slices.Contains(listed, name) }
}

// add takes the variables of the .env file. The process's own variables win, so that a
// deployment can override the file.
func (e *environment) add(vars map[string]string) {
	e.file = maps.Clone(vars)
	e.added = map[string]Secret{}
	for name, value := range vars {
		if _, ok := e.process(name); !ok {
			e.added[name] = Secret(value)
		}
	}
}

// process reads a variable of the process.
func (e *environment) process(name string) (string, bool) {
	if e.lookup == nil {
		return "", false
	}
	return e.lookup(name)
}

// value returns a variable and whether it is set.
func (e *environment) value(name string) (string, bool) {
	e.used[name] = true
	if v, ok := e.process(name); ok {
		return v, true
	}
	v, ok := e.added[name]
	return v.Reveal(), ok
}
