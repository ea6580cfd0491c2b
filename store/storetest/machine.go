package storetest

import (
	"github.com/eventgateway/gateway/core"
	"testing"
)

func runModel(t *testing.T, s core.Store, o Options) {}
