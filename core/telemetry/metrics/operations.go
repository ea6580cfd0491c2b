package metrics

import "github.com/eventgateway/gateway/core"

// operations counts the operations that ended. How far one is, its row says.
type operations struct{ ended words }

func newOperations(f factory) operations {
	ended := f.counter("operations_total", "Operations that ended, by how: finished, canceled or failed.", "state")
	return operations{wording(ended, []core.OperationState{core.OperationFinished, core.OperationCanceled, core.OperationFailed})}
}

func (o *operations) over(f core.OperationEnded) { o.ended.count(string(f.Operation.State)) }
