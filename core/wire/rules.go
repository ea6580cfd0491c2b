package wire

import (
	"strings"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
)

// Rules are the rules of the configuration that a process serves: see [config.Rules].
type Rules struct {
	Configuration string            `json:"configuration"` // YAML
	Definitions   map[string]string `json:"workflow_definitions"`
}

// RulesOf returns the record of rules.
func RulesOf(r config.Rules) Rules { return Rules{r.Text, r.Definitions} }

// Serving are the rules that a process serves, and how it got them.
type Serving struct {
	Rules
	LoadedAt   Time    `json:"loaded_at"`
	LastReload *Reload `json:"last_reload"` // null: it was not read again since the process began
}

// A Reload is one reading of the configuration by a process that serves.
type Reload struct {
	At     Time              `json:"at"`
	By     core.ReloadCause  `json:"by"`
	From   string            `json:"from"`
	Result core.ReloadResult `json:"result"`
	Error  Text              `json:"error"` // null if it is followed, or unchanged
}

// maxReloadError is the longest error of a Reload, in bytes: a configuration may have any number of problems.
const maxReloadError = 4096

// ReloadOf returns the record of a reading.
func ReloadOf(at time.Time, f core.Reloaded) *Reload {
	r := &Reload{At: Time{at}, By: f.By, From: f.From, Result: f.Result}
	if f.Err != nil {
		text := f.Err.Error()
		r.Error = Text(strings.ToValidUTF8(text[:min(len(text), maxReloadError)], ""))
	}
	return r
}

// Core returns the rules.
func (r Rules) Core() config.Rules {
	return config.Rules{Text: r.Configuration, Definitions: r.Definitions}
}
