package wire

// Topology has the configured sources, the consumers of their events, and the places for alerts.
// It has no secrets. Lists are by name, and never null.
type Topology struct {
	Sources   []ConfiguredSource   `json:"sources"`
	Consumers []ConfiguredConsumer `json:"consumers"` // handlers, then queues, then workflows
	Alerts    []ConfiguredAlert    `json:"alerts"`
}

// A ConfiguredSource is an entrance for events. A field that does not apply to its type is absent.
type ConfiguredSource struct {
	Name string `json:"name"`
	Type string `json:"type"` // webhook, event, sns or cron

	// Path is the path to which senders post; "{event_type}" stands for the type of the event.
	Path string `json:"path,omitempty"`

	Verify string `json:"verify,omitempty"` // the signature scheme of a webhook; absent if it has none

	Schedule string `json:"schedule,omitempty"` // of type cron, as configured
	Timezone string `json:"timezone,omitempty"`
	Next     []Time `json:"next,omitempty"` // the next times at which it makes an event, [NextTimes] at most
}

// NextTimes is how many times of a schedule a topology has.
const NextTimes = 3

// A ConfiguredConsumer is a handler, a queue or a workflow, with the events that it wants. A setting
// that is not made is absent.
type ConfiguredConsumer struct {
	Name string `json:"name"` // as other routes name it: with queue/ or workflow/ before it if it is no handler
	Kind string `json:"kind"` // handler, queue or workflow

	Source         string   `json:"source"`
	Events         []string `json:"events"` // patterns of types; empty for all
	Filter         string   `json:"filter,omitempty"`
	IdempotencyKey string   `json:"idempotency_key,omitempty"`
	Delay          float64  `json:"delay_seconds,omitzero"`
	Lines          *Lined   `json:"lines,omitempty"`

	Attempts int `json:"attempts,omitzero"` // the most attempts of a job; absent if it has no limit, and for a workflow

	// Of a handler.
	URL       string `json:"url,omitempty"` // without user, password, query and fragment, which may be secrets
	Protocol  string `json:"protocol,omitempty"`
	Method    string `json:"method,omitempty"`
	Transform bool   `json:"transform,omitzero"`
	RateLimit int    `json:"rate_limit,omitzero"` // deliveries a second

	// Of a queue.
	VisibilityTimeout float64 `json:"visibility_timeout_seconds,omitzero"`

	// Of a workflow.
	Steps []string `json:"steps,omitempty"` // the names of its steps, without those inside of steps
}

// Lined says how the jobs of a consumer wait for each other.
type Lined struct {
	Key    string `json:"key"`
	Limit  int    `json:"limit"`
	OnDead string `json:"on_dead"`
}

// A ConfiguredAlert is a place to which alerts are posted.
type ConfiguredAlert struct {
	Name string   `json:"name"` // its number in the configuration, from 1
	Host string   `json:"host"`
	Type string   `json:"type"`
	On   []string `json:"on"`
}
