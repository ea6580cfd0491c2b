package config

import "github.com/eventgateway/gateway/core"

// Definition is what runs of the workflow follow, whatever the configuration says later: the workflow as it was written, merged with its overlay but with its
// variables unexpanded, so that it holds no secret that the files do not hold, and what it takes over from delivery.default_retry.
func (c *Config) Definition(workflow string) core.Definition { return core.Definition{} }

// ParseDefinition reads what Definition returned, expanding variables by lookup.
func ParseDefinition(name string, d core.Definition, lookup func(string) (string, bool)) (Workflow, error) {
	return Workflow{}, nil
}
