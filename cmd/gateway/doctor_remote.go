package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/eventgateway/gateway/cmd/gateway/internal/remote"
	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/wire"
)

// doctorRemote checks the gateway at --url from outside: its health, the access to its API,
// and the handlers whose breaker is open. Checks of its database and handlers need doctor on
// its machine.
func (a *app) doctorRemote(ctx context.Context) error {
	c, err := a.client(ctx)
	if err != nil {
		return err
	}
	v := visit{Client: c}
	checks := []check{v.server(ctx)}
	if v.met {
		checks = append(checks, v.security(ctx)...)
		checks = append(checks, v.clock())
		checks = append(checks, v.breakers()...)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return a.printChecks(checks)
}

// A visit is the results of the checks of a gateway from outside.
type visit struct {
	*remote.Client
	met    bool          // a gateway answered
	told   bool          // the answer had the time
	ahead  time.Duration // how far its clock is ahead of this machine's
	blur   time.Duration // the possible error of ahead
	stats  wire.Stats
	closed error // why the management API did not answer
}

// server asks the gateway for its health.
func (v *visit) server(ctx context.Context) check {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	asked := time.Now()
	response, err := v.Health(ctx)
	if err != nil {
		return check{name: "server", verdict: failed, detail: err.Error()}
	}
	defer response.Body.Close()
	v.watch(asked, response)
	c := healthOf(v.Base(), response)
	if v.met = response.Header.Get("X-Api-Version") != ""; !v.met {
		c.verdict, c.detail, c.remedy = failed, v.Stranger(response).Error(), ""
	}
	c.name = "server"
	return c
}

// watch compares clocks by the header Date, which has a resolution of 1 s.
func (v *visit) watch(asked time.Time, r *http.Response) {
	there, err := http.ParseTime(r.Header.Get("Date"))
	half := time.Since(asked) / 2
	v.told = err == nil
	v.blur = half + time.Second/2
	v.ahead = there.Add(time.Second / 2).Sub(asked.Add(half))
}

func (v *visit) clock() check {
	if !v.told {
		return check{name: "clock", verdict: skipped, detail: "the gateway does not tell the time"}
	}
	c := clockCheck(v.ahead, v.blur, "gateway's")
	c.name = "clock"
	return c
}

// security checks whether the management API needs a token.
func (v *visit) security(ctx context.Context) (found []check) {
	add := func(verdict verdict, detail, remedy string) {
		found = append(found, check{name: "security", verdict: verdict, detail: detail, remedy: remedy})
	}
	if v.Base().Scheme == "http" && !remote.Loopback(v.Base().Hostname()) {
		add(warning, fmt.Sprintf("%s is not encrypted: tokens and events can be read on the way", v.Base()), "put a proxy that speaks TLS before it, and use https")
	}
	_, err := v.Anonymous().Glance(ctx)
	switch {
	case err == nil:
		add(warning, "the management API asks for no token: everyone who reaches it may read and change everything", "set api.auth_token")
	case core.IsKind(err, core.Unauthorized) && !v.HasToken():
		add(skipped, "the management API asks for a token, and none was given", "put api.auth_token into GATEWAY_TOKEN, or a file for --token-file")
	}
	v.stats, v.closed = v.Glance(ctx)
	switch {
	case v.closed != nil && v.HasToken():
		add(failed, v.closed.Error(), "")
	case v.closed == nil && err != nil:
		add(fine, "the management API asks for a token, and takes this one", "")
	}
	return found
}

// breakers returns a warning for each handler whose breaker is not closed.
func (v *visit) breakers() (found []check) {
	if v.closed != nil {
		return []check{{name: "breakers", verdict: skipped, detail: "the management API does not answer", moot: true}}
	}
	for _, h := range v.stats.Handlers {
		if h.Breaker != wire.BreakerClosed {
			found = append(found, check{
				name: "breakers", verdict: warning,
				detail: fmt.Sprintf("that of handler %s is %s: too many deliveries failed in a row", h.Name, h.Breaker),
				remedy: fmt.Sprintf(`"gateway jobs list --handler %[1]s --status retryable --url %[2]s" shows why; when it works again, "gateway breaker reset %[1]s --url %[2]s" spares the wait`, h.Name, v.Base()),
			})
		}
	}
	if len(found) == 0 {
		found = []check{{name: "breakers", verdict: fine, detail: allClosed}}
	}
	return found
}
