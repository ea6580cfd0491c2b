package hosted

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/infra/test/ports"
	"github.com/eventgateway/gateway/store"
)

// TestOpenSaysWhatIsWrong: each wrong setting gives one sentence that names the setting.
func TestOpenSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	h := database(t)
	api, proxy := faces["api"](h), faces["proxy"](h)
	with := func(o Options, change func(*Options)) Options {
		change(&o)
		return o
	}
	serve := func(handle http.HandlerFunc, secure bool) string {
		s := httptest.NewUnstartedServer(handle)
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		if secure {
			s.StartTLS()
		} else {
			s.Start()
		}
		t.Cleanup(s.Close)
		return s.URL
	}
	elsewhere := serve(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://example.com/raw", http.StatusPermanentRedirect)
	}, false)
	page := serve(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("<html>hello</html>")) }, false)
	secure := serve(func(w http.ResponseWriter, r *http.Request) {}, true)
	refusing := "http://" + ports.Refusing(t)
	for name, c := range map[string]struct {
		o    Options
		kind core.Kind
		want string
	}{
		"no token":      {with(api, func(o *Options) { o.APIToken = "" }), core.Invalid, "database.api_token is missing: Cloudflare's API needs it"},
		"odd token":     {with(api, func(o *Options) { o.APIToken = "a\nb" }), core.Invalid, "database.api_token has a blank or a character that no token has"},
		"no account":    {with(api, func(o *Options) { o.AccountID = "" }), core.Invalid, "database.account_id is missing: Cloudflare's API needs it"},
		"no database":   {with(api, func(o *Options) { o.DatabaseID = "" }), core.Invalid, "database.database_id is missing: Cloudflare's API needs it"},
		"malformed":     {Options{Endpoint: "proxy.example.com", APIToken: "t"}, core.Invalid, "database.hosted_sql_endpoint must be a URL like https://host/path, without user, query and fragment"},
		"with user":     {Options{Endpoint: "https://u:secret@example.com", APIToken: "t"}, core.Invalid, "database.hosted_sql_endpoint must be a URL like https://host/path, without user, query and fragment"},
		"malformed API": {with(api, func(o *Options) { o.API = "ftp://x" }), core.Invalid, "GATEWAY_HOSTED_SQL_API must be a URL like https://host/path, without user, query and fragment"},
		"wrong token": {with(api, func(o *Options) { o.APIToken = "other" }), core.Invalid,
			"Cloudflare refuses database.api_token: it must be a token of database.account_id " + h.Account + " with the permission D1 Edit (status 401, code 10000: Authentication error)"},
		"token without rights": {with(api, func(o *Options) { o.APIToken = h.WithoutRights() }), core.Invalid,
			"Cloudflare refuses database.api_token: it must be a token of database.account_id " + h.Account + " with the permission D1 Edit (status 403, code 10000: Authentication error)"},
		"wrong account": {with(api, func(o *Options) { o.AccountID = "0" }), core.Invalid,
			"Cloudflare refuses database.api_token: it must be a token of database.account_id 0 with the permission D1 Edit (status 403, code 7403: The given account is not valid or is not authorized to access this service)"},
		"unknown database": {with(api, func(o *Options) { o.DatabaseID = "nine" }), core.Invalid,
			"Cloudflare has no D1 database nine in account " + h.Account + ": check database.database_id and database.account_id (status 404, code 7404: The database nine could not be found)"},
		"odd database": {with(api, func(o *Options) { o.DatabaseID = "a/b" }), core.Invalid, "Cloudflare has no D1 database a/b in account"},
		"proxy's token": {with(proxy, func(o *Options) { o.APIToken = "other" }), core.Invalid,
			"the proxy at " + h.Endpoint + " refuses database.api_token: it must be the Worker's secret API_TOKEN (status 401, code 10000: missing or wrong bearer token)"},
		"proxy without token": {with(proxy, func(o *Options) { o.APIToken = "" }), core.Invalid, "the proxy at " + h.Endpoint + " refuses database.api_token"},
		"proxy's path": {with(proxy, func(o *Options) { o.Endpoint += "/deeper" }), core.Invalid,
			"there is no D1 proxy at " + h.Endpoint + "/deeper: check database.hosted_sql_endpoint (status 404, code 7003: "},
		"redirect": {Options{Endpoint: elsewhere, APIToken: "t"}, core.Invalid,
			elsewhere + " sends requests elsewhere (status 308: to https://example.com/raw): set database.hosted_sql_endpoint to the address it names"},
		"a page": {Options{Endpoint: page, APIToken: "t"}, core.Unavailable,
			"the database at " + page + " does not answer as D1 does: check database.hosted_sql_endpoint and the network: status 200: not an answer of D1: <html>hello</html>"},
		"nothing there": {Options{Endpoint: refusing, APIToken: "t"}, core.Unavailable,
			"the database at " + refusing + " cannot be reached: check database.hosted_sql_endpoint and the network: dial tcp " + refusing[len("http://"):] + ": connect: connection refused"},
		"API not there": {with(api, func(o *Options) { o.API = refusing }), core.Unavailable, "the database at " + refusing + " cannot be reached: check the network: dial tcp"},
		"unknown host": {Options{Endpoint: "https://d1.invalid", APIToken: "t"}, core.Unavailable,
			"the database at https://d1.invalid cannot be reached: check database.hosted_sql_endpoint and the network: dial tcp: lookup d1.invalid"},
		"certificate": {Options{Endpoint: secure, APIToken: "t"}, core.Invalid,
			"no secure connection to " + secure + ": check database.hosted_sql_endpoint, and the certificates of this machine (tls: failed to verify certificate: x509"},
		"not secure": {Options{Endpoint: "https" + page[len("http"):], APIToken: "t"}, core.Invalid,
			"no secure connection to https" + page[len("http"):] + ": check database.hosted_sql_endpoint, and the certificates of this machine (http: server gave HTTP response to HTTPS client)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := Open(context.Background(), c.o)
			if err == nil {
				conn.Close()
				t.Fatal("Open = nil, want an error")
			}
			var r *core.Refusal
			if !errors.As(err, &r) || r.Kind != c.kind || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("Open = %v\nwant kind %d: %s", err, c.kind, c.want)
			}
			if len(c.o.APIToken) > 3 && strings.Contains(err.Error(), c.o.APIToken) {
				t.Errorf("Open = %v, which shows the token", err)
			}
		})
	}
}

// TestTokenIsHidden: an error does not show the token, even if the server repeats it.
func TestTokenIsHidden(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "you sent "+r.Header.Get("Authorization"), http.StatusForbidden)
	}))
	defer s.Close()
	_, err := Open(context.Background(), Options{Endpoint: s.URL, APIToken: "s3cr3t-t0k3n"})
	if err == nil || strings.Contains(err.Error(), "s3cr3t") || !strings.Contains(err.Error(), "(the token)") {
		t.Errorf("Open = %v, want an error without the token", err)
	}
}

// TestRightsLost: a token without rights makes the database unavailable, because the operator can
// repair that and the sender cannot.
func TestRightsLost(t *testing.T) {
	t.Parallel()
	c := connect(t, faces["api"](database(t)))
	c.target.token = "other"
	_, err := c.Batch(context.Background(), store.Stmt{Name: "ask", SQL: "SELECT 1", Reads: true})
	if !core.IsKind(err, core.Unavailable) || !strings.Contains(err.Error(), "Cloudflare refuses database.api_token") {
		t.Errorf("Batch = %v, want unavailable, and why", err)
	}
}

// tables returns the names of all tables except the engine's own.
func tables(t *testing.T, c store.Conn) (names []string) {
	t.Helper()
	res, err := c.Batch(context.Background(), store.Stmt{Name: "tables",
		SQL: "SELECT name FROM sqlite_master WHERE name NOT LIKE '@_cf%' ESCAPE '@' AND name NOT LIKE 'sqlite%'", Reads: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range res[0].Rows {
		names = append(names, row[0].(string))
	}
	return names
}

func TestProbesLeaveNothing(t *testing.T) {
	t.Parallel()
	h := database(t)
	first := connect(t, faces["api"](h))
	if n := first.Requests(); n != 2 {
		t.Errorf("Open sent %d requests, want 2", n)
	}
	var all sync.WaitGroup
	for _, face := range faces {
		for range 3 {
			all.Go(func() {
				c, err := Open(context.Background(), face(h))
				if err != nil {
					t.Errorf("Open beside others = %v", err)
					return
				}
				c.Close()
			})
		}
	}
	all.Wait()
	if got := tables(t, first); len(got) > 0 {
		t.Errorf("after probes there are tables %q, want none", got)
	}
}

// A torn connection runs the statements of a batch one by one.
type torn struct{ store.Conn }

func (c torn) Batch(ctx context.Context, stmts ...store.Stmt) (results []store.Result, err error) {
	for _, s := range stmts {
		r, err := c.Conn.Batch(ctx, s)
		if err != nil {
			return nil, err
		}
		results = append(results, r...)
	}
	return results, nil
}

func TestProbeRefusesHalves(t *testing.T) {
	t.Parallel()
	c := connect(t, faces["proxy"](database(t)))
	err := store.ProveAtomic(context.Background(), torn{c})
	if !core.IsKind(err, core.Invalid) || !strings.Contains(err.Error(), "keeps half of a batch") {
		t.Errorf("ProveAtomic(torn) = %v, want it refused", err)
	}
	if got := tables(t, c); len(got) > 0 {
		t.Errorf("after the probe there are tables %q, want none", got)
	}
}
