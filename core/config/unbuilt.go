package config

import "strings"

// unbuilt lists what a configuration may ask for and this version cannot run: a path in which * stands for any name,
// the choice that is meant (any, if empty), and what to say. Building a feature deletes its lines here.
var unbuilt = []struct{ path, choice, what, remedy string }{}

// Unbuilt returns one sentence for each configured feature that this version cannot run, sorted by file and line. Only
// Load knows what was configured: a Config made otherwise has none.
func (c *Config) Unbuilt() []Problem {
	r := &report{}
	if c.origin == nil {
		return nil
	}
	for path, m := range c.origin.marks {
		for _, u := range unbuilt {
			if c.origin.given(path) && matches(u.path, path) && (u.choice == "" || u.choice == m.choice) {
				r.add(m.position, path, "%s not built into this version yet; %s to start", u.what, u.remedy)
			}
		}
	}
	return r.sorted()
}

// matches tells whether a path fits a pattern, * standing for one name.
func matches(pattern, path string) bool {
	want, have := strings.Split(pattern, "."), strings.Split(path, ".")
	if len(want) != len(have) {
		return false
	}
	for i := range want {
		if want[i] != "*" && want[i] != have[i] {
			return false
		}
	}
	return true
}
