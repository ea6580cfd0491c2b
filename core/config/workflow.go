package config

import "github.com/eventgateway/gateway/core/expr"

// Workflow is a pipeline of steps, started by an event.
type Workflow struct {
	// Name is the entry's key.
	Name string `yaml:"-"`
	// Source is the name of a source; required.
	Source string `yaml:"source" required:""`
	// Events are the event types that start it, exact or with * wildcards; none means all.
	Events []string `yaml:"events"`
	// Timeout is the number of seconds after which no step of a run starts, 1 to 31536000,
	// default 0: no limit.
	Timeout int `yaml:"timeout" range:"1 31536000"`
	// MaxBytes is how many bytes a run may write before it fails, 1048576 (1 MiB) to 1073741824
	// (1 GiB), default 67108864 (64 MiB). The texts that its steps receive and pass on count,
	// and its history. A state that passes unchanged from step to step does not count.
	MaxBytes int `yaml:"max_bytes" range:"1048576 1073741824"`
	// Params are the required members of the payload.
	Params []Param `yaml:"params"`
	// OnFailure names the step of Steps with which a failing run continues before it fails;
	// default none.
	OnFailure string `yaml:"on_failure"`
	// Steps run in order; required.
	Steps []Step `yaml:"steps" required:""`

	// Earlier says that this is a definition without max_bytes. An earlier version of the
	// gateway made it, and processes of that version may still work on its runs. They do not
	// touch runs of other definitions, since they do not know max_bytes.
	Earlier bool `yaml:"-"`
}

// Param is one required member of a workflow's payload.
type Param struct {
	// Name is a top-level key of the payload; required.
	Name string `yaml:"name" required:""`
	// Type is string (default), number, boolean, object or array.
	Type string `yaml:"type" oneof:"string number boolean object array"`
	// Required refuses payloads without it, default true. A param that is not required may be
	// null.
	Required bool `yaml:"required"`
}

// Step is one step of a workflow. Its Type determines which fields it may have.
type Step struct {
	// Name is unique in the workflow; required, except that an iterator without one is called
	// "item".
	Name string `yaml:"name"`
	// Type is http (default), choice, parallel, map, wait, callback or fail.
	Type string `yaml:"type" oneof:"http choice parallel map wait callback fail"`
	// URL is called by an http step (required), receives the token of a callback step, and is
	// called per item by a map step.
	URL string `yaml:"url"`
	// Method is GET, POST (default), PUT, PATCH or DELETE.
	Method string `yaml:"method" oneof:"GET POST PUT PATCH DELETE"`
	// Headers are added to the step's requests.
	Headers map[string]Secret `yaml:"headers"`
	// Retry is the policy of an http or callback step, default one attempt.
	Retry StepRetry `yaml:"retry"`
	// Catch sets the next step after a failure; the first matching entry wins.
	Catch []Catch `yaml:"catch"`
	// OnFailure is empty (default: the run fails) or continue.
	OnFailure string `yaml:"on_failure" oneof:"continue"`
	// Input is a JSONPath or template that makes the step's input, default the state itself.
	Input Parsed[*Mapping] `yaml:"input"`
	// ResultPath is the place of the result in the state: empty (default) replaces the state,
	// "null" drops the result.
	ResultPath Parsed[*expr.Path] `yaml:"result_path" null:"keep"`
	// Output is a JSONPath or template that makes the next state, default the state itself.
	Output Parsed[*Mapping] `yaml:"output"`
	// End makes this the last step, default false.
	End bool `yaml:"end"`
	// Goto names the step that comes next, default the following one.
	Goto string `yaml:"goto"`
	// Seconds is the delay of a wait step, 0 to 31536000 (one year).
	Seconds int `yaml:"seconds" range:"0 31536000"`
	// TimestampPath is a JSONPath to the time until which a wait step waits.
	TimestampPath Parsed[*expr.Reference] `yaml:"timestamp_path"`
	// CallbackTimeout is how many seconds a callback step waits, 1 to 31536000, default 0: one
	// year.
	CallbackTimeout int `yaml:"callback_timeout" range:"1 31536000"`
	// Error is the code of a fail step's error, a name; default none.
	Error string `yaml:"error"`
	// Message is the text of a fail step's error, with {{ }} as in a JSON string of a template.
	// The default is the message of the last failure that was caught.
	Message Parsed[*expr.Template] `yaml:"message"`
	// Choices are the ways out of a choice step; the first choice whose condition holds wins.
	Choices []Choice `yaml:"choices"`
	// Default names the next step of a choice step if no choice holds.
	Default string `yaml:"default"`
	// Branches are the branches that a parallel step runs side by side.
	Branches []Branch `yaml:"branches"`
	// ItemsPath is a JSONPath to the array of a map step.
	ItemsPath Parsed[*expr.Reference] `yaml:"items_path"`
	// Iterator is the step a map step runs for each item, unless it has a URL.
	Iterator *Step `yaml:"iterator"`
	// MaxConcurrency is how many items of a map step run at once, 1 to 1000, default 0: all.
	MaxConcurrency int `yaml:"max_concurrency" range:"1 1000"`
}

// StepRetry is the retry policy of a step.
type StepRetry struct {
	// Max is the number of attempts, the first included, 1 to 1000, default 1.
	Max int `yaml:"max" range:"1 1000"`
	// Backoff is exponential or fixed, default as in delivery.default_retry.
	Backoff string `yaml:"backoff" oneof:"exponential fixed"`
	// Interval is the wait after the first attempt, 1ms to 1d, default as in
	// delivery.default_retry.
	Interval Duration `yaml:"interval" range:"1ms 1d"`
	// Errors are the classes that are tried again: 5xx, 4xx, timeout, network, all; none means
	// all.
	Errors []string `yaml:"errors" oneof:"5xx 4xx timeout network all"`
}

// Catch sends a run to another step after a failure.
type Catch struct {
	// Errors are the classes that it catches: 5xx, 4xx, timeout, network, all; required.
	Errors []string `yaml:"errors" required:"" oneof:"5xx 4xx timeout network all"`
	// Goto names the step to go to; required.
	Goto string `yaml:"goto" required:""`
}

// Choice is one way out of a choice step.
type Choice struct {
	// When is a condition on the state; required. The key may also be spelled condition.
	When Parsed[*expr.Filter] `yaml:"when" alias:"condition" required:""`
	// Goto names the step to go to; required.
	Goto string `yaml:"goto" required:""`
}

// Branch is one arm of a parallel step: a single request, or a list of steps.
type Branch struct {
	// Name is the key of the branch's result; required.
	Name string `yaml:"name" required:""`
	// URL is called by a branch without Steps.
	URL string `yaml:"url"`
	// Method is GET, POST (default), PUT, PATCH or DELETE.
	Method string `yaml:"method" oneof:"GET POST PUT PATCH DELETE"`
	// Headers are added to the request.
	Headers map[string]Secret `yaml:"headers"`
	// Steps run in order in a branch without URL.
	Steps []Step `yaml:"steps"`
}
