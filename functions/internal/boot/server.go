package boot

import (
	"context"
	"errors"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/web"
	"github.com/eventgateway/gateway/core/web/lambda"
)

// A server is a function that answers HTTP requests.
type server struct{ *function }

// Invoke answers one request. When it returns, nothing of it goes on.
func (s *server) Invoke(ctx context.Context, event []byte) ([]byte, error) {
	s.request.set(ctx)
	a, err := s.ready(ctx)
	if err != nil {
		s.log.Error("the function is not ready", "error", err)
		return lambda.Answer(ctx, web.Refuse(notReady(err)), event, s.log)
	}
	reply, err := lambda.Answer(ctx, a.Handler(), event, s.log)
	s.settle(ctx, a)
	return reply, err
}

// notReady is what senders learn of why a function cannot serve: whether it is worth
// to try again. What else there is to know is in the log.
func notReady(err error) error {
	if core.IsKind(err, core.Unavailable) {
		return core.Refuse(core.Unavailable, "Service unavailable")
	}
	return errors.New("not ready")
}

// quietTime is how long what runs beside the requests may take to end.
const quietTime = 2 * time.Second

// settle ends what runs beside the requests, unless others are under way, and has the
// worker nudged if there is something for it to do.
func (s *server) settle(ctx context.Context, a *assembly) {
	quiet, cancel := context.WithTimeout(ctx, quietTime)
	defer cancel()
	a.Quiet(quiet)
	a.nudger.flush(ctx) // which has a time of its own
}
