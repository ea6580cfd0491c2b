package config

import (
	"maps"
	"slices"
)

// health checks the settings of an alert on health. A setting for a kind that the alert does not
// list is probably a kind that was forgotten.
func (k *checker) health(path string, a Alert) {
	if len(a.On) == 0 {
		return // reported as missing
	}
	for _, f := range []struct {
		field, example string
		missing        bool // although the kind of the same name needs it
		kinds          []string
	}{
		{"interval", "", false, []string{"circuit_opened", "circuit_closed", "lag"}},
		{"lag", "{older_than: 5m}", !k.origin.set(path + ".lag"), []string{"lag"}},
		{"held", "", false, []string{"held"}},
		{"quiet", "{stripe: 1h}", !k.origin.given(path + ".quiet"), []string{"quiet"}},
	} {
		here := path + "." + f.field
		wanted := slices.ContainsFunc(f.kinds, func(kind string) bool { return slices.Contains(a.On, kind) })
		switch given := k.origin.given(here); {
		case given && !wanted && !k.reported(path+".on"):
			k.problem(here, "is for alerts of %s; list %s under on, or remove %s", listed(f.kinds), f.kinds[0], f.field)
		case wanted && f.missing && !k.reported(here):
			k.problem(here, "is required, since on lists %s: a mapping such as %s", f.field, f.example)
		}
	}
	for _, source := range slices.Sorted(maps.Keys(a.Quiet)) {
		if _, known := k.Sources[source]; !known {
			k.problem(path+".quiet."+source, "there is no source %s%s", quote(source), k.report.suggest(source, "the sources are", k.sourceNames))
		}
	}
}
