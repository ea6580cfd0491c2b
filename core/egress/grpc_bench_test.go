package egress

import (
	"bytes"
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/eventgateway/gateway/core"
	gatewayv1 "github.com/eventgateway/gateway/proto/gateway/v1"
)

// quickReceiver takes everything, and costs as little as a server of grpc can.
type quickReceiver struct {
	gatewayv1.UnimplementedEventReceiverServer
}

func (quickReceiver) Deliver(context.Context, *gatewayv1.DeliverRequest) (*gatewayv1.DeliverResponse, error) {
	return &gatewayv1.DeliverResponse{Success: true}, nil
}

// BenchmarkSendGRPC sets a delivery, metadata, signature and all, beside the least
// that grpc can do: the same payload in an otherwise empty request.
func BenchmarkSendGRPC(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := grpc.NewServer()
	gatewayv1.RegisterEventReceiverServer(server, quickReceiver{})
	go server.Serve(l)
	b.Cleanup(server.Stop)
	payload := bytes.Repeat([]byte(`{"order":"12345","total":"99.90"}`), 31) // 1023 bytes
	job := core.TakenJob{
		Job: core.Job{ID: "01HZY0000000000000000000JB", Attempt: 1},
		Event: core.Event{
			ID: "01HZY0000000000000000000EV", Source: "shop", Type: "order.created", ContentType: "application/json",
			Payload: payload, CreatedAt: time.UnixMilli(1_700_000_000_123),
		},
	}
	gateway := New(Options{AllowPrivate: true, Version: "1.0.0"})
	defer gateway.Close()
	send := func(secrets ...string) func(context.Context) bool {
		s := newGRPCSender(b, gateway, Target{Name: "billing", URL: "http://" + l.Addr().String(), Secrets: secrets})
		return func(ctx context.Context) bool { return s.Send(ctx, job).OK }
	}
	conn, err := grpc.NewClient("passthrough:///"+l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	bare := func(ctx context.Context) bool {
		answer, err := gatewayv1.NewEventReceiverClient(conn).Deliver(ctx, &gatewayv1.DeliverRequest{Payload: string(payload)})
		return err == nil && answer.Success
	}
	for _, c := range []struct {
		name string
		once func(context.Context) bool
	}{{"bare", bare}, {"unsigned", send()}, {"signed", send("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(4)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
					if !c.once(ctx) {
						b.Error("not delivered")
					}
					cancel()
				}
			})
		})
	}
}
