//go:build nogrpc

package egress

import (
	"context"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/worker"
)

// channels is empty without gRPC.
type channels struct{}

func (*channels) close() {}

// GRPC makes senders that always fail. It is for programs that deliver nothing, and are
// smaller without gRPC: functions that receive events, or serve consumers.
func (c *Client) GRPC(Target) (worker.Sender, error) { return noGRPC{}, nil }

type noGRPC struct{}

// Send implements [worker.Sender].
func (noGRPC) Send(context.Context, core.TakenJob) worker.Reply {
	return worker.Reply{Error: "protocol: gRPC is not built into this program"}
}
