package wire

import "github.com/eventgateway/gateway/core/config"

// Rules are the rules of the configuration that a process serves: see [config.Rules].
type Rules struct {
	Configuration string            `json:"configuration"` // YAML
	Definitions   map[string]string `json:"workflow_definitions"`
}

// RulesOf returns the record of rules.
func RulesOf(r config.Rules) Rules { return Rules{r.Text, r.Definitions} }

// Core returns the rules.
func (r Rules) Core() config.Rules {
	return config.Rules{Text: r.Configuration, Definitions: r.Definitions}
}
