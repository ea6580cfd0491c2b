package config

import (
	"strings"

	"github.com/eventgateway/gateway/core"
)

// An origin remembers where each field of a configuration was written.
type origin struct {
	root  position
	marks map[string]mark
	notes []Problem // warnings of reading the files

	tree        *node                       // all of it, merged and expanded; nil if not made by Load
	lookup      func(string) (string, bool) // reads the environment; may be nil
	allowed     *allowance                  // of a remote configuration; nil for a file of the machine's own
	former      map[string]Source           // see Follow
	definitions map[string]*core.Definition // of workflows, by name; fmt does not follow pointers to the secrets in headers
}

// A mark is one field that a file gives.
type mark struct {
	position
	zero     bool   // the value equals the default without the field: false, "", []
	choice   string // the value, for a field with choices
	expanded bool   // it contains the value of a variable
}

// set reports whether a file gives the field at path, with any value.
func (o *origin) set(path string) bool {
	if o == nil {
		return false
	}
	_, ok := o.marks[path]
	return ok
}

// given reports whether a file gives the field at path a value other than the empty one.
func (o *origin) given(path string) bool {
	return o.set(path) && !o.marks[path].zero
}

// at returns the position of the field at path, or of the mapping that would contain it.
func (o *origin) at(path string) position {
	if o == nil {
		return position{}
	}
	for path != "" {
		if m, ok := o.marks[path]; ok {
			return m.position
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return o.root
}
