package telemetry

import "github.com/eventgateway/gateway/core"

// Names is what is configured, as far as measurements are told apart by it. Whatever
// else comes up is [Other] in them, so that nobody outside can make more of them.
type Names struct {
	Sources, Handlers, Queues []string
	Workflows                 map[string][]string  // the steps of each, at any depth
	Alerts                    map[core.Lane]string // the type of each place
}

// Other stands for all names that are not configured.
const Other = "other"
