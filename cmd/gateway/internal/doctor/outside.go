package doctor

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/eventgateway/gateway/cmd/gateway/internal/remote"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/wire"
)

// Outside checks a running gateway through its address: its health, the access to its API, its
// clock, the handlers whose breaker is open, the holds, and the stopped lines. It returns an error only if ctx ends. Any other
// failure is the result of a check.
func Outside(ctx context.Context, c *remote.Client) ([]Check, error) {
	v := outside{Client: c}
	checks := []Check{v.server(ctx)}
	// Further checks of a server that is no gateway would only repeat that it is none.
	if v.answered {
		checks = append(checks, v.security(ctx)...)
		checks = append(checks, v.clock())
		checks = append(checks, v.breakers()...)
		checks = append(checks, v.holds()...)
		checks = append(checks, v.lines(ctx)...)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return checks, nil
}

// An outside is the results of the checks of a gateway from outside.
type outside struct {
	*remote.Client
	answered bool          // a gateway answered
	dated    bool          // the answer had the time
	ahead    time.Duration // how far its clock is ahead of this machine's
	blur     time.Duration // the possible error of ahead
	stats    wire.Stats
	apiErr   error // why the management API did not answer
}

// server asks the gateway for its health.
func (v *outside) server(ctx context.Context) Check {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	asked := time.Now()
	response, err := v.Health(ctx)
	if err != nil {
		return Check{Name: "server", Status: Failed, Detail: err.Error()}
	}
	defer response.Body.Close()
	v.watch(asked, response)
	c := healthOf(v.Base(), response)
	if v.answered = response.Header.Get("X-Api-Version") != ""; !v.answered {
		c.Status, c.Detail, c.Remedy = Failed, v.Stranger(response).Error(), ""
	}
	c.Name = "server"
	return c
}

// watch compares clocks by the header Date, which has a resolution of 1 s.
func (v *outside) watch(asked time.Time, r *http.Response) {
	there, err := http.ParseTime(r.Header.Get("Date"))
	half := time.Since(asked) / 2
	v.dated = err == nil
	// The reply was made at an unknown time between request and answer, so half of that time
	// may be the error.
	v.blur = half + time.Second/2
	v.ahead = there.Add(time.Second / 2).Sub(asked.Add(half))
}

// clock compares the gateway's clock with this machine's, as far as the header Date allows:
// differences below 1 s are not seen.
func (v *outside) clock() Check {
	if !v.dated {
		return Check{Name: "clock", Status: Skipped, Detail: "the gateway does not tell the time"}
	}
	c := clockCheck(v.ahead, v.blur, "gateway's")
	c.Name = "clock"
	return c
}

// security checks whether the management API needs a token.
func (v *outside) security(ctx context.Context) (found []Check) {
	add := func(verdict Status, detail, remedy string) {
		found = append(found, Check{Name: "security", Status: verdict, Detail: detail, Remedy: remedy})
	}
	if v.Base().Scheme == "http" && !remote.Loopback(v.Base().Hostname()) {
		add(Warning, fmt.Sprintf("%s is not encrypted: tokens and events can be read on the way", v.Base()), "put a proxy that speaks TLS before it, and use https")
	}
	// The first request has no token, since only that finds an open API. A gateway with an open
	// API also accepts a wrong token.
	_, err := v.Anonymous().Glance(ctx)
	switch {
	case err == nil:
		add(Warning, "the management API asks for no token: everyone who reaches it may read and change everything", "set api.auth_token")
	case core.IsKind(err, core.Unauthorized) && !v.HasToken():
		add(Skipped, "the management API asks for a token, and none was given", "put a token that may read into GATEWAY_TOKEN, or a file for --token-file")
	}
	v.stats, v.apiErr = v.Glance(ctx)
	switch {
	case v.apiErr != nil && v.HasToken():
		add(Failed, v.apiErr.Error(), "")
	case v.apiErr == nil && err != nil:
		add(OK, "the management API asks for a token, and takes this one", "")
	}
	return found
}

// breakers returns a warning for each handler whose breaker is not closed.
func (v *outside) breakers() (found []Check) {
	if v.apiErr != nil {
		return []Check{{Name: "breakers", Status: Skipped, Detail: "the management API does not answer", Blocked: true}}
	}
	for _, h := range v.stats.Handlers {
		if h.Breaker != wire.BreakerClosed {
			found = append(found, Check{
				Name: "breakers", Status: Warning,
				Detail: fmt.Sprintf("that of handler %s is %s: too many deliveries failed in a row", h.Name, h.Breaker),
				Remedy: fmt.Sprintf(`"gateway jobs list --handler %[1]s --status retryable --url %[2]s" shows why; when it works again, "gateway breaker reset %[1]s --url %[2]s" spares the wait`, h.Name, v.Base()),
			})
		}
	}
	if len(found) == 0 {
		found = []Check{{Name: "breakers", Status: OK, Detail: allClosed}}
	}
	return found
}

// holds describes the holds of consumers and sources. A gateway of an earlier version has no holds.
func (v *outside) holds() (found []Check) {
	if v.apiErr != nil {
		return []Check{{Name: "holds", Status: Skipped, Detail: "the management API does not answer", Blocked: true}}
	}
	now := v.stats.At.Time
	add := func(prefix string, c wire.WorkflowStats) {
		if !c.HeldSince.IsZero() {
			hold := core.Hold{Lane: wire.LaneOf(prefix + c.Name), Since: c.HeldSince.Time, Until: c.HeldUntil.Time}
			check := holdCheck(hold, now, fmt.Sprintf(" --url %s", v.Base()))
			check.Name = "holds"
			found = append(found, check)
		}
	}
	for _, h := range v.stats.Handlers {
		add("", h.WorkflowStats)
	}
	for _, q := range v.stats.Queues {
		add("queue/", q.WorkflowStats)
	}
	for _, w := range v.stats.Workflows {
		add("workflow/", w)
	}
	for _, s := range v.stats.Sources {
		add("source/", wire.WorkflowStats{Name: s.Name, HeldSince: s.HeldSince, HeldUntil: s.HeldUntil})
	}
	if len(found) == 0 {
		found = []Check{{Name: "holds", Status: OK, Detail: nothingHeld}}
	}
	return found
}

// lines describes the lines that dead jobs stop. A gateway of an earlier version has no lines.
func (v *outside) lines(ctx context.Context) (found []Check) {
	if v.apiErr != nil {
		return []Check{{Name: "lines", Status: Skipped, Detail: "the management API does not answer", Blocked: true}}
	}
	add := func(lane core.Lane, stopped int) {
		if stopped > 0 {
			found = append(found, stoppedChecks(ctx, v.Lines().List, lane, stopped, fmt.Sprintf(" --url %s", v.Base()))...)
		}
	}
	for _, h := range v.stats.Handlers {
		add(core.HandlerLane(h.Name), h.Stopped)
	}
	for _, q := range v.stats.Queues {
		add(core.QueueLane(q.Name), q.Stopped)
	}
	if len(found) == 0 {
		found = []Check{{Name: "lines", Status: OK, Detail: noneStopped}}
	}
	return found
}
