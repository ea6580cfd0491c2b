package intake

import "github.com/eventgateway/gateway/core"

// Foresee returns the arrival that Receive would store of a stored event, were the event received
// by this Intake at the time of its CreatedAt. It stores nothing. The error is the [core.Refusal]
// with which Receive would refuse the event.
//
// The stored event lacks parts of its request. So Foresee makes no check of the sender: kind of the
// route, address and signature. It takes the type of the event and the sender's id as they are
// stored, and it knows no delay that the sender asked for. It serves no slots: an event of a schedule
// is weighed like any other.
//
// The ids of the jobs and runs follow from the id of the event. They are not the ids of stored jobs
// and runs.
func (in *Intake) Foresee(e core.Event) (core.Arrival, error) {
	s, ok := in.sources[e.Source]
	switch {
	case !ok:
		return core.Arrival{}, errUnknownSource
	case e.Binary && !s.Binary:
		return core.Arrival{}, errNotUTF8
	}
	block, _ := core.BlockOf(e.ID)
	return in.weigh(s, e, block)
}
