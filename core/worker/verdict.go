package worker

import (
	"slices"
	"strings"

	"github.com/eventgateway/gateway/core"
)

// verdict returns whether a reply counts as a success or a failure of the handler, or as
// neither.
func (b *Breaker) verdict(r Reply, probe bool) core.Verdict {
	class := classOf(r)
	// Counts narrows the failures that count. An answer of another class shows that the handler
	// works, so it is a success for the breaker although the delivery failed.
	answered := class == core.Class4xx || class == core.Class5xx
	switch {
	case r.Unsent:
		return core.NoVerdict
	case r.OK:
		return core.Success
	case len(b.Counts) == 0 || slices.Contains(b.Counts, class):
		return core.Failure
	case answered:
		return core.Success
	case probe:
		return core.Failure
	}
	return core.NoVerdict
}

// classOf returns the class of a failure. A reply over gRPC has no status code of HTTP. The
// codes of gRPC for trouble of the receiver itself count as 5xx.
func classOf(r Reply) core.ErrorClass {
	word, detail, _ := strings.Cut(r.Error, ": ")
	code, _, _ := strings.Cut(detail, ":")
	switch {
	case word == "timeout":
		return core.ClassTimeout
	case word != "status":
		return core.ClassNetwork
	case r.StatusCode >= 500 && r.StatusCode <= 599, r.StatusCode == 0 && slices.Contains(ownTrouble, code):
		return core.Class5xx
	}
	return core.Class4xx
}

// ownTrouble has the codes of gRPC that stand for 5xx of HTTP (google/rpc/code.proto).
var ownTrouble = []string{"UNKNOWN", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"}
