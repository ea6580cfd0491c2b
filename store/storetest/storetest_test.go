package storetest

import (
	"testing"

	"github.com/eventgateway/gateway/core"
)

func TestModel(t *testing.T) {
	Run(t, func(t *testing.T) core.Store { return NewModel(core.SystemClock) })
}
