package boot

import (
	"context"
	"errors"
	"sync"
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
	a.database.times.Resume()
	var reply []byte
	err = s.beside(ctx, a, func() (err error) {
		reply, err = lambda.Answer(ctx, a.Handler(), event, s.log)
		return err
	})
	s.settle(ctx, a)
	return reply, err
}

// beside serves a request while the worker is nudged for work that the request stores: a
// long poll may bury messages, whose alerts do not wait for its end.
func (s *server) beside(ctx context.Context, a *assembly, serve func() error) error {
	nudging, stop := context.WithCancel(ctx)
	var nudger sync.WaitGroup
	nudger.Go(func() { a.nudger.run(nudging) })
	defer nudger.Wait()
	defer stop()
	return serve()
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
