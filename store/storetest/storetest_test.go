package storetest

import (
	"testing"

	"github.com/eventgateway/gateway/core"
)

// TestModel runs the whole suite on the model. A suite that refuses the model would refuse every
// correct store, so a failure here is an error in a check or in the model. Under the race detector
// the checks with one caller are left out: each method of the model holds its lock throughout.
func TestModel(t *testing.T) {
	Run(t, func(t *testing.T) core.Store { return NewModel(core.SystemClock) }, Options{Sampled: raceDetector})
}
