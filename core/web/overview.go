package web

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	"github.com/eventgateway/gateway/core/manage"
	"github.com/eventgateway/gateway/core/wire"
)

// OverviewOptions are the dependencies of the routes about the whole gateway.
type OverviewOptions struct {
	// Stats returns the state of the gateway; see [manage.Statistics].
	Stats func(context.Context) (manage.Stats, error)

	// Curves returns how much happened in a window of time; see [manage.Series].
	Curves func(ctx context.Context, w manage.Window, lanes ...core.Lane) (manage.Curves, error)

	// Topology returns the topology of the configuration.
	Topology func() wire.Topology

	// Look returns the news since a cursor; see [manage.Tail].
	Look func(ctx context.Context, from manage.Cursor, follow []core.ID) (manage.News, error)

	// Rules returns the rules of the configuration that serves.
	Rules func() config.Rules

	// Loaded is when the process read the configuration that serves, and LastReload returns the
	// newest time that it read it again; it may return nil, and be nil.
	Loaded     time.Time
	LastReload func() *wire.Reload

	// Tokens are the tokens of the API; none leaves the routes open.
	Tokens []Token
}

// Overview returns the routes about the whole gateway: its state, its curves, its configured entries, its news,
// its rules, and the list of its routes.
func Overview(o OverviewOptions) Piece {
	return func(r chi.Router, d *Door) {
		v, token := &overviewRoutes{OverviewOptions: o}, newKeyring(o.Tokens)
		r.Get("/api/stats", d.viewing(token, d.charged(listBytes, bare(v.stats))))
		r.Get("/api/series", d.viewing(token, d.charged(seriesBytes, v.series)))
		r.Get("/api/topology", d.viewing(token, d.charged(listBytes, bare(v.topology))))
		r.Get("/api/tail", d.viewing(token, d.charged(d.pageBytes(), v.tail)))
		r.Get("/api/config", d.viewing(token, d.charged(rulesBytes, bare(v.rules))))
		r.Get("/openapi.json", d.viewing(token, d.charged(listBytes, v.describe)))
	}
}

// overviewRoutes serve the operators of the whole gateway.
type overviewRoutes struct {
	OverviewOptions
	description description
}

// stats answers with the state of every configured entry.
func (v *overviewRoutes) stats(w http.ResponseWriter, r *http.Request) error {
	stats, err := v.Stats(r.Context())
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, wire.StatsOf(stats))
	return nil
}

// seriesBytes is about how much memory the curves of 200 names of a day take, with their reply.
const seriesBytes = 2 << 20

// series answers with the curves of a window, of all names or of the names in the query.
func (v *overviewRoutes) series(w http.ResponseWriter, r *http.Request) error {
	query, err := queryOf(r, "window", "consumer", "source")
	if err != nil {
		return err
	}
	text, _, err := query.text("window")
	if err != nil {
		return err
	}
	window, err := manage.ParseWindow(clip(text))
	if err != nil {
		return err
	}
	lanes, err := lanesOf(query)
	if err != nil {
		return err
	}
	curves, err := v.Curves(r.Context(), window, lanes...)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, wire.SeriesOf(curves))
	return nil
}

// lanesOf returns the lanes of the consumer and of the source that a query names.
func lanesOf(q query) (lanes []core.Lane, err error) {
	consumer, given, err := q.text("consumer")
	if err != nil {
		return nil, err
	}
	if given {
		lane, ok := wire.ParseConsumer(consumer)
		if !ok || lane.Alert() {
			return nil, core.Refuse(core.Invalid, "consumer must be the name of a handler, or queue/ or workflow/ and the name of one; not %s", quote(consumer))
		}
		lanes = append(lanes, lane)
	}
	source, given, err := q.text("source")
	if err != nil {
		return nil, err
	}
	if given {
		lane, ok := wire.ParseTarget(string(core.SourceLane(source)))
		if !ok {
			return nil, core.Refuse(core.Invalid, "source must be the name of a source, not %s", quote(source))
		}
		lanes = append(lanes, lane)
	}
	return lanes, nil
}

// topology answers with the topology of the configuration.
func (v *overviewRoutes) topology(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, v.Topology())
	return nil
}

// rulesBytes is about how much memory a reply with rules takes: a file may have 1 MiB.
const rulesBytes = 2 << 20

// rules answers with the rules of the configuration, and when it was read.
func (v *overviewRoutes) rules(w http.ResponseWriter, _ *http.Request) error {
	reply := wire.Serving{Rules: wire.RulesOf(v.Rules()), LoadedAt: wire.Time{Time: v.Loaded}}
	if v.LastReload != nil {
		reply.LastReload = v.LastReload()
	}
	writeJSON(w, http.StatusOK, reply)
	return nil
}

// tail answers with the news since the cursor of the query.
func (v *overviewRoutes) tail(w http.ResponseWriter, r *http.Request) error {
	query, err := queryOf(r, "event", "finished", "job", "follow")
	if err != nil {
		return err
	}
	from, err := cursorOf(query)
	if err != nil {
		return err
	}
	follow, err := query.ids("follow", manage.MaxFollowed)
	if err != nil {
		return err
	}
	news, err := v.Look(r.Context(), from, follow)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, wire.NewsOf(news))
	return nil
}

// cursorOf returns the cursor of a tail.
func cursorOf(q query) (c manage.Cursor, err error) {
	if c.Event, err = q.id("event"); err != nil {
		return c, err
	}
	if c.Finished, err = q.time("finished"); err != nil {
		return c, err
	}
	// Several jobs may finish in one millisecond. The job says how many of them were returned, so
	// it means nothing without that time.
	if c.Job, err = q.id("job"); err == nil && c.Job != "" && c.Finished.IsZero() {
		err = core.Refuse(core.Invalid, "job goes with finished, the time when it did")
	}
	return c, err
}

// ids returns a parameter with up to most ids, separated by commas.
func (q query) ids(name string, most int) (ids []core.ID, err error) {
	text, given, err := q.text(name)
	if err != nil || !given {
		return nil, err
	}
	parts := strings.Split(text, ",")
	if len(parts) > most {
		return nil, core.Refuse(core.Invalid, "%s must be at most %d ids, not %d", name, most, len(parts))
	}
	for _, part := range parts {
		id, err := parseID(name, part)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}
