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

// Invoke answers one request. When it returns, no work of the request goes on.
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

// beside serves a request and meanwhile nudges the worker for work that the request stores.
// For example, a long poll may make messages dead, and their alerts do not wait for the end of
// the poll.
func (s *server) beside(ctx context.Context, a *assembly, serve func() error) error {
	nudging, stop := context.WithCancel(ctx)
	var nudger sync.WaitGroup
	nudger.Go(func() { a.nudger.run(nudging) })
	defer nudger.Wait()
	defer stop()
	return serve()
}

// notReady returns the error that senders see while a function cannot serve. It says whether
// trying again may help. The log has the details.
func notReady(err error) error {
	if core.IsKind(err, core.Unavailable) {
		return core.Refuse(core.Unavailable, "Service unavailable")
	}
	return errors.New("not ready")
}

// quietTime bounds the wait for background work after a request.
const quietTime = 2 * time.Second

// settle ends the background work, unless other requests are under way, and nudges the worker
// if there is work for it.
func (s *server) settle(ctx context.Context, a *assembly) {
	quiet, cancel := context.WithTimeout(ctx, quietTime)
	defer cancel()
	a.Quiet(quiet)
	if a.Minutes != nil {
		s.storeMinutes(ctx, a.Minutes.WriteFinished)
	}
	a.nudger.flush(ctx) // flush has its own time bound
}
